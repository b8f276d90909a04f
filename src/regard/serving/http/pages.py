"""Pages of a server: one on which served runs are tried, that of the lab, and one that lists what may be asked."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from regard.serving.http.errors import Error

TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
PAGES = {"/": "serve.html", "/lab": "lab.html", "/docs": "api.html"}


async def page(request: Request) -> Response:
    """A page, or one of its modules, and no other file."""
    name = PAGES.get(request.url.path) or request.path_params.get("name", "")
    content = web_files().get(name)
    if content is None:
        raise Error(404, "there is nothing of this name")
    return Response(content, media_type=TYPES[name.rpartition(".")[2]])


@cache
def web_files() -> dict[str, bytes]:
    """Everything that can be fetched, by its name: the lab's modules and the server's own."""
    found = {}
    for place in (files("regard.explain") / "web", files("regard.serving") / "web"):
        for file in place.iterdir():
            if file.name.rpartition(".")[2] in TYPES:
                found[file.name] = file.read_bytes()
    return found
