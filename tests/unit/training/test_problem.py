from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import regard
from regard.core import registry
from regard.core.model import logits_of
from regard.data.batch import Documents, Lanes, Windows
from regard.data.corpus import prepare
from regard.data.tokenizer import load
from regard.errors import UsageError
from regard.storage import tensors
from regard.training import run_folder
from regard.training.loop import train
from regard.training.problem import language_problem
from regard.training.resume import Resume
from tiny_run import SETTINGS


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"{n} squared is {n * n}.\n" for n in range(400)))
    return prepare(str(path), valid="tail:0.1")


def build(name: str, corpus, **settings):
    torch.manual_seed(0)
    return registry.build(name, vocab_size=corpus.tokenizer.vocab_size, size="tiny", **settings)


@pytest.mark.parametrize(
    ("name", "samples", "carry", "sampler", "carries"),
    [
        ("lstm", "windows", None, Lanes, True),
        ("gpt", "windows", None, Windows, False),
        ("lstm", "windows", False, Windows, False),
        ("lstm", "documents", None, Documents, False),
        ("gpt", "documents", None, Documents, False),
    ],
)
def test_the_samples_fit_the_data_and_the_state_of_the_model(corpus, name, samples, carry, sampler, carries):
    settings = replace(SETTINGS, samples=samples, carry_state=carry)
    task = language_problem(corpus, build(name, corpus), settings)
    assert isinstance(task.sampler, sampler)
    assert task.carries is carries
    assert sum(batch.n_counted for batch in task.held_out()) == task.held_out_tokens == corpus.valid.tokens


@pytest.mark.parametrize(("name", "packed"), [("gpt", True), ("lstm", True), ("gpt", False), ("mamba", False)])
def test_documents_are_laid_end_to_end_where_that_is_asked_for(tmp_path, name, packed):
    (tmp_path / "lines.txt").write_text("".join(f"{'very ' * (n % 9)}{n}\n" for n in range(400)))
    corpus = prepare(str(tmp_path / "lines.txt"), valid="tail:0.1", documents="line")
    settings = replace(SETTINGS, batch_size=4, length=64, packed=packed)
    sampler = language_problem(corpus, build(name, corpus), settings).sampler
    batches = [sampler.batch(step, 4) for step in range(100)]
    assert {batch.packed for batch in batches} == {packed}
    assert {len(batch.lengths) for batch in batches} == {4}, "a step has its number of documents either way"
    share = sum(batch.n_padding for batch in batches) / sum(batch.n_places for batch in batches)
    assert share == 0 if packed else 0 < share < 0.05


def test_windows_are_not_laid_end_to_end(corpus):
    with pytest.raises(UsageError, match=r"train\.packed: windows are full already; .* train\.samples to documents"):
        language_problem(corpus, build("gpt", corpus), replace(SETTINGS, samples="windows", packed=True))


def test_a_model_that_reads_no_documents_end_to_end_says_so(corpus):
    with pytest.raises(UsageError, match=r"train\.packed: a layer of this model reads no documents end to end"):
        language_problem(corpus, build("mamba", corpus), replace(SETTINGS, samples="documents", packed=True))


def test_what_cannot_be_carried_or_does_not_fit_is_refused_by_its_key(corpus):
    with pytest.raises(UsageError, match=r"train\.carry_state: the state of this model grows"):
        language_problem(corpus, build("gpt", corpus), replace(SETTINGS, samples="windows", carry_state=True))
    with pytest.raises(UsageError, match=r"train\.carry_state: documents stand alone"):
        language_problem(corpus, build("lstm", corpus), replace(SETTINGS, samples="documents", carry_state=True))
    with pytest.raises(UsageError, match=r"train\.length: 65 is above the 64 positions"):
        language_problem(corpus, build("gpt", corpus, position="learned"), replace(SETTINGS, length=65))


@pytest.mark.parametrize("name", ["lstm", "gpt", "mamba"])
@pytest.mark.parametrize("samples", ["windows", "documents"])
def test_a_real_text_is_trained_on_saved_and_continued_bit_for_bit(corpus, tmp_path, name, samples):
    settings = replace(SETTINGS, samples=samples, budget="8steps", batch_size=4, length=16, label_smoothing=0.1)

    def go(path, resume="no", cut=None):
        model = build(name, corpus)
        task = language_problem(corpus, model, settings)
        task = task if cut is None else replace(task, sampler=Cut(task.sampler, cut))
        train(model, task, settings, path, resume=Resume(resume))
        return model

    whole = go(tmp_path / "whole")
    with pytest.raises(InterruptedError):
        go(tmp_path / "cut", cut=5)
    resumed = go(tmp_path / "cut", resume="last")
    assert all(torch.equal(one, other) for one, other in zip(whole.parameters(), resumed.parameters(), strict=True))
    tokenizer = load(run_folder.verified_tokenizer(tmp_path / "cut"))
    assert tokenizer.hash == corpus.tokenizer.hash == run_folder.read_config(tmp_path / "cut")["data"]["tokenizer"]
    tensors.load_weights(whole, run_folder.verified_weights(tmp_path / "cut"))


@pytest.mark.parametrize("smoothing", ["all", "others"])
def test_the_settings_of_label_smoothing_reach_the_loss(corpus, smoothing):
    model = build("lstm", corpus)
    settings = replace(SETTINGS, samples="documents", label_smoothing=0.3, smoothing=smoothing)
    task = language_problem(corpus, model, settings)
    batch = task.sampler.batch(0, 1)
    loss, count, _ = task.objective(model, batch, None)
    log_p = logits_of(model, batch.tokens)[0, : int(count)].log_softmax(-1)
    n_classes, target = log_p.shape[-1], batch.targets[0, : int(count)]
    shared = 0.3 / (n_classes if smoothing == "all" else n_classes - 1)
    q = torch.full_like(log_p, shared)
    q[range(int(count)), target] = 0.7 + (shared if smoothing == "all" else 0)
    torch.testing.assert_close(loss, -(q * log_p).sum())


class Cut:
    """A sampler that breaks off at a step."""

    def __init__(self, inner, step: int) -> None:
        self.inner, self.step = inner, step

    def batch(self, step: int, batch_size: int):
        if step == self.step:
            raise InterruptedError
        return self.inner.batch(step, batch_size)


def test_what_is_paid_for_vectors_is_for_texts_that_are_read_on(tmp_path: Path):
    pairs = {"budget": "1steps", "size": "tiny", "out": tmp_path / "r", "quiet": True}
    with pytest.raises(UsageError, match=r"train\.ar and train\.tar are for language models"):
        regard.train("transformer", "world:translation?train=40&valid=20", tar=1.0, **pairs)
    with pytest.raises(UsageError, match=r"train\.tar: documents that lie end to end"):
        regard.train("lstm", "world:stories?train=30&valid=30", tar=1.0, packed=True, **pairs)
