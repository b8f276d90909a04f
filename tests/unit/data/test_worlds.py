"""Worlds: their documents are drawn from exactly the distribution they say."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from regard.data.worlds import from_spec, names, world
from regard.data.worlds.ab import answer
from regard.data.worlds.grammar import END, Choose, GrammarReader, InAnyOrder, InOrder, Pick, Repeat, Say, Text, sample
from regard.data.worlds.stories import PEOPLE, PRONOUN, Stories
from regard.data.worlds.witness import Witness
from regard.errors import DataError, UsageError

GOLDEN = Path(__file__).parents[2] / "golden"
STORIES = world("stories")


def golden(name: str):
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


def continuations(instance, prefix: list[str]) -> dict[tuple[str, ...], float]:
    """The probability of every way in which a document can go on after `prefix`."""
    result = {}
    waiting = [(tuple(prefix), 1.0)]
    while waiting:
        tokens, probability = waiting.pop()
        for token, chance in instance.next_distribution(list(tokens)).items():
            if token == END:
                result[tokens] = probability * chance
            else:
                waiting.append(((*tokens, token), probability * chance))
    return result


def test_the_chain_rule_of_the_lecture():
    """P(great day [EOS] | Today is a) = 2/5 x 1/2 x 1/4."""
    facts = golden("chain_rule")
    great, day, end = (float(Fraction(p)) for p in facts["own_probabilities"])
    after_day = Choose([(end, Text("")), (1 - end, Text("indeed"))])
    after_great = Choose([(day, InOrder(Text("day"), after_day)), (1 - day, Text("idea"))])
    after_a = Choose([(great, InOrder(Text("great"), after_great)), (1 - great, Text("test"))])
    reader = GrammarReader(InOrder(Text("Today is a"), after_a))
    assert [reader.read(word) for word in facts["prefix"]] == [1, 1, 1]
    probabilities = [reader.read(word) for word in ("great", "day", END)]
    assert probabilities == pytest.approx([great, day, end])
    assert math.prod(probabilities[:2]) == pytest.approx(facts["joint_without_eos"]["float"])
    assert math.prod(probabilities) == pytest.approx(facts["joint_with_eos"]["float"])
    assert sum(map(math.log, probabilities)) == pytest.approx(facts["log_joint_with_eos"])


def test_an_ambiguous_grammar_adds_up_all_accounts_of_the_same_words():
    """Two ways to say "a b" (1/3 and 2/3 x 1/2), one to say "a c"."""
    reader = GrammarReader(
        Choose([(1, Text("a b")), (2, InOrder(Text("a"), Choose([(1, Text("b")), (1, Text("c"))])))])
    )
    assert reader.distribution() == {"a": pytest.approx(1)}
    reader.read("a")
    assert reader.distribution() == {"b": pytest.approx(2 / 3), "c": pytest.approx(1 / 3)}
    assert reader.read("b") == pytest.approx(2 / 3)
    assert reader.distribution() == {END: pytest.approx(1)}


def test_nodes_mean_what_they_say():
    grammar = InOrder(
        Pick("first", "x y z"), Pick("second", "x y z", ("first",)), InAnyOrder([Say("first"), Text("t")], Text("-"))
    )
    counts = Counter(tuple(sample(grammar, Random(i))[0]) for i in range(2400))
    expected = {(a, b, *order) for a in "xyz" for b in "xyz" if a != b for order in ((a, "-", "t"), ("t", "-", a))}
    assert set(counts) == expected
    # 200 expected of each, standard deviation 14.
    assert all(130 < count < 270 for count in counts.values())
    lengths = Counter(len(sample(Repeat(Text("w"), 3), Random(i))[0]) for i in range(4000))
    assert set(lengths) == {0, 1, 2, 3}
    assert all(850 < count < 1150 for count in lengths.values())


def test_documents_are_a_pure_function_of_seed_split_and_index():
    for name in (name for name in names() if world(name).task == "text"):
        many = world(name).documents("train", 50, seed=3)
        assert many == world(name).documents("train", 50, seed=3)
        assert many[:20] == world(name).documents("train", 20, seed=3)
        assert many != world(name).documents("train", 50, seed=4)
        assert many != world(name).documents("valid", 50, seed=3)
        assert world(name, seed=3, train=50).documents("train") == many


def test_stories_read_well():
    vocabulary = set(STORIES.vocabulary)
    assert 150 <= len(vocabulary) <= 250
    for document in STORIES.documents("train", 300):
        words = document.split(" ")
        assert set(words) <= vocabulary
        assert words[0][0].isupper()
        assert words[-1] == "."
        hero = next(word for word in words if word in PEOPLE.split(" "))
        pronouns = {word.lower() for word in words if word.lower() in ("he", "she")}
        assert pronouns <= {PRONOUN[hero]}


def test_events_name_two_people_and_none_of_the_facts():
    """Whoever a fact told so far is about takes no part in later events, so that nothing contradicts a fact."""
    people = set(PEOPLE.split(" "))
    n_pairs = 0
    for document in STORIES.documents("train", 600):
        in_facts: set[str] = set()
        for sentence in document.split(" . "):
            words = sentence.split(" ")
            named = people & set(words)
            event = (
                any(mark in words for mark in ("waved", "looking", "played", "asked", "said")) and "hello" not in words
            )
            if event:
                assert not named & in_facts, document
                n_pairs += "played" in words
                assert len(named) == (2 if "played" in words else 1), sentence
            else:
                in_facts |= named
    assert n_pairs > 100


def test_probabilities_of_stories_sum_to_one_after_every_prefix():
    for document in STORIES.documents("valid", 5):
        reader = GrammarReader(STORIES.grammar)
        for word in [*document.split(" "), END]:
            distribution = reader.distribution()
            assert math.fsum(distribution.values()) == pytest.approx(1, abs=1e-12)
            assert min(distribution.values()) > 0
            assert reader.read(word) == pytest.approx(distribution[word], rel=1e-12)


def test_the_chain_rule_gives_the_probability_with_which_the_generator_drew_a_story():
    for seed in range(200):
        words, log_probability = sample(STORIES.grammar, Random(seed))
        probabilities = STORIES.token_probabilities(" ".join(words))
        assert len(probabilities) == len(words) + 1
        assert math.fsum(map(math.log, probabilities)) == pytest.approx(log_probability, rel=1e-12)


def test_all_continuations_of_a_story_together_have_probability_one():
    small = world("stories", facts=2, events=0)
    prefix = small.split("Once there was a brave girl called Anna . She gave a kite to Ben . She hid a map in the")
    endings = continuations(small, prefix)
    assert len(endings) == 12 * 2 * 3
    assert math.fsum(endings.values()) == pytest.approx(1, abs=1e-12)
    for tokens, probability in list(endings.items())[::9]:
        whole = small.token_probabilities(" ".join(tokens))
        assert math.prod(whole[len(prefix) :]) == pytest.approx(probability)
        assert tokens.count("Ben") == 2


def test_words_of_stories_come_as_often_as_they_should():
    documents = [document.split(" ") for document in STORIES.documents("train", 4000)]
    for prefix in ([], ["Once", "there", "was", "a"], ["One", "winter"]):
        followers = Counter(words[len(prefix)] for words in documents if words[: len(prefix)] == prefix)
        n = sum(followers.values())
        for word, p in STORIES.next_distribution(prefix).items():
            assert abs(followers[word] - n * p) < 5 * math.sqrt(n * p * (1 - p)) + 1, (prefix, word)


def test_surprise_agrees_with_entropy_all_along_the_stories():
    """-log p(word) minus its expected value is a martingale: its sum over many words stays within 4 deviations of 0."""
    total = variance = 0.0
    for document in STORIES.documents("valid", 60, seed=11):
        reader = GrammarReader(STORIES.grammar)
        for word in [*document.split(" "), END]:
            chances = [p for p in reader.distribution().values() if p > 1e-12]
            entropy = -math.fsum(p * math.log(p) for p in chances)
            variance += math.fsum(p * math.log(p) ** 2 for p in chances) - entropy**2
            total += -math.log(reader.read(word)) - entropy
    assert abs(total) < 4 * math.sqrt(variance)


def test_the_optimal_loss_is_the_mean_surprise():
    documents = STORIES.documents("valid", 20)
    surprises = [-math.log(p) for document in documents for p in STORIES.token_probabilities(document)]
    assert len(surprises) == sum(len(document.split(" ")) + 1 for document in documents)
    assert STORIES.optimal_loss(documents) == pytest.approx(math.fsum(surprises) / len(surprises))
    assert 0.4 < STORIES.optimal_loss(documents) < 0.9


def test_words_to_recall_are_certain_and_were_said_that_far_back():
    distances = []
    for document in STORIES.documents("valid", 200):
        words = document.split(" ")
        probabilities = STORIES.token_probabilities(document)
        points = STORIES.recall_points(document)
        assert points
        for index, distance in points:
            assert probabilities[index] == pytest.approx(1, abs=1e-12)
            assert words[index - distance] == words[index]
            distances.append(distance)
    assert min(distances) < 10
    assert max(distances) > 140
    spread = [sum(low <= d < low + 25 for d in distances) / len(distances) for low in range(0, 125, 25)]
    assert min(spread) > 0.05, spread


def test_a_witness_is_asked_for_near_and_for_far_facts_alike():
    witness = world("witness")
    assert isinstance(witness, Witness)
    distances = []
    for document in witness.documents("valid", 200):
        words = document.split(" ")
        assert len(words) == 2 * witness.turns
        probabilities = witness.token_probabilities(document)
        for index, distance in witness.recall_points(document):
            assert probabilities[index] == pytest.approx(1, abs=1e-12)
            assert words[index] == words[index - distance]
            assert words[index - 1].endswith("?")
            assert words[index] not in words[index - distance + 1 : index]
            distances.append(distance)
    buckets = Counter((distance - 1).bit_length() for distance in distances)
    assert sorted(buckets) == list(range(1, 8))
    assert min(buckets.values()) > 0.01 * len(distances)


def test_a_witness_speaks_of_what_was_said_last_half_of_the_time_and_of_any_kind_else():
    """Counted over documents: 1 in 2 turns is of one of the last four, and 4 of 20 of the others are so by chance."""
    said_last = turns = 0
    witness = world("witness", facts=20)
    assert isinstance(witness, Witness)
    for document in witness.documents("valid", 100):
        kinds = [word.removesuffix("?") for word in document.split(" ")[::2]]
        for turn in range(20, len(kinds)):
            last = list(dict.fromkeys(reversed(kinds[:turn])))[:4]
            said_last += kinds[turn] in last
            turns += 1
    assert said_last / turns == pytest.approx(0.5 + 0.5 * 4 / 20, abs=0.03)


def test_parts_in_any_order_are_as_many_nodes_as_there_are_sets_of_them():
    """Twelve parts have 479,001,600 orders: what is drawn and read must not ask for each of them."""
    words = [f"w{number}" for number in range(12)]
    root = InAnyOrder([Text(word) for word in words], Text(""))
    drawn, log_probability = sample(root, Random(1))
    assert sorted(drawn) == sorted(words)
    assert log_probability == pytest.approx(-math.lgamma(13))
    reader = GrammarReader(root)
    assert [reader.read(word) for word in drawn] == pytest.approx([1 / left for left in range(12, 0, -1)])


def test_two_readings_are_weighed_until_the_story_decides():
    """After a fact and an event, either another fact or the question may come."""
    prefix = STORIES.split("One winter Leo went to the park . Leo had a red kite . The sun was shining .")
    distribution = Stories(facts=2, events=5).next_distribution(prefix)
    # With chance 1/2 another fact comes, after 0 .. 2 events; with 1/2 the question, after 0 .. 5. One event was seen,
    # which has chance 2/3 in the first case and 5/6 in the second. Then the fact has chance 1/2, the question 1/5.
    another = 1 / 2 * 2 / 3
    question = 1 / 2 * 5 / 6
    assert distribution["At"] == pytest.approx(question * 1 / 5 / (another + question))
    # "Leo" begins half of the sentences that tell a fact and no event: events never name the hero.
    assert distribution["Leo"] == pytest.approx(another * 1 / 2 * 1 / 2 / (another + question))


def test_a_text_from_elsewhere_is_refused():
    with pytest.raises(DataError, match="'dragon' cannot follow as word 4"):
        STORIES.next_distribution(STORIES.split("Once there was a dragon"))
    for wrong in ("ABC", "AAAAB", "BAAAB!"):
        with pytest.raises(DataError, match="does not begin a document"):
            world("ab", length=4).next_distribution(list(wrong))


def test_ab_labels_are_those_of_the_lecture():
    task = golden("ab_attention")["next_char_task"]
    strings = world("ab", length=task["length"])
    assert len(task["rows"]) == 16
    for row in task["rows"]:
        assert answer(row["string"]) == row["label"]
        assert strings.next_distribution(list(row["string"])) == {row["label"]: 1.0}
    endings = continuations(strings, [])
    assert {"".join(tokens) for tokens in endings} == {row["string"] + row["label"] for row in task["rows"]}
    assert math.fsum(endings.values()) == pytest.approx(1)
    assert sum(p for tokens, p in endings.items() if tokens[-1] == "A") == pytest.approx(0.5)


def test_ab_documents_follow_their_distribution():
    strings = world("ab", length=8)
    documents = strings.documents("train", 4000)
    assert all(len(document) == 9 and document[-1] == answer(document[:8]) for document in documents)
    # 2,000 expected, standard deviation 32.
    assert 1850 < sum(document[-1] == "A" for document in documents) < 2150
    entropy = -8 * sum(p * math.log(p) for p in (strings.chance_of_b, 1 - strings.chance_of_b)) / 10
    assert strings.optimal_loss(documents) == pytest.approx(entropy, rel=0.05)
    assert strings.recall_points("AABAAAAAB") == [(8, 6)]
    assert strings.recall_points("AAAAAAAAA") == [(8, 8)]


def test_addresses_name_worlds_and_settings():
    assert from_spec("world:stories") == STORIES
    assert from_spec("world:stories?train=5000&seed=3") == world("stories", train=5000, seed=3)
    assert from_spec("world:ab?length=4", seed=9) == world("ab", length=4, seed=9)
    assert from_spec(world("ab", length=4).spec) == world("ab", length=4)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("world:storys", "did you mean 'stories'"),
        ("world:", "known: ab, compression, "),
        ("world:stories?trian=5", "did you mean 'train'"),
        ("world:stories?train=many", "train must be a whole number, found 'many'"),
        ("world:stories?train", "expected key=value"),
        ("world:stories?train=0", "train of at least 1"),
        ("world:stories?facts=9", "facts in 1 .. 4"),
        ("world:stories?events=-1", "events in 0 .. 1000"),
        ("world:witness?facts=0", "facts in 1 .. 24"),
        ("world:witness?turns=0", "turns in 1 .. 1000"),
        ("world:ab?length=0", "length of at least 1"),
        ("world:ab?name=3", "no setting 'name'"),
    ],
)
def test_addresses_that_cannot_be_are_refused(address, words):
    with pytest.raises(UsageError) as caught:
        from_spec(address)
    assert words in str(caught.value)
