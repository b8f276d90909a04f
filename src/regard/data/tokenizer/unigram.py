"""Training of the unigram language model over pieces of words (Kudo 2018, section 3.2).

A word is a sequence of pieces drawn independently, so p(word) = sum over its segmentations of prod p(piece).
From many candidate pieces, expectation maximisation finds their probabilities and the least useful ones are dropped,
in turns, until the vocabulary fits. The library's own trainer breaks ties by the order of a hash table and so gives
another vocabulary in each run; this one gives the same for the same texts.

score     log p(piece); -inf for a dropped piece
alpha_j   log of the summed probability of all segmentations of the first j bytes of a word
beta_j    the same for the bytes from j on
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

LONGEST_PIECE = 16
LONGEST_WORD = 48
CANDIDATES_PER_PIECE = 16
KEPT_IN_A_ROUND = 0.75
# About the split that the library makes before it encodes; here it only says what is counted.
WORD = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def train_pieces(texts: Iterable[str], size: int) -> dict[bytes, float]:
    """Pieces and scores, best first: all 256 bytes, and at most size - 256 longer ones."""
    counts = Counter[bytes]()
    for text in texts:
        for word, count in Counter(WORD.findall(text)).items():
            spelled = word.encode()
            for start in range(0, len(spelled), LONGEST_WORD):
                counts[spelled[start : start + LONGEST_WORD]] += count
    pieces = [bytes((byte,)) for byte in range(256)] + _candidates(counts, CANDIDATES_PER_PIECE * (size - 256))
    words = sorted(counts)
    if words:
        lattice = _Lattice(words, pieces)
        spelling = _Lattice(pieces, pieces)
        scores = _pruned(lattice, spelling, np.array([counts[word] for word in words], dtype=float), size)
    else:
        scores = np.zeros(256)
    kept = [(round(float(score), 6), piece) for score, piece in zip(scores, pieces, strict=True) if score > -np.inf]
    return {piece: score for score, piece in sorted(kept, key=lambda pair: (-pair[0], pair[1]))}


def _candidates(counts: Counter[bytes], most: int) -> list[bytes]:
    """The substrings that cover most of the text and occur more than once."""
    found = Counter[bytes]()
    for word, count in counts.items():
        for start in range(len(word)):
            for stop in range(start + 2, min(start + LONGEST_PIECE, len(word)) + 1):
                found[word[start:stop]] += count
    repeated = [piece for piece, count in found.items() if count > 1]
    return sorted(repeated, key=lambda piece: (-found[piece] * len(piece), piece))[:most]


def _pruned(lattice: _Lattice, spelling: _Lattice, counts: np.ndarray, size: int) -> np.ndarray:
    """Scores after rounds of estimation and dropping. Bytes are never dropped, so that any text can be spelled."""
    # Every byte starts as likely as a piece seen once, the others as their use in a uniform model will tell.
    scores = np.full(lattice.n_pieces, -np.log(lattice.n_pieces))
    while True:
        scores = _estimated(lattice.expected(scores, counts))
        uses = lattice.expected(scores, counts)
        scores = _estimated(uses)
        alive = np.flatnonzero(scores[256:] > -np.inf) + 256
        room = size - 256
        if len(alive) <= room:
            return scores
        # What the text would lose without the piece: its uses, each spelled by the best of the other pieces.
        loss = uses[alive] * (scores[alive] - spelling.best_of_others(scores)[alive])
        order = alive[np.argsort(-loss, kind="stable")]
        scores[order[max(room, int(KEPT_IN_A_ROUND * len(alive))) :]] = -np.inf


def _estimated(uses: np.ndarray) -> np.ndarray:
    uses = uses.copy()
    # Less than half a use is noise; a byte keeps a small chance because texts to come may need it.
    uses[256:][uses[256:] < 0.5] = 0.0
    uses[:256] = np.maximum(uses[:256], 0.01)
    with np.errstate(divide="ignore"):
        return np.log(uses / uses.sum())


class _Lattice:
    """All segmentations of many strings at once, those of one length side by side.

    For strings of one length, ids[w, j, m] is the piece that ends at byte j and is m + 1 long; n_pieces: there is none.
    """

    def __init__(self, strings: Sequence[bytes], pieces: Sequence[bytes]) -> None:
        self.n_pieces = len(pieces)
        id_of = {piece: i for i, piece in enumerate(pieces)}
        by_length: dict[int, list[int]] = {}
        for row, string in enumerate(strings):
            by_length.setdefault(len(string), []).append(row)
        self.groups: list[tuple[np.ndarray, np.ndarray]] = []
        for length, rows in sorted(by_length.items()):
            width = min(length, LONGEST_PIECE)
            ids = np.full((len(rows), length, width), self.n_pieces, dtype=np.int32)
            for w, row in enumerate(rows):
                string = strings[row]
                for j in range(length):
                    for m in range(min(j + 1, width)):
                        ids[w, j, m] = id_of.get(string[j - m : j + 1], self.n_pieces)
            self.groups.append((np.array(rows), ids))

    def expected(self, scores: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """How often each piece is used, expected over the segmentations of all strings."""
        uses = np.zeros(self.n_pieces + 1)
        extended = np.append(scores, -np.inf)
        for rows, ids in self.groups:
            score = extended[ids]
            alpha = _forward(score, np.logaddexp.reduce)
            beta = _backward(score)
            for j in range(ids.shape[1]):
                for m in range(min(j + 1, ids.shape[2])):
                    log_use = alpha[:, j - m] + score[:, j, m] + beta[:, j + 1] - alpha[:, -1]
                    uses += np.bincount(ids[:, j, m], np.exp(log_use) * counts[rows], self.n_pieces + 1)
        return uses[:-1]

    def best_of_others(self, scores: np.ndarray) -> np.ndarray:
        """For strings that are the pieces themselves: the score of the best spelling of each by shorter ones."""
        best = np.zeros(self.n_pieces)
        extended = np.append(scores, -np.inf)
        for rows, ids in self.groups:
            score = extended[ids]
            if ids.shape[1] > 1:
                score[:, -1, -1] = -np.inf
            best[rows] = _forward(score, np.maximum.reduce)[:, -1]
        return best


def _forward(score: np.ndarray, together: Callable[..., np.ndarray]) -> np.ndarray:
    n, length, width = score.shape
    alpha = np.zeros((n, length + 1))
    for j in range(length):
        terms = [alpha[:, j - m] + score[:, j, m] for m in range(min(j + 1, width))]
        alpha[:, j + 1] = together(terms)
    return alpha


def _backward(score: np.ndarray) -> np.ndarray:
    n, length, width = score.shape
    beta = np.zeros((n, length + 1))
    for i in range(length - 1, -1, -1):
        terms = [beta[:, i + m + 1] + score[:, i + m, m] for m in range(min(length - i, width))]
        beta[:, i] = np.logaddexp.reduce(terms)
    return beta
