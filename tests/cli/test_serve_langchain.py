"""LangChain's classes for OpenAI against `regard serve`; skipped where langchain-openai is not installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calling import TEXT, TINY, call_here

import regard
from awaited import awaited
from foreign_models import tiny_folder
from served import Served, serving

langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}bot:"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that goes on with texts, and a model with a chat template."""
    folder = tmp_path_factory.mktemp("chained")
    (folder / "my.txt").write_text(TEXT, encoding="utf-8")
    words = ("train", str(folder / "my.txt"), "--model", "lstm", "--out", str(folder / "runs" / "lstm"))
    outcome = call_here(*words, "--budget", "8steps", "--quiet", *TINY)
    assert outcome.code == 0, outcome.err
    tiny_folder(folder / "runs" / "llama", "llama", "byte_level")
    about = folder / "runs" / "llama" / "tokenizer_config.json"
    told = json.loads(about.read_text(encoding="utf-8"))
    about.write_text(json.dumps(told | {"chat_template": TEMPLATE}), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def server(runs: Path) -> Iterator[Served]:
    with serving(runs, "runs/lstm", "runs/llama", "--slots", "4") as found:
        yield found


@pytest.fixture(scope="module")
def at(server: Served) -> dict[str, Any]:
    return {"base_url": f"{server.url}v1", "api_key": "any", "max_retries": 0}


def test_texts_whole_streamed_batched_and_awaited(at: dict[str, Any], runs: Path) -> None:
    writer = langchain.OpenAI(model="lstm", temperature=0, max_tokens=12, **at)
    alone = regard.load(runs / "runs" / "lstm").generate("the cat", max_tokens=12, temperature=0.0)
    wanted = alone.removeprefix("the cat")
    assert writer.invoke("the cat") == wanted
    assert "".join(writer.stream("the cat")) == wanted
    assert writer.batch(["the cat", "the cat"]) == [wanted] * 2
    assert awaited(writer.ainvoke("the cat")) == wanted


def test_turns_of_a_chat_whole_and_streamed(at: dict[str, Any], runs: Path) -> None:
    speaker = langchain.ChatOpenAI(model="llama", temperature=0, max_tokens=8, **at)
    asked = [{"role": "user", "content": "hello"}]
    alone = regard.load(runs / "runs" / "llama").chat(asked, max_tokens=8, temperature=0.0)
    answer = speaker.invoke([("human", "hello")])
    assert answer.content == alone
    assert answer.usage_metadata["output_tokens"] > 0
    assert "".join(chunk.content for chunk in speaker.stream([("human", "hello")])) == alone


def test_vectors_are_those_of_the_run(at: dict[str, Any], runs: Path) -> None:
    """LangChain counts tokens with OpenAI's own tokenizer unless it is told to leave texts alone."""
    reader = langchain.OpenAIEmbeddings(model="lstm", check_embedding_ctx_length=False, **at)
    found = reader.embed_documents(["the cat", "a dog"])
    wanted = regard.load(runs / "runs" / "lstm").embed(["the cat", "a dog"])
    assert found[1] == pytest.approx(wanted[1].tolist(), abs=1e-5)
