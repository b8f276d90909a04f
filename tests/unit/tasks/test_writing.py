"""Texts written from sources: searched as by hand, ranked as by hand, the same in a batch and alone."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.core import registry
from regard.core.model import logits_of
from regard.data.ragged import in_batches
from regard.data.tokenizer import Tokenizer, train_tokenizer
from regard.decoding.text import TextOptions, options_from
from regard.errors import UsageError
from regard.tasks.pairs import PairProcessor, Pairs
from regard.tasks.writing import ROOM, SPARE, SourceBatch, attention_of, write

EOS = 3
GREEDY = TextOptions(temperature=0.0, max_tokens=6)
SOURCES = torch.tensor([[3, 1, 2, 0], [2, 0, 0, 0], [1, 3, 0, 0]])
LENGTHS = torch.tensor([4, 2, 3])
ATTENTIVE = ["bahdanau", "gnmt", "transformer"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    found = train_tokenizer("words", ["a b a b"])
    assert found.eos_id == EOS
    return found


def model_of(name: str, tokenizer: Tokenizer, spread: float = 1.0, **settings: Any) -> Any:
    """Random weights large enough that texts differ; with a little `spread` no text ever ends."""
    torch.manual_seed(3)
    model = registry.build(name, vocab_size=tokenizer.vocab_size, size="tiny", **settings).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
        head = model.decoder.head
        head.weight.copy_(spread * torch.randn_like(head.weight))
        if head.bias is not None:
            head.bias.zero_()
    return model


def log_probs(model: Any, row: int, text: tuple[int, ...]) -> Tensor:
    """log p of each token of `text` for one source, by one plain call."""
    source = SOURCES[row : row + 1, : int(LENGTHS[row])]
    read = torch.tensor([[EOS, *text[:-1]]])
    rows = logits_of(model.given(source), read).log_softmax(-1)[0]
    return rows[range(len(text)), list(text)]


def every_text(n_tokens: int, longest: int) -> list[tuple[int, ...]]:
    """All texts that end, and those of `longest` tokens that do not."""
    rest = [token for token in range(n_tokens) if token != EOS]
    ended = [(*body, EOS) for size in range(longest) for body in itertools.product(rest, repeat=size)]
    return ended + list(itertools.product(rest, repeat=longest))


@torch.no_grad()
@pytest.mark.parametrize("coverage", [0.0, 0.4])
@pytest.mark.parametrize("name", ATTENTIVE)
def test_a_full_beam_with_both_penalties_is_exhaustive_search(name: str, coverage: float, tokenizer: Tokenizer) -> None:
    model, longest, alpha = model_of(name, tokenizer), 3, 0.7
    texts = every_text(tokenizer.vocab_size, longest)
    options = TextOptions(
        beam=len(texts), max_tokens=longest, length_penalty="gnmt", alpha=alpha, coverage=coverage, n_best=4
    )
    found = write(model, tokenizer, SourceBatch(SOURCES, LENGTHS), options)
    for row, one in enumerate(found):
        ranked = []
        for text in texts:
            log_prob = float(log_probs(model, row, text).sum())
            source = SOURCES[row : row + 1, : int(LENGTHS[row])]
            looks = model.alignment(torch.tensor([[EOS, *text[:-1]]]), model.start(source))[0]
            cp = coverage * float(looks.sum(0).clamp(max=1).log().sum())
            ranked.append((log_prob / ((5 + len(text)) / 6) ** alpha + cp, log_prob, text))
        ranked.sort(reverse=True)
        for (score, log_prob, text), got in zip(ranked, (one, *one.others), strict=False):
            assert got.tokens == tuple(token for token in text if token != EOS)
            assert got.score == pytest.approx(score, abs=1e-10)
            assert got.log_prob == pytest.approx(log_prob, abs=1e-10)
        assert len(one.others) == 3


@pytest.mark.parametrize("pooling", ["last", "attention"])
def test_coverage_is_refused_where_no_attention_looks_at_the_source(pooling: str, tokenizer: Tokenizer) -> None:
    model = model_of("seq2seq", tokenizer, pooling=pooling)
    with pytest.raises(UsageError, match="coverage ranks texts by their attention to the source, and this model has"):
        write(model, tokenizer, SourceBatch(SOURCES, LENGTHS), TextOptions(beam=2, coverage=0.2))


@pytest.mark.parametrize("name", ATTENTIVE)
def test_attention_of_half_precision_can_be_read_as_numbers(name: str, tokenizer: Tokenizer) -> None:
    given = model_of(name, tokenizer).bfloat16().given(SOURCES, LENGTHS)
    found = attention_of(given, [(EOS,)] * len(SOURCES), range(len(SOURCES)), (EOS,))
    assert found is not None
    for weights in found:
        assert weights.numpy().sum(1) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"length_penalty": "gnmt"}, "length_penalty ranks the texts of a beam; say beam as well"),
        ({"alpha": 0.9}, "alpha ranks the texts of a beam; say beam as well"),
        ({"beam": 2, "alpha": 0.9}, "alpha is the strength of a length penalty"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        options_from(options)


@pytest.mark.parametrize("name", ["seq2seq", *ATTENTIVE])
def test_a_beam_of_one_is_greedy_and_every_batch_is_its_members(name: str, tokenizer: Tokenizer) -> None:
    model = model_of(name, tokenizer)
    for options in (GREEDY, TextOptions(beam=1, max_tokens=6), TextOptions(beam=3, max_tokens=6, n_best=2)):
        together = write(model, tokenizer, SourceBatch(SOURCES, LENGTHS), options)
        for row, one in enumerate(together):
            size = int(LENGTHS[row])
            (alone,) = write(
                model, tokenizer, SourceBatch(SOURCES[row : row + 1, :size], LENGTHS[row : row + 1]), options
            )
            assert (one.tokens, one.finish) == (alone.tokens, alone.finish)
            assert one.log_prob == pytest.approx(alone.log_prob, abs=1e-10)
            assert [other.tokens for other in one.others] == [other.tokens for other in alone.others]
    greedy = write(model, tokenizer, SourceBatch(SOURCES, LENGTHS), GREEDY)
    searched = write(model, tokenizer, SourceBatch(SOURCES, LENGTHS), TextOptions(beam=1, max_tokens=6))
    assert [(one.tokens, one.finish) for one in greedy] == [(one.tokens, one.finish) for one in searched]


@torch.no_grad()
@pytest.mark.parametrize("beam", [None, 2])
def test_a_text_has_the_room_of_its_own_source_and_not_of_the_longest_beside_it(
    beam: int | None, tokenizer: Tokenizer
) -> None:
    model = model_of("bahdanau", tokenizer)
    model.decoder.head.bias[tokenizer.eos_id] = -100.0  # no text ever ends
    lengths = torch.tensor([1, 9])
    sources = torch.randint(1, 4, (2, 9))
    options = TextOptions(beam=beam) if beam else TextOptions(temperature=0.0)
    found = write(model, tokenizer, SourceBatch(sources, lengths), options)
    assert [len(one.tokens) for one in found] == [ROOM * 1 + SPARE, ROOM * 9 + SPARE]
    assert {one.finish for one in found} == {"length"}
    (alone,) = write(model, tokenizer, SourceBatch(sources[:1, :1], lengths[:1]), options)
    assert alone.tokens == found[0].tokens
    assert alone.log_prob == pytest.approx(found[0].log_prob, abs=1e-9)


@torch.no_grad()
@pytest.mark.parametrize("beam", [None, 3])
@pytest.mark.parametrize("name", ATTENTIVE)
def test_attention_has_a_row_for_each_token_and_a_column_for_each_source_token(
    name: str, beam: int | None, tokenizer: Tokenizer
) -> None:
    model = model_of(name, tokenizer)
    options = TextOptions(beam=beam, max_tokens=5) if beam else TextOptions(temperature=0.0, max_tokens=5)
    found = write(model, tokenizer, SourceBatch(SOURCES, LENGTHS), options, attention=True)
    finishes = set()
    for row, one in enumerate(found):
        finishes.add(one.finish)
        assert one.attention is not None
        n_rows = len(one.tokens) + (one.finish == "eos")
        assert one.attention.shape == (n_rows, int(LENGTHS[row]))
        torch.testing.assert_close(one.attention.sum(1), torch.ones(n_rows).double())
        text = (*one.tokens, EOS)[:n_rows]
        alone = model.alignment(
            torch.tensor([[EOS, *text[:-1]]]), model.start(SOURCES[row : row + 1, : int(LENGTHS[row])])
        )
        torch.testing.assert_close(one.attention, alone[0])
    (one,) = write(model_of("seq2seq", tokenizer), tokenizer, SourceBatch(SOURCES[:1], None), options, attention=True)
    assert one.attention is None


def test_chance_belongs_to_the_number_of_a_source_and_not_to_its_batch(tokenizer: Tokenizer) -> None:
    model, options = model_of("bahdanau", tokenizer, spread=0.3), TextOptions(max_tokens=12, seed=5)
    together = write(model, tokenizer, SourceBatch(SOURCES, LENGTHS, [7, 8, 9]), options)
    for row, one in enumerate(together):
        (alone,) = write(
            model, tokenizer, SourceBatch(SOURCES[row : row + 1], LENGTHS[row : row + 1], [7 + row]), options
        )
        assert alone.tokens == one.tokens
    same = SourceBatch(SOURCES[:1].expand(8, -1), LENGTHS[:1].expand(8))
    assert len({one.tokens for one in write(model, tokenizer, same, options)}) > 1


def test_sources_come_longest_first_each_once() -> None:
    sizes = [3, 9, 1, 9, 4]
    batches = [rows.tolist() for rows in in_batches(sizes, at_once=2)]
    assert batches == [[1, 3], [4, 0], [2]]


@pytest.mark.parametrize("options", [GREEDY, TextOptions(beam=2, max_tokens=6)], ids=["greedy", "beam"])
def test_a_file_is_answered_in_its_own_order_as_line_by_line(
    options: TextOptions, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.tasks.pairs.in_batches", lambda sizes: in_batches(sizes, at_once=3))
    model, task, processor = model_of("bahdanau", tokenizer), Pairs(), PairProcessor(tokenizer, tokenizer)
    lines = ["a b", "", "b", "a a b b a", "b b", "a b", "a", "zzz"]
    answers = list(task.answers(model, processor, lines, options))
    assert [answer.details["source"] for answer in answers] == lines
    for line, answer in zip(lines, answers, strict=True):
        (alone,) = task.answers(model, processor, [line], options)
        assert alone.text == answer.text
        assert alone.details["log_prob"] == pytest.approx(answer.details["log_prob"], abs=1e-10)


def test_what_is_written_is_a_line(tokenizer: Tokenizer) -> None:
    letters = train_tokenizer("bytes", ["x"])
    model = model_of("bahdanau", letters)
    with torch.no_grad():
        model.decoder.head.bias[letters.encode("\n")[0]] = 100.0
    (one,) = write(
        model, letters, SourceBatch(torch.tensor([[5, 6]]), None), TextOptions(temperature=0.0, max_tokens=3)
    )
    assert one.text == "   "
