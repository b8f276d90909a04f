"""Requests by chance, for benchmarks/serve_stress.py: good ones with every setting there is, and malformed ones."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

WORDS = ("the", "a", "cat", "dog", "went", "to", "old", "house", "and", "sang", "in", "was")
SCHEMA = {"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": {"type": "boolean"}}, "required": ["a", "b"]}
FORMS: tuple[Any, ...] = (
    {"type": "text"},
    {"type": "regex", "pattern": "[a-z ]{3,30}"},
    {"type": "json_object"},
    {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}},
)
# A good request of every path, to begin with.
GOOD: Mapping[str, dict[str, Any]] = {
    "/v1/completions": {"prompt": "the cat", "max_tokens": 2, "temperature": 0.5, "stop": ["x"]},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "the cat"}], "max_tokens": 2},
    "/v1/embeddings": {"input": ["the cat", "a dog"], "encoding_format": "float"},
    "/v1/predict": {"input": ["the cat"], "options": {"max_tokens": 2}},
    "/v1/score": {"input": ["the cat"]},
    "/v1/explain": {"input": "the cat", "options": {}},
}
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**30, -(2**63), 2**63 - 1, 1e300, -1e300, 5e-324, float("inf"), float("nan")),
    *("", "\u0000", "\u202e", "\ud800", "9" * 500, "../../etc/passwd", [], [[]], [[[]]], {}, [1e9], [0], [2**31 - 1]),
    *({"a": {"b": []}}, {"0": 1e300}, {"1": -1e300}, {"type": "regex", "pattern": "(a*)*b|[^"}, ["the"] * 3000),
)
MORE = ("n", "seed", "logit_bias", "model", "response_format", "top_k", "min_p", "logprobs", "echo", "stream", "zzz")
HEADS = ("", "", "", "Content-Type: text/plain\r\n", "Content-Type: application/json\r\nX: \x01\r\n")


def wish(chance: random.Random, number: int, run: str, continues: bool) -> dict[str, Any]:
    """A completion with some of all settings. continues: whether the run goes on with what it is given."""
    asked = {
        "model": run,
        "prompt": prompt(chance),
        "max_tokens": chance.choice([1, 8, 24]),
        "seed": number,
        "n": chance.choice([1, 1, 1, 3]),
        "temperature": chance.choice([0.0, 0.7, 1.0, 1.5]),
        "stream": chance.random() < 0.5,
    }
    some: dict[str, Any] = {
        "top_p": chance.choice([0.5, 0.9]),
        "top_k": chance.choice([1, 5, 40]),
        "min_p": chance.choice([0.02, 0.2]),
        "stop": chance.choice(["e", ["the", " a"], [".", "\n"]]),
        "logit_bias": {str(chance.randrange(5, 40)): chance.choice([-100, -2.5, 3]) for _ in range(3)},
        "presence_penalty": chance.choice([-1, 0.5, 2]),
        "frequency_penalty": chance.choice([-0.5, 1]),
        "logprobs": chance.choice([0, 3]),
        "response_format": chance.choice(FORMS),
    }
    asked |= {name: value for name, value in some.items() if chance.random() < 0.25}
    return asked | ({"echo": True} if continues and chance.random() < 0.25 else {})


def prompt(chance: random.Random) -> Any:
    """A text, some texts, or tokens."""
    texts = [" ".join(chance.choices(WORDS, k=chance.randint(1, 20))) for _ in range(2)]
    tokens = [chance.randrange(5, 40) for _ in range(chance.randint(1, 12))]
    return chance.choice([texts[0], texts[0], texts[0], texts, tokens])


def malformed(chance: random.Random, runs: Sequence[str]) -> bytes:
    """The bytes of a request whose values, bytes, or head are not what they should be."""
    path = chance.choice(list(GOOD))
    body = dict(GOOD[path]) | {"model": chance.choice(runs)}
    for _ in range(chance.randint(1, 3)):
        body[chance.choice([*body, *MORE])] = chance.choice(ODD)
    content = bytearray(json.dumps(body).encode())
    if chance.random() < 0.4:
        mangle(chance, content)
    if chance.random() < 0.05:
        content = bytearray(chance.choice([b"[", b'{"a":', b'"']) * chance.randint(1, 5000))
    whole = bytearray(request(path, bytes(content), chance.choice(HEADS)))
    if chance.random() < 0.2:
        mangle(chance, whole)
    return bytes(whole)


def mangle(chance: random.Random, content: bytearray) -> None:
    """Change some bytes, leave some out and put some in."""
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(content))
        content[at : at + chance.choice([0, 1, 1, 5])] = chance.randbytes(chance.choice([0, 1, 1, 3]))


def request(path: str, content: bytes, head: str = "") -> bytes:
    """A request as it goes over the line. head: in place of the line that says that it is JSON."""
    named = head or "Content-Type: application/json\r\n"
    first = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{named}Connection: close\r\n"
    return f"{first}Content-Length: {len(content)}\r\n\r\n".encode("latin-1") + content
