"""Working folders: a fresh copy of a task's seed for each run, and what the run has changed in it."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputError, did_you_mean

#: What a seed may hold: a copy of it is made for each run.
MAX_FILES, MAX_BYTES = 20_000, 2 * 2**30
#: Of the files that a run has changed: how many are listed, the longest text that is kept, and of all together.
LISTED, TEXT, TEXTS = 1000, 64 * 1024, 2**20

#: Places of one name, which as many runs at the same time can have.
_TRIES = 1000


@dataclass(frozen=True)
class Seed:
    """What a working folder begins with.

    Attributes
    ----------
    path : Path or None
        None for an empty folder.
    files : dict of str to str
        What is in it, by paths relative to it: the sha256 of each file's content, ``-> target`` of a
        link, ``/`` of a folder; an executable file's begins with ``x``.
    """

    path: Path | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Of the content, wherever it lies."""
        text = "".join(f"{name}\0{what}\0" for name, what in sorted(self.files.items()))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def read_seed(path: str | None, where: str) -> Seed:
    """The seed in the folder `path`; the empty one for None.

    Parameters
    ----------
    path : str or None
    where : str
        What errors begin with.

    Raises
    ------
    InputError
        There is no such folder; it has more than `MAX_FILES` files or `MAX_BYTES` bytes; or it holds a
        link that leads out of it, which copies would share, a pipe, a socket or a device.
    """
    if path is None:
        return Seed()
    root = Path(path)
    if not os.path.isdir(root):  # not root.is_dir(), which raises where a name is too long
        beside = [entry.name for entry in root.parent.iterdir() if entry.is_dir()] if root.parent.is_dir() else []
        raise InputError(f"{where}: workdir={path!r} is no folder. {did_you_mean(root.name, beside)}")
    files: dict[str, str] = {}
    size = 0
    for entry in _entries(root):
        name = str(entry.relative_to(root))
        try:
            files[name] = _content(entry, root)
            size += entry.lstat().st_size
        except (OSError, ValueError) as error:
            raise InputError(f"{where}: workdir={path!r}: {name}: {error}") from None
        if len(files) > MAX_FILES or size > MAX_BYTES:
            raise InputError(
                f"{where}: workdir={path!r} holds more than {MAX_FILES} files or {MAX_BYTES // 2**20} MiB "
                f"(at {name}); every run gets a copy, so give it a smaller folder"
            )
    return Seed(root, files)


def _entries(root: Path) -> Iterator[Path]:
    """Everything below `root`, in order; links are not followed."""
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted([*folders, *names]):
            yield Path(folder, name)


def _content(path: Path, root: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        target = os.readlink(path)
        if os.path.isabs(target) or not (path.parent / target).resolve().is_relative_to(root.resolve()):
            raise ValueError(f"it is a link to {target}, which leads out of the folder")
        return f"-> {target}"
    if stat.S_ISDIR(mode):
        return "/"
    if not stat.S_ISREG(mode):
        raise ValueError("it is neither a file nor a folder nor a link")
    with path.open("rb") as file:
        return ("x" if mode & 0o100 else "") + hashlib.file_digest(file, "sha256").hexdigest()


class Workdir:
    """The working folder of one run, from `make` to `remove`.

    Its path is made of the run's id, so that a run which is made again after a crash asks its models
    the same, and what was paid for is found in the cache.  A lock tells a folder that is in use from
    one that was left behind.

    Attributes
    ----------
    path : Path
    """

    def __init__(self, seed: Seed, run_id: str) -> None:
        self.seed, self._run_id = seed, run_id
        self._lock = -1
        self.path = Path()

    def make(self) -> Workdir:
        """Claim a place and copy the seed there.

        Raises
        ------
        OSError
            The disk is full, or the seed has changed in the meantime.
        """
        home = next((home for home in map(self._place, range(_TRIES)) if self._claim(home)), None)
        if home is None:
            raise OSError(f"no working folder can be made in {tempfile.gettempdir()}")
        self.path = home / "work"
        if os.path.lexists(self.path):
            _remove(self.path)
        if self.seed.path is None:
            self.path.mkdir()
        else:
            shutil.copytree(self.seed.path, self.path, symlinks=True)
            self.path.chmod(0o700)
        return self

    def _place(self, number: int) -> Path:
        name = f"mcpeval-{self._run_id}" + (f"-{number}" if number else "")
        return Path(tempfile.gettempdir()).resolve() / name

    def _claim(self, home: Path) -> bool:
        """Whether `home` is now this run's: nobody else's folder, and locked by nobody."""
        import fcntl  # which only working folders need, and not every system has

        lock = None
        try:
            home.mkdir(mode=0o700, exist_ok=True)
            about = home.lstat()
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
                return False
            lock = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = os.fstat(lock).st_ino == (home / "lock").stat().st_ino  # else its owner has removed it just now
        except OSError:
            held = False
        if held:
            self._lock = lock
        elif lock is not None:
            os.close(lock)
        return held

    def changes(self) -> dict[str, Any]:
        """What the run has changed.

        Returns
        -------
        dict
            ``seed``: sha256 of what was there in the beginning. ``files``: by relative path, sorted,
            ``change`` (added, modified, removed) and, of a file that is there, ``size`` (bytes),
            ``sha256`` and ``text`` (None where it is no UTF-8 or too long). ``unlisted``: how many
            more files have changed.
        """
        now: dict[str, str] = {}
        for entry in _entries(self.path):
            try:
                now[str(entry.relative_to(self.path))] = _content(entry, self.path)
            except (OSError, ValueError) as error:
                now[str(entry.relative_to(self.path))] = f"? {error}"
        changed = [name for name in sorted({*now, *self.seed.files}) if now.get(name) != self.seed.files.get(name)]
        left = TEXTS
        files: dict[str, Any] = {}
        for name in changed[:LISTED]:
            about, length = self._change(name, now.get(name), left)
            files[_shown(name)], left = about, left - length
        return {"seed": self.seed.sha256, "files": files, "unlisted": max(0, len(changed) - LISTED)}

    def _change(self, name: str, now: str | None, left: int) -> tuple[dict[str, Any], int]:
        """What is said of one changed path, and how many bytes of text that takes."""
        if now is None:
            return {"change": "removed"}, 0
        change = {"change": "modified" if name in self.seed.files else "added"}
        if now[:2] in ("->", "? ") or now == "/":
            return {**change, "size": None, "sha256": None, "text": None, "what": _shown(now)}, 0
        path, size, text = self.path / name, None, None
        with suppress(OSError, UnicodeDecodeError):  # a server may still be at work there
            size = path.stat().st_size
            text = path.read_bytes().decode("utf-8") if size <= min(TEXT, left) else None
        return {**change, "size": size, "sha256": now.lstrip("x"), "text": text}, size if text is not None else 0

    def keep(self, folder: Path) -> None:
        """Move the folder to `folder`, in the place of what was kept there of the same run."""
        target = folder / self._run_id
        if target.is_dir():
            _remove(target)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.move(self.path, target)

    def remove(self) -> None:
        """Remove the folder, whatever its files' permissions are, and give the place back."""
        if self._lock >= 0:
            _remove(self.path.parent)
            os.close(self._lock)
            self._lock = -1


def _shown(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _remove(folder: Path) -> None:
    def allow(function: Callable[[str], Any], path: str, _: Any) -> None:
        """Once more, with the permissions that it takes."""
        for one in (os.path.dirname(path), path):
            if not os.path.islink(one) and os.path.isdir(one):
                os.chmod(one, 0o700)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            function(path)

    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder, onerror=allow)
    elif os.path.lexists(folder):
        folder.unlink()
