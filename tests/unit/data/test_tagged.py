"""Tagged sentences: words and tags of CoNLL and CoNLL-U files, and what is refused."""

from __future__ import annotations

import gzip

import pytest

from regard.data.example import Tagged
from regard.data.tagged import read_tagged
from regard.errors import RegardError, UsageError

UNIVERSAL = """# sent_id = 1
# text = don't go
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVBP\tMood=Imp\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
2.1\tyou\tyou\tPRON\tPRP\t_\t_\t_\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_

# sent_id = 2
1\t#\t#\tSYM\tNFP\t_\t0\troot\t_\t_
"""


def write(path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def refusal(path: str, **settings) -> str:
    with pytest.raises(RegardError) as caught:
        read_tagged(path, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_conll_takes_the_last_column_between_tabs_or_spaces(tmp_path):
    expected = [Tagged(("EU", "#1"), ("B-ORG", "O")), Tagged(("Yes",), ("O",))]
    tabs = write(tmp_path / "a.conll", "\n\nEU\tB-ORG\n#1\tO\n\n \nYes\tO")
    spaces = write(tmp_path / "b.conll", "-DOCSTART- -X- O O\n\nEU NNP  I-NP B-ORG\n#1 CD I-NP O\n\nYes UH I-NP O\n\n")
    assert read_tagged(tabs) == read_tagged(spaces) == expected
    assert [sentence.where for sentence in read_tagged(tabs)] == [f"{tabs}, line 3", f"{tabs}, line 7"]
    assert read_tagged(spaces, tag="2")[0].tags == ("NNP", "CD")


def test_a_word_may_hold_spaces_where_tabs_divide(tmp_path):
    assert read_tagged(write(tmp_path / "a.conll", "New York\tB\n")) == [Tagged(("New York",), ("B",))]


@pytest.mark.parametrize("name", ["a.conllu", "a.conll", "a.conllu.gz"])
def test_conllu_leaves_out_comments_ranges_and_empty_nodes(name, tmp_path):
    path = write(tmp_path / name, gzip.compress(UNIVERSAL.encode()) if name.endswith("gz") else UNIVERSAL)
    assert read_tagged(path) == [Tagged(("do", "n't", "go"), ("AUX", "PART", "VERB")), Tagged(("#",), ("SYM",))]
    assert read_tagged(path, tag="xpos")[0].tags == ("VBP", "RB", "VB")
    assert read_tagged(path, tag="lemma")[0].tags == ("do", "not", "go")
    assert read_tagged(path, tag="feats")[0].tags == ("Mood=Imp", "_", "_")
    assert [sentence.where for sentence in read_tagged(path)] == [f"{path}, line 4", f"{path}, line 10"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.conll", "a\tX\n\nb\n", "line 3: 'b' has no tag"),
        ("a.conll", "a\tX\nb\t\n", "line 2: the word 'b' has no tag"),
        ("a.conll", "a\tX\n\tX\n", "line 2: 'X' has no tag"),
        ("a.conll", "a\tN\tX\nb\tX\n", "line 2: 2 columns where the lines before have 3"),
        ("a.conll", "", "is empty"),
        ("a.conll", "\n\n", "holds no words"),
        ("a.conllu", "# text = nothing\n\n", "holds no words"),
        ("a.conllu", "1\ta\tX\n", "line 1: 3 columns between TABs where CoNLL-U has 10"),
        ("a.conllu", "x" + UNIVERSAL.splitlines()[3], "line 1: 'x1' is no number of a word"),
        ("a.conllu", UNIVERSAL.replace("VERB", "_"), "line 7: the word 'go' has no upos"),
        ("a.conll", b"a\tX\nb\xff\tX\n", "is not UTF-8: byte 0xFF at offset 5 (line 2)"),
        ("a.conll", b"a" * (16 * 1024 * 1024 + 1), "line 1: longer than"),
    ],
)
def test_a_file_without_tags_for_all_words_is_refused_with_its_line(name, content, words, tmp_path):
    path = write(tmp_path / name, content)
    message = refusal(path)
    assert message.startswith(path)
    assert words in message


def test_tags_that_are_not_there_are_refused(tmp_path):
    universal = write(tmp_path / "a.conllu", UNIVERSAL)
    plain = write(tmp_path / "a.conll", "a\tX\n")
    assert "did you mean 'upos'" in refusal(universal, tag="upso")
    assert "tag = 3" in refusal(plain, tag="3")
    assert "1 for the first column" in refusal(plain, tag="upos")
    for path, tag in ((universal, "upso"), (plain, "3"), (plain, "0")):
        with pytest.raises(UsageError):
            read_tagged(path, tag=tag)


def test_a_sentence_has_as_many_tags_as_words():
    with pytest.raises(ValueError, match="2 words cannot have 1 tags"):
        Tagged(("a", "b"), ("X",))


@pytest.mark.data
def test_real_sentences_are_all_read(real_data):
    """The counts that the makers state; 17 is the number of universal parts of speech, 13 that of 6 types in BIO."""
    dev = read_tagged(str(real_data / "ud_english_ewt/en_ewt-ud-dev.conllu.gz"))
    assert len(dev) == 2001
    assert len({tag for sentence in dev for tag in sentence.tags}) == 17
    names = read_tagged(str(real_data / "wnut17/train.conll.gz"))
    assert len(names) == 3394
    assert len({tag for sentence in names for tag in sentence.tags}) == 13
