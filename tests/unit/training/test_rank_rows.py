"""Which rows of a batch a process reads, and what all of them must have alike."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from regard.data.batch import Batch
from regard.errors import UsageError
from regard.training.losses import TrainingStep, model_loss
from regard.training.parallel.joined import JoinedRanks
from regard.training.parallel.rows import joined_rows, own_rows, part_of
from regard.training.parallel.sharded import ShardedRanks

LENGTHS = [4, 3, 2, 1, 1]


def padded() -> Batch:
    tokens = torch.arange(20).reshape(5, 4)
    targets = torch.where(torch.arange(4) < torch.tensor(LENGTHS)[:, None], tokens, -100)
    return Batch(tokens, targets, torch.tensor(LENGTHS), [10, 11, 12, 13, 14])


def packed() -> Batch:
    real = padded().targets != -100
    tokens = padded().tokens[real][None]
    return Batch(tokens, tokens, torch.tensor(LENGTHS), [10, 11, 12, 13, 14], packed=True)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("whole", [padded(), packed()], ids=["padded", "packed"])
def test_parts_have_every_row_once(whole: Batch, size: int) -> None:
    parts = [part_of(whole, rank, size) for rank in range(size)]
    assert sorted(i for part in parts for i in part.indices) == [10, 11, 12, 13, 14]
    assert sum(part.n_counted for part in parts) == whole.n_counted
    counted = torch.cat([part.targets[part.targets != -100] for part in parts])
    assert torch.equal(counted.sort().values, whole.targets[whole.targets != -100].sort().values)
    for part in parts:
        assert part.lengths.tolist() == [LENGTHS[i - 10] for i in part.indices]
        if whole.packed:
            assert part.tokens.shape == (1, int(part.lengths.sum()))


def test_a_process_without_rows_reads_the_first_for_company() -> None:
    assert part_of(padded(), 6, 7).indices == [10]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_rows_that_were_shared_out_come_together_again(size: int) -> None:
    whole = torch.arange(14.0).reshape(7, 2)
    assert torch.equal(joined_rows([own_rows(whole, rank, size) for rank in range(size)]), whole)


def test_a_parameter_of_a_single_number_cannot_be_cut_and_is_named() -> None:
    class Scaled(nn.Linear):
        def __init__(self) -> None:
            super().__init__(3, 3)
            self.scale = nn.Parameter(torch.tensor(1.0))

    with pytest.raises(UsageError, match=r"train\.parallel=fsdp: scale is a single number, which cannot be cut"):
        ShardedRanks.__new__(ShardedRanks).shard(TrainingStep(Scaled(), model_loss), torch.float32)


@pytest.mark.parametrize(
    ("key", "theirs"), [("regard", "9.9"), ("torch", "9.9"), ("data.hash", "ef02"), ("train.lr", 0.5)]
)
def test_another_version_data_or_setting_is_refused_with_both_processes_named(
    monkeypatch: pytest.MonkeyPatch, key: str, theirs: Any
) -> None:
    def gathered(ranks: JoinedRanks, mine: tuple[str, dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
        return [mine, ("other", mine[1]), ("third", {**mine[1], key: theirs})]

    monkeypatch.setattr(JoinedRanks, "gathered", gathered)
    told = {"model": {"config": {}}, "data": {"hash": "ab01"}, "train": {"lr": 0.1}}
    with pytest.raises(
        UsageError, match=rf"process 0 on .* and process 2 on third were .*: {key} is .* and .?{theirs}"
    ):
        JoinedRanks.__new__(JoinedRanks).require_same(told)
