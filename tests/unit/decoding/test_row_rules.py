"""Rules on single rows, the likeliest tokens of a place, prompts that are told about, and beginnings read once."""

from __future__ import annotations

import pytest
import torch

from decoding.table import bigram_table, random_table
from regard.core.registry import build
from regard.decoding.ending import Limits
from regard.decoding.engine import Engine
from regard.decoding.logits_processing import GREEDY, Sampling
from regard.decoding.prefix_cache import PrefixCache
from regard.decoding.prompt_reading import PromptReading
from regard.decoding.row import Drawn
from regard.decoding.row_rules import LogitBias, RepetitionPenalty, RowRules
from regard.decoding.score import score


def drawn(engine: Engine) -> list[Drawn]:
    found = []
    while engine.busy:
        found += engine.step()
    return found


@pytest.mark.parametrize("ahead", [1, 4])
def test_a_rule_changes_its_row_and_no_other(ahead: int) -> None:
    probabilities = random_table(7, seed=1).logits[0].softmax(-1)
    model = bigram_table(probabilities.tolist())
    with Engine(model, 3, ahead=ahead) as engine:
        engine.submit([0], Limits(9), Sampling(), seed=5, row=1)
        alone = [one.token for one in drawn(engine)]
    with Engine(model, 3, ahead=ahead) as engine:
        engine.submit([0], Limits(9), GREEDY, rules=RowRules((LogitBias({3: 1000.0}),)))
        engine.submit([0], Limits(9), Sampling(), seed=5, row=1)
        engine.submit([0], Limits(7), GREEDY, rules=RowRules((RepetitionPenalty(presence=1000.0),), likeliest=2))
        found = drawn(engine)
    rows = [[one for one in found if one.request == number] for number in range(3)]
    assert [one.token for one in rows[0]] == [3] * 9
    assert [one.token for one in rows[1]] == alone
    assert sorted(one.token for one in rows[2]) == list(range(7))  # each token once, as all that were drawn cost more
    table = probabilities.log()
    before = 0
    for one in rows[0]:
        assert one.log_prob == pytest.approx(float(table[before, one.token]), abs=1e-6)  # the model's own
        before = one.token
    before = 0
    for one in rows[2]:
        best = table[before].topk(2)
        assert [token for token, _ in one.likeliest] == best.indices.tolist()
        assert [p for _, p in one.likeliest] == pytest.approx(best.values.tolist(), abs=1e-6)
        before = one.token


def test_penalties_count_what_was_drawn() -> None:
    logits = torch.zeros(4)
    found = RepetitionPenalty(presence=0.5, frequency=0.25)(logits, [1, 1, 3])
    assert found.tolist() == [0.0, -1.0, 0.0, -0.75]
    assert LogitBias({2: 3.0})(logits, []).tolist() == [0.0, 0.0, 3.0, 0.0]


@pytest.mark.parametrize("name", ["gpt", "lstm", "mamba2"])
def test_a_beginning_that_was_read_before_changes_nothing(name: str) -> None:
    torch.manual_seed(0)
    model = build(name, vocab_size=11, size="tiny").double().eval()
    begins = [index % 11 for index in range(20)]
    prompts = [[*begins, 1, 2, 3], [*begins, 4], begins, begins[:9]]
    found = []
    for cache in (None, PrefixCache(1 << 24)):
        with Engine(model, 2, chunk=6) as engine:
            engine.arrivals.prefixes = cache
            for number, prompt in enumerate(prompts):
                engine.submit(prompt, Limits(6), Sampling(), seed=1, row=number)
                found.append([(one.token, one.log_prob) for one in drawn(engine)])
    assert found[:4] == found[4:]  # to the bit
    assert cache is not None
    assert (cache.hits, cache.read) == (3, 18 + 18 + 6)


def test_a_cache_forgets_what_was_not_used_for_longest() -> None:
    model = build("lstm", vocab_size=11, size="tiny").eval()
    state = model.init_state(1)  # pyright: ignore[reportCallIssue]
    cache = PrefixCache(2 * state.nbytes)
    tokens = [[number] for number in range(3)]
    cache.put(tokens[0], lambda: state)
    cache.put(tokens[1], lambda: state)
    assert cache.get(tokens[0]) is state
    cache.put(tokens[2], lambda: state)
    assert [cache.get(one) is not None for one in tokens] == [True, False, True]
    assert cache.nbytes == 2 * state.nbytes


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_a_prompt_is_told_about_as_it_is_scored(chunk: int) -> None:
    model = random_table(7, seed=2)
    text = [3, 1, 4, 1, 5, 2, 6]
    (expected,) = score(model, [torch.tensor(text)], start_id=0)
    reading = PromptReading(model, [0, *text], likeliest=3, chunk=chunk)
    while not reading.done:
        reading.advance()
    assert reading.log_probs == pytest.approx(expected.log_probs, abs=1e-6)
    assert [len(likely) for likely in reading.likeliest] == [3] * len(text)
