"""Images in transcripts: the bytes where they are at hand, else what is known of them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from ..caching import Cache, open_cache
from ..errors import CacheError, CacheMiss, InputError
from ..evaluators.shown import Image, image_of
from ..servers import blob
from .elements import Html, element

#: What is shown as a picture; of any other type only its name is.
MIMES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp")


class Images:
    """The images of runs, which `run` keeps in its cache.

    Parameters
    ----------
    cache : Cache, path, None or False
        As in `run`. A default folder that is not there holds no images.
    """

    def __init__(self, cache: Any = None) -> None:
        self._given, self._store = cache, None
        if cache is not None:
            self._store = False if cache is False else open_cache(cache, replay=True)

    def _cache(self) -> Cache | bool:
        """The cache, opened when the first image asks for it."""
        if self._store is None:
            try:
                self._store = open_cache(None, replay=True)
            except (InputError, CacheError):
                self._store = False
        return self._store

    def element(self, part: Mapping[str, Any]) -> Html | None:
        """The picture that a part of a message or a result is, or a line that says which; None where it is none."""
        image = image_of(part)
        if image is None:
            return None
        data = image.data if image.data is not None else self._kept(image)
        declared = image.declared.strip("[]")
        if data is None or image.mime not in MIMES:
            return element("p", declared, cls="quiet")
        source = f"data:{image.mime};base64,{base64.b64encode(data).decode()}"
        return element("figure", element("img", src=source, alt=declared), element("figcaption", declared))

    def _kept(self, image: Image) -> bytes | None:
        store = self._cache()
        if store is False:
            return None
        try:
            return blob(image.sha256, store)
        except (CacheMiss, CacheError):
            return None
