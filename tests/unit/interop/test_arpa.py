"""ARPA files: what is written is read back as it was, hand-worked scores, and every damage named with its line."""

from __future__ import annotations

import errno
import gzip
import itertools
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.tokenizer import Tokenizer
from regard.data.tokenizer.character import ByteTokenizer, CharacterTokenizer
from regard.data.tokenizer.word import WordTokenizer
from regard.errors import DataError, ResourceError, UsageError
from regard.interop import arpa_lines
from regard.interop.arpa_read import read_arpa
from regard.interop.arpa_write import token_names, write_arpa
from regard.models.ngram import NgramConfig, NgramModel
from regard.storage import disk

SMOOTHINGS = ("mle", "witten_bell", "absolute", "kneser_ney", "modified_kneser_ney")
STRANGE = ["naïve", "\u00a0x", "a\u2028b", "\x85", "日本", "e\u0301", "🦆", "▁", "#", "\\data\\", "a\vb", "a\tb", "\f"]
STRANGE += ["<0x0A>", "<s>", "</s>", "<UNK>", "<eos>", "ngram", "1e3", "-0.5", "\x00", "\ufeff"]

# As SRILM writes: no <unk>, no back-off weight where nothing follows.
SRILM = """
\\data\\
ngram 1=5
ngram 2=3
ngram 3=1

\\1-grams:
-0.7\t</s>
-99\t<s>\t-0.3
-0.6\ta\t-0.2
-0.9\tb
-1.1\tc\t-0.1

\\2-grams:
-0.4\t<s> a\t-0.15
-0.5\ta b
-0.25\tb </s>

\\3-grams:
-0.35\t<s> a b

\\end\\
"""


def words(n: int) -> WordTokenizer:
    return WordTokenizer([f"w{i}" for i in range(n)], spaced_lines=False, has_lines=False)


def sentences(tokenizer: Tokenizer, n_tokens: int, seed: int = 0) -> np.ndarray:
    """Random tokens, some much more frequent than others; a tenth are ends of sentences, the last one too."""
    chance = np.random.default_rng(seed)
    ids = (chance.random(n_tokens) ** 2 * (tokenizer.eos_id - 1)).astype(np.int64)
    ids[chance.random(n_tokens) < 0.1] = tokenizer.eos_id
    ids[-1] = tokenizer.eos_id
    return ids


def fitted(tokenizer: Tokenizer, n_tokens: int = 1500, **settings: Any) -> NgramModel:
    model = NgramConfig(tokenizer.vocab_size, **settings).build()
    model.estimate(model.count(sentences(tokenizer, n_tokens)))
    return model


def log10(model: NgramModel, ids: np.ndarray) -> np.ndarray:
    """log10 p of tokens from the beginning of a sentence on. A file has nothing below -99 for 0."""
    tokens = torch.from_numpy(np.concatenate([[model.config.end], ids]))[None]
    found, _ = model.log_probs(tokens, model.init_state(1))
    return np.maximum(found[0].numpy() / np.log(10), -99.0)


def scores(path: Path, text: str) -> list[float]:
    """log10 p of the words of a sentence and of its end."""
    model, tokenizer = read_arpa(path)
    tokens = torch.from_numpy(np.concatenate([[tokenizer.eos_id], tokenizer.encode(text), [tokenizer.eos_id]]))[None]
    found, _ = model.log_probs(tokens, model.init_state(1))
    return (found[0] / np.log(10)).tolist()


def written(folder: Path, text: str, name: str = "model.arpa") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("prune", [(), (0, 0, 1)])
@pytest.mark.parametrize("interpolate", [True, False])
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_a_written_model_is_read_with_the_same_scores(
    smoothing: Any, interpolate: bool, prune: tuple[int, ...], tmp_path: Path
) -> None:
    tokenizer = words(12)
    model = fitted(tokenizer, order=4, smoothing=smoothing, interpolate=interpolate, prune=prune)
    write_arpa(model, tokenizer, tmp_path / "model.arpa")
    again, read = read_arpa(tmp_path / "model.arpa")
    assert read.words == tokenizer.words
    assert again.config == NgramConfig(tokenizer.vocab_size, 4, smoothing="given", interpolate=False)
    assert [len(again.table.level(k)) for k in range(1, 5)] == [len(model.table.level(k)) for k in range(1, 5)]
    ids = sentences(tokenizer, 2000, seed=1)
    ids[ids == 5] = 0
    np.testing.assert_allclose(log10(again, ids), log10(model, ids), rtol=0, atol=1e-5)


def test_a_model_that_was_read_is_written_as_it_was(tmp_path: Path) -> None:
    """A trigram whose last two words are no bigram: what entropy pruning leaves."""
    text = SRILM.replace("ngram 2=3", "ngram 2=2").replace("-0.5\ta b\n", "")
    model, tokenizer = read_arpa(written(tmp_path, text))
    write_arpa(model, tokenizer, tmp_path / "again.arpa")
    assert scores(tmp_path / "again.arpa", "a b c a") == pytest.approx(scores(tmp_path / "model.arpa", "a b c a"))


def test_scores_of_a_file_in_the_form_of_srilm_by_hand(tmp_path: Path) -> None:
    path = written(tmp_path, SRILM)
    # p(a | <s>), p(b | <s> a), then "a b" weighs nothing: p(</s> | b)
    assert scores(path, "a b") == pytest.approx([-0.4, -0.35, -0.25])
    # p(c | <s> a) = weight of "<s> a", weight of "a", p(c); "a c" is unknown: weight of "c", p(</s>)
    assert scores(path, "a c") == pytest.approx([-0.4, -0.15 - 0.2 - 1.1, -0.1 - 0.7])
    # an unknown word where the file has no <unk>: weight of <s>, then -100
    assert scores(path, "x") == pytest.approx([-0.3 - 100, -0.7])


def test_blanks_line_ends_and_text_around_the_model_change_nothing(tmp_path: Path) -> None:
    plain = scores(written(tmp_path, SRILM), "a b c a")
    forms = {
        "spaces.arpa": SRILM.replace("\t", "   "),
        "windows.arpa": SRILM.replace("\n", "\r\n"),
        "mark.arpa": "\ufeff" + SRILM.strip(),
        "around.arpa": "made by hand\n" + SRILM + "classes\n\\more\\\n",
        "gaps.arpa": SRILM.replace("\n", "\n\n"),
        "spaced.arpa": SRILM.replace("=", " = "),
        "zero.arpa": SRILM.replace("-99", "0").replace("-0.9\tb", "-0.9\tb\t0"),
        "capital.arpa": SRILM.replace("ngram 1=5", "ngram 1=6").replace("\\2-g", "-9\t<UNK>\n\n\\2-g"),
    }
    for name, text in forms.items():
        assert scores(written(tmp_path, text, name), "a b c a") == pytest.approx(plain), name
    assert scores(tmp_path / "capital.arpa", "x")[0] == pytest.approx(-9.3)


def test_ngrams_of_no_sentence_are_left_out(tmp_path: Path) -> None:
    text = SRILM.replace("ngram 2=3", "ngram 2=5").replace("\\3-", "-1\t<s> <s>\t-7\n-1\t</s> a\n\n\\3-")
    text = text.replace("ngram 3=1", "ngram 3=2").replace("\\end", "-1\t<s> <s> a\n\n\\end")
    plain = scores(written(tmp_path, SRILM), "a b c a")
    assert scores(written(tmp_path, text, "more.arpa"), "a b c a") == pytest.approx(plain)


def test_blocks_of_any_size_give_the_same_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = words(30)
    model = fitted(tokenizer, order=3)
    write_arpa(model, tokenizer, tmp_path / "model.arpa")
    whole = read_arpa(tmp_path / "model.arpa")[0].state_dict()
    monkeypatch.setattr(arpa_lines, "BLOCK", 50)
    parts = read_arpa(tmp_path / "model.arpa")[0].state_dict()
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[key], parts[key]) for key in whole)


def test_more_than_65536_words_keep_their_order(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    n = 70_000
    pairs = sorted({(int(a), int(b)) for a, b in chance.integers(n, size=(3000, 2))}, key=lambda _: chance.random())
    logs = -1 - chance.random(len(pairs)).round(6)
    lines = ["\\data\\", f"ngram 1={n + 2}", f"ngram 2={len(pairs)}", "\\1-grams:", "-99 <s>", "-2 </s>"]
    lines += [f"-5 w{i}" for i in range(n)] + ["\\2-grams:"]
    lines += [f"{log:.6f} w{a} w{b}" for log, (a, b) in zip(logs, pairs, strict=True)] + ["\\end\\"]
    model, _ = read_arpa(written(tmp_path, "\n".join(lines)))
    found, _ = model.log_probs(torch.tensor(pairs) + 1, model.init_state(len(pairs)))
    np.testing.assert_allclose(found[:, 0].numpy() / np.log(10), logs, atol=1e-9)


def test_unusual_words_stay_themselves(tmp_path: Path) -> None:
    tokenizer = WordTokenizer(STRANGE, spaced_lines=False, has_lines=True)
    model = fitted(tokenizer, order=3)
    write_arpa(model, tokenizer, tmp_path / "model.arpa")
    again, read = read_arpa(tmp_path / "model.arpa")
    ids = sentences(tokenizer, 500, seed=1)
    np.testing.assert_allclose(log10(again, ids), log10(model, ids), rtol=0, atol=1e-5)
    changed = {"a\tb": "a<0x09>b", "a\vb": "a<0x0B>b", "\f": "<0x0C>", "\x00": "<0x00>"}
    changed |= {"<s>": "<0x3C><0x73><0x3E>", "</s>": "<0x3C><0x2F><0x73><0x3E>"}
    changed |= {"<UNK>": "<0x3C><0x55><0x4E><0x4B><0x3E>", "<0x0A>": "<0x3C><0x30><0x78><0x30><0x41><0x3E>"}
    assert read.words == ["<unk>", "<0x0A>", *(changed.get(word, word) for word in STRANGE)]


def test_words_may_hold_what_only_other_programs_take_for_blanks(tmp_path: Path) -> None:
    _, tokenizer = read_arpa(written(tmp_path, SRILM.replace("c", "a\vb\fc\u00a0")))
    assert tokenizer.words == ["<unk>", "a", "b", "a\vb\fc\u00a0"]


def test_tokens_that_are_no_words_get_readable_names() -> None:
    names = token_names(ByteTokenizer())
    assert [names[byte] for byte in b"a \n\xe2"] == ["a", "▁", "<0x0A>", "<0xE2>"]
    names = token_names(CharacterTokenizer("".join(sorted("Aé \n▁\u00a0")), spelled=True))
    # Each character once as itself and once, as a byte, by its number.
    assert names[:6] == ["<0x0A>", "▁", "A", "<0xC2><0xA0>", "é", "<0xE2><0x96><0x81>"]
    assert names[6 + 0x41] == "<0x41>"
    assert len(set(names)) == len(names)
    assert not any(name.split() != [name] for name in names)


def test_a_model_of_characters_can_be_written(tmp_path: Path) -> None:
    tokenizer = CharacterTokenizer("\n abc")
    model = fitted(tokenizer, order=3)
    write_arpa(model, tokenizer, tmp_path / "model.arpa")
    again, read = read_arpa(tmp_path / "model.arpa")
    assert read.words == ["<unk>", "<0x0A>", "▁", "a", "b", "c"]
    ids = sentences(tokenizer, 500, seed=1)
    # What is unknown comes first there, and before the end here.
    there = np.array([1, 2, 3, 4, 5, 0, 6])
    np.testing.assert_allclose(log10(again, there[ids]), log10(model, ids), rtol=0, atol=1e-5)


@pytest.mark.parametrize("order", [1, 2, 6])
def test_orders_without_ngrams_are_left_out(order: int, tmp_path: Path) -> None:
    tokenizer = words(3)
    model = NgramConfig(tokenizer.vocab_size, order, smoothing="witten_bell").build()
    ids = np.array([1, 4, 2, 1, 4])
    model.estimate(model.count(ids))
    write_arpa(model, tokenizer, tmp_path / "model.arpa")
    again, _ = read_arpa(tmp_path / "model.arpa")
    assert again.config.order == min(order, 4)
    np.testing.assert_allclose(log10(again, ids), log10(model, ids), rtol=0, atol=1e-5)


def test_weights_above_ngrams_that_have_none_after_them_are_kept(tmp_path: Path) -> None:
    text = SRILM.replace("ngram 3=1", "ngram 3=0").replace("-0.35\t<s> a b\n", "")
    model, tokenizer = read_arpa(written(tmp_path, text))
    write_arpa(model, tokenizer, tmp_path / "again.arpa")
    lines = (tmp_path / "again.arpa").read_text().split("\n")
    assert {"ngram 3=0", "-0.4\t<s> a\t-0.15", "-0.5\ta b\t0"} <= set(lines)
    assert read_arpa(tmp_path / "again.arpa")[0].config.order == 3


@pytest.mark.parametrize(("suffix", "opened"), [(".gz", gzip.open), (".xz", lzma.open)])
def test_compressed_files_hold_the_same_text(suffix: str, opened: Any, tmp_path: Path) -> None:
    tokenizer = words(5)
    model = fitted(tokenizer, order=2)
    paths = [tmp_path / "model.arpa", tmp_path / f"model.arpa{suffix}"]
    for path in paths:
        write_arpa(model, tokenizer, path)
    with opened(paths[1]) as stream:
        assert stream.read() == paths[0].read_bytes()
    ids = sentences(tokenizer, 100, seed=1)
    first, second = (log10(read_arpa(path)[0], ids) for path in paths)
    np.testing.assert_array_equal(first, second)


def test_add_k_and_a_foreign_tokenizer_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.arpa"
    with pytest.raises(UsageError, match="add_k never leaves its order"):
        write_arpa(fitted(words(5), order=2, smoothing="add_k"), words(5), path)
    with pytest.raises(UsageError, match="7 tokens and the tokenizer 8"):
        write_arpa(fitted(words(5), order=2), words(6), path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("operation", ["create", "write", "sync", "replace"])
def test_a_failed_write_leaves_the_old_file(operation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = written(tmp_path, "old")
    monkeypatch.setattr(disk, operation, fail)
    with pytest.raises(ResourceError, match=r"model\.arpa: cannot write: No space left"):
        write_arpa(fitted(words(5), order=2), words(5), path)
    assert [entry.read_text() for entry in tmp_path.iterdir()] == ["old"]


# What is replaced by what, the line that the message names, and what it says.
DAMAGES = {
    "no data": ("\\data\\", "", 1, r"no \\data\\: it begins with 'ngram 1=5'"),
    "no counts": ("ngram 1=5\nngram 2=3\nngram 3=1\n", "", 4, "declares nothing"),
    "counts from 2": ("ngram 1=5\n", "", 3, "expected 'ngram 1=COUNT', found 'ngram 2=3'"),
    "counts out of order": ("ngram 2=3\nngram 3=1", "ngram 3=1\nngram 2=3", 4, "expected 'ngram 2=COUNT'"),
    "no count": ("ngram 2=3", "ngram 2=many", 4, "expected 'ngram 2=COUNT', found 'ngram 2=many'"),
    "too many declared": ("ngram 2=3", "ngram 2=4", 14, "3 2-grams follow and .* declares 4"),
    "too few declared": ("ngram 1=5", "ngram 1=4", 7, "5 1-grams follow and .* declares 4"),
    "no word": ("-0.9\tb\n", "-0.9\n", 11, "expected log10 p, 1 word and perhaps a back-off weight, found 1 fields"),
    "too many words": ("-0.5\ta b\n", "-0.5\ta b c a\n", 16, "2 words .* found 5 fields"),
    "too few words": ("-0.5\ta b\n", "-0.5\ta\n", 16, "2 words .* found 2 fields"),
    "weight for a word": ("-0.5\ta b\n", "-0.5\ta\t-0.1\n", 16, "'-0.1' is not among the 1-grams, or a word is miss"),
    "unknown word": ("-0.5\ta b\n", "-0.5\ta d\n", 16, "'d' is not among the 1-grams"),
    "unk not listed": ("-0.5\ta b\n", "-0.5\ta <unk>\n", 16, "'<unk>' is not among the 1-grams"),
    "no context": ("<s> a b", "b a b", 20, "'b a b' has no 'b a' among the 2-grams"),
    "positive": ("-0.5\ta b", "0.5\ta b", 16, "log10 probability '0.5' is above 0"),
    "no number": ("-0.5\ta b", "half\ta b", 16, "log10 probability 'half' is no finite number"),
    "underscore": ("-0.5\ta b", "-0_5\ta b", 16, "log10 probability '-0_5' is no finite number"),
    "nan": ("-0.5\ta b", "nan\ta b", 16, "'nan' is no finite number"),
    "inf": ("-0.35\t", "-inf\t", 20, "'-inf' is no finite number"),
    "weight inf": ("-0.15", "inf", 15, "back-off weight 'inf' is no finite number"),
    "weight underscore": ("-0.15", "-1_5", 15, "back-off weight '-1_5' is no finite number"),
    "weight too large": ("-0.15", "400", 15, "back-off weight '400' is above 300"),
    "weight no number": ("c\t-0.1", "c\tx", 12, "back-off weight 'x' is no finite number"),
    "ngram twice": ("b </s>", "a b", 17, "the n-gram 'a b' stands there twice"),
    "start twice": ("b </s>", "<s> a", 17, "the n-gram '<s> a' stands there twice"),
    "word twice": ("\tc\t", "\ta\t", 12, "the word 'a' stands there twice"),
    "no end of sentence": ("\t</s>\n", "\td\n", 14, "there is no </s> among the 1-grams"),
    "orders out of sequence": ("\\2-grams:", "\\3-grams:", 14, r"expected '\\2-grams:', found '\\3-grams:'"),
    "an order missing": ("\\3-grams:\n-0.35\t<s> a b\n", "", 20, r"expected '\\3-grams:', found '\\end\\'"),
    "an order too many": (
        "\\end\\",
        "\\4-grams:\n-1\ta a a a\n\n\\end\\",
        22,
        r"expected '\\end\\', found '\\4-grams:'",
    ),
    "no end": ("\n\\end\\\n", "", 20, r"without \\end\\: it was cut short"),
    "cut in a line": ("a b\n\n\\end\\\n", "", 20, "cut short"),
    "cut in the counts": (SRILM[SRILM.index("ngram 2") :], "", 3, "cut short"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_malformed_file_is_refused_with_its_line(damage: str, tmp_path: Path) -> None:
    old, new, line, message = DAMAGES[damage]
    assert old in SRILM
    path = written(tmp_path, SRILM.replace(old, new))
    with pytest.raises(DataError, match=rf"model\.arpa, line {line}: .*{message}") as caught:
        read_arpa(path)
    assert "\n" not in str(caught.value)


def test_lines_are_counted_through_gaps_and_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arpa_lines, "BLOCK", 40)
    text = SRILM.replace("-0.5\ta b\n", "\n\n-0.5\ta d\n")
    with pytest.raises(DataError, match="line 18: 'd' is not among"):
        read_arpa(written(tmp_path, text))
    with pytest.raises(DataError, match=r"line 11: the line has more than 40 bytes"):
        read_arpa(written(tmp_path, SRILM.replace("\tb\n", "\t" + "b" * 200 + "\n")))


def test_files_that_are_no_arpa_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1: .* the file is empty"):
        read_arpa(written(tmp_path, ""))
    with pytest.raises(DataError, match="there is no file"):
        read_arpa(tmp_path / "none.arpa")
    (tmp_path / "latin.arpa").write_bytes(SRILM.replace("\tc\t", "\té\t").encode("latin-1"))
    with pytest.raises(DataError, match=r"latin\.arpa is not UTF-8: byte 0xE9 .*\(line 12\)"):
        read_arpa(tmp_path / "latin.arpa")
    (tmp_path / "model.bin").write_bytes(b"mmap lm http://kheafield.com/code format version 5\n" + bytes(200))
    with pytest.raises(DataError, match=r"model\.bin looks binary"):
        read_arpa(tmp_path / "model.bin")
    counts = "".join(f"ngram {k}=0\n" for k in range(1, 40))
    with pytest.raises(DataError, match="line 35: n-grams of more than 32 words"):
        read_arpa(written(tmp_path, "\n\\data\\\n" + counts))


@pytest.mark.parametrize(("suffix", "packed"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_damaged_compressed_files_are_refused(suffix: str, packed: Any, tmp_path: Path) -> None:
    path = tmp_path / f"model.arpa{suffix}"
    data = packed(SRILM.encode())
    path.write_bytes(data[:-10])
    with pytest.raises(DataError, match="cut short"):
        read_arpa(path)
    path.write_bytes(data[:-6] + bytes(byte ^ 1 for byte in data[-6:]))
    with pytest.raises(DataError, match=f"no good {suffix} file"):
        read_arpa(path)


def test_distributions_of_a_model_that_was_read_sum_to_one(tmp_path: Path) -> None:
    tokenizer = words(6)
    for smoothing, interpolate in itertools.product(("witten_bell", "modified_kneser_ney"), (True, False)):
        model = fitted(tokenizer, order=3, smoothing=smoothing, interpolate=interpolate)
        write_arpa(model, tokenizer, tmp_path / "model.arpa")
        again, _ = read_arpa(tmp_path / "model.arpa")
        ids = torch.from_numpy(sentences(tokenizer, 50, seed=1))[None]
        total = again.probabilities(ids, again.init_state(1)).sum(-1)
        torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-6)
