"""The race: every model with its rates and seeds, one training after the other or as many at once as a pool has room.

A model is a chain: short trainings at one rate after the other, then all seeds at the best rate, which know nothing of
each other. What comes out does not hang on which training ends first. A training is written down with what it is known
by (see `ledger`), and a finished one is not made again: a comparison that was cut off goes on where it was. A model
that fails is a row with its reason; the others go on.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import ResourceError, Stopped
from regard.run.rate import WIDTH
from regard.run.settings import Layer, Origin, Settings, resolve
from regard.studies.board import Board
from regard.studies.chain import Found, Steps, Trial, chain
from regard.studies.entrant import Size
from regard.studies.identity import mark
from regard.studies.ledger import Ledger
from regard.studies.outcome import SIDE_BY_SIDE
from regard.studies.pool.pool import ATTEMPTS, Ended, Failed, Pool, reason
from regard.studies.protocol import HAND, Protocol
from regard.studies.readings import Readings
from regard.studies.row import Row
from regard.studies.training import BEHIND, Training, held_out
from regard.training.display import Display
from regard.training.interrupt import Interrupt


@dataclass
class Entrant:
    """A model in the race: what it asks for, what is known of that, and what is not begun yet.

    pace  seconds that a short training of it took: the slowest model begins its long ones first.
    """

    row: Row
    steps: Steps
    asked: Sequence[Trial] = ()
    found: dict[int, Found] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)
    begun: bool = False
    pace: float = math.inf


@dataclass
class Running:
    """A training that was submitted. known_by: its mark."""

    entrant: Entrant
    number: int
    known_by: str
    path: Path
    display: Display

    @property
    def trial(self) -> Trial:
        return self.entrant.asked[self.number]


@dataclass
class Race:
    """Everything that the trainings of a comparison share."""

    protocol: Protocol
    layers: Mapping[str, Layer]
    sizes: Mapping[str, Size]
    readings: Readings
    out: Path
    board: Board
    interrupt: Interrupt
    pool: Pool

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.out, self.board.note)
        self.stopped = self.halted = False
        self.running: dict[Hashable, Running] = {}
        self.lost: dict[Hashable, int] = {}

    def run(self) -> list[Row]:
        """A row for every model, in order; after a signal those of the models that were reached."""
        entrants = [self._entrant(label) for label in self.layers]
        for one in entrants:
            self._advance(one, None)
        while True:
            while not self.halted and self.pool.room and (best := self._next(entrants)) is not None:
                self._begin(best)
                self._halt_on_signal()
            if not self.running:
                break
            for ended in self.pool.wait(self._told):
                self._heed(ended)
            self._halt_on_signal()
        for one in entrants:
            if one.asked:
                self._advance(one, [one.found.get(number) for number in range(len(one.asked))])
        return [one.row for one in entrants if one.begun or one.row.failed]

    def _halt_on_signal(self) -> None:
        if self.interrupt.received is not None and not self.halted:
            self.halted = True
            self.pool.stop()

    def _entrant(self, label: str) -> Entrant:
        size, settings = self.sizes[label], self._settings(label)
        row = Row(label, settings["model.name"], size.parameters, size.note, pretrained=size.start)
        return Entrant(row, chain(row, self.protocol, settings, size.fitted))

    def _next(self, entrants: Sequence[Entrant]) -> Entrant | None:
        """Whose training to begin: one after the other, or, side by side, so that all end early.

        Fits take a moment. A search is a chain of trainings that nothing shortens, and long trainings leave gaps when
        they come last.
        """
        waiting = [one for one in entrants if one.waiting]
        if not waiting or self.pool.side_by_side == 1:
            return next(iter(waiting), None)
        return min(waiting, key=lambda one: (one.row.parameters > 0, one.asked[0].tests, -one.pace))

    def _advance(self, one: Entrant, found: list[Found] | None) -> None:
        """Give a model what it asked for; it asks for more, or is at its end."""
        row, one.asked, one.found = one.row, (), {}
        try:
            # A generator begins with nothing.
            one.asked = one.steps.send(found)  # pyright: ignore[reportArgumentType]
            one.waiting = list(range(len(one.asked)))
            return
        except StopIteration:
            pass
        except Stopped:
            self.stopped = row.stopped = True
        except Exception as error:
            # Whatever it is, also in a model from outside: the trainings of the others must not be lost to it.
            row.failed, row.code = reason(error)
        one.waiting = []
        if one.begun or row.failed:
            told = f"failed: {row.failed}" if row.failed else "stopped" if row.stopped else "done"
            self.board.ended(row.label, told)

    def _begin(self, one: Entrant) -> None:
        """Make the next training of a model, unless it was made before."""
        number, label = one.waiting.pop(0), one.row.label
        trial, one.begun = one.asked[number], True
        display = self.board.stage(label, trial.told, *trial.ends)
        try:
            settings = self._settings(label, trial.changes | self.protocol.fold(trial.fold))
            known_by = mark(settings, self.readings.fingerprints[label][trial.fold])
            known = self.ledger.outcome(trial.name, known_by)
            if known is None:
                running = Running(one, number, known_by, self.ledger.folder(trial.name), display)
                self._submit(running, settings)
                return
        except Exception as error:
            known = Failed(*reason(error))
        display.finish(None)
        self._give(one, number, known)

    def _submit(self, running: Running, settings: Settings) -> None:
        label, trial, known_by = running.entrant.row.label, running.trial, running.known_by
        fitted = self.sizes[label].fitted
        self.ledger.make_way(trial.name, known_by)
        self.ledger.write_down(trial.name, known_by, None)
        training = Training(
            settings,
            running.path,
            self.out,
            self.readings.settings[label][trial.fold],
            self.readings.data[label][trial.fold],
            self.readings.fingerprints[label][trial.fold],
            trial.fold,
            tuple(trial.best),
            fitted,
            trial.tests,
            self.protocol.per_byte,
        )
        self.running[trial.name] = running
        self.pool.submit(trial.name, training)

    def _told(self, key: Hashable, event: Any) -> None:
        if key in self.running:
            name, given = event
            getattr(self.running[key].display, name)(*given)

    def _heed(self, ended: Ended) -> None:
        """Write down what came of a training, and go on with its model; one whose worker was lost is made again."""
        running = self.running.pop(ended.key)
        one, trial = running.entrant, running.trial
        running.display.finish(None)
        if ended.how == "done":
            beside = {SIDE_BY_SIDE: self.pool.side_by_side} if self.pool.side_by_side > 1 else {}
            outcome = ended.result | beside
            self.ledger.write_down(trial.name, running.known_by, outcome)
            if not trial.tests and outcome["reason"] != BEHIND:
                one.pace = outcome["seconds"]
            self._give(one, running.number, outcome)
        elif ended.how == "failed":
            self._give(one, running.number, Failed(ended.text, ended.code))
        elif ended.how == "stopped" or self.halted or self.interrupt.received is not None:
            self.halted = True
            if trial.tests:
                losses = [held_out([running.path]), one.row.held_out]
                one.row.held_out = min((loss for loss in losses if loss is not None), default=None)
            one.waiting = []
            self._give(one, running.number, None)
        else:
            self._again(running, ended)

    def _again(self, running: Running, ended: Ended) -> None:
        one, trial = running.entrant, running.trial
        self.lost[ended.key] = self.lost.get(ended.key, 0) + 1
        if self.lost[ended.key] == ATTEMPTS:
            text = f"{trial.told}: a worker was lost {ATTEMPTS} times ({ended.text}); take fewer if memory is short"
            self._give(one, running.number, Failed(text, ResourceError.exit_code))
            return
        self.board.note(
            f"{one.row.label}: {trial.told}: a worker was lost ({ended.text}); it goes on from its checkpoint"
        )
        one.waiting.insert(0, running.number)

    def _give(self, one: Entrant, number: int, found: Found) -> None:
        one.found[number] = found
        if isinstance(found, Failed):
            one.waiting = [other for other in one.waiting if other < number]
        if not one.waiting and not any(running.entrant is one for running in self.running.values()):
            self._advance(one, [one.found.get(number) for number in range(len(one.asked))])

    def _settings(self, label: str, changes: dict[str, Any] | None = None) -> Settings:
        width = self.sizes[label].width
        layer = dict(self.layers[label])
        if width is not None:
            layer[f"model.{WIDTH}"] = Origin(width, HAND)
        layer |= {key: Origin(value, HAND) for key, value in (changes or {}).items()}
        return resolve(layer)
