"""Batches: pure functions of the step, and evaluations that count every token once."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batch import Batch, Documents, Lanes, Windows, evaluation_batches
from regard.data.bucket import FEWEST
from regard.data.shard import TokenShard
from regard.errors import DataError, UsageError

EOS = 10_000


def shard_of(*sizes: int) -> TokenShard:
    """Documents of these many tokens. Every token is its own place, so that it can be told where it came from."""
    parts, starts, place = [], [], 0
    for size in sizes:
        parts.append(np.append(np.arange(place, place + size), EOS))
        starts.append(place)
        place += size + 1
    return TokenShard(np.concatenate(parts).astype(np.uint16), np.array(starts), 0, 0)


def equal(one: Batch, other: Batch) -> bool:
    same = all(torch.equal(getattr(one, name), getattr(other, name)) for name in ("tokens", "targets", "lengths"))
    return same and one.indices == other.indices and one.fresh == other.fresh


def counted(batches) -> Counter[int]:
    """How often each target counted. Ends of documents are told apart by the token before them."""
    found = Counter()
    for batch in batches:
        counts = batch.targets != -100
        for token, target in zip(batch.tokens[counts].tolist(), batch.targets[counts].tolist(), strict=True):
            found[("end", token) if target == EOS else target] += 1
    return found


def everything(shard: TokenShard) -> Counter[int]:
    ids = shard.ids.tolist()
    return Counter(("end", ids[i - 1]) if token == EOS else token for i, token in enumerate(ids))


def check_shape(batch: Batch, batch_size: int) -> None:
    assert batch.tokens.shape == batch.targets.shape
    assert batch.tokens.dtype == batch.targets.dtype == batch.lengths.dtype == torch.int64
    assert batch.tokens.is_contiguous()
    assert batch.targets.is_contiguous()
    assert len(batch.indices) == len(batch.tokens) == len(batch.lengths) <= batch_size
    assert int(batch.lengths.max()) == batch.tokens.shape[1]
    assert int(batch.lengths.min()) >= 1
    for row, length in enumerate(batch.lengths.tolist()):
        assert (batch.targets[row, length:] == -100).all()
        assert (batch.tokens[row, length:] == EOS).all()
        # Logits at t predict token t + 1: where a target counts, it is the next input.
        inside = batch.targets[row, : length - 1]
        follows = batch.tokens[row, 1:length]
        assert ((inside == follows) | (inside == -100)).all()


SAMPLERS = {
    "windows": lambda shard, seed: Windows(shard, 4, seed),
    "documents": lambda shard, seed: Documents(shard, seed),
    "pieces": lambda shard, seed: Documents(shard, seed, max_length=3),
    "lanes": lambda shard, seed: Lanes(shard, 4, 3, seed),
}


@pytest.mark.parametrize("kind", SAMPLERS)
@given(seed=st.integers(0, 1000), steps=st.permutations([0, 1, 2, 7, 40, 1000]))
@settings(max_examples=15, deadline=None)
def test_a_batch_is_the_same_whenever_it_is_asked_for(kind, seed, steps):
    shard = shard_of(3, 5, 2, 9, 4, 1, 7)
    sampler = SAMPLERS[kind](shard, seed)
    first = {step: sampler.batch(step, 3) for step in steps}
    for step in sorted(steps):
        check_shape(first[step], 3)
        assert equal(sampler.batch(step, 3), first[step])
        assert equal(SAMPLERS[kind](shard, seed).batch(step, 3), first[step])


@pytest.mark.parametrize("kind", SAMPLERS)
def test_another_seed_gives_other_batches(kind):
    shard = shard_of(*range(1, 20))
    batches = [SAMPLERS[kind](shard, seed).batch(0, 3) for seed in range(5)]
    assert len({tuple(batch.targets.flatten().tolist()) for batch in batches}) >= 4


@given(sizes=st.lists(st.integers(0, 30), min_size=1, max_size=12), length=st.integers(1, 8), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_an_epoch_of_windows_counts_no_token_twice_and_almost_all_once(sizes, length, seed):
    shard = shard_of(*sizes)
    if shard.tokens < length + 1:
        return
    windows = Windows(shard, length, seed)
    n = windows.samples_per_epoch
    for epoch in (0, 1, 5):
        found = counted([windows.batch(step, 1) for step in range(epoch * n, (epoch + 1) * n)])
        assert found <= everything(shard)
        assert sum(found.values()) == n * length > shard.tokens - length


def test_windows_of_later_epochs_are_cut_elsewhere():
    windows = Windows(shard_of(100), 10, seed=0)
    n = windows.samples_per_epoch
    cuts = [{int(windows.batch(epoch * n + i, 1).tokens[0, 0]) % 10 for i in range(n)} for epoch in range(8)]
    assert len({tuple(sorted(cut)) for cut in cuts}) > 3


def test_a_batch_may_reach_over_epochs():
    windows = Windows(shard_of(20), 5, seed=0)
    assert windows.samples_per_epoch == 4
    batch = windows.batch(1, 10)
    singles = [windows.batch(number, 1) for number in batch.indices]
    assert batch.indices == list(range(10, 20))
    assert torch.equal(batch.tokens, torch.cat([single.tokens for single in singles]))


def test_documents_start_with_eos_and_end_with_it():
    documents = Documents(shard_of(3, 1, 2), seed=0)
    rows = {}
    for step in range(FEWEST):
        batch = documents.batch(step, 1)
        rows[batch.targets[0, 0].item()] = (batch.tokens[0].tolist(), batch.targets[0].tolist())
    assert rows == {
        0: ([EOS, 0, 1, 2], [0, 1, 2, EOS]),
        4: ([EOS, 4], [4, EOS]),
        6: ([EOS, 6, 7], [6, 7, EOS]),
    }


@given(
    sizes=st.lists(st.integers(0, 20), min_size=1, max_size=5),
    max_length=st.none() | st.integers(3, 8),
    batch_size=st.integers(1, 3),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, deadline=None)
def test_every_document_comes_once_in_an_epoch_whatever_its_length(sizes, max_length, batch_size, seed):
    shard = shard_of(*sizes)
    documents = Documents(shard, seed, max_length)
    n = documents.samples_per_epoch
    # A whole number of pools and of epochs.
    batches = [documents.batch(step, batch_size) for step in range(n * FEWEST)]
    assert sorted(i for batch in batches for i in batch.indices) == list(range(n * FEWEST * batch_size))
    found = counted(batches)
    assert found == Counter({token: count * FEWEST * batch_size for token, count in everything(shard).items()})
    if max_length is not None:
        assert max(batch.tokens.shape[1] for batch in batches) <= max_length


def test_documents_of_similar_length_come_together():
    generator = np.random.default_rng(0)
    documents = Documents(shard_of(*generator.integers(1, 100, 150).tolist()), seed=0)
    batches = [documents.batch(step, 8) for step in range(2 * FEWEST)]
    real = sum(int(batch.lengths.sum()) for batch in batches)
    assert real / sum(batch.tokens.numel() for batch in batches) > 0.9
    lengths = [batch.tokens.shape[1] for batch in batches[:FEWEST]]
    assert lengths != sorted(lengths)


def rows_of(batch: Batch) -> dict[int, tuple[list[int], list[int]]]:
    """Inputs and targets of every sample by its number, of rows side by side or end to end."""
    ends = batch.lengths.cumsum(0).tolist()
    found = {}
    for row, (number, length) in enumerate(zip(batch.indices, batch.lengths.tolist(), strict=True)):
        where = (0, slice(ends[row] - length, ends[row])) if batch.packed else (row, slice(0, length))
        found[number] = batch.tokens[where].tolist(), batch.targets[where].tolist()
    return found


@given(
    sizes=st.lists(st.integers(0, 20), min_size=1, max_size=6),
    max_length=st.none() | st.integers(1, 8),
    batch_size=st.integers(1, 3),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, deadline=None)
def test_documents_end_to_end_are_those_side_by_side_without_padding(sizes, max_length, batch_size, seed):
    shard = shard_of(*sizes)
    padded, packed = (Documents(shard, seed, max_length, packed=packed) for packed in (False, True))
    steps = range(FEWEST)
    found = [packed.batch(step, batch_size) for step in steps]
    expected = [padded.batch(step, batch_size) for step in steps]
    assert {k: v for batch in found for k, v in rows_of(batch).items()} == {
        k: v for batch in expected for k, v in rows_of(batch).items()
    }
    for step, batch in enumerate(found):
        assert batch.tokens.shape == batch.targets.shape == (1, int(batch.lengths.sum()))
        assert (batch.n_padding, batch.n_places, batch.ragged) == (0, batch.tokens.numel(), True)
        assert batch.offsets.diff().tolist() == batch.lengths.tolist()
        assert equal(Documents(shard, seed, max_length, packed=True).batch(step, batch_size), batch)


def test_the_first_rows_of_a_packed_batch_are_whole():
    batch = Documents(shard_of(3, 5, 2, 9), seed=1, packed=True).batch(0, 4)
    first = batch.first(2)
    assert first.packed
    assert rows_of(first) == {number: rows_of(batch)[number] for number in batch.indices[:2]}


def test_padding_is_counted_on_both_sides():
    tokens, lengths = torch.zeros(2, 5, dtype=torch.long), torch.tensor([5, 3])
    one = Batch(tokens, tokens, lengths, [0, 1])
    assert (one.n_padding, one.n_places) == (2, 10)
    two = Batch(tokens, tokens, lengths, [0, 1], source=tokens[:, :4], source_lengths=torch.tensor([1, 4]))
    assert (two.n_padding, two.n_places) == (5, 18)
    picture = Batch(tokens, tokens, lengths, [0, 1], source=torch.zeros(2, 3, 8, 8))
    assert (picture.n_padding, picture.n_places) == (2, 10)


@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=10),
    length=st.integers(1, 6),
    batch_size=st.integers(1, 5),
    seed=st.integers(0, 99),
)
@settings(max_examples=50, deadline=None)
def test_lanes_go_on_from_batch_to_batch(sizes, length, batch_size, seed):
    shard = shard_of(*sizes)
    if shard.tokens < length * batch_size:
        return
    lanes = Lanes(shard, length, batch_size, seed)
    n = lanes.batches_per_epoch
    batches = [lanes.batch(step, batch_size) for step in range(2 * n)]
    for step, batch in enumerate(batches):
        check_shape(batch, batch_size)
        assert batch.tokens.shape == (batch_size, length)
        assert batch.fresh == (step % n == 0)
        if not batch.fresh:
            assert torch.equal(batch.tokens[:, 0], batches[step - 1].targets[:, -1])
    found = counted(batches[:n])
    assert found <= everything(shard)
    assert sum(found.values()) == n * batch_size * length == lanes.samples_per_epoch * length
    assert [i for batch in batches for i in batch.indices] == list(range(2 * n * batch_size))


@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=10),
    length=st.integers(1, 12),
    batch_size=st.integers(1, 6),
    stride=st.none() | st.integers(1, 12),
    kind=st.sampled_from(["stream", "documents"]),
)
@settings(max_examples=150, deadline=None)
def test_an_evaluation_counts_every_token_exactly_once(sizes, length, batch_size, stride, kind):
    shard = shard_of(*sizes)
    if stride is not None and stride > length:
        return
    batches = list(evaluation_batches(shard, length=length, batch_size=batch_size, stride=stride, kind=kind))
    for batch in batches:
        check_shape(batch, batch_size)
        assert batch.tokens.shape[1] <= length
    assert counted(batches) == everything(shard)
    assert sum(batch.n_counted for batch in batches) == shard.tokens


def test_a_stream_goes_on_in_lanes():
    shard = shard_of(10, 11)
    batches = list(evaluation_batches(shard, length=4, batch_size=3))
    assert [batch.fresh for batch in batches] == [True, False, True]
    assert batches[0].tokens[0].tolist() == [EOS, 0, 1, 2]
    for before, after in pairwise(batches):
        if not after.fresh:
            assert torch.equal(after.tokens[:, 0], before.targets[:, -1])
    alone = list(evaluation_batches(shard, length=5, batch_size=1))
    assert [batch.fresh for batch in alone] == [True, False, False, False, False]
    assert torch.cat([batch.targets[0] for batch in alone]).tolist() == shard.ids.tolist()


def test_a_stride_gives_every_new_token_context():
    shard = shard_of(20)
    batches = list(evaluation_batches(shard, length=8, batch_size=2, stride=3))
    rows = [row for batch in batches for row in batch.targets.tolist()]
    assert all(batch.fresh for batch in batches)
    assert all(len(targets) == 8 for targets in rows)
    contexts = {}
    for targets in rows:
        for place, target in enumerate(targets):
            if target != -100:
                contexts[target] = place + 1
    # From the second window on, every token has at least length - stride + 1 tokens of context.
    assert all(context >= 6 for token, context in contexts.items() if token >= 8)
    assert [contexts[token] for token in range(8)] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_documents_are_evaluated_whole_and_longest_first():
    batches = list(evaluation_batches(shard_of(2, 9, 5), length=None, batch_size=2, kind="documents"))
    assert [batch.lengths.tolist() for batch in batches] == [[10, 6], [3]]
    assert [batch.indices for batch in batches] == [[1, 2], [0]]
    assert batches[0].tokens[:, 0].tolist() == [EOS, EOS]
    assert batches[0].ragged
    assert not batches[1].ragged


def test_to_moves_every_tensor():
    batch = Windows(shard_of(20), 5, seed=0).batch(0, 2).to(torch.device("meta"))
    assert {batch.tokens.device.type, batch.targets.device.type} == {"meta"}
    assert batch.lengths.device.type == "cpu", "lengths are looked at, which would wait for a device"
    assert batch.indices == [0, 1]


def test_a_memory_mapped_shard_gives_the_same_batches(tmp_path):
    shard = shard_of(30, 7)
    shard.ids.tofile(tmp_path / "ids")
    mapped = TokenShard(np.memmap(tmp_path / "ids", dtype=np.uint16, mode="r"), shard.starts, 0, 0)
    assert equal(Windows(mapped, 5, 1).batch(3, 4), Windows(shard, 5, 1).batch(3, 4))


def test_too_little_text_says_the_smallest_amount():
    shard = shard_of(9)
    assert Windows(shard, 9, 0).samples_per_epoch == 1
    with pytest.raises(DataError, match="10 tokens and a window of length 10 needs at least 11"):
        Windows(shard, 10, 0)
    with pytest.raises(DataError, match=r"needs at least 12: .* a smaller train\.batch_size or train\.length"):
        Lanes(shard, 4, 3, 0)
    for sampler in (lambda: Windows(shard, 0, 0), lambda: Lanes(shard, 0, 1, 0)):
        with pytest.raises(UsageError, match="length 0"):
            sampler()


def test_choices_that_cannot_be_are_refused():
    shard = shard_of(9)
    for keywords in ({"kind": "lines"}, {"stride": 0}, {"stride": 5}, {"length": 0}, {"batch_size": 0}):
        with pytest.raises(UsageError):
            list(evaluation_batches(shard, **({"length": 4, "batch_size": 2} | keywords)))
    with pytest.raises(UsageError, match="batches of 3 rows"):
        Lanes(shard, 2, 3, 0).batch(0, 4)
