"""The n-gram model: its distributions sum to one, and its ways of asking for a probability agree."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from answers import answered
from regard.core.model import logits_of
from regard.models.ngram import NgramConfig, NgramModel
from regard.ngram.smoothing import Smoothing
from smoothings import SMOOTHINGS

PRUNINGS = [(), (0, 1), (0, 0, 1), (0, 2), (0, 1, 1, 3)]


def random_text(kind: str, vocab_size: int, eos: int, generator: np.random.Generator) -> np.ndarray:
    """Texts that bring up the edges: contexts that see every word, a single token, nothing but ends of sentences."""
    n_tokens = int(generator.integers(1, 400))
    if kind == "ends":
        return np.full(n_tokens, eos)
    if kind == "token":
        return generator.integers(vocab_size, size=1)
    if kind == "uniform":
        return generator.integers(vocab_size, size=n_tokens)
    return (generator.random(n_tokens) ** 3 * vocab_size).astype(np.int64)


def fitted(data: st.DataObject, smoothing: Smoothing, interpolate: bool) -> tuple[NgramModel, torch.Tensor]:
    """A model of a random text, and rows of tokens: random ones, and pieces of the text itself."""
    vocab_size = data.draw(st.sampled_from([1, 2, 3, 8, 40]), "vocab_size")
    eos = data.draw(st.integers(0, vocab_size - 1), "eos")
    order = data.draw(st.integers(1, 6), "order")
    prune, closed = data.draw(st.sampled_from(PRUNINGS), "prune"), data.draw(st.booleans(), "closed")
    kind = data.draw(st.sampled_from(["ends", "token", "uniform", "skewed"]), "text")
    generator = np.random.default_rng(data.draw(st.integers(0, 10_000), "seed"))
    model = NgramConfig(vocab_size, order, smoothing, interpolate, 0.3, prune, closed, eos_id=eos).build()
    ids = random_text(kind, vocab_size, eos, generator)
    model.estimate(model.count(ids))
    start = int(generator.integers(len(ids)))
    seen = np.resize(ids[start : start + 9], 9)
    after_end = np.concatenate([[eos], generator.integers(vocab_size, size=8)])
    return model, torch.from_numpy(np.stack([seen, after_end, generator.integers(vocab_size, size=9)]))


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("smoothing", "interpolate"), SMOOTHINGS)
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_distributions_sum_to_one_and_agree(smoothing: Smoothing, interpolate: bool, data: st.DataObject) -> None:
    model, tokens = fitted(data, smoothing, interpolate)
    p = model.probabilities(tokens, model.init_state(3))
    assert float(p.min()) >= 0
    torch.testing.assert_close(p.sum(-1), torch.ones(3, 9, dtype=torch.float64), rtol=0, atol=1e-9)
    logs, _ = model.log_probs(tokens, model.init_state(3))
    expected = p[:, :-1].gather(2, tokens[:, 1:, None])[..., 0].log()
    torch.testing.assert_close(logs, expected, rtol=0, atol=1e-12)
    logits = logits_of(model, tokens)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, p.log().float(), rtol=1e-6, atol=1e-6)
    state, steps = model.init_state(3), []
    for token in tokens.split(1, dim=1):
        step, state = answered(model, token, state)
        steps.append(step)
    torch.testing.assert_close(torch.cat(steps, 1), logits, rtol=1e-6, atol=1e-6)


def example(order: int = 4) -> NgramModel:
    return NgramConfig(20, order).build_example()


@pytest.mark.parametrize("order", [1, 2, 5])
def test_single_probabilities_carry_their_state(order: int) -> None:
    model = example(order)
    tokens = torch.randint(20, (3, 30))
    whole, _ = model.log_probs(tokens, model.init_state(3))
    first, state = model.log_probs(tokens[:, :12], model.init_state(3))
    # The state is the one before the last token, which the next chunk begins with.
    rest, _ = model.log_probs(tokens[:, 11:], state)
    assert torch.cat([first, rest], 1).equal(whole)


def test_nothing_before_the_end_of_a_sentence_matters() -> None:
    model = example()
    one = model.probabilities(torch.tensor([[3, 4, 19, 5]]), model.init_state(1))
    other = model.probabilities(torch.tensor([[7, 7, 19, 5]]), model.init_state(1))
    assert one[:, 2:].equal(other[:, 2:])
    assert not one[:, 1].equal(other[:, 1])


def test_before_anything_was_counted_every_token_is_as_probable() -> None:
    model = NgramConfig(8, order=3).build()
    p = model.probabilities(torch.tensor([[1, 2, 7]]), model.init_state(1))
    torch.testing.assert_close(p, torch.full((1, 3, 8), 1 / 8, dtype=torch.float64), rtol=0, atol=1e-15)


def test_fitting_again_forgets_what_was_known() -> None:
    ids = np.random.default_rng(1).integers(20, size=300)
    model, fresh = example(), NgramConfig(20, 4).build()
    for each in (model, fresh):
        each.estimate(each.count(ids))
    for name, tensor in fresh.state_dict().items():
        assert model.state_dict()[name].equal(tensor), name


def test_closed_vocabulary_gives_nothing_to_unseen_tokens() -> None:
    ids = np.array([0, 1, 4, 1, 0, 4])
    for closed in (False, True):
        model = NgramConfig(5, order=2, closed=closed).build()
        model.estimate(model.count(ids))
        p = model.probabilities(torch.tensor([[0, 1, 2]]), model.init_state(1))
        assert bool((p[..., [2, 3]] == 0).all()) is closed
        torch.testing.assert_close(p.sum(-1), torch.ones(1, 3, dtype=torch.float64), rtol=0, atol=1e-12)


def test_pruning_pairs_of_a_large_vocabulary_keeps_the_others():
    ids = np.array([50000, 50001, 59999] * 3 + [50000, 50002, 59999] + [5, 6, 59999] * 3)
    model = NgramConfig(60000, 2, smoothing="witten_bell", prune=(0, 1)).build()
    model.estimate(model.count(ids))
    keys = model.table.level(2).keys
    assert (keys.diff() > 0).all()
    assert model.table.level(2).find(torch.tensor([50000]), torch.tensor([50001])) >= 0


def test_eight_bits_sum_to_about_one_also_with_zeros_in_the_tables():
    ids = np.random.default_rng(0).integers(5, size=30_000)
    model = NgramConfig(5, 7, interpolate=False, quantise=True).build()
    model.estimate(model.count(ids))
    assert all(len(level.alpha.table) <= 256 for level in model.table.levels)  # pyright: ignore
    sums = model.probabilities(torch.from_numpy(ids[None, :500]), model.init_state(1)).sum(-1)
    assert 0.95 < float(sums.min()) <= float(sums.max()) < 1.05


def test_the_general_path_and_the_quick_ones_agree():
    for seed, rules in enumerate([{}, {"interpolate": False}, {"prune": (0, 0, 1)}, {"closed": True}, {"order": 1}]):
        ids = np.random.default_rng(seed).integers(9, size=400)
        model = NgramConfig(9, **{"order": 4, **rules}).build()
        model.estimate(model.count(ids))
        tokens = torch.from_numpy(ids[:120].reshape(40, 3))
        together, _ = answered(model, tokens, model.init_state(40))
        contexts, _ = model._contexts(tokens, model.init_state(40))
        general = model.table.log_distributions(contexts, tokens.numel()).view_as(together)
        state, steps = model.init_state(8), []
        for t in range(3):
            y, state = answered(model, tokens[:8, t : t + 1], state)
            steps.append(y)
        torch.testing.assert_close(together, general)
        torch.testing.assert_close(torch.cat(steps, 1), general[:8])


def test_other_number_types_and_an_unfitted_closed_vocabulary():
    model = NgramConfig(5, 3, closed=True).build().to(torch.bfloat16)
    y, _ = answered(model, torch.tensor([[1]]), model.init_state(1))
    assert y.dtype is torch.bfloat16
    assert y.float().exp().sum().item() == pytest.approx(1, abs=0.02)
