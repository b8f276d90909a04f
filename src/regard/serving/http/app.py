"""The application: paths, and who answers them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from regard.core.version import __version__
from regard.serving.guard import Refused
from regard.serving.http.client import EngineClient
from regard.serving.http.errors import JSON, Error, error_object
from regard.serving.http.gate import Gate
from regard.serving.http.metrics import KIND
from regard.serving.http.others import Others
from regard.serving.http.pages import page
from regard.serving.http.schema import (
    ChatRequest,
    CompletionRequest,
    EmbeddingRequest,
    ExplainRequest,
    PredictRequest,
    ScoreRequest,
)
from regard.serving.http.settings import Settings
from regard.serving.http.texts import Texts

LEFT = 499  # nobody reads the answer
SILENT = 10.0  # seconds without a word of the engine after which it is taken for stuck
LAB_GETS = ("/api/runs", "/api/examples")
LAB_POSTS = ("/api/run", "/api/tokens", "/api/view", "/api/example", "/api/progress", "/api/row")
# A parameter that a path names.
NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}

Handler = Callable[[Request], Awaitable[Response]]


class Server:
    """The application and what it holds: the engine's client, and whether it is about to end."""

    def __init__(self, settings: Settings, engine: EngineClient) -> None:
        self.settings, self.engine = settings, engine
        self.texts, self.others = Texts(engine, settings), Others(engine, settings)

    def drain(self) -> None:
        """Take no more requests; those underway go on."""
        self.texts.draining = True

    def application(self) -> ASGIApp:
        """Every path behind the gate."""
        api = FastAPI(
            title="regard",
            version=__version__,
            description="Sequence models of every family behind the API that clients of OpenAI's speak.",
            docs_url=None,
            redoc_url=None,
        )
        posts: list[tuple[str, Handler, Any]] = [
            ("/v1/completions", self.texts.completions, CompletionRequest),
            ("/v1/chat/completions", self.texts.chat, ChatRequest),
            ("/v1/embeddings", self.others.embeddings, EmbeddingRequest),
            ("/v1/predict", self.others.predict, PredictRequest),
            ("/v1/score", self.others.score, ScoreRequest),
            ("/v1/explain", self.others.explain, ExplainRequest),
        ]
        parts: dict[str, Any] = {}  # of which requests consist
        for path, handler, kind in posts:
            schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
            parts |= schema.pop("$defs", {})
            body = {"required": True, "content": {"application/json": {"schema": schema}}}
            about = {"openapi_extra": {"requestBody": body}, "description": kind.__doc__}
            api.add_api_route(path, handler, methods=["POST"], response_class=Response, **about)
        gets: list[tuple[str, Handler]] = [
            ("/v1/models", self.others.models),
            ("/v1/models/{name:path}", self.others.model),
            ("/health", self.health),
            ("/health/live", self.live),
            ("/health/ready", self.ready),
            ("/metrics", self.metrics),
        ]
        for path, handler in gets:
            extra: dict[str, Any] | None = {"parameters": [NAME]} if "{name" in path else None
            api.add_api_route(path, handler, methods=["GET"], response_class=Response, openapi_extra=extra)
        hidden: list[tuple[str, Handler, str]] = [("/v1/responses", self.others.responses, "POST")]
        hidden += [(path, self.others.lab, "GET") for path in LAB_GETS]
        hidden += [(path, self.others.lab, "POST") for path in LAB_POSTS]
        hidden += [("/api/lectures", self.others.no_lectures, "GET")]
        hidden += [(path, page, "GET") for path in ("/", "/lab", "/docs", "/web/{name}")]
        for path, handler, method in hidden:
            api.add_api_route(path, handler, methods=[method], include_in_schema=False, response_class=Response)
        api.openapi().setdefault("components", {})["schemas"] = parts  # which is kept, and answered again and again
        api.add_exception_handler(HTTPException, _as_error)
        api.add_exception_handler(Refused, _refused)
        api.add_exception_handler(ConnectionAbortedError, _left)
        api.add_exception_handler(Exception, _failed)
        known = frozenset(one[0] for one in (*posts, *gets, *hidden))
        return Gate(api, self.engine, self.settings, known)

    @property
    def is_ready(self) -> bool:
        fresh = time.monotonic() - self.engine.heard < SILENT
        return self.engine.ready and fresh and not self.texts.draining

    async def health(self, request: Request) -> Response:
        # Who has no key is told of no run.
        models = {} if self.settings.keys else {"models": sorted(self.engine.models)}
        return JSONResponse({"live": True, "ready": self.is_ready} | models, 200 if self.is_ready else 503)

    async def live(self, request: Request) -> Response:
        return JSONResponse({"live": True})

    async def ready(self, request: Request) -> Response:
        return JSONResponse({"ready": self.is_ready}, 200 if self.is_ready else 503)

    async def metrics(self, request: Request) -> Response:
        return Response(self.engine.metrics.text(self.engine.state, self.is_ready), media_type=KIND)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    told = error if isinstance(error, Error) else Error(error.status, str(error))
    headers = told.headers | ({"Connection": "close"} if told.status in (408, 413) else {})
    return Response(told.body(), told.status, headers, media_type=JSON)


async def _left(*_: object) -> Response:
    return Response(status_code=LEFT)


async def _failed(request: Request, _: Exception) -> Response:
    told = Error(500, "the server failed on this request; its log says more", code="internal_error")
    return await _refused(request, told)


async def _as_error(request: Request, error: Exception) -> Response:
    """What the framework refuses, such as an unknown path, in the form of everything else."""
    assert isinstance(error, HTTPException)
    message = f"there is nothing at {request.url.path[:200]}" if error.status_code == 404 else str(error.detail)
    return JSONResponse(error_object(error.status_code, message), error.status_code, error.headers)
