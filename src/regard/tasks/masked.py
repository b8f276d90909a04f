"""Masked text: some words of a text are hidden and told from what stands around them (N-N), as BERT learns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from regard.core.data_spec import DataSpec
from regard.core.device import device_of
from regard.core.model import Embeds, logits_of
from regard.data.account import Account
from regard.data.batch import NOT_COUNTED, Batch
from regard.data.corpus import Corpus, prepare
from regard.data.mask import FRAME, MaskedRows, Masking, cut
from regard.data.ragged import in_batches, ragged
from regard.data.rows import Rows
from regard.data.settings import DataSettings
from regard.data.shard import make_shard
from regard.data.text_source import joined_documents, text_stream
from regard.data.tokenizer import Tokenizer
from regard.data.worlds import PREFIX, text_world
from regard.errors import UsageError
from regard.evaluation.each import EachScore
from regard.tasks import register_task
from regard.tasks.dataset import Dataset, ExampleDataset
from regard.tasks.encoding import Encoded, encoded, reader_of
from regard.tasks.example_task import ExampleTask
from regard.tasks.filling import MASK, Gapped, Passage, details_of, fill, gapped, hidden, joined
from regard.tasks.kinds import MaskedKind
from regard.tasks.processor import Ids, Processor, files_of, ids_of, read_files
from regard.tasks.reading import Capabilities, Reading, fitted, labels_of, text_side, token_label
from regard.tasks.sentence_vector import embedded, require_head
from regard.tasks.verbs import Answer, Report
from regard.training.losses import context_of, model_loss
from regard.training.problem import Objective, TrainingProblem

if TYPE_CHECKING:
    from torch import nn

    from regard.decoding.text import TextOptions
    from regard.tasks.task import Trained
    from regard.training.settings import TrainSettings

SUBWORDS = "bpe"
HELD_OUT_SEED = 0  # held-out text is always hidden in the same way, so that runs can be compared
SHOWN = 160  # characters of a passage in a sample


@dataclass(frozen=True, eq=False)
class MaskedProcessor(Processor):
    """tokenizer: of the text, to which the mask is one token more if it has none. whole_words: how text is hidden."""

    tokenizer: Tokenizer
    whole_words: bool = False

    def files(self) -> dict[str, bytes]:
        return files_of(self.tokenizer, {"whole_words": self.whole_words})

    @property
    def spec(self) -> DataSpec:
        return DataSpec(vocab_size=self.tokenizer.vocab_size + (self.tokenizer.mask_id is None))

    @cached_property
    def masking(self) -> Masking:
        return Masking(self.tokenizer, self.whole_words)

    def framed(self, text: str | Ids) -> np.ndarray:
        """The ids of a text with an `<eos>` on each side, which tokens that are given may have already."""
        ids, start, end = ids_of(self.tokenizer, text), self.tokenizer.start_id, self.tokenizer.eos_id
        is_framed = isinstance(text, Ids) and len(text) > 1 and (text[0], text[-1]) == (start, end)
        return ids if is_framed else np.concatenate([[start], ids, [end]])


@register_task
@dataclass(frozen=True)
class MaskedText(MaskedKind, ExampleTask[MaskedProcessor]):
    """Filling in of what is hidden.

    length   tokens of a row, its frame included.
    samples  "windows" of a long text, "documents" one by one; "auto" asks the data.
    """

    length: int = 128
    samples: str = "auto"

    shape: ClassVar[str] = "N-N"
    metric: ClassVar[str] = "loss"
    lower_is_better: ClassVar[bool] = True
    unit: ClassVar[str] = "hidden tokens"
    model: ClassVar[str] = "bert"
    ladder: ClassVar[tuple[str, ...]] = ("cloze", "bert")
    example: ClassVar[type | None] = Passage
    world: ClassVar[str | None] = "world:stories"
    can: ClassVar[Capabilities] = Capabilities(tokens=True, mask=True)
    gives_encoder: ClassVar[bool] = True
    takes_ids: ClassVar[bool] = True
    of_samples: ClassVar[frozenset[str]] = frozenset({"samples"})

    def with_settings(self, training: TrainSettings, data: DataSettings) -> Self:
        if training.length <= FRAME:
            raise UsageError(f"train.length: {training.length} leaves no room for text; it is at least {FRAME + 1}")
        return replace(self, length=training.length, samples=training.samples)

    def prepare(
        self, settings: DataSettings, seed: int, processor: MaskedProcessor | None = None
    ) -> ExampleDataset[MaskedProcessor]:
        self.refuse_unused(settings)
        corpus = _corpus(settings, seed, processor)
        notes = (*corpus.notes, *(corpus.unknown_notes if processor else ()))
        processor = processor or MaskedProcessor(corpus.tokenizer, settings.whole_words)
        samples = corpus.samples if self.samples == "auto" else self.samples
        rows = partial(cut, length=self.length, samples=samples, start=processor.tokenizer.start_id)
        train = MaskedRows(rows(corpus.train, rolls=True), processor.masking, seed)
        valid = MaskedRows(rows(corpus.valid), processor.masking, HELD_OUT_SEED)
        apart = corpus.test and MaskedRows(rows(corpus.test), processor.masking, HELD_OUT_SEED)
        test = _examples(apart) if apart else ()
        told = replace(corpus.account or Account(data=corpus.name), task=self.name, target="hidden tokens")
        told_of: dict[str, Any] = {"notes": notes, "account": told}
        return ExampleDataset(corpus.name, processor, train, valid, _examples(valid), test=test, **told_of)

    def ready(
        self, settings: DataSettings, seed: int, processor: MaskedProcessor | None = None
    ) -> ExampleDataset[MaskedProcessor]:
        """Whole documents are set apart, before they are cut into rows: one and its duplicates are never in both."""
        return self.prepare(settings, seed, processor)

    def examples(self, data: str, settings: DataSettings, seed: int) -> Sequence[str]:
        if data.startswith(PREFIX):
            return text_world(data, seed).documents("valid")
        return joined_documents(text_stream(data, settings.documents, settings.texts))

    def load_processor(self, verified: Callable[[str], Path]) -> MaskedProcessor:
        tokenizer, told = read_files(verified, {"whole_words": bool})
        return MaskedProcessor(tokenizer, **told)

    def objective(self, settings: TrainSettings) -> Objective:
        return partial(model_loss, label_smoothing=settings.label_smoothing, smoothing=settings.smoothing)

    def fit(self, rows: Rows, model: nn.Module, settings: DataSettings) -> Rows:
        whole: Any = model
        if whole.max_length is not None and self.length > whole.max_length:
            raise UsageError(
                f"train.length: {self.length} is above the {whole.max_length} positions of the model; lower it, or "
                f"raise model.max_length"
            )
        return rows

    def training(
        self, dataset: Dataset[MaskedProcessor], model: nn.Module, settings: TrainSettings, data: DataSettings
    ) -> TrainingProblem:
        # The held-out loss is the score itself, on all rows instead of some.
        return replace(super().training(dataset, model, settings, data), metric=None)

    def answers(
        self, model: nn.Module, processor: MaskedProcessor, inputs: Sequence[Any], options: TextOptions | None = None
    ) -> Iterator[Answer]:
        if isinstance(model, Embeds):
            ids = fitted(
                ragged(processor.framed(one if isinstance(one, Ids) else str(one)) for one in inputs),
                self._limit(model),
            )
            yield from embedded(model, inputs, ids, processor.tokenizer.eos_id)
            return
        given = [self._gapped(processor, one, number) for number, one in enumerate(inputs)]
        ids = fitted(ragged(one.ids for one in given), self._limit(model))
        found = {}
        for rows in in_batches(ids.sizes.tolist()):
            found |= dict(zip(rows.tolist(), fill(model, processor.masking, ids, rows), strict=True))
        for number, one in enumerate(given):
            words = [processor.tokenizer.token_text(part.token) for part in found[number]]
            masks = [details_of(processor.tokenizer, part.top) for part in found[number]]
            yield Answer(joined(one.pieces, words), {"input": MASK.join(one.pieces), "masks": masks})

    def evaluate(
        self, model: nn.Module, processor: MaskedProcessor, examples: Sequence[Any], options: TextOptions | None = None
    ) -> Report:
        require_head(model)
        passages = [one for one in examples if isinstance(one, Passage)] or self._passages(processor, examples)
        right, nats, hidden = 0, np.zeros(len(passages)), np.zeros(len(passages))
        ids = ragged(one.ids for one in passages)
        numbers = np.array([one.number for one in passages])
        for rows in in_batches(ids.sizes.tolist()):
            tokens, lengths = ids.padded(rows, processor.tokenizer.eos_id)
            read, targets = processor.masking.hide(tokens.numpy(), lengths.numpy(), numbers[rows], HELD_OUT_SEED)
            batch = Batch(torch.from_numpy(read), torch.from_numpy(targets), lengths, [])
            nats[rows], hidden[rows], correct = _judged(model, batch)
            right += correct
        count = int(hidden.sum())
        loss = float(nats.sum()) / max(1, count)
        scores = {"accuracy": right / max(1, count), "loss": loss, "perplexity": math.exp(min(loss, 700.0))}
        scores |= {"hidden_tokens": count, "passages": len(passages)}
        return Report(scores, each=lambda: EachScore(nats, hidden))

    def encoded(self, model: nn.Module, processor: MaskedProcessor, texts: Sequence[Any]) -> Iterator[Encoded]:
        ids = fitted(ragged(map(processor.framed, texts)), self._limit(model))
        return encoded(model, reader_of(model), ids, before=1, after=1)

    def describe(self, example: Passage, answer: Answer) -> str:
        told = answer.details["input"]
        for mask in answer.details["masks"]:
            word = mask["token"].strip()
            told = told.replace(MASK, mask["token"].replace(word, f"[{word}]") if word else "[ ]", 1)
        return " ".join(told.split())[:SHOWN]

    def keys(self, examples: Sequence[Passage]) -> Iterable[str]:
        return (one.ids.tobytes().hex() for one in examples)

    def typed(self, example: Passage) -> str:
        words = example.text.split()[:8]
        words[len(words) // 2 : len(words) // 2 + 1] = [MASK]
        return " ".join(words)

    def openings_of_world(self, address: str, seed: int, processor: MaskedProcessor, count: int) -> list[str]:
        texts = text_world(address, seed).documents("valid", 1)
        return [self.typed(Passage(processor.framed(text), 0, processor.tokenizer)) for text in texts]

    def reading(self, run: Trained, given: str, target: str | None) -> Reading:
        processor: MaskedProcessor = run.processor
        ids, tokenizer, mask = self.ids(processor, given), processor.tokenizer, processor.masking.mask_id
        # A mask is no token of the tokenizer; as the end of a text it is no word that was typed either.
        is_mask = ids == mask
        plain = np.where(is_mask, tokenizer.eos_id, ids).tolist()
        told = labels_of(tokenizer, plain, given.replace(MASK, " "))
        labels = tuple(MASK if hidden else label for hidden, label in zip(is_mask, told, strict=True))
        tokens = torch.from_numpy(ids)[None].to(run.device)
        model: Any = run.model

        def forward(x: Tensor) -> Tensor:
            return logits_of(model, x)

        def named(token: int) -> str:
            return MASK if token == mask else token_label(tokenizer, token)

        side = text_side("text", tokenizer, ids.tolist(), labels)
        return Reading(model, (tokens,), (side,), forward, named, (), given, vectors=lambda x: model(x)[0])

    def ids(self, processor: MaskedProcessor, text: str) -> np.ndarray:
        return gapped(text, processor.masking).ids if MASK in text else processor.framed(text)

    def _gapped(self, processor: MaskedProcessor, one: Any, number: int) -> Gapped:
        if isinstance(one, Passage):
            return hidden(one, processor.masking, HELD_OUT_SEED)
        return gapped(str(one), processor.masking, number)

    def _limit(self, model: nn.Module) -> int | None:
        """Tokens that can be read: learned positions beyond those that training met say nothing."""
        whole: Any = model
        return None if whole.max_length is None else min(whole.max_length, self.length)

    def _passages(self, processor: MaskedProcessor, documents: Sequence[str]) -> list[Passage]:
        shard = make_shard(documents, processor.tokenizer)
        passages = cut(shard, self.length, "documents", start=processor.tokenizer.start_id)
        return _examples(MaskedRows(passages, processor.masking, HELD_OUT_SEED))


def _corpus(settings: DataSettings, seed: int, processor: MaskedProcessor | None) -> Corpus:
    """The text in tokens that are words or parts of words, unless it is a world, which has tokens of its own."""
    tokens = settings.tokens
    if tokens == "auto" and not settings.path.startswith(PREFIX):
        tokens = SUBWORDS
    own = (
        {"tokens": tokens, "vocab_size": settings.vocab_size}
        if processor is None
        else {"tokenizer": processor.tokenizer}
    )
    names = ("valid", "test", "documents", "cache", "sample", "labour")
    chosen = {name: getattr(settings, name) for name in names}
    chosen["how"] = settings.texts
    return prepare(settings.path, seed=seed, **own, **chosen)  # pyright: ignore[reportArgumentType]  # by name


def _examples(rows: MaskedRows) -> list[Passage]:
    tokenizer = rows.masking.tokenizer
    return [Passage(rows.passages[number], number, tokenizer) for number in range(len(rows.passages))]


@torch.no_grad()
def _judged(model: nn.Module, batch: Batch) -> tuple[np.ndarray, np.ndarray, int]:
    """The loss of the hidden tokens of each row of a batch, their number, and how many are told right in all."""
    whole: Any = model
    batch = batch.to(device_of(model))
    at = batch.targets != NOT_COUNTED
    logits = whole.head(whole.encode(batch.tokens, context_of(batch))[at]).float()
    targets = batch.targets[at]
    losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none").cpu().double().numpy()
    row = at.nonzero()[:, 0].cpu().numpy()
    nats, hidden = (np.bincount(row, weights, len(at)) for weights in (losses, None))
    return nats, hidden, int((logits.argmax(-1) == targets).sum())
