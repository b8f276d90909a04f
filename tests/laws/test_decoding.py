"""The laws of decoding, over every registered model, in float64. The truth is a plain call on the whole text."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.core import registry
from regard.core.mixer import Mixer
from regard.core.model import logits_of
from regard.decoding.beam import beam_search
from regard.decoding.generate import Generation, Limits, generate, stream
from regard.decoding.logits_processing import GREEDY, Sampling
from regard.decoding.penalty import LengthPenalty
from regard.decoding.score import score
from regard.laws.view import view
from regard.layers.head import LinearHead
from regard.models.language import LanguageModel

pytestmark = pytest.mark.usefixtures("unchecked_shapes")
EOS = 0
V = 4
PENALTY = LengthPenalty("gnmt", 0.8)
PROMPTS = [torch.tensor(tokens) for tokens in ([0], [0, 3, 1, 2, 2], [0, 2], [0, 1, 1, 3], [0, 3, 3])]

# Models that write: of text, or of what was read, which is here the same source for every row.
WRITERS = [name for name in registry.names() if registry.entry(name).task in ("text", "pairs", "captions")]
every_model = pytest.mark.parametrize("name", WRITERS)


@functools.cache
def model_of(name: str) -> LanguageModel:
    """A tiny model with weights large enough that its distributions are far from uniform and from each other."""
    torch.manual_seed(1)
    entry = registry.entry(name)
    model = view(entry.config(V, "tiny").build_example().double().eval()).eval()
    heads: list[Any] = [part for part in model.modules() if isinstance(part, LinearHead)]
    with torch.no_grad():
        for head in heads:
            head.weight.copy_(torch.randn_like(head.weight))
    return model  # pyright: ignore[reportReturnType]  # a language model, or one with its source given


@torch.no_grad()
def plain_log_probs(model: LanguageModel, text: Tensor) -> Tensor:
    """log p (T, V) of what follows each token of a text, without a state."""
    return logits_of(model, text[None]).log_softmax(-1)[0]


def same(some: list[Generation], others: list[Generation]) -> bool:
    close = all(
        one.log_probs == pytest.approx(other.log_probs, abs=1e-10) for one, other in zip(some, others, strict=True)
    )
    return close and [(g.tokens, g.finish) for g in some] == [(g.tokens, g.finish) for g in others]


@every_model
def test_greedy_with_a_state_is_greedy_without(name: str) -> None:
    model = model_of(name)
    for prompt, result in zip(
        PROMPTS, generate(model, PROMPTS, limits=Limits(10, eos_id=EOS), settings=GREEDY), strict=True
    ):
        text = prompt
        for token, log_prob in zip(result.tokens, result.log_probs, strict=True):
            last = plain_log_probs(model, text)[-1]
            assert token == int(last.argmax())
            assert log_prob == pytest.approx(float(last[token]), abs=1e-10)
            text = torch.cat([text, torch.tensor([token])])
        assert EOS not in result.tokens[:-1]
        assert result.finish == ("eos" if result.tokens[-1] == EOS else "length")


@every_model
def test_a_batch_is_its_rows_one_by_one(name: str) -> None:
    model = model_of(name)
    options = {"limits": Limits(20, eos_id=EOS), "settings": Sampling(1.5, top_p=0.95), "seed": 4}
    alone = [generate(model, [prompt], first=i, **options)[0] for i, prompt in enumerate(PROMPTS)]  # pyright: ignore
    assert same(generate(model, PROMPTS, **options), alone)  # pyright: ignore


@every_model
def test_streaming_is_generating(name: str) -> None:
    model = model_of(name)
    options = {"limits": Limits(8, eos_id=EOS), "seed": 6}
    pieces = list(stream(model, PROMPTS, **options))  # pyright: ignore
    for i, result in enumerate(generate(model, PROMPTS, **options)):  # pyright: ignore
        assert tuple(p.token for p in pieces if p.row == i) == result.tokens


@every_model
def test_temperature_zero_and_top_one_are_greedy(name: str) -> None:
    model, limits = model_of(name), Limits(10, eos_id=EOS)
    greedy = generate(model, PROMPTS, limits=limits, settings=GREEDY)
    assert same(generate(model, PROMPTS, limits=limits, settings=Sampling(top_k=1), seed=1), greedy)
    assert same(generate(model, PROMPTS, limits=limits, settings=Sampling(top_p=1e-9), seed=2), greedy)
    # Equal counts make equal probabilities, of which min_p keeps all and greedy takes the first.
    if name != "ngram":
        assert same(generate(model, PROMPTS, limits=limits, settings=Sampling(min_p=1.0), seed=3), greedy)


@every_model
def test_a_text_longer_than_any_window_never_fails(name: str) -> None:
    model = model_of(name)
    n = 3 * (model.max_length or 20)
    result = generate(model, PROMPTS[:2], limits=Limits(n), seed=7)
    assert [len(g.tokens) for g in result] == [n, n]
    assert {g.finish for g in result} == {"length"}
    assert all((g.slides > 0) == (model.max_length is not None) for g in result)


@every_model
def test_a_beam_of_one_is_greedy(name: str) -> None:
    model = model_of(name)
    greedy = generate(model, PROMPTS, limits=Limits(10, eos_id=EOS), settings=GREEDY)
    beams = beam_search(model, PROMPTS, width=1, max_tokens=10, eos_id=EOS, penalty=PENALTY)
    assert [beam.best[0].tokens for beam in beams] == [g.tokens for g in greedy]
    for beam, g in zip(beams, greedy, strict=True):
        assert beam.best[0].log_probs == pytest.approx(g.log_probs, abs=1e-10)


@pytest.mark.sweep(2)
@every_model
def test_a_full_beam_is_exhaustive_search(name: str) -> None:
    model, n = model_of(name), 3
    texts = [
        text
        for length in range(1, n + 1)
        for text in itertools.product(range(V), repeat=length)
        if EOS not in text[:-1] and (text[-1] == EOS or length == n)
    ]
    for prompt in PROMPTS[:2]:
        truth = {}
        for text in texts:
            whole = torch.cat([prompt, torch.tensor(text)])
            rows = plain_log_probs(model, whole)[len(prompt) - 1 : -1]
            truth[text] = float(rows[torch.arange(len(text)), list(text)].sum())
        assert math.fsum(map(math.exp, truth.values())) == pytest.approx(1, abs=1e-10)
        [beam] = beam_search(
            model, [prompt], width=len(texts), max_tokens=n, eos_id=EOS, penalty=PENALTY, n_best=len(texts)
        )
        assert {h.tokens for h in beam.best} == set(texts)
        assert all(h.log_prob == pytest.approx(truth[h.tokens], abs=1e-10) for h in beam.best)
        scores = sorted((log_p / PENALTY(len(text)) for text, log_p in truth.items()), reverse=True)
        assert [h.score for h in beam.best] == pytest.approx(scores, abs=1e-10)


@every_model
def test_beams_are_distinct_and_finished_ones_stop(name: str) -> None:
    for beam in beam_search(model_of(name), PROMPTS, width=5, max_tokens=8, eos_id=EOS, penalty=PENALTY, n_best=5):
        assert len({h.tokens for h in beam.best}) == 5
        for h in beam.best:
            assert EOS not in h.tokens[:-1]
            assert h.finish == ("eos" if h.tokens[-1] == EOS else "length")


@every_model
def test_generated_texts_score_as_they_were_drawn(name: str) -> None:
    """The log-probabilities that sampling, search and scoring report are one and the same."""
    model = model_of(name)
    starts = [torch.tensor([EOS])] * 3
    drawn = generate(model, starts, limits=Limits(9), seed=5)
    for g, s in zip(drawn, score(model, [torch.tensor(g.tokens) for g in drawn], start_id=EOS), strict=True):
        assert s.log_probs == pytest.approx(g.log_probs, abs=1e-10)
    [beam] = beam_search(model, starts[:1], width=3, max_tokens=9, eos_id=EOS, n_best=3)
    for h, s in zip(beam.best, score(model, [torch.tensor(h.tokens) for h in beam.best], start_id=EOS), strict=True):
        assert s.log_prob == pytest.approx(h.log_prob, abs=1e-10)


def writes_step(part: type) -> bool:
    return issubclass(part, Mixer) and part.step is not Mixer.step


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Mixer]:
    """The mixers whose own `step` was called, in order."""
    called: list[Mixer] = []
    for example in registry.mixer_examples().values():
        kind = type(example.build())
        if "step" in vars(kind) and not hasattr(kind.step, "counted"):
            monkeypatch.setattr(kind, "step", _counted(kind.step, called))
    return called


def _counted(step: Any, called: list[Mixer]) -> Any:
    @functools.wraps(step)
    def counted(self: Mixer, *arguments: Any) -> Any:
        called.append(self)
        return step(self, *arguments)

    counted.counted = True  # pyright: ignore[reportFunctionMemberAccess]
    return counted


@every_model
def test_every_token_after_the_prompt_is_one_step_of_every_mixer_that_writes_one(name: str, steps: list[Mixer]) -> None:
    model = model_of(name)
    stack: Any = getattr(model, "stack", None)
    wanted = [] if stack is None else [part for part in stack.modules() if writes_step(type(part))]
    pieces = stream(model, [torch.tensor([0, 3, 1])], limits=Limits(51))
    next(pieces)  # what follows the prompt, which is read in one call
    steps.clear()
    assert len(list(pieces)) == 50
    assert [sum(part is other for other in steps) for part in wanted] == [50] * len(wanted)


def test_every_mixer_that_writes_a_step_is_in_a_model_that_generates() -> None:
    parts = {type(part) for config in registry.mixer_examples().values() for part in config.build().modules()}
    kinds = {kind for kind in parts if kind.__module__.startswith("regard.")}  # and none that another test plugged in
    stacks: list[Any] = [getattr(model_of(name), "stack", None) for name in WRITERS]
    used = {type(part) for stack in stacks if stack is not None for part in stack.modules()}
    assert {kind.__name__ for kind in kinds if writes_step(kind)} == {k.__name__ for k in used if writes_step(k)}
