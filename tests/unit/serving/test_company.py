"""What requests beside it may change of a request: nothing, to the last bit."""

from __future__ import annotations

import random
from typing import Any

import pytest

from look_run import WORDS, pair_run, text_run
from regard.errors import UsageError
from regard.run.run import Run
from regard.serving.engine.ask import Ask
from regard.serving.engine.room import Room
from regard.serving.engine.sizing import Sizes

TEXTS = ("ngram", "dan", "fnn", "rnn", "lstm", "gru", "gpt", "backpack", "s4d", "mamba", "mamba2")
PAIRS = ("seq2seq", "bahdanau", "gnmt", "transformer")


def asked(number: int, **more: Any) -> Ask:
    """A completion with logarithms of probabilities."""
    plain = {
        "run": "a",
        "prompt": "",
        "n": 1,
        "max_tokens": 8,
        "seed": number,
        "logprobs": 2,
        "echo": False,
        "stop": (),
    }
    plain |= {"sampling": {"temperature": 1.0}, "bias": {}, "presence": 0.0, "frequency": 0.0}
    return Ask.of(plain | {"id": number} | more)


def answered(room: Room, asks: list[Ask]) -> dict[int, list[Any]]:
    """All events of some requests that come at once, by their numbers."""
    found: dict[int, list[Any]] = {ask.number: [] for ask in asks}
    told = [message for ask in asks for message in room.submit(ask)]
    while room.busy:
        told += room.step()
    for message in told:
        assert "refused" not in message, message
        for event in message.get("events", []):
            found[event[0]].append(event[1:])
    return found


def made(name: str) -> Run:
    run: Run = pair_run(name) if name in PAIRS else text_run(name)
    run.model.float()
    return run


@pytest.mark.parametrize("name", [*TEXTS, *PAIRS])
def test_an_answer_is_the_same_to_the_last_bit_whatever_stands_beside_it(name: str) -> None:
    """Texts, and probabilities in float32: what is longer beside it makes no sum round in another way."""
    chance, room = random.Random(0), Room("a", made(name), Sizes(memory=1 << 30, slots=6))
    asks = [
        asked(
            number, prompt=" ".join(chance.choices(WORDS, k=chance.randint(1, 12))), max_tokens=chance.choice([3, 20])
        )
        for number in range(18)
    ]
    crowded = answered(room, asks)
    for ask in asks:
        assert answered(room, [ask])[ask.number] == crowded[ask.number]
    room.close()


def test_the_end_of_a_text_is_told_with_its_probability_and_of_a_turn_it_is_not() -> None:
    """Clients that cut as many probabilities off as they asked for tokens would otherwise lose one of the prompt."""
    run = made("lstm")
    room, end = Room("a", run, Sizes(memory=1 << 30, slots=2)), run.tokenizer.eos_id
    [[_, text, tokens, finish, told]] = answered(room, [asked(1, prompt=WORDS[0], bias={str(end): 100.0})])[1]
    assert (text, tokens, finish) == ("", 1, "eos")
    assert [one[0] for one in told] == [end]
    room.close()


def test_nothing_is_read_for_a_request_that_was_refused() -> None:
    room = Room("a", made("lstm"), Sizes(memory=1 << 30, slots=2))
    with pytest.raises(UsageError, match="logit_bias"):
        room.submit(asked(1, prompt=WORDS[0] + " " + WORDS[1], echo=True, bias={"99999": 1.0}))
    assert not room.echoes
    assert not room.busy


@pytest.mark.parametrize("most", [0, 2])
def test_a_prompt_of_its_start_alone_is_told_of_though_there_is_nothing_to_read(most: int) -> None:
    """A request that waits for the probabilities of its prompt would otherwise wait for ever."""
    run = made("lstm")
    room = Room("a", run, Sizes(memory=1 << 30, slots=2))
    for number, (prompt, given) in enumerate([([run.tokenizer.start_id], 1), ("", 0)]):
        told = room.submit(asked(number, prompt=prompt, echo=True, max_tokens=most))
        while room.busy:
            told += room.step()
        (echoed,) = [message["logprobs"] for message in told if message.get("echoed") == number]
        assert [one[2] for one in echoed] == [None] * given
    room.close()
