"""Captions: a picture is read and a text is written (1-N)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from regard.core.config import Config
from regard.core.data_spec import DataSpec
from regard.core.device import device_of
from regard.data.example import Captioned
from regard.data.picture import pictures_in, read_picture, resized
from regard.data.picture_files import PICTURE_ROLE, read_pictures
from regard.data.ragged import AT_ONCE, ragged
from regard.data.rows import CaptionRows
from regard.data.settings import DataSettings
from regard.data.tokenizer import Tokenizer, train_tokenizer
from regard.data.unlabelled import Role, Unlabelled
from regard.data.worlds import PREFIX, world_of
from regard.data.worlds.base import ExampleWorld
from regard.decoding.text import TextOptions
from regard.errors import UsageError
from regard.evaluation.each import EachScore
from regard.evaluation.translation import require_metrics, translation_scores
from regard.layers.picture import as_input
from regard.models.writer_ensemble import WriterEnsembleConfig
from regard.tasks import register_task
from regard.tasks.dataset import ExampleDataset
from regard.tasks.example_task import SHOWN, ExampleTask
from regard.tasks.kinds import CaptionsKind
from regard.tasks.processor import Processor, files_of, read_files
from regard.tasks.reading import Capabilities, Reading, Side, written_reading
from regard.tasks.verbs import Answer, Report
from regard.tasks.vocabulary import hidden_word
from regard.tasks.writing import ROOM, SPARE, SourceBatch, Written, write
from regard.training.losses import model_loss
from regard.training.problem import Objective

if TYPE_CHECKING:
    from torch import nn

    from regard.tasks.task import Trained
    from regard.training.settings import TrainSettings

GREEDY = TextOptions(temperature=0.0)
# Few captions have few words often: of a thousand pieces nearly all occur often enough to be learnt.
SUBWORDS, PIECES = "bpe", 1000
DECODERS = ("lstm", "bahdanau", "transformer")


@dataclass(frozen=True, eq=False)
class CaptionProcessor(Processor):
    """tokenizer: of the captions. size: rows and columns of a picture. longest: tokens of a caption in training."""

    tokenizer: Tokenizer
    size: int
    longest: int

    def files(self) -> dict[str, bytes]:
        return files_of(self.tokenizer, {"size": self.size, "longest": self.longest})

    @property
    def spec(self) -> DataSpec:
        return DataSpec(vocab_size=self.tokenizer.vocab_size, picture=(3, self.size, self.size))

    def see(self, one: Any) -> np.ndarray:
        """The picture of an example or of a path, as the model reads it."""
        return resized(one.picture, self.size) if isinstance(one, Captioned) else read_picture(str(one), self.size)

    def rows(self, examples: Sequence[Captioned]) -> CaptionRows:
        target = ragged(self.tokenizer.encode(one.text) for one in examples)
        return CaptionRows(np.stack([self.see(one) for one in examples]), target, self.tokenizer.eos_id)


@register_task
class Captions(CaptionsKind, ExampleTask[CaptionProcessor]):
    """Saying what pictures show."""

    shape: ClassVar[str] = "1-N"
    metric: ClassVar[str] = "exact_match"
    model: ClassVar[str] = "captioner"
    ladder: ClassVar[tuple[str, ...]] = (
        "nearest_picture",
        *(f"captioner?decoder={name}" for name in DECODERS),
    )
    example: ClassVar[type | None] = Captioned
    world: ClassVar[str | None] = "world:shapes"
    can: ClassVar[Capabilities] = Capabilities(next=True, source=True)
    writes: ClassVar[bool] = True
    reads_files: ClassVar[bool] = True
    typed_example: ClassVar[str] = "PICTURE"

    def prepare(
        self, settings: DataSettings, seed: int, processor: CaptionProcessor | None = None
    ) -> ExampleDataset[CaptionProcessor]:
        self.refuse_unused(settings)
        require_metrics()
        world, train, valid, notes = self._parts(settings, seed)
        processor = processor or self._processor(train, settings, world)
        name = f"{PREFIX}{world.name}" if world else Path(settings.path).name
        best = world.best if world else {}
        return ExampleDataset(name, processor, processor.rows(train), processor.rows(valid), valid, best, notes)

    def load_processor(self, verified: Callable[[str], Path]) -> CaptionProcessor:
        tokenizer, told = read_files(verified, {"size": int, "longest": int})
        return CaptionProcessor(tokenizer, **told)

    def objective(self, settings: TrainSettings) -> Objective:
        return partial(model_loss, label_smoothing=settings.label_smoothing, smoothing=settings.smoothing)

    def combined(self, config: Config, count: int) -> Config:
        return WriterEnsembleConfig(config, count)

    def hidden(self, processor: CaptionProcessor) -> int:
        return hidden_word(processor.tokenizer)

    def inputs(self, text: str) -> list[Any]:
        """A picture a line: its path, or a folder, an .npz or world:NAME for all the pictures in it."""
        found: list[Any] = []
        for number, line in enumerate(super().inputs(text)):
            if not line.strip():
                raise UsageError(f"line {number + 1} is empty: give the path of a picture in every line")
            found += world_of(line, self.name).examples("valid") if line.startswith(PREFIX) else pictures_in(line)
        return found

    def given(self, one: Any, where: str = "") -> Any:
        """The path of a picture, a picture of Pillow, or its array, (height, width, 3) of unsigned bytes."""
        if isinstance(one, os.PathLike):
            return os.fspath(one)
        if not (hasattr(one, "__array__") or hasattr(one, "__array_interface__")):
            return super().given(one, where)
        picture = np.asarray(one)
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or not picture.size:
            shape = " x ".join(map(str, picture.shape)) or "no shape"
            raise UsageError(
                f"{where}expected a picture of height x width x 3 unsigned bytes, found {shape} of {picture.dtype}; "
                f"of Pillow's, convert('RGB')"
            )
        return Captioned(picture, "", file="a picture in memory")

    def answers(
        self, model: nn.Module, processor: CaptionProcessor, inputs: Sequence[Any], options: TextOptions | None = None
    ) -> Iterator[Answer]:
        written = self.written(model, processor, inputs, options or GREEDY)
        for one, text in zip(inputs, written, strict=True):
            place = (one.where or one.file) if isinstance(one, Captioned) else str(one)
            yield Answer(text.text, {"picture": place, "log_prob": text.log_prob, "score": text.score})

    def evaluate(
        self,
        model: nn.Module,
        processor: CaptionProcessor,
        examples: Sequence[Captioned],
        options: TextOptions | None = None,
    ) -> Report:
        texts = [text.text for text in self.written(model, processor, examples, options or GREEDY)]
        found = translation_scores(texts, [one.text for one in examples]).to_dict()
        scores = {"exact_match": found.pop("exact_match"), "chrf": found.pop("chrf"), **found}
        scores["captions"] = scores.pop("sentences")
        right = [text.strip() == one.text.strip() for text, one in zip(texts, examples, strict=True)]
        return Report(scores, {"by_category": _by_category(texts, examples)}, each=lambda: EachScore.mean_of(right))

    def is_right(self, example: Captioned, answer: Answer) -> bool:
        return answer.text == example.text

    def truth(self, example: Captioned) -> str:
        return example.text

    def describe(self, example: Captioned, answer: Answer) -> str:
        return f"{answer.text} {'=' if self.is_right(example, answer) else f'(right: {example.text})'}"

    def typed(self, example: Captioned) -> str:
        return f"{example.file}?valid={SHOWN}" if example.file.startswith(PREFIX) else example.file

    def unlabelled(self, run: Trained, data: str, settings: DataSettings) -> Unlabelled:
        return read_pictures(data, settings.choices)

    def input_role(self, run: Trained, settings: DataSettings) -> Role:
        return PICTURE_ROLE

    def answer_rows(self, answer: Answer) -> list[dict[str, Any]]:
        return [{"caption": answer.text}]

    def reading(self, run: Trained, given: str | Captioned, target: str | None) -> Reading:
        processor: CaptionProcessor = run.processor
        name = given if isinstance(given, str) else given.file
        one = given if isinstance(given, Captioned) else self.inputs(given)[0] if given else run.held_out("valid")[0]
        picture = as_input(torch.from_numpy(processor.see(one)[None])).to(run.device)
        model: Any = run.model
        count = model.encode(picture)[0].shape[1]
        across = round(count**0.5)
        side = Side("picture", tuple(f"{place // across + 1},{place % across + 1}" for place in range(count)))
        if target is None:
            written = self.written(model, processor, [one], GREEDY)[0].tokens
        else:
            written = processor.tokenizer.encode(target).tolist()
        return written_reading(model, picture, side, processor.tokenizer, written, name, target or "")

    def target_ids(self, processor: CaptionProcessor, text: str) -> np.ndarray:
        return processor.tokenizer.encode(text)

    def written(
        self, model: nn.Module, processor: CaptionProcessor, inputs: Sequence[Any], options: TextOptions
    ) -> list[Written]:
        """What the model writes for each picture."""
        whole: Any = model
        device = device_of(model)
        options = replace(options, max_tokens=min(options.max_tokens, ROOM * processor.longest + SPARE))
        found: list[Written] = []
        for first in range(0, len(inputs), AT_ONCE):
            pictures = np.stack([processor.see(one) for one in inputs[first : first + AT_ONCE]])
            batch = SourceBatch(as_input(torch.from_numpy(pictures)).to(device), None, first)
            found += write(whole, processor.tokenizer, batch, options)
        return found

    def _parts(
        self, settings: DataSettings, seed: int
    ) -> tuple[ExampleWorld[Captioned] | None, Sequence[Captioned], Sequence[Captioned], tuple[str, ...]]:
        """The world, if it is one, the examples to train on, those held out, and what is to be said of them."""
        if settings.path.startswith(PREFIX):
            world = world_of(settings.path, self.name, seed)
            return world, world.examples("train"), world.examples("valid"), ()
        found = self.examples(settings.path, settings, seed)
        return None, *self.held_out(found, settings.valid, lambda path: self.examples(path, settings, seed))

    def _processor(
        self, train: Sequence[Captioned], settings: DataSettings, world: ExampleWorld[Captioned] | None
    ) -> CaptionProcessor:
        kind, vocab_size = settings.tokens, settings.vocab_size
        if kind == "auto":
            kind, most = (world.tokens, None) if world else (SUBWORDS, PIECES)
            vocab_size = vocab_size or most
        texts = [one.text for one in train]
        tokenizer = train_tokenizer(kind, texts, vocab_size=vocab_size)
        return CaptionProcessor(tokenizer, settings.size, max(len(tokenizer.encode(text)) for text in texts))


def _by_category(texts: Sequence[str], examples: Sequence[Captioned]) -> list[dict[str, Any]]:
    """The scores of each category, where there are several."""
    rows = []
    for category in sorted({one.category for one in examples}):
        pairs = [(text, one.text) for text, one in zip(texts, examples, strict=True) if one.category == category]
        scores = translation_scores(*map(list, zip(*pairs, strict=True)))
        row = {"category": category, "captions": len(pairs), "exact_match": scores.exact_match, "chrf": scores.chrf}
        rows.append(row | {"bleu": scores.bleu})
    return rows if len(rows) > 1 else []
