"""Continuations put together from what the engine tells: prompts before them, and what there is when time is up."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("starlette")

from regard.serving.http.choices import Change, Choices
from regard.serving.http.errors import Error
from regard.serving.http.offsets import offsets_in
from regard.serving.wire import Message


def begun(number: int) -> Message:
    return {"begun": number, "prompt_tokens": 2, "text": f"prompt {number}"}


def echoed(number: int) -> Message:
    return {"echoed": number, "logprobs": [told(number)]}


def event(number: int, text: str, finish: str | None = None, logprobs: list[Any] | None = None) -> Message:
    return {"event": [number, 0, text, 1, finish, logprobs or []]}


def told(token: int) -> list[Any]:
    return [token, str(token), -1.0, [], str(token)]


def test_a_prompt_stands_before_its_continuations() -> None:
    choices = Choices([7, 8], 2)
    found = choices.take([begun(7), begun(8), event(8, " and", "length")])
    texts = {change.index: (change.text, change.finish) for change in found}
    assert texts == {
        0: ("prompt 7", None),
        1: ("prompt 7", None),
        2: ("prompt 8 and", "length"),
        3: ("prompt 8", None),
    }


def test_what_is_written_waits_for_the_probabilities_of_its_prompt() -> None:
    choices = Choices([7], 1, waits=True)
    assert choices.take([begun(7), event(7, " and", "length", [told(2)])]) == []
    assert choices.started
    assert not choices.done
    assert choices.take([echoed(7)]) == [Change(0, "prompt 7 and", 1, [told(7), told(2)], "length", [0, 8])]
    assert choices.done


def spelt(name: str, content: str) -> list[Any]:
    return [0, name, -1.0, [], content.encode().decode("latin-1")]


def test_an_offset_is_where_a_token_begins_in_the_text() -> None:
    """With blanks that tokens bring along, an end that is no text, and a character of several tokens."""
    tokens = [spelt("a", " a"), spelt(",", " ,"), spelt("é", "é"), spelt("sad", " sad"), spelt("<eos>", "")]
    first, second = "é".encode().decode("latin-1")
    tokens[2:3] = [[0, "<0xC3>", -1.0, [], first], [0, "<0xA9>", -1.0, [], second]]
    choices = Choices([7], 1)
    choices.take([begun(7) | {"text": ""}])
    found = [choices.take([event(7, "", None, some)])[0].offsets for some in (tokens[:3], tokens[3:])]
    assert found == [[1, 3, 4], [4, 6, 9]]  # in " a ,é sad"


def test_tokens_of_a_prompt_are_found_where_they_stand_in_it() -> None:
    prompt = "the  zebra\tsat on"
    tokens = [spelt("the", "the"), spelt("<unk>", " <unk>"), spelt("on", " on")]
    choices = Choices([7], 1, waits=True)
    choices.take([begun(7) | {"text": prompt}, {"echoed": 7, "logprobs": tokens}])
    assert choices.prompts[7].offsets[0].at == len(prompt)
    assert offsets_in(prompt, [(one[1], one[4].encode("latin-1")) for one in tokens]) == [0, 5, prompt.index("on")]


def test_when_time_is_up_what_is_open_ends_and_what_was_told_is_not_told_again() -> None:
    choices = Choices([7, 8], 1, waits=True)
    choices.take([begun(7), begun(8), event(7, " and"), event(8, " or", "eos"), echoed(7), echoed(8)])
    assert choices.cut("timeout") == [Change(0, finish="timeout")]
    assert choices.done


@pytest.mark.parametrize("finish", ["length", None])
def test_when_time_is_up_before_a_prompt_was_told_nothing_is_handed_over_as_if_it_were_whole(
    finish: str | None,
) -> None:
    """A continuation that had ended disappeared, and one that had not came without its prompt."""
    choices = Choices([7, 8], 1, waits=True)
    choices.take([begun(7), begun(8), event(7, " and", "length"), echoed(7), event(8, " or", finish)])
    with pytest.raises(Error, match="probabilities of the prompts") as found:
        choices.cut("timeout")
    assert found.value.status == 503
    assert int(found.value.headers["Retry-After"]) > 0
