"""Random numbers as a function: against a plain loop over Python's integers, and against the paper's own vectors."""

from __future__ import annotations

import pytest
import torch

from regard.decoding.philox import as_int64, philox, uniforms

MASK = 2**32 - 1


def plain_philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox-4x32-10 as Salmon et al. 2011 write it, one number at a time."""
    a, b, c, d = counter
    for turn in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        k = [(key[0] + turn * 0x9E3779B9) & MASK, (key[1] + turn * 0xBB67AE85) & MASK]
        a, b, c, d = (second >> 32) ^ b ^ k[0], second & MASK, (first >> 32) ^ d ^ k[1], first & MASK
    return [a, b, c, d]


def plain_uniform(seed: int, row: int, counter: int) -> float:
    split = [row & MASK, (row >> 32) & MASK]
    low, high, _, _ = plain_philox([counter, 0, *split], [seed & MASK, (seed >> 32) & MASK])
    return ((low >> 5) * 2**26 + (high >> 6)) / 2**53


# The known answers that the authors publish with Random123.
KNOWN = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([MASK] * 4, [MASK] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_the_published_answers(counter: list[int], key: list[int], answer: list[int]) -> None:
    found = philox(tuple(torch.tensor(counter).unbind()), tuple(torch.tensor(key).unbind()))  # pyright: ignore
    assert [int(word) for word in found] == answer == plain_philox(counter, key)


ORIGINS = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (2**40 + 7, 2**33 + 5, 99), (-3, 12, 4), (2**64 - 1, 2**63, 1)]


def numbers(device: str) -> list[float]:
    seed, row, counter = torch.tensor([[*map(as_int64, origin)] for origin in ORIGINS], device=device).unbind(1)
    return uniforms(seed, row, counter).tolist()


def test_uniform_numbers_equal_a_plain_loop() -> None:
    assert numbers("cpu") == [plain_uniform(*(n % 2**64 for n in origin)) for origin in ORIGINS]


@pytest.mark.gpu
def test_uniform_numbers_are_the_same_on_cuda() -> None:
    assert numbers("cuda") == numbers("cpu")


def test_numbers_of_neighbouring_streams_look_independent() -> None:
    """Means, and correlations between rows and between draws, lie within four standard errors."""
    row, counter = torch.meshgrid(torch.arange(64), torch.arange(512), indexing="ij")
    u = uniforms(torch.full_like(row, 5), row, counter) - 0.5
    n = u.numel()
    assert abs(float(u.mean())) < 4 / (12 * n) ** 0.5
    for pair in (u[1:] * u[:-1], u[:, 1:] * u[:, :-1]):
        assert abs(float(pair.mean())) < 4 / 12 / pair.numel() ** 0.5
