"""ARPA files of ours in KenLM: the same log10 scores, token by token."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.tokenizer import Tokenizer
from regard.data.tokenizer.character import CharacterTokenizer
from regard.data.tokenizer.word import WordTokenizer
from regard.interop.arpa_read import read_arpa
from regard.interop.arpa_write import token_names, write_arpa
from regard.models.ngram import NgramConfig, NgramModel

kenlm = pytest.importorskip("kenlm")

SMOOTHINGS = ("mle", "witten_bell", "absolute", "kneser_ney", "modified_kneser_ney")


def text(n_words: int, n_lines: int, seed: int) -> list[str]:
    """Lines of random words, some much more frequent than others."""
    chance = np.random.default_rng(seed)
    return [" ".join(f"w{int(x)}" for x in chance.random(chance.integers(1, 9)) ** 2 * n_words) for _ in range(n_lines)]


def encoded(tokenizer: Tokenizer, lines: list[str]) -> np.ndarray:
    return np.concatenate([np.append(tokenizer.encode(line), tokenizer.eos_id) for line in lines])


def ours(model: NgramModel, ids: np.ndarray) -> np.ndarray:
    tokens = torch.from_numpy(np.concatenate([[model.config.end], ids]))[None]
    found, _ = model.log_probs(tokens, model.init_state(1))
    return np.maximum(found[0].numpy() / np.log(10), -99.0)


def theirs(path: Path, lines: list[str]) -> np.ndarray:
    model = kenlm.Model(str(path))
    return np.maximum([score for line in lines for score, _, _ in model.full_scores(line)], -99.0)


@pytest.mark.parametrize("prune", [(), (0, 0, 1)])
@pytest.mark.parametrize("interpolate", [True, False])
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_kenlm_scores_a_written_model_as_we_do(
    smoothing: Any, interpolate: bool, prune: tuple[int, ...], tmp_path: Path
) -> None:
    # The words from w20 on never occur in what is counted: they are unknown.
    known = text(20, 400, seed=0)
    tokenizer = WordTokenizer.train(known, None)
    config = NgramConfig(tokenizer.vocab_size, 4, smoothing, interpolate, prune=prune)
    model = config.build()
    model.estimate(model.count(encoded(tokenizer, known)))
    path = tmp_path / "model.arpa"
    write_arpa(model, tokenizer, path)
    for lines in (text(20, 300, seed=1), text(30, 300, seed=2)):
        ids = encoded(tokenizer, lines)
        np.testing.assert_allclose(theirs(path, lines), ours(model, ids), rtol=0, atol=1e-5)
        np.testing.assert_allclose(theirs(path, lines), ours(read_arpa(path)[0], ids), rtol=0, atol=1e-5)


def test_kenlm_scores_characters_by_their_names(tmp_path: Path) -> None:
    known, fresh = text(20, 100, seed=0), text(20, 100, seed=1)
    tokenizer = CharacterTokenizer.train(known, None)
    model = NgramConfig(tokenizer.vocab_size, 3).build()
    model.estimate(model.count(encoded(tokenizer, known)))
    path = tmp_path / "model.arpa"
    write_arpa(model, tokenizer, path)
    names = token_names(tokenizer)
    lines = [" ".join(names[i] for i in tokenizer.encode(line)) for line in fresh]
    np.testing.assert_allclose(theirs(path, lines), ours(model, encoded(tokenizer, fresh)), rtol=0, atol=1e-5)


def test_kenlm_agrees_where_pruning_removed_what_longer_ngrams_end_with(tmp_path: Path) -> None:
    known, asked = text(20, 400, seed=0), text(30, 300, seed=1)
    tokenizer = WordTokenizer.train(known, None)
    model = NgramConfig(tokenizer.vocab_size, 3).build()
    model.estimate(model.count(encoded(tokenizer, known)))
    path = tmp_path / "model.arpa"
    write_arpa(model, tokenizer, path)
    content = path.read_text()
    assert " w0 </s>\n" in content
    pairs = len(model.table.level(2))
    kept = [line for line in content.split("\n") if line.split("\t")[1:2] not in (["w0 </s>"], ["w1 </s>"])]
    path.write_text("\n".join(kept).replace(f"ngram 2={pairs}", f"ngram 2={pairs - 2}"))
    changed = read_arpa(path)[0]
    ids = encoded(tokenizer, asked)
    assert abs(ours(changed, ids) - ours(model, ids)).max() > 0.01
    np.testing.assert_allclose(theirs(path, asked), ours(changed, ids), rtol=0, atol=1e-5)


@pytest.mark.data
@pytest.mark.slow
def test_kenlm_scores_a_model_of_wikitext_2_as_we_do(real_data: Path, tmp_path: Path) -> None:
    train, valid = (
        [line.strip(" ") for line in gzip.decompress(file.read_bytes()).decode().split("\n")]
        for file in (real_data / "wikitext2" / "train.txt.gz", real_data / "wikitext2" / "valid.txt.gz")
    )
    tokenizer = WordTokenizer.train(train, None)
    model = NgramConfig(tokenizer.vocab_size, 3).build()
    model.estimate(model.count(encoded(tokenizer, train)))
    path = tmp_path / "model.arpa"
    write_arpa(model, tokenizer, path)
    ids = encoded(tokenizer, valid)
    assert len(ids) > 200_000
    wanted = theirs(path, valid)
    np.testing.assert_allclose(wanted, ours(model, ids), rtol=0, atol=1e-5)
    np.testing.assert_allclose(wanted, ours(read_arpa(path)[0], ids), rtol=0, atol=1e-5)
