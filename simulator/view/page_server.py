"""The server of the page: for whoever has the token, on this machine alone, and for reading alone."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ...agents.errors import InputError
from ...agents.input_files import read_bytes
from ..storage.files import json_text
from .followed import FollowedRuns, details, experiments, listed

try:
    from tornado import web
    from tornado.httpserver import HTTPServer
    from tornado.netutil import bind_sockets
except ImportError as error:
    raise InputError("hushnet view needs tornado; install it with: pip install 'hushnet[view]'") from error

FOLDER = Path(__file__).parent
HOST = "127.0.0.1"
FILES = {
    "/": ("view.html", "text/html"),
    "/view.css": ("view.css", "text/css"),
    "/view.js": ("view.js", "text/javascript"),
}
"""What is served as it is: the file, and what it is."""
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Server": "hushnet",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MADE_POLICY = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'"
"""For reports and replays, which state a policy of their own that admits no connection: they act for nobody here."""
MADE = ("report", "replay")


class View:
    """What all requests of a server share: a folder of results, or of several.

    With `trust_code`, replays may run Python files that a scenario names.
    """

    def __init__(self, root: Path, *, trust_code: bool = False) -> None:
        self.root, self.trust_code = root, trust_code
        self.token = secrets.token_urlsafe(32)
        self.hosts: set[str] = set()
        self.making = asyncio.Semaphore(1)
        self._followed: dict[Path, FollowedRuns] = {}

    def folder(self, name: str) -> Path:
        """Folder of an experiment by its name, which is one of those that are listed."""
        found = experiments(self.root).get(name)
        if found is None:
            raise web.HTTPError(404, reason="no such experiment")
        return found

    def followed(self, name: str) -> FollowedRuns:
        """The runs of an experiment, as far as they were read before."""
        folder = self.folder(name)
        return self._followed.setdefault(folder, FollowedRuns(folder))

    async def made(self, what: str, folder: Path, run: str) -> bytes:
        """Make a report or a replay in a process of its own, outside of the results."""
        with tempfile.TemporaryDirectory() as place:
            page = Path(place) / "page.html"
            words = [what, str(folder.absolute()), "--out", str(page), *(["--run", run] if run else [])]
            words += ["--trust-code"] if what == "replay" and self.trust_code else []
            async with self.making:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "hushnet.simulator.cli", *words),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.PIPE,
                )
                try:
                    _, said = await process.communicate()
                finally:
                    if process.returncode is None:
                        process.kill()
            if process.returncode:
                raise InputError(said.decode(errors="replace").strip())
            return read_bytes(page)


class Handler(web.RequestHandler):
    """A request, refused unless it comes to this machine's name with the token."""

    view: View

    def initialize(self, view: View) -> None:
        """Take what requests share."""
        self.view = view

    def set_default_headers(self) -> None:
        """Admit nothing that the page does not need."""
        for name, value in HEADERS.items():
            self.set_header(name, value)
        self.set_header("Content-Security-Policy", POLICY)

    def prepare(self) -> None:
        """Refuse other hosts, by whose names other pages could reach this one, and whoever lacks the token."""
        if self.request.host not in self.view.hosts:
            raise web.HTTPError(403, reason="another host")
        given = self.get_query_argument("token", "")
        if given and self._is_token(given):
            self.set_cookie(self._cookie, given, httponly=True, samesite="Strict", path="/")
            self.redirect("/")
        elif not self._is_token(self.get_cookie(self._cookie) or ""):
            raise web.HTTPError(403, reason="open the address that hushnet view has printed")

    @property
    def _cookie(self) -> str:
        """Cookies are shared by all ports of a host."""
        return f"hushnet-{self.request.host.rpartition(':')[2]}"

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.view.token.encode())

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """One sentence, as text."""
        error = kwargs.get("exc_info", (None, None))[1]
        if isinstance(error, InputError):
            self.set_status(400)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(str(error) if isinstance(error, InputError) else f"{status_code}: {self._reason}")

    def log_exception(self, *about: Any) -> None:
        """What is wrong with a request is its sender's to read."""
        if not isinstance(about[1], InputError | web.HTTPError):
            super().log_exception(*about)

    def answer(self, content: Any) -> None:
        """Answer with JSON."""
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(json_text(content, indent=None, sort_keys=False))


class FileHandler(Handler):
    """The page and its style and script."""

    def get(self) -> None:
        """Give a file of this package."""
        name, kind = FILES[self.request.path]
        self.set_header("Content-Type", f"{kind}; charset=utf-8")
        self.finish(read_bytes(FOLDER / name))


class ListHandler(Handler):
    """All experiments and their states."""

    def get(self) -> None:
        """List them."""
        self.answer([listed(name, folder) for name, folder in experiments(self.view.root).items()])


class RunsHandler(Handler):
    """Runs of an experiment."""

    def get(self) -> None:
        """Give those from a rank on, which are all if another experiment has been run since."""
        runs = self.view.followed(self.get_query_argument("experiment"))
        runs.follow()
        text = self.get_query_argument("from", "0")
        first = int(text) if text.isdecimal() and self.get_query_argument("era", "") == runs.era else 0
        shown = {"era": runs.era, "from": first, "left": runs.left, "metrics": runs.metrics}
        self.answer({**shown, "rows": runs.rows[first:]})


class RunHandler(Handler):
    """One run in detail."""

    def get(self) -> None:
        """Give its scenario and its curves."""
        folder = self.view.folder(self.get_query_argument("experiment"))
        self.answer(details(folder, _run_of(self)))


class MadeHandler(Handler):
    """A report, or the replay of a run."""

    async def get(self, what: str) -> None:
        """Make it anew."""
        folder = self.view.folder(self.get_query_argument("experiment"))
        page = await self.view.made(what, folder, _run_of(self) if what == "replay" else "")
        self.set_header("Content-Security-Policy", MADE_POLICY)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(page)


def _run_of(handler: Handler) -> str:
    """The run that is asked for, which is a name and no path."""
    name = handler.get_query_argument("run")
    if not name.isalnum():
        raise web.HTTPError(404, reason="no such run")
    return name


def application(view: View) -> web.Application:
    """All that may be asked, by GET alone."""
    shared = {"view": view}
    return web.Application(
        [
            *((path, FileHandler, shared) for path in FILES),
            ("/experiments", ListHandler, shared),
            ("/runs", RunsHandler, shared),
            ("/run", RunHandler, shared),
            (f"/({'|'.join(MADE)})", MadeHandler, shared),
        ],
        default_handler_class=_Nothing,
        default_handler_args=shared,
        log_function=lambda handler: None,
    )


class _Nothing(Handler):
    def prepare(self) -> None:
        super().prepare()
        raise web.HTTPError(404)


def serve(root: Path, port: int, say: Callable[[str], object], *, trust_code: bool = False) -> None:
    """Serve the page about a folder of results, or of several, until somebody interrupts, and say its address.

    Port 0 of this machine's own network takes one that is free. Replays may run Python files that a scenario names if
    code is trusted. Raises `InputError` if there are no results, or the port is taken.
    """
    if not root.is_dir() or not experiments(root):
        raise InputError(f"{root}: holds no results; give a folder of results, or the one that such folders are in")
    try:
        asyncio.run(_serve(View(root, trust_code=trust_code), port, say))
    except KeyboardInterrupt:
        say("view: ended")


async def _serve(view: View, port: int, say: Callable[[str], object]) -> None:
    try:
        sockets = bind_sockets(port, HOST)
    except OSError as error:
        raise InputError(f"--port {port}: cannot be used ({error.strerror}); 0 takes one that is free") from error
    bound = sockets[0].getsockname()[1]
    view.hosts = {f"{HOST}:{bound}", f"localhost:{bound}"}
    HTTPServer(application(view), max_body_size=0).add_sockets(sockets)
    say(f"view: http://{HOST}:{bound}/?{urlencode({'token': view.token})}")
    await asyncio.Event().wait()
