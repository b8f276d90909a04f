"""A run: a trained model with its task and its processor, in memory and in its folder.

run = regard.train("lstm", "my.txt", budget="5m")
run = regard.load("runs/lstm")
print(run.generate("Today is a", top_p=0.9))
run.score("Today is a great day").show()
run.evaluate().scores
run.encode("the bank of the river")      (T, D)
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.core.device import device_named, move
from regard.data import settings as data_settings
from regard.decoding.draft import LOOKUP, TOKENS, Drafter
from regard.decoding.logits import model_device
from regard.decoding.text import ScoredText, Text, TextGenerator, TextOptions, options_from
from regard.errors import DataError, UsageError, blamed_on, nearest
from regard.kernels.operators import fallbacks
from regard.run.readers import reader_of
from regard.run.rolling import evaluate_rolling
from regard.storage import manifest
from regard.tasks import saved_task
from regard.tasks.processor import PROCESSOR, Tokenizes
from regard.tasks.verbs import Answer, Encodes, Generates, Report, Scores, able
from regard.training import run_folder
from regard.training.saved_model import saved_model
from regard.training.settings import from_dict as settings_from_dict

if TYPE_CHECKING:
    from regard.core.tap import Trace
    from regard.data.tokenizer import Tokenizer
    from regard.explain.view import View
    from regard.tasks.dataset import Dataset
    from regard.tasks.processor import Processor
    from regard.tasks.task import Task

V = TypeVar("V")
GREEDY = {"temperature": 0.0}
DRAWN = frozenset({"beam", "temperature", "top_k", "top_p", "min_p"})


class Run:
    """A trained model ready for use. Every run answers and evaluates; a verb that its task lacks is refused.

    path       its folder.
    config     what config.json says: model, data, training settings and where each came from.
    task       what it is for.
    model      in evaluation mode.
    processor  what turns inputs into the model's own and answers into a person's.
    dataset    what it was trained on, where that is at hand.
    weights    what the weights are, for people, where they are not those of its folder.
    """

    def __init__(
        self, path: Path, config: dict[str, Any], task: Task[Any], model: nn.Module, processor: Processor
    ) -> None:
        self.path, self.config, self.task = path, config, task
        self.model, self.processor = model, processor
        self.dataset: Dataset[Any] | None = None
        self._drafting: tuple[object, Run] | None = None
        self.weights: str | None = None

    def __repr__(self) -> str:
        model = self.config.get("model", {}).get("name")
        return f"Run({str(self.path)!r}, task={self.task.name!r}, model={model!r})"

    def able(self, verb: type[V]) -> V:
        """The run's task as one that has a verb of `regard.tasks.verbs`; refused where it has not."""
        return able(self.task, verb, self.path)

    def with_weights(self, weights: str) -> Run:
        """The same run with its linear maps in 8 bits, "int8"; this one stays as it is."""
        from regard.layers.int8 import in_int8

        if weights != "int8":
            raise UsageError(f"unknown weights {weights!r}{nearest(weights, ['int8'])}")
        if self.fitted or self.weights is not None:
            reason = "is fitted at once and has no weights" if self.fitted else "has weights of 8 bits already"
            raise UsageError(f"{self.path}: {self.config['model']['name']} {reason}; leave out weights")
        narrow, found = copy.copy(self), in_int8(self.model)
        narrow.model, narrow.weights = found.model, found.told
        return narrow

    def generate(self, given: Any = "", **options: Any) -> str:
        """The answer to one input: a text that goes on, a translation, a label, tags, a caption, a forecast.

        Options are those of `regard.decoding.text.TextOptions`; a `draft` may be what `drafter` takes, and
        `draft_tokens` be said beside it.
        """
        return self.answers([given], **options)[0].text

    def answers(self, inputs: Sequence[Any], **options: Any) -> list[Answer]:
        """An answer to each input. Options mean something where a text is written."""
        return list(self.task.answers(self.model, self.processor, inputs, self._chosen(options)))

    @property
    def writer(self) -> TextGenerator:
        return self.able(Generates).writer(self.model, self.processor)

    def write(self, prompts: Sequence[str], *, copies: int = 1, **options: Any) -> list[Text]:
        """Each prompt continued `copies` times, with the numbers of each text."""
        return self.writer.write(prompts, options_from(self._with_drafter(options)), copies=copies)

    def stream(self, prompt: str = "", **options: Any) -> Iterator[str]:
        """What comes after the prompt, piece by piece; no piece cuts a character."""
        return self.writer.stream(prompt, options_from(self._with_drafter(options)))

    def drafter(self, draft: str | Path | Run, tokens: int = TOKENS) -> Drafter:
        """What proposes `tokens` at a time to this run's texts: another run with the same tokenizer, or "ngram", the
        prompt and the text so far. Its `tally` tells what it was good for. The run that a folder names is kept until
        the folder changes or another is named.
        """
        self.able(Generates)
        if draft == LOOKUP:
            return Drafter.of_text(tokens)
        other = draft if isinstance(draft, Run) else self._drafting_from(draft)
        writer = other.writer
        from regard.data.tokenizer import as_file

        if as_file(other.tokenizer) != as_file(self.tokenizer):
            raise UsageError(
                f"{other.path} cannot draft for {self.path}: their tokenizers differ; train both on the same tokens"
            )
        return Drafter.of_model(writer.model, tokens, writer.window)

    def score(self, text: str) -> ScoredText:
        """log p of every token of a text, and their chain-rule product."""
        return self.able(Scores).score(self.model, self.processor, text)

    @torch.no_grad()
    def encode(self, text: str) -> Float[Tensor, "T D"]:
        """The context-sensitive vectors h_1 .. h_n of the tokens of `text`."""
        if not isinstance(self.task, Encodes):
            raise UsageError(f"a run of the task {self.task.name} has no vectors for each token of a text")
        if self.fitted:
            raise UsageError(
                f"{self.path}: {self.config['model']['name']} is fitted at once and has no vectors to encode"
            )
        return self.task.encode(self.model, self.processor, text)

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
        data: str | None = None,
        *,
        limit: int | None = None,
        part: str = "valid",
        weights: str | None = None,
        every: str | None = None,
        **options: Any,
    ) -> Report:
        """The scores on `data`, or on what the run's own data held out: the part "valid", or the "test" set apart.

        weights  "int8" for the scores with weights of 8 bits, and how each has changed by them.
        every    of a series: block after block of so long, such as "28d", each after the model has learnt all before.
        """
        if every is not None:
            return evaluate_rolling(self, data, every, limit, {"part": part, "weights": weights, **options})
        narrow = None if weights is None else self.with_weights(weights)
        found = self.task.limited(self.held_out(part) if data is None else self._other(data), limit)
        given = self.processor, found, self._chosen(options)
        report = self.task.evaluate(self.model, *given)
        return report if narrow is None else self.task.evaluate(narrow.model, *given).since(report)

    @property
    def tokenizer(self) -> Tokenizer:
        """The one it was trained with, of a run that has one."""
        if not isinstance(self.processor, Tokenizes):
            raise UsageError(f"{self.path}: a run of the task {self.task.name} has no tokenizer of its own")
        return self.processor.tokenizer

    @property
    def fitted(self) -> bool:
        """Whether the model was fitted at once and has nothing that is learnt by gradients."""
        return next(self.model.parameters(), None) is None

    @property
    def device(self) -> torch.device:
        model: Any = self.model
        return model_device(model)

    @property
    def fallbacks(self) -> dict[str, int]:
        """What could not be made fast in this process, and how often its plain form ran instead."""
        return fallbacks()

    @property
    def settings(self) -> data_settings.DataSettings:
        """How the run reads data. No cache: a folder that one was handed does not say where anything is written."""
        return dataclasses.replace(data_settings.from_dict(self.config["data"]), cache=None)

    @property
    def seed(self) -> int:
        return self.config["train"]["seed"]

    def held_out(self, part: str) -> Any:
        """A held-out part of the run's own data, made again and checked to be what it was."""
        if self.dataset is None:
            self.dataset = self._made_again()
        found = self.dataset.part(part)
        if found is None:
            raise UsageError(f"{self.path} was trained without a {part} part; set data.{part}, or name data")
        return found

    def _made_again(self) -> Dataset[Any]:
        path = self.config["data"].get("path")
        if path is None:
            raise UsageError(f"{self.path} says nothing of the text it was counted on: name data to evaluate on")
        if path == "-":
            raise UsageError(f"{self.path} was trained on standard input, which is gone: name data to evaluate on")
        dataset = self.task.ready(self.settings, self.seed, self.processor)
        if dataset.hash != self.config["data"].get("hash"):
            raise DataError(f"{path} is not what {self.path} was trained on: name data to evaluate on")
        return dataset

    def _other(self, data: str) -> Sequence[Any]:
        return self.task.part_of(data, self.settings, self.seed, self.processor)

    def _chosen(self, options: dict[str, Any]) -> TextOptions | None:
        """How texts are written: from a source, without a beam and without a word on chance, the most probable one."""
        unused = self.task.unused(options)
        if unused:
            names = ", ".join(unused)
            raise UsageError(f"{self.path}: {names} means nothing to a run of the task {self.task.name}; leave it out")
        options = self._with_drafter(options)
        if not options:
            return None
        return options_from((GREEDY if self.task.writes and not DRAWN & options.keys() else {}) | options)

    def _with_drafter(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options with a draft that was named made into what drafts."""
        draft, tokens = options.get("draft"), options.get("draft_tokens")
        rest = {name: value for name, value in options.items() if name not in ("draft", "draft_tokens")}
        if draft is not None and not isinstance(draft, Drafter):
            return rest | {"draft": self.drafter(draft, TOKENS if tokens is None else tokens)}
        if tokens is not None:
            raise UsageError("draft_tokens is how many tokens a draft that is named beside it proposes; name a draft")
        return rest if draft is None else rest | {"draft": draft}

    def _drafting_from(self, path: str | Path) -> Run:
        """The run in a folder, on this run's device: the one that was loaded last, where the folder is as it was."""
        device, where = str(self.device), Path(path).expanduser().resolve()
        # A model in another format has no manifest by which to know that it is the same.
        key = (where, device, manifest.read(where)) if (where / manifest.NAME).exists() else None
        if key is not None and self._drafting is not None and self._drafting[0] == key:
            return self._drafting[1]
        self._drafting = (key, load(path, device=device))
        return self._drafting[1]


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
    with blamed_on(where / PROCESSOR):
        own = processor or task.load_processor(lambda name: run_folder.verified(where, name))
    weights = run_folder.verified_weights(where)
    saved = saved_model(where, config)
    task.require_fit(saved, own)
    model = saved.with_weights(weights)
    move(model, device_named(device))
    return Run(where, config, task, model.eval(), own)
