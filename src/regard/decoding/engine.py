"""The engine: requests that join and leave between steps, in slots of a state of fixed size.

    with Engine(model, slots=8) as engine:
        request = engine.submit(prompt, Limits(100), Sampling(top_p=0.9), seed=0)
        while engine.busy:
            for drawn in engine.step():
                ...                          drawn.request, drawn.token, drawn.finish
        engine.cancel(request)               at any time

Requests wait in a queue. A prompt is read in chunks, in a state of its own, while the rows in the slots go on; then it
is inserted into a free slot. Where several are free, a few are filled before the rows in the others go on. Rows that
have ended, or are cancelled, leave. Each row has settings, limits and a random stream of its own: what it becomes
depends on its seed and its row number alone, whatever stands beside it. How products round depends on their shapes, so
that this is promised for one number of slots, one chunk and prompts that are read one by one, or `steady`.

A model with learned positions has a last one. When a row has filled the window, it either ends (finish "context") or
slides: its state is rebuilt from the last half of the window. Sliding is the default, because a text should be as long
as was asked for; tokens drawn after it were given that half only.

On CUDA several tokens are drawn before the host looks, and the step is a captured graph (slots.py).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import torch

from regard.core.device import current
from regard.core.model import TokenModel
from regard.core.state import State
from regard.decoding.arrivals import Arrivals
from regard.decoding.ending import Limits
from regard.decoding.logits import CHUNK, eval_mode, model_device, steps_reserved
from regard.decoding.logits_processing import RowSettings, Sampling, kind_of
from regard.decoding.prefill import Prefill, beginning
from regard.decoding.row import Chance, Drawn, Row
from regard.decoding.row_rules import NO_RULES, RowRules, draw_rows
from regard.decoding.slots import Slots
from regard.errors import UsageError
from regard.kernels.packed import packed_weights

AHEAD = 8  # tokens drawn before the host looks, where looking is waiting
# Times that rows may come into slots before those in them go on. A step costs as much for few rows as for many, so that
# free slots are better filled first; but who has one waits meanwhile.
ENTRIES = 4
DEFAULT = Sampling()


class Engine:
    """Slots of static states with `submit`, `step` and `cancel`. A context: the model is in evaluation mode within it,
    and outside of it nothing is submitted or drawn.

    slots     how many requests have a slot at most: `n_slots`.
    spare     rows that step beside them and are nobody's: a step computes `n_rows`, all of them.
    together  prompts that are read in one call at most.
    steady    whether prompts are always read in the same few shapes, `together` rows each, and states have room for a
              whole window: more to compute for a single text, but how products round depends little on the others.
    chunk     tokens of each that are read in one call.
    ahead     steps before the host looks; None for AHEAD on CUDA and 1 elsewhere.
    graphs    whether steps are captured where they can be.
    packs     whether, on a CPU, large matrices are read from copies (kernels/packed.py), which pays after some tokens.
    compact   whether, with `ahead` of 1, slots that nobody waits for are given up when their rows end: less to compute,
              but how products round then depends on when other rows end.
    """

    def __init__(
        self,
        model: TokenModel,
        slots: int,
        *,
        together: int = 1,
        steady: bool = False,
        chunk: int = CHUNK,
        ahead: int | None = None,
        graphs: bool = True,
        packs: bool = True,
        compact: bool = False,
        spare: int = 0,
    ) -> None:
        for name, value in (("slots", slots), ("together", together), ("chunk", chunk), ("ahead", ahead or 1)):
            if value < 1:
                raise UsageError(f"an engine needs {name} of at least 1, found {value}")
        self.model, self.device = model, model_device(model)
        self.n_slots, self.n_rows = slots, slots + spare
        ahead = ahead or (AHEAD if self.device.type == "cuda" else 1)
        # One step at a time hands states on as they are: what a graph writes again must not be among them.
        self.arrivals = Arrivals(model, self.device, together, steady, chunk, graphs and ahead > 1)
        self.slots = Slots(model, self.device, ahead, graphs)
        self.compact, self.packs = compact and ahead == 1, packs
        self.room = 0
        self.waiting: deque[Row] = deque()
        self.submitted = 0
        self.entries = 0  # times that rows came into slots since those in them went on
        self.entered = False
        self._mode = ExitStack()

    def __enter__(self) -> Self:
        self._mode.enter_context(eval_mode(self.model))
        self.entered = True
        self._mode.enter_context(packed_weights(self.model, self.n_rows, copies=self.packs))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.entered = False
        self.slots.close()
        self.arrivals.close()
        self.waiting.clear()
        self._mode.close()

    @property
    def busy(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.waiting) or any(row.finish is None for row in self._underway())

    @property
    def told(self) -> str:
        """How steps are run, for people."""
        return self.slots.captured.told

    def submit(
        self,
        prompt: Sequence[int],
        limits: Limits,
        settings: Sampling = DEFAULT,
        *,
        seed: int = 0,
        row: int = 0,
        start: tuple[State, int] | None = None,
        rules: RowRules = NO_RULES,
    ) -> int:
        """Put a prompt in the queue; its number, by which its tokens are known.

        seed, row  of its random stream.
        start      a state and the row of it that the request begins with, for a model whose rows have sources.
        rules      on its logits, and what is told beside its tokens.
        """
        self._check_entered()
        asked = Row.checked(self.model, self.submitted, prompt, limits, settings, (seed, row), start)
        asked.rules = rules
        self.waiting.append(asked)
        self.submitted += 1
        return self.submitted - 1

    def cancel(self, request: int) -> bool:
        """Draw nothing more for a request; whether it was still there."""
        for row in (*self.waiting, *self._underway()):
            if row.request == request and row.finish is None:
                row.finish = "cancelled"
                return True
        return False

    @torch.no_grad()
    def step(self) -> list[Drawn]:
        """Read a chunk of what waits, draw for the rows in the slots: the tokens that came of it, in order.

        Where rows come into slots nothing is drawn, but for a few times at most, and then nothing is read.
        """
        self._check_entered()
        with current(self.device):
            self._leave()
            if not self._has_rows():
                self.entries = 0
            before = self.entries
            found = self._read() if before < ENTRIES else []
            if self.entries == before and self._has_rows():
                self.entries = 0
                found += self._draw()
            return found

    def _check_entered(self) -> None:
        if not self.entered:
            raise UsageError("an engine draws within its context, where the model rests: with Engine(...) as engine")

    def _has_rows(self) -> bool:
        return any(row is not None for row in self.slots.rows)

    def _underway(self) -> list[Row]:
        """Rows that are being read or have a slot."""
        return [*self.arrivals.rows, *(row for row in self.slots.rows if row is not None)]

    def _leave(self) -> None:
        """Rows that have ended give up their slots; those whose window is full begin again with half of it."""
        self.waiting = deque(row for row in self.waiting if row.finish is None)
        rows = self.slots.rows
        gone = [i for i, row in enumerate(rows) if row is not None and (row.finish is not None or row.full)]
        if not gone:
            return
        self.waiting.extendleft(row for i in reversed(gone) if (row := rows[i]) is not None and row.finish is None)
        stay = [i for i, row in enumerate(rows) if row is not None and i not in gone]
        if not stay and self.compact:
            self.slots.close()
        elif self.compact and not self.waiting and not self.arrivals.rows:
            self.slots.select(stay)
        else:
            self.slots.free(gone)
            self.slots.tell()

    def _read(self) -> list[Drawn]:
        """A chunk of the next prompts; when it was their last, their first tokens."""
        free = self.n_slots - sum(row is not None for row in self.slots.rows)
        read = self.arrivals.advance(self.waiting, free)
        return [] if read is None else self._first(*read)

    def _first(self, rows: list[Row], prefill: Prefill) -> list[Drawn]:
        """The first token of each row, and those that go on into the slots."""
        settings = [row.settings for row in rows]
        kind = kind_of(settings)
        chance = Chance.spent(len(rows), self.device) if kind == "greedy" else Chance.of(rows, self.device)
        uniform = None if kind == "greedy" else chance.take(1).next()
        tokens, log_probs = draw_rows(prefill.logits(), rows, RowSettings.of(settings, self.device), uniform, kind)
        found = []
        for row, token, log_prob in zip(rows, tokens.tolist(), log_probs.tolist(), strict=True):
            if row.finish is None:
                found.append(row.push(token, log_prob))
        stay = [i for i, row in enumerate(rows) if row.finish is None and not row.full]
        self.waiting.extendleft(row for row in reversed(rows) if row.finish is None and row.full)
        if stay:
            state = prefill.state
            if len(stay) < state.batch_size:
                state = state.select(torch.tensor(stay, device=self.device))
                chance.select(stay)
            self._enter([rows[i] for i in stay], state, chance, prefill.tokens.shape[1])
        return found

    def _enter(self, rows: list[Row], state: State, chance: Chance, length: int) -> None:
        """Rows into slots, from a state that holds `length` tokens."""
        self.entries += 1
        here = [row for row in self.slots.rows if row is not None]
        room = max(length, self._room([*here, *rows]))
        if not here and (self.compact or (len(rows) == self.n_rows and not self.slots.rows)):
            self.room = room
            self.slots.open(self._reserved(state), rows, chance)
            return
        self._widen(len(here) + len(rows) if self.compact else self.n_rows, rows, room)
        self._grow(room)
        places = [i for i, row in enumerate(self.slots.rows) if row is None][: len(rows)]
        self.slots.insert(places, rows, state, chance)
        self.slots.tell()

    def _widen(self, width: int, rows: list[Row], room: int) -> None:
        """So many slots at least; what new ones hold is what `rows` begin with, forgotten."""
        before = self.slots.rows
        if len(before) >= width:
            return
        self.room = max(room, self.room if before else 0)
        one = beginning(self.model, rows[:1], self.device)
        blank = one.select(torch.zeros(width, dtype=torch.long, device=self.device))
        blank = self._reserved(blank.free(torch.arange(width, device=self.device)))
        if before:
            blank = blank.insert(torch.arange(len(before), device=self.device), self.slots.held.state)
        self.slots.open(blank, [*before, *[None] * (width - len(before))], Chance.spent(width, self.device))

    def _reserved(self, state: State) -> State:
        """With room for the tokens; and, where tensors are written in their places, a memory for every row and nothing
        that others hold too: a prompt may have handed on unchanged what its row began with.
        """
        if self.slots.ahead == 1:
            return state.reserve(self.room)
        shared = {tensor.untyped_storage().data_ptr() for tensor in state.tensors()}
        reserved = state.reserve(self.room, 0)
        return reserved.map(lambda part: part.clone() if part.untyped_storage().data_ptr() in shared else part)

    def _draw(self) -> list[Drawn]:
        """Steps of all rows until the host has to look."""
        rows = [row for row in self.slots.rows if row is not None]
        most = 1 if self.slots.has_rules else min(self.slots.ahead, max(row.left for row in rows))
        steps = int(min(most, *(row.window - row.context for row in rows)))
        self._grow(max(row.context for row in rows) + steps)
        found = []
        for tokens, log_probs in zip(*self.slots.draw(steps), strict=True):
            for row, token, log_prob in zip(self.slots.rows, tokens, log_probs, strict=True):
                if row is not None and row.finish is None:
                    row.context += 1
                    found.append(row.push(token, log_prob))
        return found

    def _room(self, rows: Sequence[Row]) -> int:
        """Room that these rows will need soon."""
        soon = max(min(row.window, row.context + min(row.left, steps_reserved(row.context))) for row in rows)
        window = max(row.window for row in rows)
        if self.arrivals.steady and math.isfinite(window):
            return int(window)
        if self.slots.ahead == 1:
            return int(soon)
        # Few different rooms: each has graphs of its own.
        return int(min(window, 2 ** (steps_reserved(int(soon)) - 1).bit_length()))

    def _grow(self, room: int) -> None:
        """Room for so many tokens, and as many again as there were."""
        if room > self.room:
            here = [row for row in self.slots.rows if row is not None]
            self.room = max(room, self._room(here)) if here else room
            self.slots.held.reserve(self.room)
