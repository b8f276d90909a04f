"""What the tasks of labels share: a vocabulary with a trained `<unk>`, the list of classes, and what was never seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from regard.data.settings import DataSettings
from regard.data.tokenizer import Tokenizer, train_tokenizer
from regard.data.tokenizer.word import split
from regard.errors import DataError, UsageError, nearest
from regard.layers.spelling import spelling

SEEN_ENOUGH = 2
SPECIALS = 3


def words_seen_twice(texts: Sequence[str], vocab_size: int | None) -> Tokenizer:
    """Words that occur at least twice, so that `<unk>` is met, and learnt, in training."""
    counts = Counter(word for text in texts for word in split(text))
    often = sum(count >= SEEN_ENOUGH for count in counts.values())
    most = often + SPECIALS if often < len(counts) and often > 0 else None
    chosen = vocab_size if most is None or (vocab_size is not None and vocab_size < most) else most
    return train_tokenizer("words", texts, vocab_size=chosen)


def require_tokenizer_free(settings: DataSettings) -> None:
    """Refuse a choice of tokens where those of another run are used."""
    for name, free in (("tokens", "auto"), ("vocab_size", None)):
        if getattr(settings, name) != free:
            raise UsageError(f"data.{name}: the tokens are those of the run that is started from; leave it out")


def hidden_word(tokenizer: Tokenizer) -> int:
    """The token that stands for a hidden word."""
    return tokenizer.eos_id if tokenizer.unknown_id is None else tokenizer.unknown_id


class SpelledWords:
    """Words to ids and spellings, each word worked out once."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.known: dict[str, np.ndarray] = {}

    def __call__(self, words: Sequence[str]) -> np.ndarray:
        """(n, 1 + L)."""
        return np.stack([self._word(word) for word in words])

    def _word(self, word: str) -> np.ndarray:
        if word not in self.known:
            ids = self.tokenizer.encode(word)
            number = int(ids[0]) if len(ids) == 1 else self.tokenizer.unknown_id or 0
            self.known[word] = np.concatenate([[number], spelling(word)])
        return self.known[word]

    def end(self) -> np.ndarray:
        """`<eos>`, which has no letters, (1, 1 + L)."""
        return np.concatenate([[self.tokenizer.eos_id], spelling("")])[None]


def classes_of(labels: Iterable[str]) -> tuple[str, ...]:
    """The different labels, in order."""
    found = tuple(sorted(set(labels)))
    if len(found) < 2:
        told = f"only {found[0]!r}" if found else "none"
        raise DataError(f"a label has to tell apart at least two classes, found {told} in the training part")
    return found


def class_number(label: str, classes: Sequence[str], where: str, what: str = "label") -> int:
    """The place of a label among the classes; one that training never saw is refused where it stands."""
    if label not in classes:
        told = f"the {what} {label!r} does not occur in the training part{nearest(label, classes)}"
        raise DataError(f"{f'{where}: ' if where else ''}{told}; mend it, or train on data that has it")
    return classes.index(label)
