"""What is answered beside the steps of engines, in threads: vectors, predictions, scores, and looks inside.

Runs are lent as the page of `regard lab` has them lent (serving/pool.py), with the weights of those in the engines.
"""

from __future__ import annotations

import base64
import binascii
import io
import math
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from regard.decoding.capture import is_recording
from regard.errors import RegardError, TooLong, UsageError
from regard.explain.inputs import length_of
from regard.run.chat import conversation
from regard.run.run import Run
from regard.serving.api import Api
from regard.serving.engine.ask import LONGEST_PROMPT, refusal
from regard.serving.engine.line import Line, Place
from regard.serving.engine.placeless import without_paths
from regard.serving.guard import Refused
from regard.serving.provider import RunProvider
from regard.serving.wanted import LONGEST, SHORTER, Wanted, answering
from regard.serving.wire import Message
from regard.tasks.processor import Ids

LARGEST_PICTURE = 1 << 24  # pixels

Tell = Callable[[Message], None]


class Side:
    """Questions that wait for a thread. tell: sends a message. cancelled: those that nobody waits for any more.

    answers    the line of questions. preparing: that of what comes before texts, which waits for none of these.
    """

    def __init__(self, provider: RunProvider, tell: Tell) -> None:
        self.provider, self.tell = provider, tell
        self.api = Api(provider)
        self.answers, self.preparing = Line("side"), Line("prepare")
        self.cancelled: set[int] = set()
        self.underway: set[int] = set()
        self.verbs: dict[str, Callable[[Run, Mapping[str, Any]], Any]] = {
            "embed": embed,
            "predict": predict,
            "score": score,
        }

    def ask(self, message: Message) -> None:
        self._in_line(self.answers, message, lambda: self._answer(message), SHORTER)

    def cancel(self, number: int) -> None:
        if number in self.underway:
            self.cancelled.add(number)

    def prepare(self, message: Message, work: Callable[[], None]) -> None:
        """Make something ready for a request for texts."""
        self._in_line(self.preparing, message, work, "give a smaller pattern")

    def shutdown(self) -> None:
        self.answers.shutdown()
        self.preparing.shutdown()

    def _in_line(self, line: Line, message: Message, work: Callable[[], None], instead: str) -> None:
        """Do something for a request, as long as somebody waits for it; what goes wrong is told.

        instead: what to ask for where it takes too long.
        """
        number = message["id"]
        self.underway.add(number)

        def guarded(place: Place) -> None:
            def give_way() -> None:
                if not is_recording():  # who records a step keeps others from going on
                    line.give_way(place)

            self._guarded(message, work, Wanted(place.is_gone, message.get("seconds", LONGEST), instead, give_way))

        line.submit(message.get("client", ""), guarded, lambda: number in self.cancelled)

    def _answer(self, message: Message) -> None:
        try:
            found = self._found(message)
        except ConnectionAbortedError:
            raise
        except OSError:
            # What it would say is the name of a file.
            raise UsageError("an input names a file that cannot be read") from None
        self.tell({"answer": message["id"], "value": found})

    def _guarded(self, message: Message, work: Callable[[], None], wanted: Wanted) -> None:
        number, run = message["id"], message.get("run") or ""
        path = self.provider.find().get(run, "")
        try:
            with answering(wanted):
                if number not in self.cancelled:
                    work()
        except ConnectionAbortedError:
            pass
        except Exception as error:
            if not isinstance(error, RegardError | Refused | ValueError):
                traceback.print_exc()
            told = refusal(number, error, run, path)
            if isinstance(error, TooLong):
                told |= {"most": error.most, "fits": error.fits}
            self.tell(told)
        finally:
            self.underway.discard(number)
            self.cancelled.discard(number)

    def _found(self, message: Message) -> Any:
        verb, asked = message["verb"], message["asked"]
        if verb == "lab":
            posts = self.api.posts
            self._check_reads_text(asked)
            found = posts[message["path"]](asked) if message["post"] else self.api.gets[message["path"]]()
            return without_paths(found, self.provider.find())
        if verb == "explain":
            return self._explain(message["run"], asked)
        with self.provider.lent(message["run"]) as run:
            return plain(self.verbs[verb](run, asked))

    def _explain(self, run: str, asked: Mapping[str, Any]) -> Any:
        with self.provider.lent(run) as loaded:
            given = _input(loaded, asked["input"], 1)
            if loaded.task.reads_files and asked["options"].get("other"):
                raise UsageError(f"other: {run} reads files, and a server opens none that a client names")
        view = self.provider.view(run, asked["view"], given, asked["options"])
        view = replace(view, about=without_paths({"about": view.about}, self.provider.find())["about"])
        return view.to_html() if asked["html"] else plain(view.to_dict())

    def _check_reads_text(self, asked: Mapping[str, Any] | None) -> None:
        """Refuse to look into a run whose inputs are files: a server opens none that a client names."""
        about = (asked or {}).get("of", asked) or {}
        run = about.get("run") if isinstance(about, Mapping) else None
        if isinstance(run, str) and run in self.provider.find():
            with self.provider.lent(run) as loaded:
                if loaded.task.reads_files:
                    raise UsageError(f"{run} reads files, and a server opens none that a client names")


def embed(run: Run, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The vectors of texts, or of tokens as they are given; and how many tokens these are, without those of a frame."""
    texts = [one if isinstance(one, str) else Ids(one) for one in asked["input"]]
    lengths = [_tokens_of(run, text) for text in texts]
    # One call of attention over more than that takes longer than anybody waits, and cannot be broken off.
    if max(lengths) > LONGEST_PROMPT:
        raise TooLong(
            f"a text has {max(lengths):,} tokens, and {LONGEST_PROMPT:,} are the most: cut it", LONGEST_PROMPT
        )
    return {"vectors": run.embed(texts, asked.get("pooling")).tolist(), "tokens": sum(lengths)}


def _tokens_of(run: Run, one: str | Ids) -> int:
    """How many tokens a text has by itself: without those that every text has, an empty one too."""
    return len(one) if isinstance(one, Ids) else (length_of(run, one) or 0) - (length_of(run, "") or 0)


def predict(run: Run, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The answers to inputs that came with the request; nothing is read from this machine."""
    inputs = [_input(run, one, number) for number, one in enumerate(asked["input"], 1)]
    return [answer.to_dict() for answer in run.answers(inputs, **asked["options"])]


def _input(run: Run, one: Any, number: int) -> Any:
    """An input as the task takes it: a text, a list of words, a table as an object of columns, a picture in base64."""
    if run.task.reads_tables:
        if not isinstance(one, dict):
            raise UsageError(f"input {number}: expected a table as an object of columns, each a list of values")
        return one
    if run.task.reads_files:
        return _picture(one, number)
    if isinstance(one, dict):
        raise UsageError(f"input {number}: expected {run.task.takes}, found an object")
    return one


def _picture(one: Any, number: int) -> np.ndarray:
    told = f"input {number}: expected a picture (PNG or JPEG) in base64"
    if not isinstance(one, str):
        raise UsageError(told)
    from PIL import Image

    try:
        content = base64.b64decode(one.rpartition("base64,")[2], validate=True)
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as picture:
            if picture.width * picture.height > LARGEST_PICTURE:
                raise UsageError(f"input {number}: a picture has at most {LARGEST_PICTURE:,} pixels")
            return np.array(picture.convert("RGB"))
    except (binascii.Error, ValueError, OSError, SyntaxError, Image.DecompressionBombError):
        raise UsageError(told) from None


def score(run: Run, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [run.score(text).to_dict() for text in asked["input"]]


def rendered(run: Run, messages: list[dict[str, Any]]) -> str:
    return conversation(run, messages)


def plain(value: Any) -> Any:
    """Plain JSON values: what is no number is null."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    to_dict = getattr(value, "to_dict", None)
    return str(value) if to_dict is None else plain(to_dict())
