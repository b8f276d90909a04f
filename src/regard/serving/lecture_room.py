"""The room in which lectures are sat for the page: one at a time, in a process of its own, within a time."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Condition, Thread, Timer
from typing import IO, TYPE_CHECKING, Any

from regard.errors import UsageError, nearest
from regard.serving import wanted
from regard.serving.guard import Refused
from regard.serving.wire import Message, Outbox, messages, module_command

if TYPE_CHECKING:
    from regard.lectures.notebook import Lecture

LONGEST = 600.0  # seconds of a sitting
GRACE = 2.0  # seconds in which a process may end by itself
ENDED = "this lecture has ended: run it again, to play with its pictures"
BETWEEN = 0.1  # seconds between two looks at whether an answer is still wanted


@dataclass
class Sat:
    """A lecture that is being sat, or was.

    of       how many screens it has.
    screen   how many of them have run.
    sitting  all of it, once the last one has.
    failed   why there is none.
    answers  to questions about its views, by their numbers; None as long as somebody waits for one.
    """

    lecture: Lecture
    process: subprocess.Popen[bytes]
    outbox: Outbox
    log: IO[bytes]
    of: int
    screen: int = 0
    sitting: dict[str, Any] | None = None
    failed: str = ""
    answers: dict[int, Message | None] = field(default_factory=dict)

    @property
    def runs(self) -> bool:
        return self.sitting is None and not self.failed

    @property
    def is_live(self) -> bool:
        return self.sitting is not None and self.process.poll() is None


class LectureRoom:
    """Lectures by their names. `longest`: seconds that one may take."""

    def __init__(self, longest: float = LONGEST) -> None:
        self.longest = longest
        self.changed = Condition()
        self.sat: Sat | None = None
        self.count = itertools.count()

    def lectures(self) -> list[dict[str, Any]]:
        """All of them, with what each asks, and whether a sitting is at hand."""
        from regard.lectures import catalogue
        from regard.lectures.sitting import kept

        return [
            {
                "name": one.name,
                "number": one.number,
                "title": one.title,
                "question": one.question,
                "is_ready": kept(one) is not None,
            }
            for one in catalogue.lectures()
        ]

    def sitting(self, name: str, again: bool = False) -> dict[str, Any]:
        """The sitting of a lecture, or how far it is; asked again and again until it is there.

        again  whether it is made anew, so that its views can be asked for otherwise.
        """
        from regard.lectures.sitting import kept

        lecture = _known(name)
        with self.changed:
            sat = self.sat
            is_it = sat is not None and sat.lecture.digest == lecture.digest
            if sat is not None and is_it and not (again and not sat.runs):
                return self._told(sat)
            known = None if again else kept(lecture)
            if known is not None:
                return {"sitting": known, "is_live": False}
            if sat is not None and sat.runs:
                return {"screen": 0, "of": 0, "waits_for": sat.lecture.title}
            self._end()
            self.sat = self._begin(lecture)
            return self._told(self.sat)

    def view(self, name: str, place: list[int], values: dict[str, Any]) -> dict[str, Any]:
        """A view of the lecture that was sat last, with other values of its controls."""
        sat = self.sat
        if sat is None or sat.lecture.name != name or not sat.is_live:
            raise UsageError(ENDED)
        number = next(self.count)
        sat.answers[number] = None
        try:
            with suppress(BrokenPipeError):
                sat.outbox.send({"id": number, "view": place, "values": values})
            with self.changed:
                while (answer := sat.answers[number]) is None:
                    if not sat.is_live:
                        raise Refused(503, ENDED)
                    self.changed.wait(BETWEEN)
                    wanted.check()
        finally:
            with self.changed:
                del sat.answers[number]  # what comes when nobody waits any more is not kept
        if "failed" in answer:
            raise UsageError(answer["failed"])
        return answer["made"]

    def close(self) -> None:
        """End what runs."""
        with self.changed:
            self._end()

    def _told(self, sat: Sat) -> dict[str, Any]:
        if sat.failed:
            self._end()
            raise UsageError(sat.failed)
        if sat.sitting is not None:
            return {"sitting": sat.sitting, "is_live": sat.is_live}
        return {"screen": sat.screen, "of": sat.of}

    def _begin(self, lecture: Lecture) -> Sat:
        log = tempfile.TemporaryFile()  # noqa: SIM115  # as long as the process
        words = module_command("regard.serving.sitter")
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        assert process.stdin is not None
        sat = Sat(lecture, process, Outbox(process.stdin), log, len(lecture.screens))
        sat.outbox.send({"lecture": lecture.name})
        Thread(target=self._listen, args=(sat,), daemon=True).start()
        return sat

    def _listen(self, sat: Sat) -> None:
        """Take what the process says, until it ends or its time is up."""
        assert sat.process.stdout is not None
        limit = Timer(self.longest, self._stop, (sat,))
        limit.daemon = True
        limit.start()
        for message in messages(sat.process.stdout):
            with self.changed:
                if message.get("id") in sat.answers:
                    sat.answers[message["id"]] = message
                else:
                    sat.screen = message.get("screen", sat.screen)
                    sat.sitting = message.get("sitting", sat.sitting)
                    sat.failed = message.get("failed", sat.failed)
                self.changed.notify_all()
            if not sat.runs:
                limit.cancel()
        limit.cancel()
        sat.process.wait()
        with self.changed:
            if sat.runs:
                sat.failed = f"lecture {sat.lecture.name} ended before it was done{_last_line(sat.log)}"
            self.changed.notify_all()

    def _stop(self, sat: Sat) -> None:
        with self.changed:
            if not sat.runs:
                return
            sat.failed = f"lecture {sat.lecture.name} took longer than {self.longest:g} seconds and was stopped"
        sat.process.kill()

    def _end(self) -> None:
        """End the process of the sitting before."""
        sat, self.sat = self.sat, None
        if sat is None:
            return
        sat.process.terminate()
        try:
            sat.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            sat.process.kill()
            sat.process.wait()


def _known(name: str) -> Lecture:
    """A lecture that comes with the package; a page names no files."""
    from regard.lectures import catalogue

    found = {one.name: one for one in catalogue.lectures()}
    if name not in found:
        raise UsageError(f"unknown lecture {name!r}{nearest(name, found)}")
    return found[name]


def _last_line(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1][:300]}" if lines else ""
