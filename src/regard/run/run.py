"""A run: a trained model with its task and its processor, in memory and in its folder.

run = regard.train("lstm", "my.txt", budget="5m")
run = regard.load("runs/lstm")
print(run.generate("Today is a", top_p=0.9))
run.score("Today is a great day").show()
run.evaluate().scores
run.predict(["a fine film", "a dull one"])     run.predict_proba(frame)
run.encode("the bank of the river")            (T, D)
run.embed(texts, pooling="mean")               (n, D)
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from jaxtyping import Float
from torch import Tensor

from regard.core.device import device_named, move
from regard.data import settings as data_settings
from regard.decoding.draft import TOKENS, Drafter
from regard.decoding.scored_text import ScoredText
from regard.decoding.text import Text, TextGenerator, TextOptions, options_from
from regard.errors import UsageError, blamed_on, nearest
from regard.run import chat
from regard.run.at_hand import Data, at_hand
from regard.run.drafting import drafter_of, with_drafter
from regard.run.inputs import inputs_of, is_one
from regard.run.judge import judge_of, warn
from regard.run.own_data import other_examples
from regard.run.readers import reader_of
from regard.run.rolling import evaluate_rolling
from regard.run.trained import TrainedRun
from regard.run.vectors import Pooled, embed, encode
from regard.tasks import saved_task
from regard.tasks.processor import PROCESSOR
from regard.tasks.verbs import Answer, Classifies, Generates, Report, Scores
from regard.training import run_folder
from regard.training.before_refit import kept_before
from regard.training.saved_model import saved_model
from regard.training.settings import from_dict as settings_from_dict

if TYPE_CHECKING:
    from regard.core.tap import Trace
    from regard.explain.view import View
    from regard.tasks.processor import Processor

GREEDY = {"temperature": 0.0}
DRAWN = frozenset({"beam", "temperature", "top_k", "top_p", "min_p"})


class Run(TrainedRun):
    """A trained model ready for use. Every run answers and evaluates; a verb that its task lacks is refused.

    What it is, where it lies and what it measured: regard/run/trained.py.
    """

    def with_weights(self, weights: str) -> Run:
        """The same run with its linear maps in 8 bits, "int8"; this one stays as it is."""
        from regard.layers.int8 import in_int8

        if weights != "int8":
            raise UsageError(f"unknown weights {weights!r}{nearest(weights, ['int8'])}")
        if self.fitted or self.weights is not None or self.config["model"].get("weights"):
            reason = "is fitted at once and has no weights" if self.fitted else "has weights of few bits already"
            raise UsageError(f"{self.path}: {self.config['model']['name']} {reason}; leave out weights")
        narrow, found = copy.copy(self), in_int8(self.model)
        narrow.model, narrow.weights = found.model, found.told
        return narrow

    @overload
    def generate(self, given: str | os.PathLike[str] = "", **options: Any) -> str: ...
    @overload
    def generate(self, given: Sequence[Any], **options: Any) -> list[str]: ...
    @overload
    def generate(self, given: Any, **options: Any) -> Any: ...
    def generate(self, given: Any = "", **options: Any) -> str | list[str]:
        """The answer to one input as text: a text that goes on, a translation, a label, tags, a caption, a forecast.

        Of several inputs, in a list or whatever else `predict` takes, a list of such texts. Options are those of
        `regard.decoding.text.TextOptions`; a `draft` may be what `drafter` takes, and `draft_tokens` be said beside it.
        """
        given = list(given) if isinstance(given, Iterator) else given
        if is_one(self, given):
            return self._answered([self.task.given(given, "generate: ")], options)[0].text
        return [one.text for one in self._answered(inputs_of(self, given, "generate"), options)]

    def predict(self, inputs: Any, **options: Any) -> list[Any]:
        """An answer to each input, in the shape of the task: a label, a list of tags, a text, a `Forecast`.

        inputs   a list, an array or a Series of what the task reads; or a mapping of columns, a frame, an Arrow table
                 or a `datasets.Dataset`, of which the column is read that the run was trained on. Of tags an input is a
                 sentence or the list of its words, of captions the path of a picture or its array, of a series a table.
        options  of `regard.decoding.text.TextOptions`, where a text is written.
        """
        return [one.prediction for one in self._answered(inputs_of(self, inputs, "predict"), options)]

    def predict_proba(self, inputs: Any) -> np.ndarray:
        """The probability of each of `classes` for each input, (n, C); of tags (n,) arrays (words, C). As `predict`."""
        task = self.able(Classifies)
        return task.probabilities(self.model, self.processor, inputs_of(self, inputs, "predict_proba"))

    @property
    def classes(self) -> list[str]:
        """The classes that it tells apart, in the order of `predict_proba`."""
        return list(self.able(Classifies).classes(self.processor))

    def answers(self, inputs: Any, **options: Any) -> list[Answer]:
        """An answer to each input with all its numbers. inputs, options: as of `predict`."""
        return self._answered(inputs_of(self, inputs, "answers"), options)

    def _answered(self, inputs: Sequence[Any], options: dict[str, Any]) -> list[Answer]:
        return list(self.task.answers(self.model, self.processor, inputs, self._chosen(options)))

    @property
    def writer(self) -> TextGenerator:
        """What goes on with prompts, of a task that does."""
        return self.able(Generates).writer(self.model, self.processor)

    def write(self, prompts: Sequence[str], *, copies: int = 1, **options: Any) -> list[Text]:
        """Each prompt continued `copies` times, with the numbers of each text."""
        given = inputs_of(self, prompts, "write")
        return self.writer.write(given, options_from(with_drafter(self, options)), copies=copies)

    def stream(self, prompt: str = "", **options: Any) -> Iterator[str]:
        """What comes after the prompt, piece by piece; no piece cuts a character."""
        return self.writer.stream(self.task.given(prompt, "stream: "), options_from(with_drafter(self, options)))

    def chat(self, messages: chat.Messages, **options: Any) -> str:
        """What a model that was taught to answer says to a person, or after all turns of a conversation."""
        return chat.answers(self, messages, with_drafter(self, options))[0].text

    def drafter(self, draft: str | Path | Run, tokens: int = TOKENS) -> Drafter:
        """What proposes `tokens` at a time to this run's texts: another run with the same tokenizer, or "ngram", the
        prompt and the text so far. Its `tally` tells what it was good for. The run that a folder names is kept until
        the folder changes or another is named.
        """
        return drafter_of(self, draft, tokens)

    def score(self, text: str) -> ScoredText:
        """log p of every token of a text, and their chain-rule product."""
        return self.able(Scores).score(self.model, self.processor, self.task.given(text, "score: "))

    def encode(self, text: Any) -> Float[Tensor, "T D"]:
        """The context-sensitive vectors h_1 .. h_n of the tokens of `text`; of tags, of its words."""
        return encode(self, text)

    def embed(self, texts: Any, pooling: Pooled | None = None) -> Float[np.ndarray, "n D"]:
        """A vector for each text: those of its tokens pooled by their mean or maximum, or the first or last of them.

        texts    as the inputs of `predict`. They are read in batches; each comes out as it would alone.
        pooling  unless told, that of a sentence encoder as it was imported, and else the mean.
        """
        return embed(self, texts, pooling)

    def explain(self, given: str = "", view: str | None = None, **options: Any) -> View:
        """A look inside: the view that tells most of such a model, or the one that is named; see `views`."""
        from regard.explain import registry

        return registry.view(self, view, given, **options)

    @property
    def views(self) -> dict[str, str]:
        """The views that `explain` can make of this run, and what each shows."""
        from regard.explain import registry

        return registry.views(self)

    def trace(self, given: str = "", pattern: str = "*") -> Trace:
        """Everything that the taps of the model see of one input."""
        from regard.explain.inputs import read

        return read(self, given).trace(pattern)

    def evaluate(
        self,
        data: Data | None = None,
        *,
        limit: int | None = None,
        part: str = "valid",
        weights: str | None = None,
        every: str | None = None,
        tell: Callable[[str], None] = warn,
        **options: Any,
    ) -> Report:
        """The scores on `data`, or on what the run's own data held out: the part "valid", or the "test" set apart.

        data     what `regard.train` takes: a path, or data itself.
        limit    examples at most, of a text tokens.
        weights  "int8" for the scores with weights of 8 bits, and how each has changed by them.
        every    of a series: block after block of so long, such as "28d", each after the model has learnt all before.
        tell     takes a line on `data` that the run held out once and has learnt since.
        """
        with at_hand(data, "data") as address:
            if every is not None:
                return evaluate_rolling(self, address, every, limit, {"part": part, "weights": weights, **options})
            found = self.held_out(part) if address is None else other_examples(self, address)
            examples = self.task.limited(found, limit)
            if address is None:
                judged = self.before_refit() if part == "valid" else self
            else:
                judged = judge_of(self, examples, tell)
            narrow = None if weights is None else judged.with_weights(weights)
            given = self.processor, examples, self._chosen(options)
            report = self.task.evaluate(judged.model, *given)
            return report if narrow is None else self.task.evaluate(narrow.model, *given).since(report)

    def _chosen(self, options: dict[str, Any]) -> TextOptions | None:
        """How texts are written: from a source, without a beam and without a word on chance, the most probable one."""
        unused = self.task.unused(options)
        if unused:
            names = ", ".join(unused)
            raise UsageError(f"{self.path}: {names} means nothing to a run of the task {self.task.name}; leave it out")
        options = with_drafter(self, options)
        if not options:
            return None
        return options_from((GREEDY if self.task.writes and not DRAWN & options.keys() else {}) | options)


def load(path: str | Path, *, device: str = "auto") -> Run:
    """The run in a folder, every file checked against its hash before it is used; or a model in another format."""
    where = Path(path).expanduser()
    reader = reader_of(where)
    return load_folder(where, device=device) if reader is None else reader.read(where, device)


def load_folder(where: Path, *, device: str = "auto", processor: Processor | None = None) -> Run:
    """The run in a folder. processor: its own, where it is in memory: millions of words are not read again."""
    config = run_folder.read_config(where)
    task = saved_task(where / run_folder.CONFIG, config)
    with blamed_on(where / run_folder.CONFIG):
        task = task.with_settings(settings_from_dict(config["train"]), data_settings.from_dict(config["data"]))
    # A gigabyte of weights is hashed while a large tokenizer is read.
    with ThreadPoolExecutor(1) as pool:
        verifying = pool.submit(run_folder.verified_weights, where)
        with blamed_on(where / PROCESSOR):
            own = processor or task.load_processor(lambda name: run_folder.verified(where, name))
        weights = verifying.result()
    saved = saved_model(where, config)
    task.require_fit(saved, own)
    model = saved.with_weights(weights)
    move(model, device_named(device))
    run = Run(where, config, task, model.eval(), own)
    run.before = kept_before(where)  # now: what a folder holds later may be of another training
    return run
