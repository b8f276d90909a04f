"""Plain text: every token is predicted from those before it (1-N), so that a model can go on with a prompt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch

from regard.core.data_spec import DataSpec
from regard.core.model import logits_of
from regard.data.account import Account
from regard.data.corpus import Corpus, prepare
from regard.data.ragged import ragged
from regard.data.settings import DataSettings
from regard.data.shard import TokenShard, ends_lines, make_shard, stream_shard
from regard.data.text_source import TableTexts, text_stream
from regard.data.tokenizer import Tokenizer, as_file
from regard.data.tokenizer import load as load_tokenizer
from regard.data.worlds import PREFIX, text_world
from regard.decoding.mixture import MixtureConfig
from regard.decoding.scored_text import ScoredText
from regard.decoding.text import TextGenerator, TextOptions
from regard.errors import CheckpointError, UsageError
from regard.evaluation.language import Habit, evaluate
from regard.tasks import register_task
from regard.tasks.dataset import Dataset, TextPart, first_line
from regard.tasks.encoding import Encoded, encoded, reader_of
from regard.tasks.kinds import TextKind
from regard.tasks.processor import TOKENIZER, Ids, Processor, ids_of
from regard.tasks.reading import START, Capabilities, Reading, fitted, labels_of, next_tokens, text_side, token_names
from regard.tasks.task import Task, Trained
from regard.tasks.verbs import Answer, Report
from regard.training.fitted_run import FittingProblem
from regard.training.problem import TrainingProblem, language_problem

if TYPE_CHECKING:
    from torch import nn

    from regard.core.config import Config
    from regard.data.worlds.base import World
    from regard.tasks.outcome import Outcome
    from regard.training.display import Result
    from regard.training.saved_model import SavedModel
    from regard.training.settings import TrainSettings

SAMPLE = TextOptions(max_tokens=60, temperature=0.8)
BY_LINE = ("line", "blank")
AT_ONCE = 1 << 16  # tokens that a fitted model looks up together: its table is then gone through once for all of them


@dataclass(frozen=True, eq=False)
class TextProcessor(Processor):
    """A tokenizer, and nothing else."""

    tokenizer: Tokenizer

    def files(self) -> dict[str, bytes]:
        return {TOKENIZER: as_file(self.tokenizer)}

    @property
    def spec(self) -> DataSpec:
        return DataSpec(vocab_size=self.tokenizer.vocab_size)

    @cached_property
    def hash(self) -> str:
        return self.tokenizer.hash

    def read(self, text: str | Ids) -> np.ndarray:
        """The start symbol and the tokens of a text. Tokens may say themselves how they begin."""
        ids, start = ids_of(self.tokenizer, text), self.tokenizer.start_id
        return ids if isinstance(text, Ids) and text[:1] == (start,) else np.concatenate([[start], ids])


@dataclass(frozen=True, eq=False)
class TextDataset(Dataset[TextProcessor]):
    """Text as token shards: of a whole text, and not of examples."""

    name: str
    processor: TextProcessor
    corpus: Corpus
    best: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    account: Account | None = None

    @property
    def train(self) -> TokenShard:
        return self.corpus.train

    @property
    def valid(self) -> TokenShard:
        return self.corpus.valid

    @property
    def test(self) -> TokenShard | None:
        return self.corpus.test

    @property
    def world(self) -> World | None:
        return self.corpus.world

    def hashes(self) -> tuple[str, str]:
        return self.train.hash, self.valid.hash

    def part(self, name: str) -> TextPart | None:
        shard = self.test if name == "test" else self.valid
        return None if shard is None else TextPart(shard, self.processor.tokenizer, self.world)

    def about(self) -> dict[str, Any]:
        tokenizer = self.processor.tokenizer
        sizes = {"train": self.train.tokens, "valid": self.valid.tokens, "test": self.test.tokens if self.test else 0}
        return {"name": self.name, "tokens": tokenizer.kind, "vocabulary": tokenizer.vocab_size, **sizes}

    def judged(self) -> Sequence[Any]:
        return () if self.test is None else (self.test,)


@register_task
@dataclass(frozen=True)
class PlainText(TextKind, Task[TextProcessor]):
    """Language models.

    length     tokens that are read at a time.
    samples    "windows" of a long text, "documents" one by one; "auto" asks the data.
    carries    whether a state of constant size went on from window to window.
    documents  what a document is.
    """

    length: int = 128
    samples: str = "auto"
    carries: bool = True
    documents: str = "auto"

    shape: ClassVar[str] = "1-N"
    metric: ClassVar[str] = "loss"
    lower_is_better: ClassVar[bool] = True
    model: ClassVar[str] = "gpt"
    ladder: ClassVar[tuple[str, ...]] = ("ngram", "dan", "fnn", "rnn", "lstm", "gpt", "backpack", "mamba")
    world: ClassVar[str | None] = "world:stories"
    can: ClassVar[Capabilities] = Capabilities(tokens=True, next=True)
    gives_encoder: ClassVar[bool] = True
    of_samples: ClassVar[frozenset[str]] = frozenset({"samples", "carry_state", "packed"})
    echoes: ClassVar[bool] = True
    takes_ids: ClassVar[bool] = True
    data_example: ClassVar[str] = "my.txt"
    typed_example: ClassVar[str] = '""'

    def with_settings(self, training: TrainSettings, data: DataSettings) -> Self:
        carries = training.carry_state is not False
        return replace(
            self, length=training.length, samples=training.samples, carries=carries, documents=data.documents
        )

    def ready(self, settings: DataSettings, seed: int, processor: TextProcessor | None = None) -> TextDataset:
        self.refuse_unused(settings)
        names = ("valid", "test", "documents", "cache", "sample", "labour")
        chosen: dict[str, Any] = {name: getattr(settings, name) for name in names}
        tokens = {"tokens": settings.tokens, "vocab_size": settings.vocab_size}
        chosen |= tokens if processor is None else {"tokenizer": processor.tokenizer}
        corpus = prepare(settings.path, seed=seed, how=settings.texts, **chosen)
        told = replace(corpus.account or Account(data=corpus.name), task=self.name)
        own = processor or TextProcessor(corpus.tokenizer)
        notes = (*corpus.notes, *(corpus.unknown_notes if processor else ()))
        return TextDataset(corpus.name, own, corpus, notes=notes, account=told)

    def part_of(self, data: str, settings: DataSettings, seed: int, processor: TextProcessor) -> TextPart:
        tokenizer = processor.tokenizer
        if data.startswith(PREFIX):
            world = text_world(data, seed)
            return TextPart(make_shard(world.documents("valid"), tokenizer, lines=True), tokenizer, world)
        stream = text_stream(data, self.documents, settings.texts)
        lines = ends_lines(self.documents) or isinstance(stream, TableTexts)
        return TextPart(stream_shard(stream.pieces("tokenising"), tokenizer, lines=lines), tokenizer)

    def load_processor(self, verified: Callable[[str], Path]) -> TextProcessor:
        return TextProcessor(load_tokenizer(verified(TOKENIZER)))

    def require_fit(self, saved: SavedModel, processor: TextProcessor) -> None:
        if saved.vocab_size != processor.tokenizer.vocab_size:
            raise CheckpointError(
                f"{saved.path}: model.config: the model has a vocabulary of {saved.vocab_size} and the tokenizer one "
                f"of {processor.tokenizer.vocab_size}"
            )

    def training(
        self, dataset: Dataset[TextProcessor], model: nn.Module, settings: TrainSettings, data: DataSettings
    ) -> TrainingProblem:
        assert isinstance(dataset, TextDataset)
        return language_problem(dataset.corpus, model, settings)

    def fitting(
        self, dataset: Dataset[TextProcessor], model: nn.Module, settings: TrainSettings, data: DataSettings
    ) -> FittingProblem[np.ndarray]:
        assert isinstance(dataset, TextDataset)
        corpus = dataset.corpus

        def judge(fitted: Any) -> dict[str, float]:
            how = {"length": settings.length, "habit": Habit(by_document=corpus.samples == "documents")}
            return {"loss": evaluate(fitted, corpus.valid, tokenizer=corpus.tokenizer, at_once=AT_ONCE, **how).loss}

        identity = {"name": corpus.name, "hash": corpus.hash, "tokenizer": corpus.tokenizer.hash}
        files = dataset.processor.files()
        ids = corpus.train.ids
        return FittingProblem(ids, corpus.train.tokens, judge, None, identity, files, labour=data.labour)

    def writer(self, model: Any, processor: TextProcessor) -> TextGenerator:
        grows = getattr(getattr(model, "stack", model), "state_grows", False)
        return TextGenerator(model, processor.tokenizer, self.length if grows else None)

    def combined(self, config: Config, count: int) -> Config:
        return MixtureConfig((config,) * count, (1 / count,) * count)

    def answers(
        self, model: nn.Module, processor: TextProcessor, inputs: Sequence[Any], options: TextOptions | None = None
    ) -> Iterator[Answer]:
        for text in self.writer(model, processor).write(list(map(str, inputs)), options or TextOptions()):
            yield Answer(text.text, vars(text))

    def answer_rows(self, answer: Answer) -> list[dict[str, Any]]:
        return [{"answer": answer.details["continuation"]}]

    def unused(self, options: Collection[str]) -> list[str]:
        """What concerns sources is refused where a text is written."""
        return []

    def sample(self, model: nn.Module, dataset: Dataset[TextProcessor]) -> str:
        """What the model writes from nothing, always with the same draws."""
        return self.writer(model, dataset.processor).write([""], SAMPLE)[0].text

    def score(self, model: nn.Module, processor: TextProcessor, text: str) -> ScoredText:
        return self.writer(model, processor).score(text)

    def passages(self, processor: TextProcessor, examples: TextPart, count: int, tokens: int) -> list[str]:
        found = [examples.opening(number, tokens) for number in range(min(count, len(examples)))]
        return [text for text in found if text]

    def evaluate(
        self, model: Any, processor: TextProcessor, examples: Sequence[Any], options: TextOptions | None = None
    ) -> Report:
        """Loss, perplexity and bits; in a world also the distance to the optimum, and recall by distance."""
        assert isinstance(examples, TextPart)
        if options is not None:
            raise UsageError("a text is scored as it is, with nothing drawn or searched for: leave the options out")
        by_line = self.samples == "auto" and self.documents in BY_LINE
        report = evaluate(
            model,
            examples.shard,
            tokenizer=processor.tokenizer,
            length=self.length,
            world=examples.world,  # pyright: ignore[reportArgumentType]  # its class variables are properties there
            limit=examples.limit,
            habit=Habit(carries=self.carries, by_document=self.samples == "documents" or by_line),
        )
        scores = report.to_dict()
        recall = scores.pop("recall", None)
        return Report(scores, by_distance={} if recall is None else {"recall": recall}, each=report.each)

    def limited(self, examples: Sequence[Any], limit: int | None) -> TextPart:
        """Its first tokens; in a world, whole documents within them."""
        assert isinstance(examples, TextPart)
        return replace(examples, limit=limit)

    def encoded(self, model: Any, processor: TextProcessor, texts: Sequence[Any]) -> Iterator[Encoded]:
        ids = fitted(ragged(map(processor.read, texts)), model.max_length)
        # The start symbol is read, as in training, and its own vector left out.
        return encoded(model, reader_of(model), ids, before=1)

    def outcome(self, run: Trained, result: Result) -> Outcome:
        from regard.tasks.text_outcome import text_outcome

        return text_outcome(self, run, result)

    def openings(self, examples: Sequence[Any], count: int) -> list[str]:
        assert isinstance(examples, TextPart)
        return [first_line(examples.opening(0))]

    def openings_of_world(self, address: str, seed: int, processor: TextProcessor, count: int) -> list[str]:
        return [first_line(text) for text in text_world(address, seed).documents("valid", 1)]

    def reading(self, run: Trained, given: str, target: str | None) -> Reading:
        tokenizer, ids, model = run.processor.tokenizer, self.ids(run.processor, given).tolist(), run.model
        side = text_side("text", tokenizer, ids, (START, *labels_of(tokenizer, ids[1:], given)))
        tokens = torch.tensor([ids], device=run.device)
        names, following = token_names(tokenizer), next_tokens(ids)
        return Reading(
            *(model, (tokens,), (side,), lambda x: logits_of(model, x), names, following, given),
            vectors=lambda x: model(x)[0],
        )

    def ids(self, processor: TextProcessor, text: str) -> np.ndarray:
        return processor.read(text)
