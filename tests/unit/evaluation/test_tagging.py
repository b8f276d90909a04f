from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import DataError
from regard.evaluation.classification import ClassScores
from regard.evaluation.tagging import TagSpan, is_bio, span_scores, spans, spans_of_each, tagging_report

TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]
SENTENCES = st.lists(st.sampled_from(TAGS), max_size=8)


def spans_by_trying(tags: list[str]) -> set[TagSpan]:
    """Every stretch of words that is a span by its definition: one type, a beginning, and nothing to lengthen it."""
    found = set()
    for first, stop in itertools.combinations(range(len(tags) + 1), 2):
        name = tags[first][2:]
        inside = tags[first + 1 : stop]
        before = tags[first - 1][2:] if first else ""
        begins = tags[first][:1] == "B" or (tags[first][:1] == "I" and before != name)
        ends = stop == len(tags) or tags[stop] != f"I-{name}"
        if begins and ends and all(tag == f"I-{name}" for tag in inside):
            found.add(TagSpan(name, first, stop))
    return found


@given(SENTENCES)
def test_spans_are_those_of_the_definition(tags: list[str]) -> None:
    found = spans(tags)
    assert set(found) == spans_by_trying(tags)
    assert found == sorted(set(found), key=lambda span: span.first)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-PER I-PER O B-LOC", [("PER", 0, 2), ("LOC", 3, 4)]),
        ("I-PER I-PER O", [("PER", 0, 2)]),
        ("O I-PER I-LOC I-LOC", [("PER", 1, 2), ("LOC", 2, 4)]),
        ("B-PER B-PER I-PER", [("PER", 0, 1), ("PER", 1, 3)]),
        ("B-creative-work I-creative-work", [("creative-work", 0, 2)]),
        ("O O", []),
        ("", []),
    ],
)
def test_spans_by_hand(tags: str, expected: list[tuple[str, int, int]]) -> None:
    assert [(span.type, span.first, span.stop) for span in spans(tags.split())] == expected


def test_a_span_is_right_only_as_a_whole() -> None:
    truth = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG", "O"]]
    guesses = [["B-PER", "O", "O", "B-LOC"], ["O", "B-PER", "O"]]
    assert span_scores(truth, guesses) == ClassScores(1 / 3, 1 / 3, 1 / 3, 3)
    report = tagging_report(truth, guesses)
    assert (report.accuracy, report.tokens, report.spans) == (5 / 7, 7, 3)
    assert (report.span_precision, report.span_recall, report.span_f1) == (1 / 3, 1 / 3, 1 / 3)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.data())
def test_span_f1_is_the_harmonic_mean_over_all_sentences(lengths: list[int], data: st.DataObject) -> None:
    def drawn() -> list[list[str]]:
        return [data.draw(st.lists(st.sampled_from(TAGS), min_size=n, max_size=n)) for n in lengths]

    truth, guesses = drawn(), drawn()
    scores = span_scores(truth, guesses)
    true = {(row, span) for row, tags in enumerate(truth) for span in spans_by_trying(tags)}
    found = {(row, span) for row, tags in enumerate(guesses) for span in spans_by_trying(tags)}
    precision = len(true & found) / len(found) if found else 0
    recall = len(true & found) / len(true) if true else 0
    harmonic = 2 * precision * recall / (precision + recall) if precision + recall else 0
    assert (scores.precision, scores.recall, scores.support) == (precision, recall, len(true))
    assert scores.f1 == pytest.approx(harmonic)


def test_words_that_were_not_seen_in_training_have_their_own_accuracy() -> None:
    words = [["the", "blorg", "runs"], ["a", "zib"]]
    truth = [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
    guesses = [["DET", "NOUN", "NOUN"], ["DET", "VERB"]]
    report = tagging_report(truth, guesses, words, {"the", "a", "runs"})
    assert report.to_dict() == {"accuracy": 3 / 5, "tokens": 5, "unseen_accuracy": 0.5, "unseen_tokens": 2}
    known = tagging_report(truth, guesses, words, {"the", "a", "runs", "blorg", "zib"})
    assert known.to_dict() == {"accuracy": 3 / 5, "tokens": 5, "unseen_tokens": 0}


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (["O", "B-PER", "I-PER"], True),
        (["B-NP", "I-NP"], True),
        (["O"], False),
        ([], False),
        (["NOUN", "VERB", "O"], False),
        (["O", "B-PER", "E-PER"], False),
        (["O", "B-"], False),
        (["B", "I", "O"], False),
    ],
)
def test_bio_is_told_from_the_tags(tags: list[str], expected: bool) -> None:
    assert is_bio(tags) is expected


def test_spans_are_scored_when_only_the_guesses_have_any() -> None:
    report = tagging_report([["O", "O"]], [["O", "B-PER"]])
    assert (report.span_precision, report.span_recall, report.span_f1, report.spans) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("truth", "guesses", "words", "message"),
    [
        ([["A"]], [], None, "0 sentences of predicted tags for 1"),
        ([["A"], ["A", "B"]], [["A"], ["A"]], None, "sentence 2 has 2 true tags and 1 predicted tags"),
        ([["A"]], [["A"]], [["a", "b"]], "sentence 1 has 1 true tags and 2 words"),
        ([[]], [[]], None, "no tag to score"),
    ],
)
def test_sentences_that_do_not_go_together_are_refused(truth, guesses, words, message) -> None:
    with pytest.raises(DataError, match=message):
        tagging_report(truth, guesses, words, set())


@pytest.mark.data
def test_real_entities_are_bio_and_a_tagger_without_any_finds_none(real_data: Path) -> None:
    text = gzip.decompress((real_data / "wnut17" / "dev.conll.gz").read_bytes()).decode()
    blocks = [block.splitlines() for block in text.split("\n\n") if block.strip()]
    truth = [[line.split("\t")[1].strip() for line in block] for block in blocks]
    assert is_bio(tag for tags in truth for tag in tags)
    report = tagging_report(truth, [["O"] * len(tags) for tags in truth])
    starts = sum(tag.startswith("B-") for tags in truth for tag in tags)
    assert (report.spans, report.span_f1) == (starts, 0)
    assert report.accuracy == sum(tag == "O" for tags in truth for tag in tags) / report.tokens


@given(st.lists(st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), max_size=6), min_size=1, max_size=6))
def test_the_sentences_tell_the_f1_of_all_and_of_any_that_are_drawn(sentences: list[list[tuple[str, str]]]) -> None:
    truth, told = ([[pair[side] for pair in one] for one in sentences] for side in (0, 1))
    each = spans_of_each(truth, told)
    assert each.score == pytest.approx(span_scores(truth, told).f1)
    drawn = [0, 0, *range(len(truth))]
    scores = span_scores([truth[row] for row in drawn], [told[row] for row in drawn])
    assert each.values[drawn].sum() / each.weights[drawn].sum() == pytest.approx(scores.f1)


def test_where_tags_mark_spans_that_is_so_of_sentences_without_one() -> None:
    assert tagging_report([["O"]], [["O"]]).span_f1 is None
    assert tagging_report([["O"]], [["O"]], bio=True).span_f1 == 0
