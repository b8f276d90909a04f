"""Lasso from the normal equations, exactly, by following its weights as lambda falls (Osborne, Presnell, Turlach 2000;
Efron, Hastie, Johnstone, Tibshirani 2004: LARS).

    minimise  w^T G w / 2 - c^T w + lambda |w|_1
    r = c - G w        |r_j| <= lambda where w_j = 0,  r_j = lambda s_j where w_j has the sign s_j

Between two events the weights are straight lines in lambda: with A the columns that have a weight, and lambda smaller
by t,

    w_A + t d,    d = G_AA^-1 s_A         until some |r_j| outside A reaches lambda (it joins), or a weight reaches 0
                                          (it leaves)

so that there is no step size and nothing to converge to but rounding. A column that repeats columns in A can never
take weight from them and stays out. Nothing is drawn: equal data gives equal weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

SAME = 1e-10  # what is left of a column, beside its own square, that repeats those in A
NONE = 1e-13  # a part of the first lambda that is no step
EVENTS = 8  # for each column, after which a path is given up


class LassoPath:
    """The weights (B, F, H) of B times H problems for one lambda after the other.

    gram       (B, F, F): G of each of B sets of rows. cross (B, F, H): c of H targets.
    events     columns that joined or left so far. converged: whether every path came to where it was asked.
    """

    def __init__(self, gram: np.ndarray, cross: np.ndarray) -> None:
        self.weights = np.zeros(cross.shape)
        self._paths = {
            (b, h): _OnePath(gram[b], np.ascontiguousarray(cross[b, :, h]))
            for b in range(cross.shape[0])
            for h in range(cross.shape[2])
        }

    @property
    def events(self) -> int:
        return sum(path.events for path in self._paths.values())

    @property
    def converged(self) -> bool:
        return all(path.converged for path in self._paths.values())

    def along(self, parts: Sequence[float]) -> Iterator[tuple[float, np.ndarray]]:
        """The weights for parts of each problem's largest lambda, from the largest part on; one array for all."""
        for part in parts:
            for (b, h), path in self._paths.items():
                path.down_to(part * path.largest)
                self.weights[b, :, h] = path.weights
            yield part, self.weights


class _OnePath:
    """One target: G (F, F), c (F,). largest: the least lambda that leaves no weight."""

    def __init__(self, gram: np.ndarray, cross: np.ndarray) -> None:
        self.gram, self.cross = gram, cross
        self.largest = float(np.abs(cross).max(initial=0.0))
        self.strength = self.largest
        self.weights = np.zeros(len(cross))
        self.active: list[int] = []
        self.signs: list[float] = []
        self.out = np.diagonal(gram) <= 0  # columns that cannot join
        self.events, self.converged = 0, True
        self._left = -1

    def down_to(self, strength: float) -> None:
        """Follow the weights until lambda is `strength`."""
        while self.strength > strength and self.largest > 0 and self.converged:
            if self.events >= EVENTS * len(self.cross):
                self.converged = False
                return
            self._leg(strength)

    def _leg(self, strength: float) -> None:
        """As far as the weights are straight lines."""
        active = self.active
        held = self.gram[:, active]
        rest = self.cross - held @ self.weights[active]
        pull = np.linalg.solve(held[active], np.array(self.signs)) if active else np.zeros(0)
        change = held @ pull
        length, joining, sign = self._first_to_join(rest, change, strength)
        leaving = -1
        if active:
            now = self.weights[active]
            with np.errstate(divide="ignore", invalid="ignore"):
                zero = np.where(now * pull < 0, -now / pull, np.inf)
            place = int(zero.argmin())
            if zero[place] < length:
                length, leaving = float(zero[place]), place
        self.weights[active] += length * pull
        # The last leg ends where it was asked for, not where rounding says.
        at_end = leaving < 0 and joining < 0
        self.strength = strength if at_end else self.strength - length
        if leaving >= 0:
            self._leave(leaving)
        elif joining >= 0:
            self._join(joining, sign)

    def _first_to_join(self, rest: np.ndarray, change: np.ndarray, strength: float) -> tuple[float, int, float]:
        """How far until a column outside reaches lambda, which one and its sign; the end of the way and -1 if none."""
        least = NONE * self.largest
        room = self.strength - strength
        with np.errstate(divide="ignore", invalid="ignore"):
            up, down = (self.strength - rest) / (1 - change), (self.strength + rest) / (1 + change)
        up, down = (np.where(1 - s * change > 1e-12, np.maximum(t, 0.0), np.inf) for s, t in ((1, up), (-1, down)))
        barred = self.out.copy()
        barred[self.active] = True
        up[barred] = down[barred] = np.inf
        if self._left >= 0:
            # What has just left stands at lambda itself, and goes away from it.
            for t in (up, down):
                if t[self._left] <= least:
                    t[self._left] = np.inf
        first, sign = (up, 1.0) if up.min() <= down.min() else (down, -1.0)
        j = int(first.argmin())
        return (float(first[j]), j, sign) if first[j] < room else (room, -1, 0.0)

    def _join(self, j: int, sign: float) -> None:
        self.events, self._left = self.events + 1, -1
        if self.active:
            across = self.gram[self.active, j]
            own = self.gram[j, j]
            if own - across @ np.linalg.solve(self.gram[np.ix_(self.active, self.active)], across) <= SAME * own:
                self.out[j] = True
                return
        self.active.append(j)
        self.signs.append(sign)

    def _leave(self, place: int) -> None:
        self.events += 1
        self._left = self.active.pop(place)
        self.signs.pop(place)
        self.weights[self._left] = 0.0
