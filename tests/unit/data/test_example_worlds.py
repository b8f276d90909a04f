"""Worlds of examples: what they say is the answer follows from the question, by a second way of finding it."""

from __future__ import annotations

import doctest
import re
from collections import Counter, defaultdict
from datetime import date, datetime

import numpy as np
import pytest

from regard.data.corpus import prepare
from regard.data.example import Captioned, Labelled, Pair, Tagged
from regard.data.worlds import dates, from_spec, names, world
from regard.data.worlds.dates import FORMS, ORDINALS
from regard.data.worlds.reviews import ADJECTIVES, LABELS
from regard.data.worlds.stories import Stories
from regard.data.worlds.tags import LEXICON
from regard.data.worlds.translation import CONJUNCTIONS
from regard.errors import UsageError
from regard.tasks.kind import kind_of

RECORDS = {"pairs": Pair, "labelled": Labelled, "tagged": Tagged, "captions": Captioned}
OF_EXAMPLES = [name for name in names() if world(name).task in RECORDS]
OURS = {"dates": "pairs", "translation": "pairs", "reviews": "labelled", "tags": "tagged"}


@pytest.mark.parametrize("name", OF_EXAMPLES)
def test_examples_are_a_pure_function_of_seed_split_and_index(name):
    many = world(name).examples("train", 50, seed=3)
    assert many == world(name).examples("train", 50, seed=3)
    assert many[:20] == world(name).examples("train", 20, seed=3)
    assert many != world(name).examples("train", 50, seed=4)
    assert many != world(name).examples("valid", 50, seed=3)
    assert world(name, seed=3, train=50).examples("train") == many
    assert all(type(example) is RECORDS[world(name).task] for example in many)


@pytest.mark.parametrize(("name", "task"), OURS.items())
def test_addresses_and_tasks(name, task):
    assert from_spec(f"world:{name}?train=5&seed=3") == world(name, train=5, seed=3)
    assert from_spec(world(name, seed=7).spec) == world(name, seed=7)
    assert kind_of(f"world:{name}") == task
    assert max(world(name).best.values()) == 1.0


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("world:translation?min_length=1", "needs 2 <= min_length"),
        ("world:translation?min_length=9&max_length=8", "found 9 and 8"),
        ("world:reviews?min_sentences=0", "needs 1 <= min_sentences"),
        ("world:tags?sentences=0", "sentences in 1 .. 1000"),
        ("world:dates?valid=0", "valid of at least 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(address, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        from_spec(address)


def test_a_world_of_examples_is_no_text():
    with pytest.raises(UsageError, match="world:dates holds pairs, not text"):
        prepare("world:dates")


def test_captioned_pictures_are_compared_by_what_they_show():
    black = np.zeros((2, 2, 3), np.uint8)
    same = {Captioned(black, "a", where="x"), Captioned(black.copy(), "a", where="y")}
    assert len(same) == 1
    assert Captioned(black, "a") != Captioned(black + 1, "a")
    assert Captioned(black, "a") != Captioned(black.reshape(4, 1, 3), "a")


DATE_FORMS = {
    r"\d{8}": "%Y%m%d",
    r"\d\d?\.\d\d?\.\d{4}": "%d.%m.%Y",
    r"\d\d\.\d\d\.\d\d": "%d.%m.%y",
    r"\d\d?/\d\d?/\d\d": "%m/%d/%y",
    r"\d\d-\d\d-\d{4}": "%m-%d-%Y",
    r"\d{4} [a-z]+ \d\d?": "%Y %B %d",
    r"\d\d? [a-z]+ \d{4}": "%d %B %Y",
    r"\d\d? [a-z]{3} \d\d": "%d %b %y",
    r"\d\d? [a-z]{4,} \d\d": "%d %B %y",
    r"[a-z]{3} \d\d? \d{4}": "%b %d %Y",
    r"[a-z]{4,} \d\d? \d{4}": "%B %d %Y",
}


def read_date(phrase: str) -> tuple[date, str | None]:
    """A date and its weekday, by Python's own parser once ordinals and weekdays are taken away."""
    text = phrase.lower()
    for number, word in enumerate(ORDINALS, start=1):
        text = text.replace(f"the {word} of", str(number))
    text = re.sub(r"(\d)(st|nd|rd|th)\b", r"\1", text).replace(" of ", " ").replace("the ", "")
    days = re.match(r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? ", text)
    text = re.sub("[,']", "", text[days.end() :] if days else text)
    form = next(form for pattern, form in DATE_FORMS.items() if re.fullmatch(pattern, text))
    found = datetime.strptime(text, form).date()
    if "%y" in form:
        # Python's own pivot is 69.
        found = found.replace(year=found.year % 100 + (1900 if found.year % 100 >= 30 else 2000))
    return found, days[1] if days else None


def test_dates_are_those_that_python_reads():
    examples = world("dates").examples("train", 3000)
    n_weekdays = 0
    for example in examples:
        found, weekday = read_date(example.source)
        assert found.isoformat() == example.target, example
        if weekday:
            n_weekdays += 1
            assert found.strftime("%a").lower() == weekday
    assert n_weekdays > 500


def test_dates_by_hand():
    assert doctest.testmod(dates).failed == 0
    day = date(1999, 5, 2)
    assert [form(day) for form in FORMS] == [
        "sunday, 2 may 1999",
        "Sunday the 2nd of May, 1999",
        "Sun, May 2, 1999",
        "Sun 02 May 99",
        "May 2, 1999",
        "May 2nd, 1999",
        "the 2nd of may 1999",
        "the second of may 1999",
        "2 may '99",
        "5/2/99",
        "05-02-1999",
        "2.5.1999",
        "02.05.99",
        "1999, may 2",
        "19990502",
    ]
    assert len(ORDINALS) == 31
    assert (ORDINALS[10], ORDINALS[20], ORDINALS[29], ORDINALS[30]) == (
        "eleventh",
        "twenty-first",
        "thirtieth",
        "thirty-first",
    )


def test_every_form_of_a_date_is_of_one_date_alone():
    """Over all days of four years, no phrase is said of two days."""
    meaning: dict[str, date] = {}
    days = [
        date.fromordinal(n)
        for y in (1931, 1999, 2000, 2029)
        for n in range(date(y, 1, 1).toordinal(), date(y, 12, 31).toordinal() + 1)
    ]
    for day in days:
        for form in FORMS:
            assert meaning.setdefault(form(day), day) == day
    assert len(meaning) == len(days) * len(FORMS)


# A second account of the toy language, from words alone.
VERBS = "sleeps waits sings laughs returns arrives sees finds likes paints reads carries follows remembers sells draws"
PLACES = {"in", "near", "behind", "under"}
ADVERBS = {"often", "now", "quickly", "never", "today"}
STARTS = {"the", "a", "every"}


def order_of_noun_phrase(words: list[str], start: int) -> list[int]:
    if not words:
        return []
    if words[0] not in STARTS:
        assert len(words) == 1
        return [start]
    return [start, *range(start + len(words) - 1, start, -1)]


def order_of_clause(words: list[str], start: int) -> list[int]:
    verb = next(i for i, word in enumerate(words) if word in VERBS.split(" "))
    adverbs = [i for i, word in enumerate(words) if word in ADVERBS]
    assert adverbs in ([], [verb - 1])
    place = next((i for i, word in enumerate(words) if word in PLACES), len(words))
    subject = order_of_noun_phrase(words[: verb - len(adverbs)], start)
    thing = order_of_noun_phrase(words[verb + 1 : place], start + verb + 1)
    where = [*order_of_noun_phrase(words[place + 1 :], start + place + 1), start + place] if place < len(words) else []
    return [*(start + i for i in adverbs), *subject, *where, *thing, start + verb]


def order_of_sentence(words: list[str]) -> list[int]:
    order: list[int] = []
    start = 0
    for i, word in enumerate([*words, "and"]):
        if word in dict(CONJUNCTIONS):
            order += order_of_clause(words[start:i], start)
            order += [i] if i < len(words) else []
            start = i + 1
    return order


def test_translations_follow_the_rules_of_order():
    for example in world("translation", max_length=30).examples("train", 1000):
        source, target = example.source.split(" "), example.target.split(" ")
        assert [target_at for _, target_at in sorted(example.links, key=lambda link: link[1])] == list(
            range(len(target))
        )
        by_target = [source_at for source_at, _ in sorted(example.links, key=lambda link: link[1])]
        assert list(dict.fromkeys(by_target)) == order_of_sentence(source)
        assert set(by_target) == set(range(len(source)))


def test_translations_by_hand():
    found = {
        example.source: example.target for example in world("translation", min_length=5, max_length=5).examples("train")
    }
    assert found["the letter finds the house"] == "la brifa la doma truvu"
    assert found["ben today follows the dog"] == "hodi je ben lo hundo segu"


def test_a_word_has_one_translation_but_for_the_gender_of_articles():
    meanings = defaultdict(set)
    for example in world("translation").examples("train", 5000):
        source, target = example.source.split(" "), example.target.split(" ")
        linked = defaultdict(list)
        for source_at, target_at in example.links:
            linked[source_at].append(target_at)
        for source_at, places in linked.items():
            assert places == list(range(places[0], places[0] + len(places)))
            meanings[source[source_at]].add(" ".join(target[place] for place in places))
    assert 55 <= len(meanings) <= 70
    assert {word for word, found in meanings.items() if len(found) > 1} == STARTS
    assert {len(meanings[word]) for word in STARTS} == {2}
    assert 6 <= sum(" " in next(iter(found)) for found in meanings.values()) <= 15
    words = [word for found in meanings.values() for word in found]
    assert len(set(words)) == len(words)


def test_translations_have_the_lengths_asked_for():
    lengths = Counter(
        len(e.source.split(" ")) for e in world("translation", min_length=2, max_length=25).examples("train", 4800)
    )
    assert set(lengths) == set(range(2, 26))
    # 200 expected of each, standard deviation 14.
    assert all(130 < count < 270 for count in lengths.values())


NEGATIONS = {"not", "never", "nobody", "anything"}
OTHERS = ("it was", "the cinema", "the tickets", "i had", "my sister", "my neighbour", "a critic", "nobody told")


def opinion(text: str) -> str:
    own = [sentence for sentence in text.removesuffix(" .").split(" . ") if not sentence.startswith(OTHERS)]
    assert len(own) == 1, text
    return own[0]


def test_the_label_is_what_negations_make_of_the_first_adjective():
    for example in world("reviews").examples("train", 3000):
        words = opinion(example.text).split(" , ")[0].split(" ")
        good = any(word in ADJECTIVES[1] for word in words)
        assert good != any(word in ADJECTIVES[0] for word in words)
        turned = sum(word in NEGATIONS for word in words) % 2
        assert example.label == LABELS[good != turned], example


def test_words_without_their_order_do_not_tell_the_label():
    examples = world("reviews", min_sentences=2, max_sentences=2).examples("train", 20_000)
    bags = defaultdict(Counter)
    for example in examples:
        bags[tuple(sorted(example.text.split(" ")))][example.label] += 1
    assert sum(len(labels) == 2 for labels in bags.values()) > 500
    # The best that can be said of a bag, measured on bags that come more than once; chance is 0.5.
    repeated = [labels for labels in bags.values() if labels.total() > 1]
    best = sum(max(labels.values()) for labels in repeated) / sum(labels.total() for labels in repeated)
    assert best < 0.92
    texts: dict[str, str] = {}
    assert all(texts.setdefault(example.text, example.label) == example.label for example in examples)
    labels = Counter(example.label for example in examples)
    # 10,000 expected, standard deviation 71.
    assert 9650 < labels["positive"] < 10350


def test_reviews_have_the_lengths_asked_for():
    counts = Counter(
        e.text.count(" .") for e in world("reviews", min_sentences=1, max_sentences=4).examples("train", 2000)
    )
    assert set(counts) == {1, 2, 3, 4}


def test_the_words_of_a_sentence_determine_its_tags_and_single_words_do_not():
    examples = world("tags", sentences=1).examples("train", 10_000)
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    by_word = defaultdict(Counter)
    for example in examples:
        assert known.setdefault(example.words, example.tags) == example.tags
        assert example.words[-1] in ".?!"
        for word, tag in zip(example.words, example.tags, strict=True):
            by_word[word][tag] += 1
    ambiguous = {word for word, tags in by_word.items() if len(tags) > 1}
    assert {"to", "light", "walk", "that", "That", "saw", "back", "old", "man", "like"} <= ambiguous
    alone = sum(max(tags.values()) for tags in by_word.values()) / sum(tags.total() for tags in by_word.values())
    assert 0.93 < alone < 0.97


def test_every_word_of_the_stories_has_a_tag():
    assert set(Stories().vocabulary) - set(LEXICON) == {"to"}


def test_tags_by_hand():
    found = {example.words: example.tags for example in world("tags", sentences=1).examples("train", 8000)}
    for words, tags in (
        ("The old man the boats near the park .", "DET NOUN VERB DET NOUN ADP DET NOUN PUNCT"),
        ("The old man sang a song .", "DET ADJ NOUN VERB DET NOUN PUNCT"),
        ("He walked to the park .", "PRON VERB ADP DET NOUN PUNCT"),
        ("And that was the end .", "CCONJ PRON AUX DET NOUN PUNCT"),
        ("The sun was shining .", "DET NOUN AUX VERB PUNCT"),
    ):
        assert found[tuple(words.split(" "))] == tuple(tags.split(" "))
    knew_that = [tags[:4] for words, tags in found.items() if words[1:3] == ("knew", "that")]
    assert set(knew_that) == {("PROPN", "VERB", "SCONJ", "DET")}


def test_tagged_examples_have_the_number_of_sentences_asked_for():
    for example in world("tags", sentences=3).examples("train", 200):
        spoken = re.sub(r'" [^"]* "', "", " ".join(example.words))
        assert len(re.findall(r"[.?!]", spoken)) == 3
