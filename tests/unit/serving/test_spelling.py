"""Tokens as they are told: the bytes of all of them are the text that they are told of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from look_run import WORDS, text_run
from regard.data.tokenizer import Tokenizer
from regard.data.tokenizer.subword import BytePairTokenizer
from regard.data.tokenizer.word import WordTokenizer
from regard.serving.engine.ask import Ask
from regard.serving.engine.room import Room
from regard.serving.engine.sizing import Sizes
from regard.serving.engine.spelling import Spelling

TEXT = "the cat “sat” 日本 on a mat\n"
MADE: list[Callable[[], Tokenizer]] = [
    lambda: BytePairTokenizer.train(["the cat sat on a mat"], 270),
    lambda: WordTokenizer.train([TEXT], None),
]


def spelt(spelling: Spelling, tokens: Sequence[int]) -> bytes:
    return b"".join(spelling.told(token, -1.0, ())[4].encode("latin-1") for token in tokens)


@pytest.mark.parametrize("made", MADE)
def test_the_bytes_of_all_tokens_are_the_text(made: Callable[[], Tokenizer]) -> None:
    tokenizer = made()
    tokens = tokenizer.encode(TEXT).tolist()
    for cut in range(len(tokens)):
        before, after = tokens[:cut], [*tokens[cut:], tokenizer.eos_id]
        found = spelt(Spelling(tokenizer), before) + spelt(Spelling(tokenizer, [*before, tokenizer.eos_id]), after)
        assert found.decode() == tokenizer.decode(tokens)


def test_the_likeliest_of_a_place_are_spelt_as_they_would_stand_there() -> None:
    tokenizer = WordTokenizer.train(["the cat sat"], None)
    cat, sat = tokenizer.encode("cat sat").tolist()
    spelling = Spelling(tokenizer, [cat])
    told = spelling.told(sat, -2.0, ((cat, -1.0), (tokenizer.eos_id, -3.0)))
    assert told == [sat, "sat", -2.0, [[cat, "cat", -1.0, " cat"], [tokenizer.eos_id, "<eos>", -3.0, ""]], " sat"]


def test_what_an_engine_tells_spells_its_texts() -> None:
    run = text_run("lstm")
    run.model.float()
    room = Room("a", run, Sizes(memory=1 << 30, slots=2))
    prompt = " ".join(WORDS[:2])
    plain = {"run": "a", "id": 1, "prompt": prompt, "n": 1, "max_tokens": 8, "seed": 1, "logprobs": 1, "echo": True}
    plain |= {"stop": (), "sampling": {"temperature": 1.0}, "bias": {}, "presence": 0.0, "frequency": 0.0}
    told = room.submit(Ask.of(plain))
    while room.busy:
        told += room.step()
    events = [event for message in told for event in message.get("events", [])]
    (echoed,) = [message["logprobs"] for message in told if "echoed" in message]
    drawn = [token for event in events for token in event[5]]
    for text, tokens in ((prompt, echoed), ("".join(event[2] for event in events), drawn)):
        assert "".join(token[4] for token in tokens).encode("latin-1").decode() == text
    room.close()
