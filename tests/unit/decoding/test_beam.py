from __future__ import annotations

import itertools
import math

import pytest
import torch

from decoding.table import TableModel, bigram_table, prompt, random_table
from regard.core.inputs import SourceTokens
from regard.core.registry import build
from regard.decoding.beam import BeamResult, beam_search
from regard.decoding.generate import Limits, generate
from regard.decoding.logits_processing import GREEDY
from regard.decoding.penalty import LengthPenalty
from regard.errors import NumericError, UsageError
from regard.models.encoder_decoder import EncoderDecoder

PENALTIES = [LengthPenalty("none"), LengthPenalty("gnmt", 0.6), LengthPenalty("power", 1.0), LengthPenalty("gnmt", 2.0)]


def every_text(model: TableModel, start: list[int], max_tokens: int, eos: int) -> dict[tuple[int, ...], float]:
    """log p of every text that ends with eos or has `max_tokens` tokens, by the chain rule."""
    log_p = model.logits.log_softmax(-1)
    found = {}
    for length in range(1, max_tokens + 1):
        for text in itertools.product(range(model.vocab_size), repeat=length):
            ended = text[-1] == eos
            if eos in text[:-1] or not (ended or length == max_tokens):
                continue
            seen = [model.vocab_size, *start, *text]
            found[text] = sum(float(log_p[tuple(seen[i - 2 : i + 1])]) for i in range(len(start) + 1, len(seen)))
    return found


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: f"{p.name}-{p.alpha}")
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_with_a_slot_for_every_text_is_exhaustive_search(seed: int, penalty: LengthPenalty) -> None:
    model = random_table(4, seed)
    texts = every_text(model, [1, 2], 4, eos=0)
    assert math.fsum(map(math.exp, texts.values())) == pytest.approx(1, abs=1e-12)
    scores = sorted((log_p / penalty(len(text)) for text, log_p in texts.items()), reverse=True)
    n = len(texts)
    [result] = beam_search(model, [prompt(1, 2)], width=n, max_tokens=4, eos_id=0, penalty=penalty, n_best=n)
    assert [h.score for h in result.best] == pytest.approx(scores, abs=1e-12)
    assert {h.tokens for h in result.best} == set(texts)
    for h in result.best:
        assert h.log_prob == pytest.approx(texts[h.tokens], abs=1e-12)
        assert h.log_prob == pytest.approx(math.fsum(h.log_probs), abs=1e-12)
        assert h.penalty == penalty(len(h.tokens))
        assert h.score == h.log_prob / h.penalty
        assert h.finish == ("eos" if h.tokens[-1] == 0 else "length")


def slow_beam(model: TableModel, first: int, width: int, max_tokens: int, penalty: LengthPenalty) -> list[tuple]:
    """The definition, without a state, a bound or a batch: slots are filled from all continuations, eos is 0."""
    log_p = model.logits.log_softmax(-1)
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    ended: list[tuple[float, tuple[int, ...]]] = []
    for _ in range(max_tokens):
        grown = []
        for total, text in live:
            a, b = [model.vocab_size, first, *text][-2:]
            grown += [(total + float(log_p[a, b, token]), (*text, token)) for token in range(model.vocab_size)]
        grown.sort(key=lambda pair: -pair[0])
        kept = grown[: width - len(ended)]
        ended += [pair for pair in kept if pair[1][-1] == 0]
        live = [pair for pair in kept if pair[1][-1] != 0]
    return [text for _, text in sorted(ended + live, key=lambda pair: -pair[0] / penalty(len(pair[1])))]


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: f"{p.name}-{p.alpha}")
@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_stopping_early_never_changes_the_n_best(width: int, penalty: LengthPenalty) -> None:
    for seed in range(6):
        model = random_table(5, seed, scale=2.0)
        slow = slow_beam(model, 1, width, 7, penalty)
        for n_best in range(1, width + 1):
            [result] = beam_search(
                model, [prompt(1)], width=width, max_tokens=7, eos_id=0, penalty=penalty, n_best=n_best
            )
            assert [h.tokens for h in result.best] == slow[:n_best]


def test_a_longer_text_that_wins_by_its_length_is_waited_for() -> None:
    """[eos] has p 0.5 at once; 1 1 1 1 eos has 0.49, and with the penalty the better score."""
    model = bigram_table([[1.0, 0.0, 0.0], [0.02, 0.98, 0.0], [0.5, 0.5, 0.0]])
    options = {"width": 2, "max_tokens": 5, "eos_id": 0}
    [plain] = beam_search(model, [prompt(2)], **options)
    [favoured] = beam_search(model, [prompt(2)], **options, penalty=LengthPenalty("gnmt", 1.0))
    assert plain.best[0].tokens == (0,)
    assert favoured.best[0].tokens == (1, 1, 1, 1, 1)
    assert favoured.best[0].finish == "length"


def test_the_search_ends_when_no_live_text_can_win() -> None:
    model = bigram_table([[1.0, 0.0, 0.0], [0.02, 0.98, 0.0], [0.9, 0.1, 0.0]])
    beam_search(model, [prompt(2)], width=2, max_tokens=50, eos_id=0)
    assert len(model.calls) == 1
    model.calls.clear()
    beam_search(model, [prompt(2)], width=2, max_tokens=50, eos_id=0, n_best=2)
    assert len(model.calls) == 50


def test_ended_texts_stop_and_a_batch_equals_one_by_one() -> None:
    model = random_table(6, seed=3)
    prompts = [prompt(1), prompt(2, 3, 4), prompt(5, 1), prompt(4)]
    options = {"width": 3, "max_tokens": 8, "eos_id": 0, "penalty": LengthPenalty("gnmt", 0.6), "n_best": 3}
    together = beam_search(model, prompts, **options)
    alone = [beam_search(model, [p], **options)[0] for p in prompts]
    assert together == alone
    for result in together:
        assert len({h.tokens for h in result.best}) == 3
        assert all(0 not in h.tokens[:-1] for h in result.best)


@pytest.mark.parametrize("name", ["gpt", "lstm"])
def test_neural_models_search_alone_as_in_a_batch(name: str) -> None:
    torch.manual_seed(0)
    model = build(name, vocab_size=11, size="tiny").double()
    prompts = [prompt(1), prompt(2, 3, 4, 9, 10), prompt(5, 6)]
    options = {"width": 4, "max_tokens": 6, "eos_id": 0, "n_best": 4}
    together = beam_search(model, prompts, **options)
    for result, p in zip(together, prompts, strict=True):
        [alone] = beam_search(model, [p], **options)
        assert [h.tokens for h in result.best] == [h.tokens for h in alone.best]
        assert [h.log_prob for h in result.best] == pytest.approx([h.log_prob for h in alone.best], abs=1e-11)


@pytest.mark.parametrize("name", ["transformer", "bahdanau", "seq2seq"])
def test_sources_are_searched_alone_as_in_a_batch_and_texts_have_the_probability_of_one_reading(name: str) -> None:
    """Beams end at different steps, so that rows are copied within beams, given up and moved between them."""
    torch.manual_seed(0)
    model = build(name, vocab_size=70, size="tiny").double().eval()
    assert isinstance(model, EncoderDecoder)
    torch.nn.init.normal_(model.head.weight)
    sources, lengths = torch.randint(1, 70, (5, 7)), torch.tensor([7, 1, 4, 7, 2])
    start, most = torch.tensor([3]), [14, 2, 20, 9, 1]
    options = {"width": 6, "eos_id": 5, "n_best": 6, "penalty": LengthPenalty("gnmt", 0.6)}
    together = beam_search(model.given(sources, lengths), [start] * 5, max_tokens=most, **options)
    for row, result in enumerate(together):
        source = sources[row : row + 1, : int(lengths[row])]
        [alone] = beam_search(model.given(source), [start], max_tokens=most[row], **options)
        assert [h.tokens for h in result.best] == [h.tokens for h in alone.best]
        for h in result.best:
            read = torch.tensor([[3, *h.tokens[:-1]]])
            with torch.no_grad():
                log_p = model.head(model(SourceTokens(source, read))[0]).log_softmax(-1)[0]
            assert h.log_probs == pytest.approx(log_p[range(len(h.tokens)), h.tokens].tolist(), abs=1e-10)
    assert len({len(h.tokens) for result in together for h in result.best}) > 3


def test_the_numbers_of_every_step_are_kept_on_request() -> None:
    model = bigram_table([[1.0, 0.0, 0.0], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5]])
    penalty = LengthPenalty("power", 1.0)
    [result] = beam_search(model, [prompt(1)], width=2, max_tokens=2, eos_id=0, penalty=penalty, record=True)
    [silent] = beam_search(model, [prompt(1)], width=2, max_tokens=2, eos_id=0, penalty=penalty)
    assert silent == BeamResult(result.best)
    first, second = result.steps
    assert [(h.tokens, h.finish) for h in first] == [((1,), None), ((0,), "eos")]
    assert [h.score for h in first] == pytest.approx([math.log(0.6), math.log(0.3)])
    assert [(h.tokens, h.finish) for h in second] == [((1, 1), "length"), ((0,), "eos")]
    assert [h.penalty for h in second] == [2.0, 1.0]
    assert [h.score for h in second] == pytest.approx([math.log(0.36) / 2, math.log(0.3)])


def test_impossible_continuations_never_fill_a_slot() -> None:
    model = bigram_table([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    [result] = beam_search(model, [prompt(2)], width=9, max_tokens=3, eos_id=0, n_best=9)
    assert {h.tokens for h in result.best} == {(1, 0), (1, 1, 0), (1, 1, 1)}


def test_a_full_window_ends_a_text_and_each_prompt_has_its_own_room() -> None:
    model = random_table(4, seed=5, max_length=5)
    results = beam_search(model, [prompt(1), prompt(1, 2, 3, 1, 2)], width=2, max_tokens=9, eos_id=None, n_best=2)
    assert [len(r.best[0].tokens) for r in results] == [5, 1]
    assert {h.finish for r in results for h in r.best} == {"context"}
    with pytest.raises(UsageError, match="prompt 0 has 6 tokens"):
        beam_search(model, [prompt(*[1] * 6)], width=2, max_tokens=9, eos_id=None)


def test_width_one_is_greedy_whatever_the_penalty() -> None:
    model = random_table(6, seed=9)
    prompts = [prompt(i) for i in range(1, 6)]
    greedy = generate(model, prompts, limits=Limits(max_tokens=9, eos_id=0), settings=GREEDY)
    for penalty in PENALTIES:
        beams = beam_search(model, prompts, width=1, max_tokens=9, eos_id=0, penalty=penalty)
        assert [b.best[0].tokens for b in beams] == [g.tokens for g in greedy]
        assert [b.best[0].log_probs for b in beams] == [g.log_probs for g in greedy]


def test_width_one_takes_the_first_of_equal_tokens_as_greedy_does() -> None:
    model = bigram_table([[0.25] * 4] * 4)
    [beam] = beam_search(model, [prompt(1)], width=1, max_tokens=3, eos_id=3)
    [greedy] = generate(model, [prompt(1)], limits=Limits(max_tokens=3, eos_id=3), settings=GREEDY)
    assert beam.best[0].tokens == greedy.tokens == (0, 0, 0)


def test_no_prompts_give_no_results() -> None:
    assert beam_search(random_table(3, 0), [], width=2, max_tokens=2, eos_id=0) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "beam width"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"n_best": 3}, "n_best must lie between 1 and the beam width 2"),
        ({"n_best": 0}, "n_best"),
    ],
)
def test_impossible_sizes_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        beam_search(random_table(3, 0), [prompt(1)], **{"width": 2, "max_tokens": 2, "eos_id": 0} | options)


def test_logits_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(NumericError):
        beam_search(bigram_table([[math.nan] * 2] * 2), [prompt(1)], width=2, max_tokens=2, eos_id=0)
