"""Tagged text: words are read and a tag is told for each (N-N), as in parts of speech and named entities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from regard.core.progress import watched
from regard.data.batch import NOT_COUNTED
from regard.data.conll_lines import read_words
from regard.data.example import Tagged, account_of, column
from regard.data.in_memory import described
from regard.data.ragged import in_batches
from regard.data.rows import Rows, TagRows
from regard.data.settings import DataSettings
from regard.data.tagged import TOKENS, words_of
from regard.data.tokenizer import Tokenizer
from regard.data.unlabelled import Role, Unlabelled
from regard.data.worlds import PREFIX, world_of
from regard.errors import InputError, UsageError
from regard.evaluation.tagging import spans_of_each, tagging_report, tags_of_each
from regard.models.ensemble import ChainEnsembleConfig, EnsembleConfig
from regard.tasks import register_task
from regard.tasks.dataset import ExampleDataset
from regard.tasks.encoding import Encoded, encoded, picked, reader_of
from regard.tasks.example_task import ExampleTask
from regard.tasks.kinds import TaggedKind
from regard.tasks.processor import read_files
from regard.tasks.reading import Capabilities, Reading, Side, class_reading, fitted, labels_of, text_side
from regard.tasks.role import role_of
from regard.tasks.tag_decoding import Leans, chance_rows, keeps_bio, lean_for, log_chances_at, span_chain, tag_rows
from regard.tasks.verbs import Answer, Report
from regard.tasks.vocabulary import (
    PieceProcessor,
    SpelledWords,
    TagProcessor,
    classes_of,
    hidden_word,
    require_tokenizer_free,
    words_seen_twice,
)
from regard.tasks.word_forms import counted, forms_met_twice
from regard.training.losses import model_loss
from regard.training.problem import Objective

if TYPE_CHECKING:
    from torch import nn

    from regard.core.config import Config
    from regard.decoding.text import TextOptions
    from regard.tasks.pretrained import Start
    from regard.tasks.task import Trained
    from regard.training.settings import TrainSettings

T = TypeVar("T")


@register_task
@dataclass(frozen=True)
class TaggedText(TaggedKind, ExampleTask[TagProcessor]):
    """A tag for every word.

    tokenizer  of the run that a fine-tuned one starts from; None: words and their spelling.
    last       of such a one: the last piece of a word tells its tag.
    """

    tokenizer: Tokenizer | None = None
    last: bool = False

    shape: ClassVar[str] = "N-N"
    metric: ClassVar[str] = "accuracy"
    unit: ClassVar[str] = "words"
    model: ClassVar[str] = "tagger"
    headed: ClassVar[str | None] = "tagger"
    ladder: ClassVar[tuple[str, ...]] = (
        *("most_frequent", "hmm", "crf"),
        *("fnn", "rnn", "lstm", "transformer", "mamba"),
    )
    example: ClassVar[type | None] = Tagged
    world: ClassVar[str | None] = "world:tags"
    can: ClassVar[Capabilities] = Capabilities(tokens=True, classes=True)
    takes_encoder: ClassVar[bool] = True
    of_labels: ClassVar[frozenset[str]] = frozenset({"class_weights"})

    def starting_from(self, start: Start) -> Self:
        return replace(self, tokenizer=start.tokenizer, last=start.causal)

    def prepare(
        self, settings: DataSettings, seed: int, processor: TagProcessor | None = None
    ) -> ExampleDataset[TagProcessor]:
        self.refuse_unused(settings)
        best, train, valid, notes = self._parts(settings, seed)
        processor = processor or self._processor(train, settings)
        name = Path(settings.path).name
        rows = processor.rows(train), processor.rows(valid)
        account = account_of(train, tags=len(processor.classes))
        return ExampleDataset(name, processor, *rows, valid, best, notes, training=train, account=account)

    def load_processor(self, verified: Callable[[str], Path]) -> TagProcessor:
        names = tuple[str, ...]
        tokenizer, told = read_files(verified, {"classes": names, "bio": bool, "last": bool, "forms": names})
        return PieceProcessor(tokenizer, **told) if "last" in told else TagProcessor(tokenizer, **told)

    def objective(self, settings: TrainSettings) -> Objective:
        return partial(model_loss, label_smoothing=settings.label_smoothing, smoothing=settings.smoothing)

    def numbered_classes(self, dataset: ExampleDataset[TagProcessor]) -> tuple[Sequence[str], np.ndarray]:
        assert isinstance(dataset.train, TagRows)
        tags = dataset.train.tags.values
        return dataset.processor.classes, tags[tags != NOT_COUNTED]

    def hidden(self, processor: TagProcessor) -> int:
        return hidden_word(processor.tokenizer)

    def fit(self, rows: Rows, model: nn.Module, settings: DataSettings) -> Rows:
        assert isinstance(rows, TagRows)
        whole: Any = model
        # A word that is cut off has no tag, so that nothing is.
        return TagRows(fitted(rows.text, whole.max_length), rows.tags)

    def combined(self, config: Config, count: int) -> Config:
        return (ChainEnsembleConfig if getattr(config, "head", None) == "crf" else EnsembleConfig)(config, count)

    def answers(
        self, model: nn.Module, processor: TagProcessor, inputs: Sequence[Any], options: TextOptions | None = None
    ) -> Iterator[Answer]:
        texts = [_words(one) for one in inputs]
        allowed = span_chain(model, processor.classes) if processor.bio else None
        tags = dict(_of_each(model, processor, texts, partial(tag_rows, allowed=allowed)))
        for index, words in enumerate(texts):
            pairs = list(zip(words, (processor.classes[tag] for tag in tags.get(index, [])), strict=True))
            line = " ".join(f"{word}/{tag}" for word, tag in pairs)
            found = [tag for _, tag in pairs]
            yield Answer(line, {"words": list(words), "tags": found}, found)

    def classes(self, processor: TagProcessor) -> Sequence[str]:
        return processor.classes

    def probabilities(self, model: nn.Module, processor: TagProcessor, inputs: Sequence[Any]) -> np.ndarray:
        """An array (words, C) for each sentence, as the model has them: neither the rule of BIO nor a lean is in it."""
        texts = [_words(one) for one in inputs]
        found = np.empty(len(texts), object)
        found[:] = [np.zeros((0, len(processor.classes)))] * len(texts)
        for index, chances in _of_each(model, processor, texts, chance_rows):
            found[index] = chances
        return found

    def encoded(self, model: nn.Module, processor: TagProcessor, texts: Sequence[Any]) -> Iterator[Encoded]:
        """A vector for each word."""
        whole: Any = model
        words = [_words(one) for one in texts]
        for number, some in enumerate(words):
            if not some:
                raise InputError(number, "has no words, and so no vectors; leave it out")
        ids = fitted(processor.inputs(model, words), whole.max_length)
        for found in encoded(model, reader_of(model), ids):
            yield picked(found, [processor.places(words[row]) for row in found.rows])

    def given(self, one: Any, where: str = "") -> Any:
        """A sentence, with spaces between its words, or the words themselves."""
        if not isinstance(one, list | tuple):
            return super().given(one, where)
        wrong = [word for word in one if not (isinstance(word, str) and word.strip())]
        if wrong or not one:
            found = described(wrong[0]) if wrong else "no words"
            raise UsageError(f"{where}expected a sentence, or its words in a list, found {found}")
        return tuple(one)

    def of_cell(self, cell: str) -> Any:
        return words_of(cell)

    def evaluate(
        self, model: nn.Module, processor: TagProcessor, examples: Sequence[Tagged], options: TextOptions | None = None
    ) -> Report:
        processor.tags(examples)
        found = [answer.details["tags"] for answer in self.answers(model, processor, examples)]
        seen = {word for one in examples for word in one.words if processor.knows(word)}
        words = [one.words for one in examples]
        truth = [one.tags for one in examples]
        told = tagging_report(truth, found, words, seen, bio=processor.bio).to_dict()
        of_each = spans_of_each if processor.bio else tags_of_each
        return Report(told, each=lambda: of_each(truth, found))

    def judged_by(self, processor: TagProcessor) -> str:
        return "span_f1" if processor.bio else self.metric

    def judge(self, model: nn.Module, dataset: ExampleDataset[TagProcessor]) -> float:
        """Accuracy, or F1 of spans; how readily a model tells these is set by it, for the answers from here on."""
        scores = self.evaluate(model, dataset.processor, self.judged_examples(dataset)).scores
        score = float(scores.get(self.judged_by(dataset.processor), 0.0))
        if scores.get("spans") and isinstance(model, Leans):
            model.lean.fill_(lean_for(score))
        return score

    def is_right(self, example: Tagged, answer: Answer) -> bool:
        return list(example.tags) == list(answer.details["tags"])

    def said(self, example: Tagged, answer: Answer) -> str:
        """The tags that are not the example's own, each with its word."""
        told = zip(example.words, example.tags, answer.details["tags"], strict=True)
        return ", ".join(f"{word}: {own}" for word, tag, own in told if own != tag)

    def truth(self, example: Tagged) -> str:
        return " ".join(example.tags)

    def describe(self, example: Tagged, answer: Answer) -> str:
        wrong = [
            f"{word}: {tag}"
            for word, tag, told in zip(example.words, example.tags, answer.details["tags"], strict=True)
            if tag != told
        ]
        return f"{answer.text} {'(right: ' + ', '.join(wrong) + ')' if wrong else '='}"

    def typed(self, example: Tagged) -> str:
        return " ".join(example.words)

    def unlabelled(self, run: Trained, data: str, settings: DataSettings) -> Unlabelled:
        return read_words(data, self.input_role(run, settings), settings.tag, settings.choices)

    def input_role(self, run: Trained, settings: DataSettings) -> Role:
        return role_of(run, settings, "text", TOKENS, role="words")

    def answer_rows(self, answer: Answer) -> list[dict[str, Any]]:
        return [{"answer": answer.details["tags"]}]

    def reading(self, run: Trained, given: str, target: str | None) -> Reading:
        processor: TagProcessor = run.processor
        words = tuple(given.split())
        if not words:
            raise UsageError("there are no words to tag")
        ids = processor.inputs(run.model, [words])[0]
        side = Side("text", words, tuple(range(len(words))))
        if ids.ndim == 1:
            labels = tuple(labels_of(processor.tokenizer, ids.tolist(), " ".join(words)))
            side = text_side("text", processor.tokenizer, ids.tolist(), labels)
        places = processor.places(words) if ids.ndim == 1 else None
        found = class_reading(run.model, ids, side, processor.classes, given, run.device)
        return replace(found, forward=lambda x: log_chances_at(run.model, x, places), about={"words": words})

    def ids(self, processor: TagProcessor, text: str) -> np.ndarray:
        words = tuple(text.split())
        return processor.read(words) if words else np.zeros(0, np.int64)

    def _parts(
        self, settings: DataSettings, seed: int
    ) -> tuple[dict[str, float], Sequence[Tagged], Sequence[Tagged], tuple[str, ...]]:
        """Best scores, sentences to train on, those held out, and what is to be said of them."""
        if settings.path.startswith(PREFIX):
            world = world_of(settings.path, self.name, seed)
            return world.best, world.examples("train"), world.examples("valid"), ()
        found = self.read(settings.path, settings)
        return {}, *self.held_out(found, settings.valid, lambda path: self.read(path, settings))

    def _processor(self, train: Sequence[Tagged], settings: DataSettings) -> TagProcessor:
        tags = column(train, "tags")
        classes = classes_of(chain.from_iterable(tags))
        bio = settings.bio and keeps_bio(tags)
        if self.tokenizer is not None:
            require_tokenizer_free(settings)
            return PieceProcessor(self.tokenizer, classes, self.last, bio=bio)
        words = column(train, "words")
        tokenizer = words_seen_twice(
            lambda: map(" ".join, watched(words, "learning words", "sentences")), settings.vocab_size
        )
        forms = forms_met_twice(counted(words), SpelledWords(tokenizer).token_of)
        return TagProcessor(tokenizer, classes, bio=bio, forms=forms)


def _of_each(
    model: nn.Module, processor: TagProcessor, texts: Sequence[tuple[str, ...]], of: Callable[..., list[T]]
) -> Iterator[tuple[int, T]]:
    """What `of` makes of the words of each sentence that has some, with the number of the sentence, in any order."""
    whole: Any = model
    spelt = [index for index, words in enumerate(texts) if words]
    try:
        ids = fitted(processor.inputs(model, (texts[index] for index in spelt)), whole.max_length)
    except InputError as error:
        raise InputError(spelt[error.number], error.reason) from None
    for rows in in_batches(ids.sizes.tolist()):
        places = [processor.places(texts[spelt[row]]) for row in rows]
        yield from zip((spelt[row] for row in rows), of(model, ids, rows, places), strict=True)


def _words(one: Any) -> tuple[str, ...]:
    return one.words if isinstance(one, Tagged) else one if isinstance(one, tuple) else tuple(str(one).split())
