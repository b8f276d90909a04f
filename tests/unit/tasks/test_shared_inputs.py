"""No input lies in two parts of the data, whatever the task: duplicates are learnt from, chosen by or tested on."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from regard.data.corpus import Corpus, prepare
from regard.data.settings import DataSettings
from regard.errors import DataError
from regard.tasks import task_named

ALPHABET = "abcdefgh"
inputs = st.lists(st.integers(0, 11), min_size=6, max_size=60).filter(lambda found: len(set(found)) >= 4)
rules = st.sampled_from(["hash:0.5", "tail:0.5"])
shares = st.sampled_from([0.3, 0.5, 0.7])
often = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def words(number: int) -> str:
    return " ".join(ALPHABET[int(digit)] for digit in f"{number:03o}")


def write_labelled(folder: Path, numbers: list[int]) -> str:
    rows = [f"{words(number)}\t{'xy'[place % 2]}" for place, number in enumerate(numbers)]
    return _file(folder / "labelled.tsv", ["text\tlabel", *rows])


def write_pairs(folder: Path, numbers: list[int]) -> str:
    return _file(folder / "pairs.tsv", [f"{words(n)}\t{words(place)}" for place, n in enumerate(numbers)])


def write_tagged(folder: Path, numbers: list[int]) -> str:
    sentences = [
        "\n".join(f"{word}\t{'NV'[place % 2]}" for word in words(number).split()) + "\n"
        for place, number in enumerate(numbers)
    ]
    return _file(folder / "tagged.conll", sentences)


def write_captions(folder: Path, numbers: list[int]) -> str:
    pictures = np.stack([np.full((4, 4, 3), 20 * number, np.uint8) for number in numbers])
    np.savez(folder / "some.images.npz", images=pictures)
    _file(folder / "some.captions.tsv", [words(place) for place in range(len(numbers))])
    return str(folder / "some.images.npz")


def write_lines(folder: Path, numbers: list[int]) -> str:
    return _file(folder / "lines.txt", [words(number) for number in numbers])


def _file(path: Path, lines: list[str]) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


WRITERS = {"labelled": write_labelled, "pairs": write_pairs, "tagged": write_tagged, "captions": write_captions}
MORE: dict[str, dict[str, Any]] = {
    "captions": {"size": 4, "tokens": "chars"},
    "pairs": {"tokens": "words"},
    "masked": {"tokens": "bytes", "documents": "line"},
}


def parts_of(name: str, path: str, **chosen: Any) -> list[list[str]]:
    """The inputs of validation and of test."""
    kind = task_named(name)
    dataset = kind.ready(DataSettings(path=path, task=name, **(MORE.get(name, {}) | chosen)), 0)  # pyright: ignore[reportArgumentType]
    return [list(kind.keys(part)) for part in (dataset.examples, dataset.test)]


def apart(*parts: list[str]) -> None:
    assert all(parts)
    for one, other in itertools.combinations(parts, 2):
        assert not set(one) & set(other)


@pytest.mark.parametrize("name", WRITERS)
@given(numbers=inputs, rule=rules, share=shares)
@often
def test_validation_and_test_share_no_input_and_lose_none(name, numbers, rule, share, tmp_path):
    path = WRITERS[name](tmp_path, numbers)
    try:
        valid, test = parts_of(name, path, valid=rule, test=share)
    except DataError as error:
        assume(not any(reason in str(error) for reason in ("too few", "two classes", "does not occur")))
        raise
    apart(valid, test)
    (whole, _) = parts_of(name, path, valid=rule)
    assert sorted(valid + test) == sorted(whole)


@given(numbers=inputs, rule=rules, share=shares)
@often
def test_masked_rows_of_one_document_are_not_in_validation_and_test(numbers, rule, share, tmp_path):
    try:
        valid, test = parts_of("masked", write_lines(tmp_path, numbers), valid=rule, test=share)
    except DataError as error:
        assume("no two different" not in str(error))
        raise
    apart(valid, test)


@pytest.mark.parametrize("documents", ["line", "blank", "file"])
@given(numbers=inputs, rule=rules, share=shares)
@often
def test_the_three_parts_of_a_text_share_no_document(documents, numbers, rule, share, tmp_path):
    between = {"line": "\n", "blank": "\n\n"}
    path = tmp_path / f"text-{documents}"
    if documents == "file":
        path.mkdir(exist_ok=True)
        for old in path.iterdir():
            old.unlink()
        for place, number in enumerate(numbers):
            (path / f"{place:02}.txt").write_text(words(number))
    else:
        path.write_text(between[documents].join(map(words, numbers)) + "\n")
    try:
        corpus = prepare(str(path), valid=rule, test=share, documents=documents, tokens="bytes")
    except DataError as error:
        assume("no two different" not in str(error))
        raise
    found = [documents_of(corpus, part) for part in ("train", "valid", "test")]
    apart(*found)
    # A single document that is held out is cut; no other ever is.
    held = documents_of(prepare(str(path), valid=rule, documents=documents, tokens="bytes"), "valid")
    single = len(set(held)) == 1
    assert single or sorted(itertools.chain(*found)) == sorted(map(words, numbers))
    assert corpus.overlap == 0


def documents_of(corpus: Corpus, part: str) -> list[str]:
    shard = getattr(corpus, part)
    return [corpus.tokenizer.decode(shard.document(number)) for number in range(shard.n_documents)]


def test_a_series_is_validated_and_tested_on_targets_of_its_own():
    found = task_named("series").ready(
        DataSettings(path="world:electricity?train=30&valid=10", task="series", test=0.5), 0
    )
    steps = [{one.origin + step for one in part for step in range(24)} for part in (found.examples, found.test)]
    assert not steps[0] & steps[1]
    assert max(steps[0]) < min(steps[1])
    assert found.train.origins.max() + 24 <= min(steps[0])


@pytest.mark.parametrize("name", WRITERS)
def test_a_validation_file_that_shares_inputs_with_training_is_told(name, tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "valid").mkdir()
    path = WRITERS[name](tmp_path / "train", [0, 1, 2, 3, 4, 5])
    valid = WRITERS[name](tmp_path / "valid", [4, 6, 5, 5])
    chosen = DataSettings(path=path, valid=valid, task=name, **MORE.get(name, {}))
    assert task_named(name).prepare(chosen, 0).notes == (f"{valid}: 3 of 4 inputs are also in the training part",)
    assert task_named(name).prepare(DataSettings(path=path, task=name, **MORE.get(name, {})), 0).notes == ()


def test_a_validation_text_that_shares_documents_with_training_is_told(tmp_path):
    (tmp_path / "valid").mkdir()
    path, valid = write_lines(tmp_path, [0, 1, 2, 3, 4]), write_lines(tmp_path / "valid", [3, 7, 8])
    told = ("1 of 3 validation documents are also in the training part",)
    assert prepare(path, valid=valid, documents="line").notes == told
    assert prepare(path, documents="line").notes == ()
    masked = DataSettings(path=path, valid=valid, task="masked", documents="line", tokens="words")
    assert task_named("masked").prepare(masked, 0).notes == told
