"""Outcome: what a model says at one place of what it reads, and which of its answers counts there.

Change: what a model says of an input that was changed, in many ways at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.core.tap import plain, resting
from regard.errors import UsageError
from regard.explain.look import numbers, place_of
from regard.tasks.filling import MASK
from regard.tasks.reading import END, START, Reading, Side

# Numbers that outputs of one batch may have.
AT_ONCE = 2**23
# Multiplications and additions that a look may spend on reading a text again and again: about 15 seconds of two cores.
WORK, FEWEST = 1.2e12, 8
NO_WORDS = (START, END)


@dataclass(frozen=True)
class Outcome:
    """place      whose answer it is, by its index; None where one answer stands for the whole.
    answer     its number among the outputs: what came, where that is known, else the most probable one.
    name       of the answer.
    came       whether it is what came.
    log_probs  (V,) of every answer.
    """

    place: int | None
    answer: int
    name: str
    came: bool
    log_probs: Tensor

    @property
    def log_prob(self) -> float:
        return float(self.log_probs[self.answer])

    @property
    def told(self) -> str:
        """The answer in words."""
        return f"{self.name!r}, {'which came' if self.came else 'the most probable answer'}"


def outcome(reading: Reading, position: int | None = None) -> Outcome:
    """What is said at a position, as `numbers` counts them.

    When none is asked for: at the first mask, or at the last position that is no end of a text.
    """
    outputs = reading.run()
    place = None
    if outputs.dim() == 3:
        place = own_choice(reading.main) if position is None else place_of(reading.main, position)
    log_probs = log_probs_at(outputs, place)[0]
    target = reading.targets[place] if reading.targets and place is not None else None
    answer = int(log_probs.argmax()) if target is None else target
    return Outcome(place, answer, reading.named(answer), target is not None, log_probs)


def log_probs_at(outputs: Tensor, place: int | None) -> Tensor:
    """log p (B, V) of the answers at a place, of outputs (B, T, V), or (B, V) where one stands for the whole."""
    logits = outputs if outputs.dim() == 2 else outputs[:, -1 if place is None else place]
    return _fine(logits).log_softmax(-1)


def number_of(reading: Reading, place: int | None) -> int | None:
    """What the position at an index is called."""
    return None if place is None else numbers(reading.main)[place]


def own_choice(side: Side) -> int:
    """The place that is asked where nobody says which: the first mask, or the last that is no end of a text."""
    if MASK in side.labels:
        return side.labels.index(MASK)
    words = [place for place, label in enumerate(side.labels) if label != END]
    return words[-1] if words else len(side) - 1


def _fine(logits: Tensor) -> Tensor:
    return logits if logits.dtype == torch.float64 else logits.float()


def words_of(side: Side) -> list[int]:
    """The places of a side that hold text, and not its start or end."""
    return [place for place, label in enumerate(side.labels) if label not in NO_WORDS]


def columns_of(reading: Reading, number: int, places: Sequence[int]) -> list[int]:
    """Where the positions of a side are in its input: the other way round where the model reads it backwards."""
    encoder = getattr(plain(reading.model), "encoder", None)
    turned = number == 0 and len(reading.sides) == 2 and getattr(getattr(encoder, "config", None), "reverse", False)
    last = len(reading.sides[number]) - 1
    return [last - place if turned else place for place in places]


def passes(reading: Reading) -> int:
    """How often a look may read a text again, by the size of the model and the length of the text; 8 times at least."""
    numbers = sum(parameter.numel() for parameter in reading.model.parameters())
    return max(FEWEST, int(WORK / max(1, 2 * numbers * max(len(side) for side in reading.sides))))


def pieces(places: Sequence[int], most: int) -> list[list[int]]:
    """Neighbouring places together, in at most so many pieces of equal size, but for the last.

    >>> pieces([1, 2, 3], 3), pieces([1, 2, 3, 4, 5], 3)
    ([[1], [2], [3]], [[1, 2], [3, 4], [5]])
    """
    size = -(-len(places) // most)
    return [list(places[first : first + size]) for first in range(0, len(places), size)]


def without(tokens: Tensor, columns: Sequence[Sequence[int]]) -> Tensor:
    """Rows of an input (1, T, ...) with as many positions left out of each, (n, T - k, ...)."""
    kept = [[place for place in range(tokens.shape[1]) if place not in left] for left in map(set, columns)]
    return tokens[0][torch.tensor(kept, device=tokens.device)]


def replaced(tokens: Tensor, columns: Sequence[int], by: Tensor) -> Tensor:
    """Rows of an input (1, T, ...) with one position of each replaced, by the rows of `by` (n, ...)."""
    rows = tokens.repeat(len(columns), *[1] * (tokens.dim() - 1))
    rows[torch.arange(len(columns), device=tokens.device), torch.tensor(columns, device=tokens.device)] = by
    return rows


def others(tokens: Tensor, columns: Sequence[int], source: Sequence[int], seed: int) -> Tensor:
    """For each of `columns` another token, drawn from those at `source` of the same text: (n, ...)."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for column in columns:
        different = [place for place in source if not torch.equal(tokens[0, place], tokens[0, column])]
        if not different:
            raise UsageError("every token is the same: give a text with two different ones")
        found.append(different[int(torch.randint(len(different), (1,), generator=generator))])
    return tokens[0, torch.tensor(found, device=tokens.device)]


@torch.no_grad()
def answers(
    reading: Reading,
    number: int,
    rows: Tensor,
    keep: Callable[[Tensor, slice], Tensor] = lambda outputs, _: outputs,
    forward: Callable[..., Tensor] | None = None,
) -> Tensor:
    """What `keep` takes of the outputs for each of `rows` (n, T, ...) in the place of input `number`.

    keep     outputs of some rows, and which these are, to one tensor of as many rows.
    forward  what gives them, where it is not the model with its head.
    """
    forward = forward or reading.forward
    found, first, step = [], 0, 1  # the first row tells how large an answer is
    with resting(reading.model):
        while first < len(rows):
            part = slice(first, min(first + step, len(rows)))
            outputs = forward(*_inputs(reading, number, rows[part]))
            found.append(keep(outputs, part))
            first, step = part.stop, max(1, AT_ONCE // max(1, outputs[:1].numel()))
    return torch.cat(found)


def embedding_of(reading: Reading, number: int) -> nn.Module:
    """The module that turns the tokens of an input into vectors."""
    model = plain(reading.model)
    reads = len(reading.sides) == 1 or number == 0
    for name in ("encoder.embedding", "embedding") if reads else ("decoder.embedding",):
        try:
            return model.get_submodule(name)
        except AttributeError:
            continue
    raise UsageError("the model has no embedding of tokens to look at")


def gradients(reading: Reading, number: int, score: Callable[[Tensor], Tensor], copies: int) -> Tensor:
    """The gradient of each row's score with respect to the vectors of its tokens, (copies, T, D).

    score  outputs of `copies` equal rows to one number a row.
    """
    vectors: list[Tensor] = []

    def cut(_module: nn.Module, _inputs: object, value: Tensor) -> Tensor:
        value = value.detach().requires_grad_()
        vectors.append(value)
        return value

    handle = embedding_of(reading, number).register_forward_hook(cut)
    rows = reading.inputs[number].expand(copies, *reading.inputs[number].shape[1:])
    try:
        # cuDNN's recurrences have no gradient outside of training.
        with torch.enable_grad(), resting(reading.model), torch.backends.cudnn.flags(enabled=False):
            total = score(reading.forward(*_inputs(reading, number, rows))).sum()
    finally:
        handle.remove()
    return torch.autograd.grad(total, vectors[-1])[0]


def _inputs(reading: Reading, number: int, rows: Tensor) -> list[Tensor]:
    """All inputs with `rows` in the place of one; a source is met by every row, other inputs are repeated."""
    inputs = list(reading.inputs)
    inputs[number] = rows
    if number == 0 and len(inputs) == 2:
        inputs[1] = inputs[1].expand(len(rows), *inputs[1].shape[1:])
    return inputs
