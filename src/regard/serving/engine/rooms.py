"""Rooms: the runs that are in memory. One is loaded when it is first asked for, and goes when nobody asks for it."""

from __future__ import annotations

import copy
import gc
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from regard.errors import RegardError, ResourceError, UsageError
from regard.run.run import Run, load
from regard.serving import wanted
from regard.serving.engine.ask import Ask, refusal
from regard.serving.engine.room import Room
from regard.serving.engine.sizing import Sizes
from regard.serving.pool import BETWEEN, RunPool, stamp_of
from regard.serving.wire import Message
from regard.training.run_folder import WEIGHTS

LOOKED = 1.0  # seconds between two looks at whether a folder was written anew

Post = Callable[[dict[str, Any]], None]
Stamp = tuple[int, ...]


class Spare(NamedTuple):
    """A model that no engine has touched, with the weights of the one in the room; and when its folder was written."""

    run: Run
    stamp: Stamp


class Rooms:
    """paths: folders by the names of their runs. post: puts something into the engine's own inbox, from any thread.

    idle    seconds after which a run that nobody asks for is let go of; the last one stays.
    stamps  of folders when they were last read, be it in vain.
    pool    what is lent beside the engines: twins, which hold the weights of their rooms and no others.
    """

    def __init__(self, paths: Mapping[str, Path], sizes: Sizes, device: str, idle: float, post: Post) -> None:
        self.paths, self.sizes, self.device, self.idle, self.post = dict(paths), sizes, device, idle, post
        self.open: dict[str, Room] = {}
        self.retiring: list[Room] = []
        self.pool: RunPool | None = None
        self.spares: dict[str, Spare] = {}
        self.stamps: dict[str, Stamp] = {}
        self.waiting: dict[str, list[Ask]] = {}
        self.promised: dict[str, list[Future[Spare]]] = {}  # for those who wait for a run beside the engines
        self.looked: dict[str, float] = {}
        self.later: dict[str, list[Message]] = {}  # what is to be done when a run is there

    @property
    def busy(self) -> bool:
        return any(room.busy for room in self._all())

    def submit(self, ask: Ask) -> list[Message]:
        room = self.open.get(ask.run)
        if room is None:
            self._load(ask.run)
            self.waiting[ask.run].append(ask)
            return []
        self._renew(ask.run)
        return self._submitted(room, ask)

    def begin(self, name: str) -> None:
        """Load a run that will be asked for."""
        if name not in self.open:
            self._load(name)

    def when_loaded(self, name: str, message: Message) -> None:
        """Keep a message until a run is there."""
        self.later.setdefault(name, []).append(message)
        self.begin(name)

    def cancel(self, number: int) -> None:
        for messages in self.later.values():
            messages[:] = [message for message in messages if message["id"] != number]
        for asks in self.waiting.values():
            asks[:] = [ask for ask in asks if ask.number != number]
        for room in self._all():
            room.cancel(number)

    def step(self) -> list[Message]:
        told: list[Message] = []
        for room in self._all():
            if room.busy:
                told += room.step()
        for room in [room for room in self.retiring if not room.busy]:
            room.close()
            self.retiring.remove(room)
        return told

    def loaded(self, name: str, room: Room | None, spare: Spare | None, error: BaseException | None) -> list[Message]:
        """A run has come into memory, or has not; those that waited for it go on."""
        asks, promised = self.waiting.pop(name, []), self.promised.pop(name, [])
        if room is None or spare is None:
            assert error is not None
            return self._refused(name, asks, promised, error)
        try:
            if name not in self.open:
                self._make_room(room)
        except RegardError as error:
            return self._refused(name, asks, promised, error)
        if name in self.open:  # a new version, for a while beside the old one
            self.retiring.append(self.open.pop(name))
            self._forget_twins(name)
        self.open[name], self.spares[name] = room, spare
        for promise in promised:
            self.lend(name, promise)
        return [message for ask in asks for message in self._submitted(room, ask)]

    def let_go(self) -> None:
        """Forget runs that nobody has asked for in a while."""
        now = time.monotonic()
        for name in list(self.open):
            if len(self.open) > 1 and not self._is_busy(name) and now - self._used(name) > self.idle:
                self._close(name)

    def twin(self, path: Path) -> Run:
        """The run of a folder as one that nobody else uses, with the weights of its room; a thread waits for it."""
        name = next(name for name, own in self.paths.items() if own == path)
        promise: Future[Spare] = Future()
        self.post({"do": "twin", "run": name, "promise": promise})
        while not wait([promise], BETWEEN).done:
            wanted.check()
        return twin_of(promise.result().run)

    def lend(self, name: str, promise: Future[Spare]) -> None:
        """Hand over what twins are made of, once the run is there as its folder is now."""
        spare = self.spares.get(name)
        # While a new folder is being loaded the spare is still of the old one.
        if spare is not None and spare.stamp == self._stamp_now(name):
            promise.set_result(spare)
        else:
            self.promised.setdefault(name, []).append(promise)
            self._load(name)

    def _stamp_now(self, name: str) -> Stamp | None:
        """When its folder was written; None where that cannot be told, as it is being written or has gone."""
        try:
            return stamp_of(self.paths[name])
        except OSError:
            return None

    def about(self) -> dict[str, Any]:
        return {name: room.about() for name, room in self.open.items()}

    def state(self) -> dict[str, Any]:
        return {name: room.state() for name, room in self.open.items()}

    def _all(self) -> list[Room]:
        return [*self.open.values(), *self.retiring]

    def _submitted(self, room: Room, ask: Ask) -> list[Message]:
        try:
            return room.submit(ask)
        except (RegardError, ValueError) as error:
            return [refusal(ask.number, error, room.name, room.run.path)]

    def _refused(
        self, name: str, asks: list[Ask], promised: list[Future[Spare]], error: BaseException
    ) -> list[Message]:
        """What those are told that waited for a run in vain."""
        for promise in promised:
            promise.set_exception(error)
        if name in self.open:
            return []  # the new one is no good, and the old one is still there
        numbers = [*(ask.number for ask in asks), *(message["id"] for message in self.later.pop(name, []))]
        return [refusal(number, error, name, self.paths[name]) for number in numbers]

    def _renew(self, name: str) -> None:
        """Begin to load a folder that was written anew; until it is there the old run answers."""
        now = time.monotonic()
        if now - self.looked.get(name, 0.0) < LOOKED:
            return
        self.looked[name] = now
        if self._stamp_now(name) not in (None, self.stamps.get(name)):
            self._load(name)

    def _load(self, name: str) -> None:
        if name in self.waiting:
            return
        self.waiting[name] = []
        Thread(target=self._in_background, args=(name,), daemon=True).start()

    def _in_background(self, name: str) -> None:
        path = self.paths[name]
        room = spare = error = None
        try:
            self.stamps[name] = stamp = stamp_of(path)
            weights = path / WEIGHTS
            self._check_fits(name, weights.stat().st_size if weights.is_file() else 0, "of weights")
            run = load(path, device=self.device)
            made = Room(name, run, self.sizes)
            self._check_fits(name, made.nbytes, "of weights and slots")
            room, spare = made, Spare(twin_of(run), stamp)
        except BaseException as found:
            error = found
        self.post({"do": "loaded", "run": name, "room": room, "spare": spare, "error": error})

    def _check_fits(self, name: str, nbytes: int, what: str) -> None:
        """Refuse what will never fit, be it alone."""
        budget = self.sizes.memory
        if budget is not None and nbytes > budget:
            raise UsageError(f"{name} takes {nbytes:,} bytes {what}, and --memory allows {budget:,} for all runs")

    def _make_room(self, room: Room) -> None:
        """Let go of idle runs, those not asked for longest first, until there is room for one more."""
        budget = self.sizes.budget(room.device)
        for other in sorted(self.open, key=self._used):
            if room.nbytes + self._held() <= budget:
                return
            if not self._is_busy(other):
                self._close(other)
        if self._held() and room.nbytes + self._held() > budget:
            raise ResourceError("all runs that are in memory are in use")

    def _held(self) -> int:
        return sum(room.nbytes for room in self._all())

    def _is_busy(self, name: str) -> bool:
        return self.open[name].busy or (self.pool is not None and self.pool.lends(self.paths[name]))

    def _used(self, name: str) -> float:
        """When a run was asked for last, by whomever."""
        beside = 0.0 if self.pool is None else self.pool.asked.get(self.paths[name], 0.0)
        return max(self.open[name].used, beside)

    def _close(self, name: str) -> None:
        self.open.pop(name).close()
        self.spares.pop(name, None)
        self._forget_twins(name)
        gc.collect()

    def _forget_twins(self, name: str) -> None:
        """Else the weights would stay for their sake."""
        if self.pool is not None:
            self.pool.forget(self.paths[name])


def twin_of(run: Run) -> Run:
    """The same run with modules of its own, so that whoever listens to them hears nobody else, and the same tensors."""
    twin, tensors = copy.copy(run), [*run.model.parameters(), *run.model.buffers()]
    twin.model = copy.deepcopy(run.model, {id(tensor): tensor for tensor in tensors})
    return twin
