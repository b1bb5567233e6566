"""`serve`: the pages of a folder, on loopback, for the browser of this machine alone."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ..errors import InputError, McpevalError
from .elements import element
from .sections import card
from .shell import Page, page
from .watching import Folder

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def serve(folder: str | os.PathLike[str], *, port: int = 0) -> None:
    """Show a folder in the browser until Ctrl-C: a running experiment, or the report of one that is done.

    Parameters
    ----------
    folder : path
        That of the cache which `run` and `score` fill: how far they are, what was paid, the last
        errors; the page looks again each second. Where there are files of runs and scores (``.parquet``,
        ``.csv``, ``.jsonl``), the report of the newest, made anew when one changes.
    port : int
        By default a free one.

    Raises
    ------
    InputError
        There is no such folder, or the port cannot be had.

    Notes
    -----
    It listens on 127.0.0.1 alone, answers GET alone, and only those who ask for it by that name.
    """
    with Dashboard(folder, port=port) as dashboard:
        print(f"{dashboard.url}  (Ctrl-C ends it)", flush=True)
        with suppress(KeyboardInterrupt):  # how it is ended: nothing was broken off
            dashboard.wait()


class Dashboard:
    """What `serve` shows, in a thread of its own; in a ``with`` statement it ends with the block.

    Attributes
    ----------
    url : str
        Where it is: ``http://127.0.0.1:PORT/``.
    """

    def __init__(self, folder: str | os.PathLike[str], *, port: int = 0) -> None:
        if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < 65536:
            raise InputError(f"serve: port={port!r} should be a number from 0 to 65535")
        watched = Folder(folder)
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(watched))
        except OSError as error:
            raise InputError(f"serve: port={port} cannot be had: {error.strerror or error}") from error
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, name="mcpeval-serve", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait for its end; an interrupt is heard."""
        while self._thread.is_alive():
            self._thread.join(0.2)

    def close(self) -> None:
        """Stop answering and give the port back."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Dashboard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _handler(folder: Folder) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "mcpeval", ""
        timeout = 30  # seconds for which one who asks may say nothing

        def do_GET(self) -> None:
            own = self.server.server_port
            # A page elsewhere may have its own name point here (DNS rebinding): then it asks for that name.
            if self.headers.get("Host") not in (f"127.0.0.1:{own}", f"localhost:{own}"):
                return self._send(403, "text/plain", "ask for 127.0.0.1")
            path = self.path.partition("?")[0]
            try:
                status, kind, text = _answer(folder, path)
            except McpevalError as error:
                status, kind, text = 500, "text/html", str(_failed(str(error)))
            except Exception as error:  # a folder that is gone, a file of others': who asks is told, not left waiting
                status, kind, text = 500, "text/html", str(_failed(f"{type(error).__name__}: {error}"))
            return self._send(status, kind, text)

        def _send(self, status: int, kind: str, text: str) -> None:
            data = text.encode("utf-8", "replace")
            with suppress(ConnectionError, TimeoutError):  # the tab was closed meanwhile
                self.send_response(status)
                for name, value in {**_HEADERS, "Content-Type": f"{kind}; charset=utf-8"}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            """Say nothing on stderr."""

    return Handler


def _answer(folder: Folder, path: str) -> tuple[int, str, str]:
    """Status, type and text of what is at `path`."""
    if path == "/status.json":
        return 200, "application/json", json.dumps(folder.status())
    if path == "/report" or (path == "/" and folder.names() and not folder.is_cache()):
        return 200, "text/html", str(folder.report())
    if path == "/":
        return 200, "text/html", str(_watch(folder))
    if path == "/favicon.ico":  # which browsers ask for of themselves
        return 204, "image/x-icon", ""
    return 404, "text/plain", "there is no such page"


def _watch(folder: Folder) -> Page:
    """The page that `watch.js` fills, again and again."""
    body = element(
        "main",
        element("h1", folder.path.name),
        element("p", str(folder.path), cls="lead"),
        element("p", "waiting for the first news", cls="quiet", id="news", aria_live="polite"),
        element("div", id="work"),
        card("Kept in the cache", element("div", id="cache")),
        element("p", element("a", "Report of the files in this folder", href="report"), id="files", hidden=True),
        cls="page",
    )
    return page(f"{folder.path.name}: progress", body, scripts=["watch.js"], connects=True)


def _failed(why: str) -> Page:
    note = element("p", why, cls="failure")
    return page("No report", element("main", element("h1", "There is no report"), note, cls="page"))
