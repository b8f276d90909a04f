"""Texts of a given form: automata against Python's own expressions, schemas against json, masks against every token."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from datetime import date, datetime, time
from ipaddress import IPv4Address
from typing import Any
from uuid import UUID

import numpy as np
import pytest
import torch

from regard.data.tokenizer import train_tokenizer
from regard.decoding.automaton import DEAD, Automaton, automaton
from regard.decoding.constraint import Forms
from regard.decoding.json_schema import any_object, pattern_of
from regard.errors import UsageError

PATTERNS = [
    r"(yes|no)", r"[a-c]{2,4}x*", r"\d+\.\d{2}", r"[^a]b?", r"é+|日本.?", r"(a|b(c|d)*)+e", r"\w+ \w+", r"a?b?c?",
    r"^\s*x$", r"(?:ab|a)(?:bc|c)", r"[\]\-x]+", r"a{0,2}", r"\x61\u00e9|b{3}", r"(|a)b", r"\S\D",
    r"(ab?)(?:,(?:ab?))*", r"a(?:ba)*c?", r"x?(?:1x?)*|(?:a*)(b(?:a*))*", r"e(?:nne)*n", r"a(b|c)(?:,(b|c))*d",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_an_automaton_accepts_what_python_matches(pattern: str) -> None:
    chance, found = random.Random(pattern), automaton(pattern)
    for _ in range(300):
        text = "".join(chance.choices("abcdexyno 1.2é日本\n]-,,", k=chance.randint(0, 6)))
        assert found.matches(text) == bool(re.fullmatch(pattern, text, re.ASCII)), text


@pytest.mark.parametrize(
    "pattern", [r"(?=a)", r"\1", r"a)", r"(a", r"[a", r"*a", r"a{3,1}", r"a{99999}", r"\bx", r"a^b"]
)
def test_what_no_automaton_tells_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="pattern"):
        automaton(pattern)


@pytest.mark.parametrize("pattern", [r"(a{1,900}){1,900}", r"(a|b)*a(a|b){30}"])
def test_a_pattern_that_grows_beyond_bounds_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="too large"):
        automaton(pattern)


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 5},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 1, "maxItems": 2},
        "more": {"anyOf": [{"type": "null"}, {"type": "number"}]},
    },
    "required": ["age"],
    "$defs": {"tag": {"enum": ["a", 'b"', 3]}},
}


def test_the_making_of_an_automaton_is_broken_off_when_nobody_wants_it() -> None:
    """It is asked again and again, also where one state leads to very many others."""

    class Asked:
        times = 0

        def __call__(self) -> None:
            self.times += 1
            if self.times > 100:
                raise InterruptedError

    with pytest.raises(InterruptedError):
        automaton("[a-z]{1,500}([a-z]*x){3,100}", Asked())
    often = Asked()
    with pytest.raises(InterruptedError):
        automaton("|".join(f"\\x{byte:02x}" for byte in range(32, 127)) + "|(" + "x?" * 3000 + ")", often)
    assert often.times > 100


@pytest.mark.parametrize("pattern", ["(a{900}){8}", "(a{900}){8}|b*"])
def test_a_long_chain_of_states_is_kept_whole(pattern: str) -> None:
    found = automaton(pattern)
    assert found.matches("a" * 7200)
    assert not found.matches("a" * 7199)
    assert found.after(found.start, b"a" * 7201) == DEAD


def test_a_schema_accepts_its_values_and_no_others() -> None:
    found = automaton(pattern_of(SCHEMA))
    good: list[Any] = [
        {"age": 3},
        {"name": "é", "age": -12, "more": None},
        {"age": 0, "tags": ["a", 'b"'], "more": -1.5e3},
        {"name": "abcde", "age": 7, "tags": [3]},
    ]
    bad: list[Any] = [{}, {"name": "x"}, {"age": "3"}, {"age": 1.5}, {"age": 1, "tags": []}, {"age": 1, "x": 2}, [3]]
    bad += [{"name": "abcdef", "age": 1}, {"age": 1, "tags": ["a", "a", "a"]}, {"age": 1, "more": "x"}]
    for values, accepted in ((good, True), (bad, False)):
        for value in values:
            for separators in ((",", ":"), (", ", ": ")):
                assert found.matches(json.dumps(value, separators=separators, ensure_ascii=False)) is accepted, value
    assert automaton(any_object()).matches(json.dumps({"a": [1, {"b": None}], "c": "\n\u2028\\"}))


ANYTHING: list[Any] = [None, -1.5, "é\n", [], {}, [1, ["a"]], {"a": {"b": None}, "c": [{}]}]
LISTS = [value for value in ANYTHING if isinstance(value, list)]
OPEN: list[tuple[Any, list[Any], list[Any]]] = [
    ({}, [*ANYTHING, [[[1]]], {"a": {"b": {"c": 1}}}], [[[[[]]]]]),
    ({"title": "x"}, ANYTHING, []),
    ({"type": "array"}, LISTS, [{}, "a", 1]),
    ({"items": {"type": "integer"}}, [[], [1], [1, 2, 3]], [["a"], [1, None], 1]),
    ({"type": "array", "items": {"type": "array"}, "maxItems": 2}, [[], [[1], ["a", [2]]]], [[1], [[], [], []]]),
    ({"properties": {"a": True}, "required": ["a"]}, [{"a": []}, {"a": {"b": 1}}], [{}, {"b": 1}]),
    ({"properties": {k: {} for k in "abcdefghijkl"}}, [{}, {"b": 1, "l": []}, {"a": {}, "c": 1}], [{"b": 1, "a": 1}]),
    ({"properties": {f"k{n}": {"type": "object"} for n in range(9)}}, [{}, {"k3": {"a": 1}}], [{"k3": 1}]),
    ({"type": "string", "minLength": 2, "maxLength": 1000}, ["ab", "é\n" * 500], ["a", "a" * 1001]),
    ({"minLength": 2}, ["ab", "a" * 5000], ["a", ""]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "good", "bad"), OPEN)
def test_a_schema_that_leaves_much_open_is_told_to_some_depth(schema: Any, good: list[Any], bad: list[Any]) -> None:
    found = automaton(pattern_of(schema))
    for value in (*good, *bad):
        assert found.matches(json.dumps(value, ensure_ascii=False)) is (value in good), value


@pytest.mark.parametrize("needed", ["", "a", "c", "e", "bd", "abcde"])
def test_properties_that_may_be_left_out_have_commas_between_them(needed: str) -> None:
    schema = {"properties": {name: {"const": 1} for name in "abcde"}, "required": list(needed)}
    found = automaton(pattern_of(schema))
    for there in range(32):
        names = [name for place, name in enumerate("abcde") if there >> place & 1]
        assert found.matches(json.dumps(dict.fromkeys(names, 1))) is (set(needed) <= set(names)), names


NARROW: list[tuple[Any, list[Any], list[Any]]] = [
    ({"type": "string", "pattern": "^a{2,4}$", "minLength": 1, "maxLength": 4}, ["aa", "aaaa"], ["a", "aaaaa"]),
    ({"additionalProperties": {"type": "integer"}}, [{}, {"a": 1, "b": -2}], [{"a": "1"}, 5]),
    ({"type": "object", "additionalProperties": False}, [{}], [{"a": 1}]),
    ({"properties": {"a": {"const": 1}}, "additionalProperties": {"type": "null"}}, [{}, {"a": 1}], [{"a": None}]),
    ({"enum": ["a", 1, None, True, 2.0], "type": ["string", "integer"]}, ["a", 1, 2.0], [None, True]),
    ({"enum": [1, 1.5, False], "type": "number"}, [1, 1.5], [False]),
    ({"enum": ["a", "b"], "const": "b"}, ["b"], ["a"]),
    ({"format": "date"}, ["2024-12-31", "1999-02-28"], ["2023-02-30", "2023-04-31", "2023-13-01", "0000-01-01", ""]),
    ({"type": ["string", "null"], "format": "ipv4"}, ["10.0.255.1", None], ["10.0.256.1", "1.2.3", "01.2.3.4"]),
]


@pytest.mark.parametrize(("schema", "good", "bad"), NARROW)
def test_words_that_narrow_a_value_do(schema: Any, good: list[Any], bad: list[Any]) -> None:
    found = automaton(pattern_of(schema))
    for values, accepted in ((good, True), (bad, False)):
        for value in values:
            assert found.matches(json.dumps(value)) is accepted, value


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "string", "pattern": "^a+$", "maxLength": 3}, "a length beside a form of 1 or more characters"),
        ({"pattern": "^a{2,5}$", "minLength": 3}, "a length beside a form of 2 to 5 characters"),
        ({"pattern": "^a|bc$", "maxLength": 3}, "a length beside a form of 1 or more characters"),
        ({"type": "string", "format": "date", "pattern": "1"}, "'format' beside 'pattern'"),
        ({"type": "string", "format": "uri"}, "format: 'uri' is not known here, but date, time"),
        ({"type": "integer", "format": "int32"}, "format: 'int32' of a number"),
        ({"properties": {"a": {}}, "required": ["a", "b"]}, "required: 'b' is not one of the properties"),
        ({"type": "object", "required": ["b"]}, "required: 'b' is not one of the properties"),
        ({"properties": {"a": {}}, "required": "a"}, "required: expected a list"),
        ({"properties": {"a": {}}, "required": 0}, "required: expected a list"),
        ({"properties": {"a": {}}, "required": [["a"]]}, "is not one of the properties"),
        ({"properties": {"a": {}}, "additionalProperties": 5}, "additionalProperties: expected true, false"),
        ({"type": "integer", "const": "a"}, "const, enum and type contradict each other"),
        ({"type": "integer", "enum": [True, 1.5]}, "const, enum and type contradict each other"),
        ({"const": 3, "enum": [1, 2]}, "const, enum and type contradict each other"),
        ({"enum": ["a"], "minLength": 2}, "'minLength' beside 'enum'"),
        ({"anyOf": [{"type": "string"}], "maxLength": 2}, "'maxLength' beside 'anyOf'"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {}}, "type": "null"}, "'type' beside '$ref'"),
        ({"type": "string", "minimum": 3}, "'minimum', which is not known"),
    ],
)
def test_words_that_narrow_a_value_and_are_not_told_are_refused_by_name(schema: Any, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        pattern_of(schema)


def test_formats_are_those_that_python_reads() -> None:
    readers = {"date": date.fromisoformat, "time": time.fromisoformat, "uuid": UUID, "ipv4": IPv4Address}
    for name, reader in (readers | {"date-time": datetime.fromisoformat}).items():
        for text in _drawn({"type": "string", "format": name}):
            assert reader(text)
    for text in _drawn({"type": "string", "format": "email"}):
        assert re.fullmatch(
            r"[\w+-]+(\.[\w+-]+)*@[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+", text
        )


TEN_TIMES_OVER = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 10} for i in range(7)}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"}, {"type": "thing"}, {"type": []}, {"type": {}}, {"minimum": 3}, {"$ref": "http://x"}, 7,
        {"enum": []}, {"anyOf": 5}, {"anyOf": []}, {"type": "string", "pattern": 5},
        {"type": "string", "minLength": "}"},
        {"type": "array", "minItems": 3, "maxItems": 2}, {"type": "string", "maxLength": 1001},
        {"type": "array", "maxItems": "x"}, {"type": "array", "minItems": -1}, {"type": "array", "maxItems": 1.5},
        {"properties": 5}, {"properties": {"a": {}}, "required": 5},
        {"$ref": "#/$defs/d0", "$defs": TEN_TIMES_OVER | {"d7": {"type": "null"}}},
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_told_is_refused(schema: Any) -> None:
    with pytest.raises(UsageError):
        pattern_of(schema)


@pytest.mark.parametrize("kind", ["bytes", "chars", "words", "bpe"])
def test_allowed_tokens_are_those_that_can_still_become_a_match(kind: str) -> None:
    """Every token is tried: the text with it is the beginning of a match, or it is not allowed."""
    matches = ["the cat sat", "the dog sat", "the dog sang"]
    tokenizer = train_tokenizer(kind, ["the cat sat on the dog and sang a song"] * 3, vocab_size=None)
    form = Forms(tokenizer, tokenizer.eos_id).form("the (cat sat|dog sa(t|ng))")
    previous = int(tokenizer.encode("a")[-1])
    rule, drawn, chance = form.rule(previous), list[int](), random.Random(3)
    for _ in range(40):
        allowed = (rule(torch.zeros(tokenizer.vocab_size), drawn) == 0).nonzero()[:, 0].tolist()
        written = _written(tokenizer, previous, drawn).lstrip()
        for token in range(tokenizer.vocab_size):
            if tokenizer.is_special(token):
                assert (token in allowed) == (token == tokenizer.eos_id and written in matches)
                continue
            after = _written(tokenizer, previous, [*drawn, token])
            after = after.lstrip() if kind == "words" else after
            assert (token in allowed) == any(match.startswith(after) for match in matches), (after, token)
        drawn.append(chance.choice(allowed))
        if drawn[-1] == tokenizer.eos_id:
            break
    assert _written(tokenizer, previous, drawn[:-1]).lstrip() in matches


def _written(tokenizer: Any, previous: int, tokens: list[int]) -> str:
    return tokenizer.decode([previous, *tokens])[len(tokenizer.decode([previous])) :]


def test_a_pattern_that_no_token_begins_is_refused() -> None:
    tokenizer = train_tokenizer("words", ["the cat sat"] * 3, vocab_size=None)
    with pytest.raises(UsageError, match="no token"):
        Forms(tokenizer, tokenizer.eos_id).form("dog").rule(None)


QUOTED = [
    r'^"$', "\\\\", r"\n", ".", "[^a]", r"^\W$", r'^[^a-z]{1,3}$', r"^[\x00-\x2f]+$", r"\t|\\x", "a", r"^US\$", r"^\$$",
    r'^(?:"a"|\\b)+$', r"^a$|^b", r"^é?[日-本]$", "", r"^\u2028?\x1f\x7f$", r"^[\s\S]{2}$", r'^"*|\\$',
]  # fmt: skip


@pytest.mark.parametrize("pattern", QUOTED)
def test_a_string_of_a_pattern_is_json_whose_text_holds_it(pattern: str) -> None:
    """Whatever is drawn, bytes that break a string of JSON above all."""
    for text in _drawn({"type": "string", "pattern": pattern}):
        assert re.search(pattern, text, re.ASCII), text


def _drawn(schema: Any) -> Iterator[Any]:
    """Values of a schema, drawn byte by byte; after forty on the shortest way out."""
    found = automaton(pattern_of(schema))
    chance, liked, left = random.Random(str(schema)), b'"\\\n\t\x00\x1f/u0da', _left(found)
    for _ in range(60):
        state, written = found.start, b""
        while not found.accepts[state]:
            able = found.table[state].nonzero()[0].tolist()
            if len(written) > 40:
                able = [byte for byte in able if left[found.table[state][byte]] < left[state]]
            written += bytes(chance.choices(able, [9 if byte in liked else 1 for byte in able]))
            state = int(found.table[state, written[-1]])
        yield json.loads(written)


def _left(found: Automaton) -> dict[int, int]:
    """How many bytes a match needs from each state on."""
    left = {int(state): 0 for state in np.flatnonzero(found.accepts)}
    while more := {state for state in range(1, len(found.table)) if state not in left} & {
        int(state) for state in np.flatnonzero(np.isin(found.table, list(left)).any(1))
    }:
        left |= dict.fromkeys(more, max(left.values()) + 1)
    return left


@pytest.mark.parametrize("pattern", QUOTED)
def test_a_string_of_a_pattern_may_have_every_text_that_holds_it(pattern: str) -> None:
    chance, found = random.Random(pattern), automaton(pattern_of({"type": "string", "pattern": pattern}))
    for _ in range(300):
        text = "".join(chance.choices('ab"\\\n\t\x01\x1f\u2028日$US/é', k=chance.randint(0, 4)))
        if pattern != "." or not set(text) & {"\u2028"}:  # which ends a line in ECMA's expressions
            written = json.dumps(text, ensure_ascii=False)
            at_its_end = re.sub(r"(?<!\\)\$(?=\||$)", r"\\Z", pattern)  # Python's $ stands before a last line end too
            assert found.matches(written) == bool(re.search(at_its_end, text, re.ASCII)), written


@pytest.mark.parametrize("pattern", [r"(^a)", r"a^", r"$a", r"(a$|b)", r"(?=a)"])
def test_a_pattern_of_a_schema_that_cannot_be_told_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="pattern"):
        pattern_of({"type": "string", "pattern": pattern})


def test_no_string_holds_half_a_character() -> None:
    found = automaton(pattern_of({"type": "string"}))
    assert [found.matches(rf'"\u{code}"') for code in ("d7ff", "d800", "DFFF", "e000", "00e9")] == [1, 0, 0, 1, 1]
