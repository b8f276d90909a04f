"""Vectors by the ids of tokens: of these tokens, and not of those that their text would have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from look_run import TOKENIZER, class_run, masked_run, pair_run, tag_run, text_run
from regard.core import registry
from regard.data.tokenizer import train_tokenizer
from regard.errors import UsageError
from regard.run.run import Run
from regard.serving.engine.side import embed
from regard.tasks.text import TextProcessor

RUNS: list[Callable[[], Any]] = [
    lambda: text_run("lstm"),
    lambda: text_run("gpt"),
    masked_run,
    class_run,
    lambda: pair_run("transformer"),
]


def vectors(run: Any, *inputs: Any) -> tuple[np.ndarray, int]:
    found = embed(run, {"input": list(inputs)})
    return np.array(found["vectors"]), found["tokens"]


@pytest.mark.parametrize("made", RUNS)
def test_ids_of_a_text_have_its_vector_and_its_count(made: Callable[[], Any]) -> None:
    run, texts = made(), ["the small dog", "a cat"]
    found, count = vectors(run, *texts)
    ids = [TOKENIZER.encode(text).tolist() for text in texts]
    assert count == 5
    for inputs in (ids, [texts[0], ids[1]]):
        given, same = vectors(run, *inputs)
        np.testing.assert_allclose(given, found, atol=1e-6)
        assert same == 5


def test_ids_that_a_text_would_not_have_are_embedded_as_they_are() -> None:
    """Three letters of a word that is one token."""
    tokenizer = train_tokenizer("bpe", ["the the the the cat sat on the mat\n"] * 9, vocab_size=300)
    of_words = text_run("lstm")
    model: Any = registry.build("lstm", vocab_size=tokenizer.vocab_size, size="tiny").eval()
    run = Run(Path("run"), of_words.config, of_words.task, model, TextProcessor(tokenizer))
    letters = [int(tokenizer.encode(letter)[-1]) for letter in "the"]
    assert len(tokenizer.encode("the")) < 3
    (one,), (three,) = vectors(run, "the")[0], vectors(run, letters)[0]
    assert not np.allclose(one, three)
    assert vectors(run, letters)[1] == 3
    np.testing.assert_allclose(vectors(run, [tokenizer.start_id, *letters])[0][0], three, atol=1e-6)


@pytest.mark.parametrize("ids", [[TOKENIZER.vocab_size], [0, 1 << 30]])
def test_unknown_ids_are_refused(ids: list[int]) -> None:
    with pytest.raises(UsageError, match=f"and its tokenizer 0 to {TOKENIZER.vocab_size - 1}"):
        vectors(text_run("lstm"), ids)


def test_what_reads_words_takes_no_ids() -> None:
    with pytest.raises(UsageError, match="takes no tokens by their ids"):
        vectors(tag_run(), [1, 2])
