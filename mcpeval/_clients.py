"""The client libraries, LiteLLM and Instructor: loaded when they are first needed, and quiet.

The only module that imports them; importing LiteLLM costs seconds.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache as memo
from typing import Any

#: Where LiteLLM has those who are told of calls, and what counts their price as they end.
_LISTENERS = (
    *("callbacks", "input_callback", "success_callback", "failure_callback", "service_callback"),
    *("_async_input_callback", "_async_success_callback", "_async_failure_callback", "max_budget"),
)


async def loaded(load: Callable[[], Any]) -> Any:
    """A library whose import takes seconds, in which the loop goes on."""
    return load() if load.cache_info().currsize else await asyncio.to_thread(load)


@memo
def litellm() -> Any:
    # Before the import: LiteLLM fetches its price map from the network else; prices are those of its version.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # In a thread of its own: an interrupt in the midst of it would leave half a library, which importing
    # it again does not mend.
    thread = threading.Thread(target=_import, args=("litellm",), daemon=True)
    thread.start()
    thread.join()
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    _silence("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
    # LiteLLM makes its coroutine in a thread; a call cancelled meanwhile leaves it there, unharmed but reported.
    warnings.filterwarnings("ignore", r"coroutine '\w+\.\w*completion\w*' was never awaited", RuntimeWarning)
    return litellm


@memo
def instructor() -> Any:
    _silence("instructor")
    import instructor
    import instructor.core.exceptions

    return instructor


@contextmanager
def unlogged(params: Mapping[str, Any]) -> Iterator[None]:
    """Let LiteLLM make no record of a call for its loggers where there are none.

    The price is found all the same.  With a callback, a budget of LiteLLM's or LITELLM_LOG it works as ever.
    """
    library, internal = litellm(), _internal()
    heard = "LITELLM_LOG" in os.environ or any(getattr(library, name, None) for name in _LISTENERS)
    if internal is None or heard or any("callback" in name for name in params):
        yield
        return
    token = internal.set(True)
    try:
        yield
    finally:
        internal.reset(token)


@memo
def _internal() -> ContextVar[bool] | None:
    """What LiteLLM marks calls with that another call keeps the record of; None in a version that has it not."""
    with suppress(ImportError):
        from litellm._internal_context import is_internal_call

        return is_internal_call
    return None


def _import(name: str) -> None:
    with suppress(Exception):  # the caller meets it again
        importlib.import_module(name)


def _silence(*loggers: str) -> None:
    """What these libraries log is in the errors that are raised; LITELLM_LOG lets it be seen."""
    if "LITELLM_LOG" not in os.environ:
        for name in loggers:
            logging.getLogger(name).setLevel(logging.CRITICAL)
