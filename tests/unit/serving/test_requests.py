"""What a request becomes before the engine sees it: its messages, or a refusal in one line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from awaited import awaited

pytest.importorskip("starlette")

from starlette.requests import Request

from regard.serving.http.body import parsed
from regard.serving.http.client import EngineClient, Mailbox
from regard.serving.http.errors import Error
from regard.serving.http.metrics import Metrics
from regard.serving.http.settings import Settings
from regard.serving.http.texts import Texts
from regard.serving.wire import Message

SETTINGS = Settings({"a": Path("a")})


class Engine(EngineClient):
    """A client of an engine that notes what is sent."""

    def __init__(self) -> None:
        super().__init__(SETTINGS, Metrics())
        self.sent: list[Message] = []

    def submit(self, messages: Sequence[Message]) -> tuple[Mailbox, list[int]]:
        self.sent += messages
        return Mailbox(), list(range(len(messages)))


def posted(**body: Any) -> Request:
    async def receive() -> Message:
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    return Request({"type": "http", "headers": [], "state": {"facts": {}, "client": ""}}, receive)


def sent(**body: Any) -> list[Message]:
    """What the engine is asked for a request for completions."""
    engine = Engine()
    awaited(Texts(engine, SETTINGS).completions(posted(**body)))
    return engine.sent


def refusal(**body: Any) -> Error:
    with pytest.raises(Error) as found:
        sent(**body)
    assert found.value.status == 400
    return found.value


def test_without_a_seed_every_prompt_has_one_of_its_own() -> None:
    seeds = [message["seed"] for message in sent(prompt=["the cat"] * 3)]
    assert len(set(seeds)) == 3


def test_a_seed_that_is_given_is_that_of_every_prompt_so_that_each_is_as_it_would_be_alone() -> None:
    assert [message["seed"] for message in sent(prompt=["the cat", "a dog"], seed=5)] == [5, 5]
    assert [message["seed"] for message in sent(prompt="a dog", seed=5)] == [5]


@pytest.mark.parametrize("bias", [100.5, -101, 1e39, -1e300])
def test_a_bias_is_at_most_a_hundred(bias: float) -> None:
    """As clients know it; one of 1e39 made logits of float32 no numbers, of which the last token was drawn."""
    with pytest.raises(Error, match=r"logit_bias\.5: .* -?100") as found:
        sent(prompt="the cat", logit_bias={"5": bias})
    assert (found.value.status, found.value.param) == (400, "logit_bias")
    assert [message["bias"] for message in sent(prompt="the cat", logit_bias={"5": 100, "6": -100})] == [
        {"5": 100, "6": -100}
    ]


def test_an_option_that_is_null_was_not_asked_for() -> None:
    nothing = {"stream_options": {"include_usage": None}, "metadata": {"a": None}, "logit_bias": {"5": None}}
    schema = {"enum": ["a", None], "default": None}
    form = {"type": "json_schema", "pattern": None, "json_schema": {"schema": schema, "strict": None}}
    (plain,) = sent(
        prompt="the cat", seed=1, response_format={"type": "json_schema", "json_schema": {"schema": schema}}
    )
    assert sent(prompt="the cat", seed=1, **nothing, response_format=form) == [plain]


def test_null_in_a_schema_is_a_value() -> None:
    form = {"type": "json_schema", "json_schema": {"schema": {"const": None}}}
    assert "null" in sent(prompt="", response_format=form)[0]["pattern"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"stop": ["a" * 201]}, "stop.0: String should have at most 200 characters"),
        ({"stop": ["a"] * 9}, "stop: List should have at most 8 items"),
        ({"stop": ["a", ""]}, "stop.1: String should have at least 1 character"),
        ({"stop": 5}, "stop: Input should be a valid string"),
        ({"prompt": []}, "prompt: List should have at least 1 item"),
        ({"prompt": [[]]}, "prompt.0: List should have at least 1 item"),
        ({"prompt": [-1]}, "prompt.0: Input should be greater than or equal to 0"),
        ({"prompt": [[1], [2, -1]]}, "prompt.1.1: Input should be greater than or equal to 0"),
        ({"prompt": [1, "a"]}, "prompt.1: Input should be a valid integer"),
        ({"prompt": ["a", "b", 5]}, "prompt.2: Input should be a valid string"),
        ({"prompt": ["a"] * 65}, "prompt: List should have at most 64 items"),
        ({"prompt": [[1]] * 65}, "prompt: List should have at most 64 items"),
        ({"prompt": [1] * ((1 << 17) + 1)}, "prompt: List should have at most 131072 items"),
        ({"prompt": {"a": 1}}, "prompt: Input should be a valid string"),
        ({"n": 0, "stop": []}, "n: Input should be greater than or equal to 1"),
    ],
)
def test_what_is_wrong_is_told_of_the_kind_that_was_given(wrong: dict[str, Any], told: str) -> None:
    found = refusal(**wrong)
    assert str(found).startswith(told)
    assert found.param == told.partition(":")[0].split(".")[0]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"max_tokens": ' + b"9" * 5000 + b"}", "a number has too many digits"),
        (b'{"n": NaN}', "the request is not JSON: NaN is no number of it"),
        (b'{"n": 1, "n": 2}', "the request is not JSON: a field is given twice"),
        (b'{"n": 1,}', "the request is not JSON: "),
    ],
)
def test_what_is_no_request_is_told_without_words_of_python(body: bytes, told: str) -> None:
    with pytest.raises(Error) as found:
        parsed(body)
    assert str(found.value).startswith(told)
    assert "sys." not in str(found.value)
