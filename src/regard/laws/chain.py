"""Law of chains: tags that are chosen together are those of every way to tag the sentence, counted out one by one."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.core.context import Context
from regard.laws.result import Ledger
from regard.laws.subject import Subject

LENGTHS = (4, 1, 3, 2)


@torch.no_grad()
def enumeration(subject: Subject, ledger: Ledger) -> None:
    """Tags that are chosen together have the highest score of all ways to tag, and the chances that all ways sum to."""
    decoder, lengths = subject.decoder, torch.tensor(LENGTHS)
    assert decoder is not None
    vectors = subject.vectors(subject.inputs(len(LENGTHS), max(LENGTHS)), Context(lengths=lengths))
    best, chances = decoder.decode(vectors, lengths), decoder.log_chances(vectors, lengths).exp()
    for row, length in enumerate(LENGTHS):
        case, words = f"{length} words beside longer ones", vectors[row : row + 1, :length]
        ways = every_way(length, chances.shape[-1])
        scores = decoder.score_ways(words, ways)
        chosen = decoder.score_ways(words, best[row : row + 1, :length])
        ledger.equal(chosen, scores.max()[None], f"{case}, the score of the tags that are chosen")
        summed = torch.einsum("n,ntc->tc", scores.softmax(0), F.one_hot(ways, chances.shape[-1]).to(scores))
        ledger.equal(chances[row, :length], summed, f"{case}, the chance of each tag")
        ledger.equal(best[row, length:], torch.zeros_like(best[row, length:]), f"{case}, tags after the end")


def every_way(n_words: int, n_tags: int) -> Tensor:
    """All ways to tag so many words, (n_tags ^ n_words, n_words).

    >>> every_way(2, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    return torch.cartesian_prod(*[torch.arange(n_tags)] * n_words).view(-1, n_words)
