"""Reader: the state of a model that follows one text whose last tokens may yet be taken back.

A state that can be rewound, as the keys and values of attention, goes back to the last token that stands. Of others the
values at the ends of chunks are kept, and the reader goes back to the last of those; what was read after it and stands
is then unread, and comes first in what is read next.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.model import TokenModel
from regard.core.state import State
from regard.decoding.logits import CHUNK, model_device, steps_reserved, tokens_at_once

TRIALS = 3


class Reader:
    """A model and its state after the first tokens of a text, which begins for it at token `begin`.

    start  the state of one row before any token, for a model whose rows have sources; None for the model's own.
    seen   the tokens that it has read, of which the first `sure` were in the text when it last looked.
    calls  of the model, but for those that `skip`.
    """

    def __init__(self, model: TokenModel, start: State | None = None) -> None:
        self.model, self.device, self.start = model, model_device(model), start
        self.calls = 0
        self.restart(0)

    @torch.no_grad()
    def restart(self, begin: int) -> None:
        """Forget everything; the text begins at its token `begin`."""
        self.begin, self.room, self.sure = begin, 0, 0
        self.seen: list[int] = []
        state = self.model.init_state(1) if self.start is None else self.start
        self.rewinds = state.rewind(state.position) is not None
        self.before = state.position
        self.places: list[tuple[int, State]] = [(0, state)]

    @property
    def state(self) -> State:
        return self.places[-1][1]

    def follow(self, text: Sequence[int]) -> list[int]:
        """Go back to where `text` agrees with what was read; its tokens after that, the last one always among them."""
        context = text[self.begin :]
        standing, most = self.sure, min(len(self.seen), len(context) - 1)
        while standing < most and self.seen[standing] == context[standing]:
            standing += 1
        if standing < len(self.seen) and self.rewinds:
            rewound = self.state.rewind(self.before + standing)
            assert rewound is not None
            self.places = [(standing, rewound)]
        while self.places[-1][0] > standing:
            self.places.pop()
        del self.places[:-1], self.seen[self.places[-1][0] :]
        self.sure = len(self.seen)
        return list(context[len(self.seen) :])

    def read(self, tokens: Sequence[int]) -> Float[Tensor, "T D"]:
        """The vectors after each of the next tokens."""
        self.calls += 1
        return self._read(tokens)

    def skip(self, tokens: Sequence[int]) -> None:
        """Read tokens that stand, and after which nobody asks what comes next."""
        size = tokens_at_once(self.model, 1, CHUNK)
        for start in range(0, len(tokens), size):
            self._read(tokens[start : start + size])
            del self.places[:-1]

    @torch.no_grad()
    def seconds(self, token: int) -> float:
        """How long it takes to read one token from here and to tell what comes next; it leaves no trace."""
        self._make_room(1)
        spent = []
        for _ in range(TRIALS):
            begin = time.perf_counter()
            vectors, _ = self._call([token])
            self.model.head(vectors[:, -1]).sum().item()  # a device is waited for
            spent.append(time.perf_counter() - begin)
        return median(spent)

    def _read(self, tokens: Sequence[int]) -> Tensor:
        self._make_room(len(tokens))
        vectors, after = self._call(tokens)
        self.seen += tokens
        self.places.append((len(self.seen), after))
        return vectors[0]

    @torch.no_grad()
    def _call(self, tokens: Sequence[int]) -> tuple[Tensor, State]:
        return self.model(torch.tensor([list(tokens)], device=self.device), self.state)

    def _make_room(self, count: int) -> None:
        """A state that is rewound is written in place: nobody needs an older one. Others stay values."""
        needed = len(self.seen) + count
        if self.rewinds and needed > self.room:
            self.room = needed + steps_reserved(len(self.seen))
            self.places = [(len(self.seen), self.state.reserve(self.room))]
