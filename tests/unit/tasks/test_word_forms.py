"""What words share with others, by name and by number."""

from __future__ import annotations

from collections import Counter

from regard.layers.spelled import KINDS
from regard.tasks.word_forms import MOST, counted, forms_met_twice, forms_of, numbered, row_of

RANK = {"the": 1, "Paris": 6}


def rank(word: str) -> int:
    return RANK.get(word, 0)


def test_a_word_has_its_small_letters_shape_ends_and_rank():
    expected = {"l=paris", "h=Xx", "p1=p", "p2=pa", "p3=par", "p4=pari", "f1=s", "f2=is", "f3=ris", "f4=aris"}
    assert set(forms_of("Paris", rank).values()) == expected | {"n=3", "small=0"}
    assert "small=1" in forms_of("THE", rank).values()
    assert set(forms_of("я", rank).values()) == {"l=я", "h=x", "p1=я", "f1=я", "n=0"}


def test_a_kind_has_one_place_whatever_the_word():
    places = [
        {name.partition("=")[0]: at for at, name in forms_of(word, rank).items()}
        for word in ("Ab", "Paris-9", "x" * 9_999)
    ]
    assert all(at == places[1][kind] for one in places for kind, at in one.items())


def test_what_was_met_once_is_unknown_and_what_was_met_often_comes_first():
    words = counted([("the", "the", "cat"), ("the", "bat")])
    forms = forms_met_twice(words, rank)
    assert set(forms[:3]) <= {"l=the", "p1=t", "p2=th", "f1=e", "f2=he", "f3=the", "p3=the", "h=x"}
    assert {"f2=at", "f1=t"} <= set(forms)
    assert not {"l=cat", "f3=cat", "p1=c"} & set(forms)
    assert forms[0] == "h=x"
    row, new = (row_of(word, rank, numbered(forms)) for word in ("the", "zoo"))
    assert (row > KINDS).sum() == len(forms_of("the", rank))
    places = {name.partition("=")[0]: at for at, name in forms_of("zoo", rank).items()}
    assert new[places["h"]] > KINDS
    assert new[places["l"]] == 1 + places["l"]
    assert (new == 0).sum() == KINDS - len(places)


def test_the_table_is_bounded():
    many = Counter({f"{number:x}" * 4: 2 for number in range(MOST)})
    assert len(forms_met_twice(many, rank)) == MOST
