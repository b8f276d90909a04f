from __future__ import annotations

import gzip
import json
import math
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from regard.errors import DataError, UsageError
from regard.evaluation.translation import LengthBucket, bleu_by_length, translation_scores

WORDS = ["a", "man", "rides", "his", "red", "bike", "along", "the", "river", "while", "two", "dogs", "play"]


def ngrams(parts: list[str] | str, n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(parts[i : i + n]) for i in range(len(parts) - n + 1))


def bleu_by_hand(hypotheses: list[str], references: list[str]) -> float:
    """Papineni et al. 2002 on words between spaces; for text without punctuation and without a precision of 0."""
    logs = []
    for n in range(1, 5):
        hits, total = 0, 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            some, others = ngrams(hypothesis.split(), n), ngrams(reference.split(), n)
            hits += (some & others).total()
            total += some.total()
        logs.append(math.log(hits / total))
    length, wanted = (sum(len(line.split()) for line in lines) for lines in (hypotheses, references))
    return 100 * min(1, math.exp(1 - wanted / length)) * math.exp(sum(logs) / 4)


def chrf_by_hand(hypotheses: list[str], references: list[str]) -> float:
    """Popovic 2015: precision and recall averaged over n = 1 .. 6, then F2; spaces do not count."""
    precisions, recalls = [], []
    for n in range(1, 7):
        hits, some, others = 0, 0, 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            left, right = ngrams(hypothesis.replace(" ", ""), n), ngrams(reference.replace(" ", ""), n)
            hits, some, others = hits + (left & right).total(), some + left.total(), others + right.total()
        precisions.append(hits / some)
        recalls.append(hits / others)
    precision, recall = sum(precisions) / 6, sum(recalls) / 6
    return 100 * 5 * precision * recall / (4 * precision + recall)


def noisy_pairs(count: int, seed: int) -> tuple[list[str], list[str]]:
    chance = random.Random(seed)
    references = [" ".join(chance.choices(WORDS, k=chance.randint(6, 25))) for _ in range(count)]
    changed = [[word for word in line.split() if chance.random() > 0.1] for line in references]
    return [" ".join(line) for line in changed], references


def test_bleu_and_chrf_are_those_of_their_definitions() -> None:
    for seed in range(5):
        hypotheses, references = noisy_pairs(20, seed)
        scores = translation_scores(hypotheses, references)
        assert scores.bleu == pytest.approx(bleu_by_hand(hypotheses, references), abs=1e-9)
        assert scores.chrf == pytest.approx(chrf_by_hand(hypotheses, references), abs=1e-9)
        assert scores.bleu < 99


def test_exact_match_is_cased_and_forgives_white_space_at_the_ends() -> None:
    scores = translation_scores(["A dog runs fast", "a cat ", "a Cat", ""], ["A dog runs fast", "a cat", "a cat", "x"])
    assert scores.exact_match == 0.5
    assert (scores.sentences, scores.empty) == (4, 1)


def test_perfect_and_empty_translations_are_the_ends_of_the_scale() -> None:
    _, references = noisy_pairs(5, 0)
    perfect = translation_scores(references, references)
    assert (perfect.bleu, perfect.chrf, perfect.exact_match) == (pytest.approx(100), pytest.approx(100), 1)
    nothing = translation_scores([""] * 5, references)
    assert (nothing.bleu, nothing.chrf, nothing.exact_match, nothing.empty) == (0, 0, 0, 5)


def test_the_signatures_say_what_was_computed() -> None:
    report = translation_scores(["a b c d"], ["a b c d"]).to_dict()
    for part in ("nrefs:1", "case:mixed", "tok:13a", "smooth:exp", "version:"):
        assert part in report["bleu_signature"]
    for part in ("nc:6", "nw:0", "version:"):
        assert part in report["chrf_signature"]
    assert "by_length" not in report


def test_each_bucket_has_the_bleu_of_its_own_pairs() -> None:
    hypotheses, references = noisy_pairs(60, 1)
    sources = ["x " * (row % 30 + 1) for row in range(60)]
    report = translation_scores(hypotheses, references, sources)
    assert report.by_length is not None
    assert list(report.by_length) == ["1-10", "11-20", "21-30"]
    for first, bucket in zip((0, 10, 20), report.by_length.values(), strict=True):
        rows = [row for row in range(60) if first <= row % 30 < first + 10]
        expected = bleu_by_hand([hypotheses[row] for row in rows], [references[row] for row in rows])
        assert bucket.count == 20
        assert bucket.bleu == pytest.approx(expected, abs=1e-9)
    assert json.loads(json.dumps(report.to_dict()))["by_length"]["1-10"]["count"] == 20


def test_every_source_has_a_bucket_and_edges_can_be_chosen() -> None:
    text = ["a b c d e"] * 6
    sources = ["", "one", "x " * 10, "x " * 11, "x " * 50, "x " * 51]
    counts = {name: bucket.count for name, bucket in bleu_by_length(text, text, sources).items()}
    assert counts == {"0": 1, "1-10": 2, "11-20": 1, "41-50": 1, "51+": 1}
    assert bleu_by_length(text, text, sources, edges=(1,)) == {
        "0-1": LengthBucket(2, pytest.approx(100)),
        "2+": LengthBucket(4, pytest.approx(100)),
    }


@pytest.mark.parametrize(
    ("hypotheses", "references", "sources", "message"),
    [
        ([], [], None, "no translation to score"),
        (["a"], ["a", "b"], None, "1 hypotheses for 2 references"),
        (["a"], ["a"], [], "0 sources for 1 hypotheses"),
    ],
)
def test_lists_that_do_not_go_together_are_refused(hypotheses, references, sources, message) -> None:
    with pytest.raises(DataError, match=message):
        translation_scores(hypotheses, references, sources)


def test_without_sacrebleu_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "sacrebleu"] or ["sacrebleu"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r"pip install 'regard\[tasks\]'") as caught:
        translation_scores(["a"], ["a"])
    assert "\n" not in str(caught.value)


@pytest.mark.data
def test_a_source_copied_as_its_translation_scores_next_to_nothing(real_data: Path) -> None:
    folder = real_data / "multi30k"
    english, german = (
        gzip.decompress((folder / f"val.{side}.gz").read_bytes()).decode().splitlines() for side in ("en", "de")
    )
    copied = translation_scores(english, german, english)
    assert copied.bleu < 5 < copied.chrf < 30
    assert copied.by_length is not None
    assert sum(bucket.count for bucket in copied.by_length.values()) == copied.sentences == 1014
