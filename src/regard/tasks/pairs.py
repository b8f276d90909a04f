"""Pairs: a text is read and another one is written (N-M), as in translation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from regard.core.bidirectional import reverse
from regard.core.config import Config
from regard.core.data_spec import DataSpec
from regard.core.device import device_of
from regard.core.progress import watched
from regard.data.example import Pair, account_of, column
from regard.data.pairs import NAMES
from regard.data.ragged import in_batches, ragged
from regard.data.rows import PairRows, Rows
from regard.data.settings import DataSettings
from regard.data.tokenizer import Tokenizer, from_dict, train_tokenizer
from regard.data.unlabelled import Role
from regard.data.worlds import PREFIX, world_of
from regard.data.worlds.base import ExampleWorld
from regard.decoding.scored_text import ScoredText
from regard.decoding.text import TextOptions
from regard.errors import UsageError
from regard.evaluation.translation import alignment_accuracy, chrf_of_each, require_metrics, translation_scores
from regard.models.writer_ensemble import WriterEnsembleConfig
from regard.tasks import register_task
from regard.tasks.dataset import ExampleDataset
from regard.tasks.encoding import Encoded, encoded
from regard.tasks.example_task import ExampleTask
from regard.tasks.kinds import PairsKind
from regard.tasks.pair_files import sides_of
from regard.tasks.pair_score import scored_pair
from regard.tasks.processor import PROCESSOR, Ids, Processor, files_of, ids_of, read_files
from regard.tasks.reading import Capabilities, Reading, cut, fitted, labels_of, text_side, written_reading
from regard.tasks.role import role_of
from regard.tasks.verbs import Answer, Report
from regard.tasks.vocabulary import hidden_word
from regard.tasks.writing import SourceBatch, SourceCompletion, Written, attention_of, write
from regard.training.losses import model_loss
from regard.training.problem import Objective

if TYPE_CHECKING:
    from torch import Tensor, nn

    from regard.tasks.task import Trained
    from regard.training.settings import TrainSettings

GREEDY = TextOptions(temperature=0.0)
SUBWORDS = "bpe"


@dataclass(frozen=True, eq=False)
class PairProcessor(Processor):
    """source, target: the tokenizers of the two sides; the same one where they share a vocabulary."""

    source: Tokenizer
    target: Tokenizer
    truncate: bool = False

    @property
    def shared(self) -> bool:
        return self.source is self.target

    def files(self) -> dict[str, bytes]:
        source = None if self.shared else self.source.to_dict()
        return files_of(self.target, {"source": source, "truncate": self.truncate})

    @property
    def spec(self) -> DataSpec:
        return DataSpec(self.target.vocab_size, None if self.shared else self.source.vocab_size)

    def read(self, text: str | Ids) -> np.ndarray:
        """The ids of a source with its `<eos>`, so that no source is empty."""
        return np.array(self.closed(ids_of(self.source, text)))

    def closed(self, ids: Iterable[int]) -> list[int]:
        """The tokens of a source between what stands before and after every one."""
        return [*self.source.opening[1:], *ids, self.source.eos_id]

    def write(self, text: str) -> np.ndarray:
        """The ids of a target, between its start and its `<eos>`."""
        return np.array([*self.target.opening[1:], *self.target.encode(text)], dtype=np.int64)

    def rows(self, pairs: Sequence[Pair]) -> PairRows:
        sources, targets = (watched(column(pairs, side), "tokenising", "texts") for side in ("source", "target"))
        read, write = ragged(map(self.read, sources)), ragged(map(self.write, targets))
        return PairRows(read, write, self.target.eos_id, self.target.start_id)


@register_task
class Pairs(PairsKind, ExampleTask[PairProcessor]):
    """Translation and everything that looks like it."""

    shape: ClassVar[str] = "N-M"
    metric: ClassVar[str] = "chrf"
    model: ClassVar[str] = "transformer"
    ladder: ClassVar[tuple[str, ...]] = ("nearest", "ibm1", "seq2seq", "bahdanau", "gnmt", "transformer")
    example: ClassVar[type | None] = Pair
    world: ClassVar[str | None] = "world:translation"
    can: ClassVar[Capabilities] = Capabilities(tokens=True, next=True, source=True)
    writes: ClassVar[bool] = True
    echoes: ClassVar[bool] = True
    takes_ids: ClassVar[bool] = True

    def prepare(
        self, settings: DataSettings, seed: int, processor: PairProcessor | None = None
    ) -> ExampleDataset[PairProcessor]:
        self.refuse_unused(settings)
        require_metrics()
        world, train, valid, notes = self._parts(settings, seed)
        processor = processor or replace(self._processor(train, settings, world), truncate=settings.truncate)
        name = f"{PREFIX}{world.name}" if world else Path(settings.path).name
        best = world.best if world else {}
        rows = processor.rows(train), processor.rows(valid)
        account = account_of(train)
        return ExampleDataset(name, processor, *rows, valid, best, notes, training=train, account=account)

    def load_processor(self, verified: Callable[[str], Path]) -> PairProcessor:
        target, told = read_files(verified, {"source": Any, "truncate": bool})
        source = target if told["source"] is None else from_dict(told["source"], str(verified(PROCESSOR)))
        return PairProcessor(source, target, told["truncate"])

    def objective(self, settings: TrainSettings) -> Objective:
        return partial(model_loss, label_smoothing=settings.label_smoothing, smoothing=settings.smoothing)

    def combined(self, config: Config, count: int) -> Config:
        return WriterEnsembleConfig(config, count)

    def hidden(self, processor: PairProcessor) -> int:
        return hidden_word(processor.target)

    def fit(self, rows: Rows, model: nn.Module, settings: DataSettings) -> Rows:
        assert isinstance(rows, PairRows)
        whole: Any = model
        source = cut(rows.source, whole.max_source_length, settings.truncate, "the source of pair")
        limit = None if whole.max_length is None else whole.max_length - 1
        return replace(rows, source=source, target=cut(rows.target, limit, settings.truncate, "the target of pair"))

    def answers(
        self, model: nn.Module, processor: PairProcessor, inputs: Sequence[Any], options: TextOptions | None = None
    ) -> Iterator[Answer]:
        texts = [one.source if isinstance(one, Pair) else str(one) for one in inputs]
        for text, written in zip(texts, self.written(model, processor, texts, options or GREEDY), strict=True):
            details: dict[str, Any] = {"source": text, "log_prob": written.log_prob, "score": written.score}
            if written.others:
                names = ("text", "log_prob", "score")
                details["others"] = [{name: getattr(other, name) for name in names} for other in written.others]
            yield Answer(written.text, details)

    def completion(self, model: nn.Module, processor: PairProcessor) -> SourceCompletion:
        whole: Any = model
        return SourceCompletion(whole, processor.target, processor.source, processor.closed)

    def score(self, model: nn.Module, processor: PairProcessor, text: str) -> ScoredText:
        return scored_pair(model, processor, text)

    def encoded(self, model: nn.Module, processor: PairProcessor, texts: Sequence[Any]) -> Iterator[Encoded]:
        """The vectors of the words that are read, which what is written looks at."""
        whole: Any = model
        ids = fitted(ragged(map(processor.read, texts)), whole.max_source_length, processor.truncate)

        def read(tokens: Tensor, lengths: Tensor) -> Tensor:
            memory = whole.encode(tokens, lengths)[0]
            return reverse(memory, lengths) if whole.reads_backward else memory

        return encoded(model, read, ids, after=1)

    def evaluate(
        self, model: nn.Module, processor: PairProcessor, examples: Sequence[Pair], options: TextOptions | None = None
    ) -> Report:
        sources = [pair.source for pair in examples]
        by_word = processor.source.kind == processor.target.kind == "words"
        aligned = [pair for pair in examples if pair.links is not None and by_word]
        written = self.written(model, processor, sources, options or GREEDY)
        texts, targets = [one.text for one in written], [pair.target for pair in examples]
        found = translation_scores(texts, targets, sources).to_dict()
        buckets = found.pop("by_length", None) or {}
        tables = {"by_length": [{"words": name, **bucket} for name, bucket in buckets.items()]}
        accuracy = self._alignment(model, processor, aligned) if aligned else None
        found |= {} if accuracy is None else {"alignment_accuracy": accuracy}
        return Report(found, tables, each=partial(chrf_of_each, texts, targets))

    def is_right(self, example: Pair, answer: Answer) -> bool:
        return answer.text == example.target

    def truth(self, example: Pair) -> str:
        return example.target

    def describe(self, example: Pair, answer: Answer) -> str:
        mark = "=" if self.is_right(example, answer) else f"(right: {example.target})"
        return f"{example.source} -> {answer.text} {mark}"

    def typed(self, example: Pair) -> str:
        return example.source

    def input_role(self, run: Trained, settings: DataSettings) -> Role:
        return role_of(run, settings, "source", tuple(pair[settings.reverse] for pair in NAMES))

    def reading(self, run: Trained, given: str, target: str | None) -> Reading:
        processor: PairProcessor = run.processor
        ids = processor.read(given)
        labels = tuple(labels_of(processor.source, ids.tolist(), given))
        side = text_side("source", processor.source, ids.tolist(), labels)
        if target is None:
            written = self.written(run.model, processor, [given], GREEDY)[0].tokens
        else:
            written = processor.target.encode(target).tolist()
        source = torch.from_numpy(ids)[None].to(run.device)
        typed, model = target or "", run.model
        return written_reading(model, source, side, processor.target, written, given, typed, processor.source)

    def ids(self, processor: PairProcessor, text: str) -> np.ndarray:
        return processor.read(text)

    def target_ids(self, processor: PairProcessor, text: str) -> np.ndarray:
        return processor.target.encode(text)

    def written(
        self,
        model: nn.Module,
        processor: PairProcessor,
        texts: Sequence[str],
        options: TextOptions,
        attention: bool = False,
    ) -> list[Written]:
        """What the model writes for each source, in the order of the sources."""
        whole: Any = model
        longest = whole.max_source_length
        ids = ragged(map(processor.read, texts))
        ids = fitted(ids, longest, processor.truncate)
        device = device_of(model)
        found: dict[int, Written] = {}
        for rows in in_batches(ids.sizes.tolist()):
            source, lengths = ids.padded(rows, 0)
            batch = SourceBatch(source.to(device), lengths.to(device), rows.tolist())
            results = write(whole, processor.target, batch, options, attention=attention)
            found |= dict(zip(rows.tolist(), results, strict=True))
        return [found[number] for number in range(len(texts))]

    def _parts(
        self, settings: DataSettings, seed: int
    ) -> tuple[ExampleWorld[Pair] | None, Sequence[Pair], Sequence[Pair], tuple[str, ...]]:
        """The world, if it is one, the pairs to train on, those held out, and what is to be said of them."""
        if settings.path.startswith(PREFIX):
            if settings.target is not None:
                raise UsageError(f"data.target: {settings.path} has both sides; leave {settings.target} out")
            world = world_of(settings.path, self.name, seed)
            return world, world.examples("train"), world.examples("valid"), ()
        pairs = sides_of(settings.path, settings)
        notes = (pairs.note,) if pairs.note else ()
        train, valid, told = self.held_out(pairs, settings.valid, lambda path: sides_of(path, settings))
        return None, train, valid, notes + told

    def _processor(
        self, train: Sequence[Pair], settings: DataSettings, world: ExampleWorld[Pair] | None
    ) -> PairProcessor:
        """Tokenizers of the training part, one for both sides where the vocabulary is shared."""
        kind = settings.tokens
        if kind == "auto":
            kind = world.tokens if world else SUBWORDS
        sources, targets = column(train, "source"), column(train, "target")
        if settings.shared:
            tokenizer = train_tokenizer(kind, chain(sources, targets), vocab_size=settings.vocab_size)
            return PairProcessor(tokenizer, tokenizer)
        source, target = (train_tokenizer(kind, texts, vocab_size=settings.vocab_size) for texts in (sources, targets))
        return PairProcessor(source, target)

    def _alignment(self, model: nn.Module, processor: PairProcessor, pairs: Sequence[Pair]) -> float | None:
        """How often the source word that a right target word looks at most is one that it comes from."""
        whole: Any = model
        device = device_of(model)
        sources = ragged(processor.read(pair.source) for pair in pairs)
        weights, links = [], []
        for rows in in_batches(sources.sizes.tolist()):
            source, lengths = sources.padded(rows, 0)
            texts = [[*processor.target.encode(pairs[row].target).tolist(), processor.target.eos_id] for row in rows]
            given = whole.given(source.to(device), lengths.to(device))
            found = attention_of(given, texts, range(len(rows)), processor.target.opening)
            if found is None:
                return None
            # Of words alone: the end of a text is none.
            weights += [one[:-1, :-1].numpy() for one in found]
            links += [pairs[row].links or () for row in rows]
        return alignment_accuracy(weights, links)
