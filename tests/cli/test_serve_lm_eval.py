"""lm-eval's local-completions against `regard serve`, on tasks of this file; skipped where lm-eval is not installed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calling import ANIMALS, PLACES, TEXT, TINY, done, told

import regard
from served import Served, serving

lm_eval = pytest.importorskip("lm_eval", reason="lm-eval is not installed")
transformers: Any = pytest.importorskip("transformers")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

FAMILIES = ("gpt", "lstm", "ngram", "mamba")
# What transformers has an architecture for, so that its tokens can go out.
LONGER = ("--set", "train.length=64")
KNOWN = ("--set", "model.activation=silu", "--set", "model.gated=true")
CHOICES = """\
task: regard_choices
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{answer}}}}"
metric_list: [{{metric: acc}}]
"""
TEXTS = """\
task: regard_texts
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{choices[answer]}}}}"
generation_kwargs: {{until: ["."], max_gen_toks: 12, temperature: 0, do_sample: false}}
metric_list: [{{metric: exact_match}}]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs with the same tokens, a folder with those, and questions with three answers each."""
    found = tmp_path_factory.mktemp("evaluated")
    (found / "my.txt").write_text(TEXT, encoding="utf-8")
    for name in FAMILIES:
        more = KNOWN if name == "gpt" else ()
        out = ("--out", str(found / "runs" / name), "--budget", "8steps", "--quiet")
        done("train", str(found / "my.txt"), "--model", name, *out, *TINY, *LONGER, *more)
    done("export", str(found / "runs" / "gpt"), str(found / "tokens"), "--to", "hf")
    questions = [
        {"question": f"the {animal} sat on the", "choices": PLACES[:3], "answer": number % 3}
        for number, animal in enumerate(ANIMALS)
    ]
    lines = "".join(json.dumps(one) + "\n" for one in questions)
    (found / "questions.jsonl").write_text(lines, encoding="utf-8")
    for name, task in (("choices", CHOICES), ("texts", TEXTS)):
        (found / f"{name}.yaml").write_text(task.format(file=found / "questions.jsonl"), encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    with serving(folder, *(f"runs/{name}" for name in FAMILIES), "--slots", "4") as found:
        yield found


@pytest.fixture(autouse=True)
def _from_no_hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder / "cache")
    monkeypatch.setitem(os.environ, "OPENAI_API_KEY", "any")


def samples_of(server: Served, folder: Path, name: str, task: str) -> list[dict[str, Any]]:
    """What lm-eval notes of every question of a task."""
    about = f"base_url={server.url}v1/completions,model={name},tokenizer={folder / 'tokens'},num_concurrent=4"
    found = lm_eval.simple_evaluate(
        model="local-completions",
        model_args=f"{about},tokenizer_backend=huggingface",
        tasks=[task],
        task_manager=lm_eval.tasks.TaskManager(include_path=str(folder), include_defaults=False),
        batch_size=2,
        bootstrap_iters=0,
    )
    return found["samples"][task]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_log_likelihood_is_that_of_score(server: Served, folder: Path, name: str) -> None:
    """The tokens of an answer, as `regard score` finds them at the end of question and answer together."""
    run = folder / "runs" / name
    tokenizer, other = regard.load(run).tokenizer, transformers.AutoTokenizer.from_pretrained(folder / "tokens")
    found, wanted = [], []
    for sample in samples_of(server, folder, name, "regard_choices"):
        question = sample["doc"]["question"]
        count = len(tokenizer.encode(question))
        for choice, ((log_prob, _),) in zip(sample["doc"]["choices"], sample["resps"], strict=True):
            whole = f"{question} {choice}"
            assert other(whole, add_special_tokens=False).input_ids == tokenizer.encode(whole).tolist()
            found.append(log_prob)
            scored = told("score", str(run), whole)["tokens"]
            wanted.append(sum(token["log_prob"] for token in scored[count:]))
    assert len(found) == 3 * len(ANIMALS)
    assert len(set(found)) >= 3
    assert found == pytest.approx(wanted, abs=1e-5)


def test_texts_are_those_of_the_run(server: Served, folder: Path) -> None:
    run = regard.load(folder / "runs" / "gpt")
    for sample in samples_of(server, folder, "gpt", "regard_texts"):
        question = sample["doc"]["question"]
        whole = run.generate(question, max_tokens=12, temperature=0.0)
        assert sample["resps"][0][0] == whole.removeprefix(question).partition(".")[0]
