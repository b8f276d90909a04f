"""Slots: rows of a model that step together, as their device knows them.

A step feeds each row its last token and draws the next one. With `ahead` of 1 the host looks after every step and keeps
the books. With more, several steps are done before it looks: then ending by the end symbol and by the limit is known
to the device, a row that has ended or was never used keeps its state, and every tensor stays where it is, so that a
step can be captured once and replayed (capture.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.core.device import widest
from regard.core.model import TokenModel
from regard.core.state import State
from regard.decoding.capture import Captured
from regard.decoding.held import Held
from regard.decoding.logits_processing import Kind, RowSettings, kind_of
from regard.decoding.row import Chance, Row
from regard.decoding.row_rules import draw_rows, have_rules
from regard.kernels.choice import has_triton
from regard.kernels.operators import if_built

NOBODY = -1  # an end symbol that no token is


class Slots:
    """The state of B rows and what a step must know of them.

    last   (B, 1) the token that each row is fed next
    alive  (B,) whether a row goes on
    left   (B,) tokens that it may yet draw
    eos    (B,) the token that ends it
    out    (ahead, 2, B) tokens and log-probabilities of the steps since the host has looked
    """

    def __init__(self, model: TokenModel, device: torch.device, ahead: int, graphs: bool) -> None:
        self.device, self.ahead = device, ahead
        self.captured = Captured(device, graphs and ahead > 1)
        self.held = Held(model, None if ahead == 1 else self.captured)
        self.rows: list[Row | None] = []

    def close(self) -> None:
        """Give up all rows and their memory."""
        self.rows = []
        self.held.close()

    def open(self, state: State, rows: Sequence[Row | None], chance: Chance) -> None:
        """Begin with these rows, whose state becomes this object's own."""
        self.rows = list(rows)
        width = len(self.rows)
        self.held.hold(state)
        self.captured.forget()
        self.chance = chance
        self.settings = RowSettings.of([None] * width, self.device)
        self.last = torch.zeros(width, 1, dtype=torch.long, device=self.device)
        self.left, self.eos = torch.zeros_like(self.last[:, 0]), torch.zeros_like(self.last[:, 0])
        self.alive = torch.zeros(width, dtype=torch.bool, device=self.device)
        self.out = torch.zeros(self.ahead, 2, width, dtype=widest(self.device), device=self.device)
        self.place = torch.zeros(1, dtype=torch.long, device=self.device)
        self.tell()

    def tell(self) -> None:
        """Let the device know the rows as the host knows them."""
        rows = self.rows
        used = [row.settings if row is not None else None for row in rows]
        self.settings = self.settings.taking(RowSettings.of(used, self.device))
        self.kind: Kind = kind_of(used)
        self.has_empty = None in rows
        self.has_rules = have_rules(rows)
        eos = [NOBODY if row is None or row.limits.eos_id is None else row.limits.eos_id for row in rows]
        numbers = [
            [row.tokens[-1], row.left, end, 1] if row else [0, 0, end, 0] for row, end in zip(rows, eos, strict=True)
        ]
        last, left, ends, alive = torch.tensor(numbers, dtype=torch.long).view(-1, 4).to(self.device).unbind(1)
        self.last.copy_(last[:, None])
        self.left.copy_(left)
        self.eos.copy_(ends)
        self.alive.copy_(alive)

    def insert(self, places: Sequence[int], rows: Sequence[Row], state: State, chance: Chance) -> None:
        """Rows, at places that nobody uses, with their state."""
        self.held.insert(self._index(places), state)
        self.chance.insert(places, chance)
        for place, row in zip(places, rows, strict=True):
            self.rows[place] = row

    def free(self, places: Sequence[int]) -> None:
        """Nothing is left of the rows at these places."""
        self.held.free(self._index(places))
        for place in places:
            self.rows[place] = None

    def select(self, places: Sequence[int]) -> None:
        """Keep these rows alone."""
        state, rows = self.held.state.select(self._index(places)), [self.rows[place] for place in places]
        self.chance.select(places)
        self.open(state, rows, self.chance)

    def draw(self, steps: int) -> tuple[list[list[int]], list[list[float]]]:
        """So many steps, at most `ahead`: the tokens of all rows for each, and their log-probabilities."""
        self._need_chance(steps)
        if self.ahead == 1:
            tokens, log_probs = self._step()
            self.last = tokens[:, None]
            return [tokens.tolist()], [log_probs.tolist()]
        self.place.zero_()
        books = (self.last, self.left, self.alive, self.place, self.chance.column)
        # What a drawing launches depends on what some row asks for.
        kind = " ".join([self.kind, *sorted(self.settings.cuts)])
        for _ in range(steps):
            if self.has_rules:
                self._step_ahead()  # the host has a say in it
            else:
                self.captured.run(kind, self._step_ahead, books, self.alive)
        tokens, log_probs = self.out[:steps].unbind(1)
        return tokens.long().tolist(), log_probs.tolist()

    def _step(self) -> tuple[Tensor, Tensor]:
        logits = self.held.feed(self.last, self.alive if self.ahead > 1 or self.has_empty else None)
        uniform = None if self.kind == "greedy" else self.chance.next()
        return draw_rows(logits, self.rows, self.settings, uniform, self.kind)

    def _step_ahead(self) -> None:
        """A step whose results stay on the device."""
        tokens, log_probs = self._step()
        if has_triton(self.device) and if_built("the books of a step", self._note, tokens, log_probs):
            return
        told = torch.stack([tokens.to(self.out.dtype), log_probs.to(self.out.dtype)])
        self.out.index_copy_(0, self.place, told[None])
        self.place.add_(1)
        self.last.copy_(tokens[:, None])
        self.left.sub_(1)
        self.alive.logical_and_((tokens != self.eos) & (self.left > 0) & ~log_probs.isnan())

    def _note(self, tokens: Tensor, log_probs: Tensor) -> bool:
        from regard.kernels.slots_triton import note

        note(tokens, log_probs, self.eos, self.last, self.left, self.alive, self.out, self.place)
        return True

    def _need_chance(self, steps: int) -> None:
        """Random numbers for so many steps in every row."""
        if self.kind == "greedy":
            return
        spent = [place for place, left in enumerate(self.chance.left) if left < steps]
        if spent:
            self.chance.insert(spent, Chance.of([self.rows[place] for place in spent], self.device))
        self.chance.take(steps)

    def _index(self, places: Sequence[int]) -> Tensor:
        return torch.tensor(places, dtype=torch.long, device=self.device)
