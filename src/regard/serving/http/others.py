"""The other endpoints of /v1: models, embeddings, predictions, scores, looks inside; and what the lab's page asks."""

from __future__ import annotations

import base64
import struct
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from regard.serving.engine.placeless import placeless
from regard.serving.guard import Refused
from regard.serving.http.answering import one_answer
from regard.serving.http.body import asked, content, parsed
from regard.serving.http.client import EngineClient
from regard.serving.http.errors import Error
from regard.serving.http.names import named
from regard.serving.http.schema import Asked, EmbeddingRequest, ExplainRequest, PredictRequest, ScoreRequest
from regard.serving.http.settings import Settings
from regard.serving.wanted import LONGEST

# A page with its scripts inside, that may call nobody.
ALONE = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; sandbox allow-scripts"
)
# Options of predictions that are numbers, and the most that each may be.
COUNTS = {"max_tokens": 1 << 20, "top_k": 2**31, "seed": 2**62, "beam": 16, "n_best": 16}
NUMBERS = COUNTS | {"temperature": 100, "top_p": 1, "min_p": 1, "alpha": 10, "coverage": 10}
OPTIONS = (*NUMBERS, "length_penalty", "stop")
WAITING = 32  # questions that are answered or wait, beside those for texts


class Others:
    def __init__(self, engine: EngineClient, settings: Settings) -> None:
        self.engine, self.settings = engine, settings
        self.begun = int(time.time())
        self.waiting = 0

    async def models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [self._model(name) for name in self.settings.paths]})

    async def model(self, request: Request) -> Response:
        return JSONResponse(self._model(named(request.path_params["name"], self.settings.paths)))

    async def embeddings(self, request: Request) -> Response:
        given = await asked(request, EmbeddingRequest)
        model = named(given.model, self.settings.paths)
        inputs = given.inputs
        found = await self._ask(request, "embed", model, {"input": inputs, "pooling": given.pooling})
        told = [_vector(vector, given.encoding_format) for vector in found["vectors"]]
        data = [{"object": "embedding", "index": index, "embedding": one} for index, one in enumerate(told)]
        usage = {"prompt_tokens": found["tokens"], "total_tokens": found["tokens"]}
        return JSONResponse({"object": "list", "model": model, "data": data, "usage": usage})

    async def predict(self, request: Request) -> Response:
        given = await asked(request, PredictRequest)
        self._check_options(given.options)
        return await self._listed(request, "predict", given, {"input": given.inputs, "options": given.options})

    async def score(self, request: Request) -> Response:
        given = await asked(request, ScoreRequest)
        return await self._listed(request, "score", given, {"input": given.inputs})

    async def explain(self, request: Request) -> Response:
        given = await asked(request, ExplainRequest)
        model, html = named(given.model, self.settings.paths), given.format == "html"
        about = {"input": given.input, "view": given.view, "options": given.options, "html": html}
        found = await self._ask(request, "explain", model, about)
        if html:
            return Response(found, media_type="text/html", headers={"Content-Security-Policy": ALONE})
        return JSONResponse({"object": "view", "model": model, "view": found})

    async def responses(self, request: Request) -> Response:
        told = "/v1/responses is not served: use /v1/completions, or /v1/chat/completions of a model with a template"
        raise Error(404, told, code="unsupported_endpoint")

    async def lab(self, request: Request) -> Response:
        """A question of the lab's page, in the form that it knows."""
        post = request.method == "POST"
        try:
            about = parsed(await content(request)) if post else None
            if post and not isinstance(about, dict):
                raise Error(400, "a question is a JSON object")
            message = {"path": request.url.path, "post": post}
            return JSONResponse(await self._ask(request, "lab", "", about, message))
        except Refused as error:
            return JSONResponse({"error": str(error)}, error.status)

    async def no_lectures(self, request: Request) -> Response:
        """None: the cells of a lecture are code, which a server runs for nobody."""
        return JSONResponse({"lectures": []})

    def _check_options(self, options: dict[str, Any]) -> None:
        """Refuse options that name a file, and those that ask for more than others may."""
        unknown = sorted(set(options) - set(OPTIONS))
        if unknown:
            raise Error(400, f"options: {unknown[0][:100]!r} is none of {', '.join(OPTIONS)}", param="options")
        for name in NUMBERS.keys() & options.keys():
            if not _is_number(options[name], NUMBERS[name], whole=name in COUNTS):
                kind = "whole number" if name in COUNTS else "number"
                told = f"options: {name}: expected a {kind} of at most {NUMBERS[name]:,}"
                raise Error(400, told, param="options")
        stops = options.get("stop", [])
        if not all(isinstance(one, str) and one for one in (stops if isinstance(stops, list) else [stops])):
            raise Error(400, "options: stop: expected a text, or a list of texts", param="options")
        if options.get("max_tokens", 0) > self.settings.max_tokens:
            raise Error(400, f"options: max_tokens: {self.settings.max_tokens:,} are the most", param="options")

    async def _listed(self, request: Request, verb: str, given: Asked, about: dict[str, Any]) -> Response:
        model = named(given.model, self.settings.paths)
        if not about["input"]:
            raise Error(400, "input: there is nothing to answer", param="input")
        found = await self._ask(request, verb, model, about)
        data = [{"index": index, **one} for index, one in enumerate(found)]
        return JSONResponse({"object": "list", "model": model, "data": data})

    async def _ask(
        self, request: Request, verb: str, model: str, about: Any, more: dict[str, Any] | None = None
    ) -> Any:
        if self.waiting >= WAITING:
            raise Error(503, "too many questions are waiting: try again later", code="overloaded", retry=2)
        request.state.facts["model"] = model
        message = {"do": "work", "verb": verb, "run": model, "asked": about, "seconds": LONGEST, **(more or {})}
        message["client"] = request.state.client
        self.waiting += 1
        try:
            return await one_answer(self.engine, message, request.receive, min(LONGEST, self.settings.timeout))
        finally:
            self.waiting -= 1

    def _model(self, name: str) -> dict[str, Any]:
        """A run as clients know models; what it is in `regard`, once it is in memory, or why it could not be loaded."""
        about = self.engine.models.get(name)
        if about is None and name in self.engine.failed:
            about = {"error": placeless(self.engine.failed[name], name, self.settings.paths[name]), "window": None}
        found = {"id": name, "object": "model", "created": self.begun, "owned_by": "regard", "regard": about}
        return found | ({} if not about or not about["window"] else {"max_model_len": about["window"]})


def _is_number(value: Any, most: float, *, whole: bool) -> bool:
    kind = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    return kind and -most <= value <= most


def _vector(vector: list[float], form: str) -> list[float] | str:
    if form == "float":
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
