"""`regard serve` and those who talk to it: OpenAI's own client, streams, texts under load, all tasks, a page."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calling import TEXT, TINY, call_here

import regard
from awaited import awaited
from foreign_models import tiny_folder
from served import Served, serving

openai = pytest.importorskip("openai")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

FAMILIES = ("gpt", "lstm", "ngram", "mamba2", "mt")
OTHERS = ("bytes", "labels", "llama")
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}bot:"
WORDWISE = (*TINY, "--set", "data.tokens=words", "--set", "train.length=64")
HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
WORDS = ("the", "cat", "dog", "bird", "sat", "on", "mat", "log", "hill", "sang", "an", "old", "new", "song", "to", "a")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of every family that writes, one of labels, and a model with a template."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "my.txt").write_text(TEXT, encoding="utf-8")
    pairs = "".join(f"a {one} {two}\tein {two} {one}\n" for one in "abcdefgh" for two in "klmnop")
    (folder / "pairs.tsv").write_text(pairs, encoding="utf-8")
    labels = "".join(f"{word} {n}\t{label}\n" for n in range(12) for word, label in (("fine", "good"), ("dull", "bad")))
    (folder / "labels.tsv").write_text(f"text\tlabel\n{labels}", encoding="utf-8")
    for model in ("gpt", "lstm", "ngram", "mamba2"):
        _train(folder, "my.txt", model, model, *WORDWISE)
    _train(folder, "my.txt", "lstm", "bytes", *TINY, "--set", "data.tokens=bytes")
    _train(folder, "pairs.tsv", "transformer", "mt", "--size", "tiny", "--device", "cpu")
    _train(folder, "labels.tsv", "naive_bayes", "labels")
    tiny_folder(folder / "runs" / "llama", "llama", "byte_level")
    about = folder / "runs" / "llama" / "tokenizer_config.json"
    told = json.loads(about.read_text(encoding="utf-8"))
    about.write_text(json.dumps(told | {"chat_template": TEMPLATE}), encoding="utf-8")
    return folder


def _train(folder: Path, data: str, model: str, name: str, *words: str) -> None:
    outcome = call_here(
        *("train", str(folder / data), "--model", model, "--out", str(folder / "runs" / name)),
        *("--budget", "8steps", "--quiet", *words),
    )
    assert outcome.code == 0, outcome.err


@pytest.fixture(scope="module")
def server(runs: Path) -> Iterator[Served]:
    with serving(runs, *(f"runs/{name}" for name in (*FAMILIES, *OTHERS)), "--slots", "5") as found:
        yield found


@pytest.fixture(scope="module")
def client(server: Served) -> Any:
    return openai.OpenAI(base_url=f"{server.url}v1", api_key="any", max_retries=0)


def test_openais_client_gets_what_the_run_itself_writes(client: Any, runs: Path) -> None:
    assert {model.id for model in client.models.list()} == {*FAMILIES, *OTHERS}
    run = regard.load(runs / "runs" / "lstm")
    alone = run.generate("the cat", max_tokens=12, temperature=0.0)
    found = client.completions.create(model="lstm", prompt="the cat", max_tokens=12, temperature=0, echo=True)
    assert found.choices[0].text == alone
    assert found.usage.total_tokens == found.usage.prompt_tokens + found.usage.completion_tokens
    source = "a b k"
    translated = client.completions.create(model="mt", prompt=source, max_tokens=50, temperature=0)
    assert translated.choices[0].text == regard.load(runs / "runs" / "mt").generate(source)


def test_a_stream_is_the_same_text_in_pieces_and_ends_with_usage(client: Any) -> None:
    asked = {"model": "gpt", "prompt": "the dog", "max_tokens": 20, "seed": 5, "n": 2}
    whole = client.completions.create(**asked)
    chunks = list(client.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    texts = {0: "", 1: ""}
    for chunk in chunks:
        for choice in chunk.choices:
            texts[choice.index] += choice.text
    assert texts == {choice.index: choice.text for choice in whole.choices}
    assert chunks[-1].usage == whole.usage
    assert len(chunks) > 5


def test_log_probabilities_are_those_of_score(client: Any, runs: Path) -> None:
    """What lm-eval asks for: tokens as a prompt, echoed with their probabilities, and one more token."""
    run = regard.load(runs / "runs" / "gpt")
    text = "the cat sat on the mat"
    for prompt in (text, run.tokenizer.encode(text).tolist()):
        asked = {"model": "gpt", "prompt": prompt, "max_tokens": 1, "logprobs": 2, "echo": True, "temperature": 0}
        found = client.completions.create(**asked)
        told = found.choices[0].logprobs
        assert sum(told.token_logprobs[:-1]) == pytest.approx(run.score(text).log_prob, abs=1e-4)
        assert told.tokens[:-1] == list(run.score(text).token_texts)
        assert all(len(likely) >= 2 for likely in told.top_logprobs)
        assert max(told.top_logprobs[-1].values()) == told.token_logprobs[-1]
        for token, offset in zip(told.tokens, told.text_offset, strict=True):
            assert found.choices[0].text.startswith(token if token != "<eos>" else "", offset)
    none = client.completions.create(model="gpt", prompt=text, max_tokens=0, logprobs=0, echo=True)
    assert none.choices[0].text == text


def test_penalties_bias_and_stop_strings_shape_the_text(client: Any, runs: Path) -> None:
    tokenizer = regard.load(runs / "runs" / "gpt").tokenizer
    cat = int(tokenizer.encode("cat")[0])
    asked = {"model": "gpt", "prompt": "the", "temperature": 0, "max_tokens": 6}
    biased = client.completions.create(**asked, logit_bias={str(cat): 100}).choices[0].text
    assert biased.split() == ["cat"] * 6
    once = client.completions.create(**asked, logit_bias={str(cat): 100}, frequency_penalty=2).choices[0].text
    assert once.split() == ["cat"] * 6  # 100 outweighs 2 for each
    stopped = client.completions.create(**asked, logit_bias={str(cat): 100}, stop=["cat cat"]).choices[0]
    assert (stopped.text, stopped.finish_reason) == (" ", "stop")
    plain = client.completions.create(**asked | {"max_tokens": 20}).choices[0].text.split()
    varied = client.completions.create(**asked | {"max_tokens": 20}, presence_penalty=2).choices[0].text.split()
    assert len(set(varied)) > len(set(plain))


def test_texts_of_a_given_form(client: Any) -> None:
    pattern = "(the|an) (cat|dog|song)( sang)*"
    form = {"response_format": {"type": "regex", "pattern": pattern}}
    for seed in range(3):
        asked = {"model": "gpt", "prompt": "the", "max_tokens": 30, "seed": seed}
        found = client.completions.create(**asked, extra_body=form).choices[0]
        assert re.fullmatch(pattern, found.text.strip()) or found.finish_reason == "length"
    values = {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}}
    schema = {"type": "object", "properties": values, "required": ["a", "b"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    said = client.completions.create(
        model="bytes", prompt="the", max_tokens=60, seed=1, extra_body={"response_format": wanted}
    )
    answer = json.loads(said.choices[0].text)
    assert answer["a"] in ("x", "y")
    assert isinstance(answer["b"], bool)


def test_chat_of_a_model_with_a_template(client: Any, runs: Path) -> None:
    messages = [{"role": "user", "content": "hello"}]
    asked = {"model": "llama", "messages": messages, "max_tokens": 8, "temperature": 0}
    found = client.chat.completions.create(**asked, logprobs=True, top_logprobs=2)
    alone = regard.load(runs / "runs" / "llama").chat(messages, max_tokens=8, temperature=0.0)
    assert found.choices[0].message.content == alone
    content = found.choices[0].logprobs.content
    assert len(content[0].top_logprobs) == 2
    assert b"".join(bytes(one.bytes) for one in content).decode("utf-8", "replace") == alone
    streamed = client.chat.completions.create(**asked, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in streamed) == alone
    with pytest.raises(openai.BadRequestError, match="no chat template"):
        client.chat.completions.create(model="gpt", messages=messages)
    with pytest.raises(openai.BadRequestError, match="tools are not served"):
        client.chat.completions.create(model="llama", messages=messages, tools=[])
    with pytest.raises(openai.NotFoundError, match="is not served"):
        client.responses.create(model="llama", input="hello")


def test_an_answer_may_be_handed_back_as_a_turn(client: Any) -> None:
    """As everybody does who talks for more than one turn: with what it did not say, which is null."""
    asked: list[Any] = [{"role": "user", "content": "a"}]
    how = {"model": "llama", "max_tokens": 2, "temperature": 0}
    first = client.chat.completions.create(messages=asked, **how).choices[0].message
    plain = [*asked, {"role": "assistant", "content": first.content}]
    wanted = client.chat.completions.create(messages=plain, **how).choices[0].message.content
    for turn in (first, first.model_dump()):
        found = client.chat.completions.create(messages=[*asked, turn], **how)
        assert found.choices[0].message.content == wanted


def test_what_is_null_was_not_asked_for(client: Any) -> None:
    names = ("temperature", "top_p", "n", "stream", "echo", "presence_penalty", "tools", "tool_choice", "metadata")
    how = {"model": "lstm", "prompt": "the", "max_tokens": 4, "seed": 1}
    found = client.completions.create(**how, extra_body=dict.fromkeys(names))
    assert found.choices[0].text == client.completions.create(**how).choices[0].text


def test_what_a_client_notes_for_itself_changes_nothing(client: Any) -> None:
    how = {"model": "lstm", "prompt": "the", "max_tokens": 4, "seed": 1}
    notes = {"user": "a", "metadata": {"experiment": "7"}, "safety_identifier": "b", "prompt_cache_key": "c"}
    found = client.completions.create(**how, extra_body=notes | {"service_tier": "auto"})
    assert found.choices[0].text == client.completions.create(**how).choices[0].text
    with pytest.raises(openai.BadRequestError, match="store"):
        client.chat.completions.create(model="gpt", messages=[{"role": "user", "content": "a"}], store=True)


def test_other_tasks_answer_too(server: Served, client: Any, runs: Path) -> None:
    labels = regard.load(runs / "runs" / "labels")
    found = server.post("v1/predict", {"model": "labels", "input": ["fine 3", "dull 4"]}).json()["data"]
    assert [one["label"] for one in found] == labels.predict(["fine 3", "dull 4"])
    gpt = regard.load(runs / "runs" / "gpt")
    vectors = client.embeddings.create(model="gpt", input=["the cat", "a dog"]).data
    assert vectors[1].embedding == pytest.approx(gpt.embed(["the cat", "a dog"])[1].tolist(), abs=1e-5)
    (scored,) = server.post("v1/score", {"model": "gpt", "input": "the cat sat"}).json()["data"]
    assert scored["log_prob"] == pytest.approx(gpt.score("the cat sat").log_prob, abs=1e-5)
    view = server.post("v1/explain", {"model": "gpt", "input": "the cat sat"})
    assert view.json()["view"]["view"] == "attention"
    page = server.post("v1/explain", {"model": "gpt", "input": "the cat sat", "format": "html"})
    assert page.text.startswith("<!doctype html>")
    for answer in (view, page):
        assert str(runs) not in answer.text


@pytest.mark.parametrize("family", FAMILIES)
def test_every_answer_under_load_equals_the_same_request_alone(server: Served, family: str) -> None:
    """More requests than slots, of all lengths and settings at once; then some of them again with nobody beside."""
    chance = random.Random(family)
    wishes = [
        {
            "model": family,
            "prompt": " ".join(chance.choices(WORDS, k=chance.randint(1, 9))),
            "max_tokens": chance.choice([1, 7, 25]),
            "seed": number,
            "n": chance.choice([1, 1, 2]),
            "temperature": chance.choice([0.0, 0.8, 1.3]),
            "top_p": chance.choice([1.0, 0.7]),
            "logprobs": chance.choice([None, 2]),
        }
        for number in range(20)
    ]

    async def together() -> list[Any]:
        asking = openai.AsyncOpenAI(base_url=f"{server.url}v1", api_key="any", max_retries=0)
        return await asyncio.gather(*(asking.completions.create(**wish) for wish in wishes))

    crowded = awaited(together())
    for wish, found in zip(wishes[::5], crowded[::5], strict=True):
        alone = server.post("v1/completions", {key: value for key, value in wish.items() if value is not None}).json()
        assert [choice.text for choice in found.choices] == [choice["text"] for choice in alone["choices"]]


def test_equal_beginnings_are_read_once_and_change_nothing(server: Served) -> None:
    asked = {"model": "lstm", "prompt": "the cat sat on the mat " * 120, "max_tokens": 8, "seed": 3}
    first, before = server.text(**asked), server.gauge("regard_engine_prefix_tokens")
    assert server.text(**asked) == first
    _until(lambda: server.gauge("regard_engine_prefix_tokens") > before)


@pytest.fixture(scope="module")
def endless(runs: Path) -> dict[str, Any]:
    """A request that goes on for long: its text may not end."""
    end = regard.load(runs / "runs" / "lstm").tokenizer.eos_id
    return {
        "model": "lstm",
        "prompt": "the",
        "max_tokens": 4000,
        "stream": True,
        "n": 5,
        "logit_bias": {str(end): -100},
    }


def test_a_client_that_leaves_frees_its_slot(server: Served, endless: dict[str, Any]) -> None:
    for stream in (True, False):
        with server.connect() as line:
            line.sendall(raw(endless | {"stream": stream}))
            if stream:
                assert line.recv(100).startswith(b"HTTP/1.1 200")
            else:
                _until(lambda: server.gauge("regard_engine_taken") > 0)
        _until(lambda: server.gauge("regard_engine_taken") + server.gauge("regard_engine_waiting") == 0)


def test_what_is_wrong_is_told_in_openais_form(client: Any, runs: Path) -> None:
    for wrong, status, param in (
        ({"model": "nobody"}, 404, "model"),
        ({"temperature": math.pi * 1e3}, 400, "temperature"),
        ({"max_tokens": 10**6}, 400, "max_tokens"),
        ({"prompt": "the " * 400}, 400, None),
        ({"prompt": [10**6]}, 400, None),
        ({"extra_body": {"max_tokenz": 3}}, 400, "max_tokenz"),
    ):
        with pytest.raises(openai.APIStatusError) as found:
            client.completions.create(**({"model": "gpt", "prompt": "x"} | wrong))
        assert (found.value.status_code, found.value.param) == (status, param)
        assert str(runs) not in str(found.value)


def test_metrics_health_logs_and_pages(server: Served) -> None:
    assert server.get("health").json()["ready"]
    server.text(model="gpt", prompt="bird on the roof", max_tokens=2)
    metrics = server.get("metrics").text
    assert re.search(r'regard_requests_total\{path="/v1/completions",status="200"\} [1-9]', metrics)
    assert re.search(r"regard_time_to_first_token_seconds_count [1-9]", metrics)
    log = server.log.read_text(encoding="utf-8")
    assert "Traceback" not in log
    assert "bird on the roof" not in log
    assert [line for line in map(json.loads, log.strip().splitlines()) if line.get("completion_tokens") == 2]
    for path in ("", "docs", "lab", "web/serve.js", "web/heat.js"):
        answer = server.get(path)
        assert answer.status_code == 200
        assert not re.search(r"https?://(?!www\.w3\.org|HOST)", answer.text)
    paths = server.get("openapi.json").json()["paths"]
    assert {"/v1/completions", "/v1/chat/completions", "/v1/embeddings"} <= set(paths)
    assert server.get("api/runs").json()["runs"]
    assert server.get("api/lectures").json() == {"lectures": []}  # which the page asks for


def test_a_folder_written_anew_is_served_without_a_word(server: Served, runs: Path) -> None:
    asked = {"model": "gpt", "prompt": "the", "max_tokens": 12, "temperature": 0}
    before = server.text(**asked)
    outcome = call_here("train", "--resume", "--out", str(runs / "runs" / "gpt"), "--budget", "60steps", "--quiet")
    assert outcome.code == 0, outcome.err
    after = regard.load(runs / "runs" / "gpt").generate("the", max_tokens=12, temperature=0.0).removeprefix("the")
    assert after != before
    _until(lambda: server.text(**asked) == after)


def test_an_engine_that_dies_is_started_again_and_its_requests_are_told(
    server: Served, endless: dict[str, Any]
) -> None:
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    if not children.exists():
        pytest.skip("the system does not tell which processes another has started")
    engine = int(children.read_text(encoding="utf-8").split()[0])
    with server.connect() as line:
        line.sendall(raw(endless))
        line.recv(100)
        os.kill(engine, signal.SIGKILL)
        told = b""
        while b"[DONE]" not in told and (more := line.recv(1 << 16)):
            told += more
    assert b"the engine died" in told
    _until(lambda: server.get("health/ready").status_code == 200)
    assert server.text(model="lstm", prompt="the", max_tokens=3)


def test_the_page_of_docs_names_options_and_fields_that_there_are() -> None:
    page = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
    helps = call_here("serve", "--help").out + call_here("bench", "--help").out
    for option in set(re.findall(r"(--[a-z][a-z-]+)", page)) - {"--model", "--model-args"}:
        assert option in helps or option.startswith("--model"), option
    from regard.serving.http.schema import CompletionRequest

    (row,) = [line for line in page.splitlines() if line.startswith("| `POST /v1/completions`")]
    assert set(re.findall(r"`([a-z_]+)`", row)) <= set(CompletionRequest.model_fields)


def raw(asked: dict[str, Any]) -> bytes:
    """A request as it goes over the line."""
    body = json.dumps(asked).encode()
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def _until(true: Any) -> None:
    """Wait for something that takes a moment."""
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
