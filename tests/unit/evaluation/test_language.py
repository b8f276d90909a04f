from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from decoding.table import TableModel, bigram_table, random_table

from regard.core.registry import build, entry, names
from regard.data.shard import make_shard
from regard.data.tokenizer.character import CharacterTokenizer
from regard.data.tokenizer.word import WordTokenizer
from regard.decoding import span as span_module
from regard.decoding.text import TextGenerator
from regard.errors import DataError, UsageError
from regard.evaluation.language import LanguageReport, evaluate, stretches

EOS = 0
CAUSAL = json.loads((Path(__file__).parents[2] / "golden" / "causal_lm.json").read_text())


@dataclass(frozen=True)
class Text:
    """Documents of ids, each followed by the end symbol."""

    documents: list[list[int]]
    n_bytes: int = 0
    n_chars: int = 0
    unknown: None = None

    @property
    def ids(self) -> np.ndarray:
        return np.array([token for document in self.documents for token in (*document, EOS)], dtype=np.uint16)

    @property
    def starts(self) -> np.ndarray:
        return np.cumsum([0, *(len(document) + 1 for document in self.documents[:-1])])


class Digits:
    kind = "words"
    eos_id = start_id = EOS
    unknown_id = None

    def spelling(self, sizes: np.ndarray, /) -> np.ndarray:
        return sizes * 1.0

    def decode(self, ids: list[int], /) -> str:
        return " ".join(map(str, ids))


@dataclass
class FarFact:
    """A world that says its optimum is half a nat, and asks for the first word of a document at its last."""

    tokens: str = "words"
    asked: list[str] = field(default_factory=list)

    def optimal_loss(self, documents: list[str], /) -> float:
        self.asked = documents
        return 0.5

    def recall_points(self, document: str, /) -> list[tuple[int, int]]:
        last = len(document.split()) - 1
        return [(last, last)]


def text_of(n: int, vocab_size: int, documents: int = 1, seed: int = 0, **sizes: int) -> Text:
    draws = np.random.default_rng(seed).integers(1, vocab_size, n)
    return Text([part.tolist() for part in np.array_split(draws, documents)], **sizes)


def nats(model: TableModel, seen: list[int]) -> float:
    """-log p of all tokens after the first, by the chain rule from the table."""
    log_p = model.logits.log_softmax(-1)
    seen = [model.vocab_size, *seen]
    return -sum(float(log_p[tuple(seen[i - 2 : i + 1])]) for i in range(2, len(seen)))


def test_a_stream_is_the_chain_rule_over_all_its_tokens() -> None:
    model, text = random_table(6, 0), text_of(300, 6, documents=7, n_bytes=600, n_chars=500)
    report = evaluate(model, text, tokenizer=Digits(), length=64)
    total = nats(model, [EOS, *text.ids.tolist()])
    assert report.tokens == 307
    assert report.loss == pytest.approx(total / 307, abs=1e-12)
    assert report.perplexity == pytest.approx(math.exp(total / 307))
    assert report.bits_per_byte == pytest.approx(total / math.log(2) / 600)
    assert report.bits_per_character == pytest.approx(total / math.log(2) / 500)
    assert report.optimal_loss is None


def test_stretches_side_by_side_are_warmed_up_and_lose_nothing() -> None:
    """Two tokens decide, so that a warm-up of a few tokens makes each stretch exact."""
    model, text = random_table(6, 1), text_of(700, 6)
    assert len(stretches(701, 5)) == 16
    report = evaluate(model, text, tokenizer=Digits(), length=5)
    assert report.loss == pytest.approx(nats(model, [EOS, *text.ids.tolist()]) / 701, abs=1e-12)


@pytest.mark.parametrize(("end", "warm_up"), [(1, 1), (7, 100), (1000, 3), (999, 20), (50, 6)])
def test_stretches_count_every_token_once(end: int, warm_up: int) -> None:
    spans = stretches(end, warm_up)
    assert [i for span in spans for i in range(span.counted, span.end + 1)] == list(range(end))
    assert all(span.begin == max(-1, span.counted - 1 - warm_up) for span in spans)


@pytest.mark.parametrize("stride", [None, 1, 3, 4])
def test_windows_count_every_token_once_with_fresh_positions(stride: int | None) -> None:
    """Against the definition: each window is a text of its own, of which the new tokens count."""
    model, text = random_table(6, 2, max_length=4), text_of(30, 6)
    report = evaluate(model, text, tokenizer=Digits(), stride=stride)
    seen = [EOS, *text.ids.tolist()]
    step = stride or 2
    total, done = nats(model, seen[:5]), 5
    while done < len(seen):
        stop = min(done + step, len(seen))
        window = seen[stop - 5 : stop]
        total += nats(model, window) - nats(model, window[: done - stop + 5])
        done = stop
    assert report.tokens == 31
    assert report.loss == pytest.approx(total / 31, abs=1e-12)


def test_the_mean_is_over_tokens_and_not_over_texts() -> None:
    """The golden rows: losses 1 2 3 in one document and 4 in another have the mean 2.5."""
    rows = CAUSAL["rnn_lm_loss"]["batch_of_two_lengths"]
    first, second = rows["nll_rows"]
    table = torch.full((6, 5, 5), math.nan, dtype=torch.float64)

    def set_loss(previous: int, current: int, token: int, loss: float) -> None:
        rest = math.log((1 - math.exp(-loss)) / 4)
        table[previous, current] = rest
        table[previous, current, token] = -loss

    # Documents 1 2 and the empty one, whose end symbols are predicted too.
    for (previous, current, token), loss in zip([(5, 0, 1), (0, 1, 2), (1, 2, 0)], first, strict=True):
        set_loss(previous, current, token, loss)
    set_loss(2, 0, 0, second[0])
    report = evaluate(TableModel(table), Text([[1, 2], []]), tokenizer=Digits())
    assert report.loss == pytest.approx(rows["mean_over_tokens"], abs=1e-12)


@pytest.mark.parametrize("name", [name for name in names() if entry(name).task == "text"])
def test_the_result_does_not_depend_on_the_batch_size(name: str) -> None:
    torch.manual_seed(0)
    model = build(name, vocab_size=7, size="tiny").double()
    text = text_of(150, 7, documents=9)
    for world in (None, FarFact()):
        reports = [
            evaluate(model, text, tokenizer=Digits(), length=8, batch_size=batch_size, world=world)
            for batch_size in (1, 5, 64)
        ]
        assert {report.tokens for report in reports} == {159}
        assert [report.loss for report in reports] == pytest.approx([reports[0].loss] * 3, abs=1e-11)
        assert all(report.recall == reports[0].recall for report in reports)


def test_in_a_world_each_document_is_read_from_its_beginning_beside_the_optimum() -> None:
    model, world = random_table(6, 3), FarFact()
    text = Text([[1, 2, 3], [4, 5], [5, 1, 1, 2, 3]])
    report = evaluate(model, text, tokenizer=Digits(), world=world)
    total = sum(nats(model, [EOS, *document, EOS]) for document in text.documents)
    assert report.tokens == 13
    assert report.loss == pytest.approx(total / 13, abs=1e-12)
    assert world.asked == ["1 2 3", "4 5", "5 1 1 2 3"]
    assert report.optimal_loss == 0.5
    assert report.excess == pytest.approx(report.loss - 0.5)


def test_recall_is_the_share_of_right_answers_by_distance() -> None:
    """A model that always says 1 after 2, and documents whose last word is or is not 1."""
    model = bigram_table([[0.2, 0.3, 0.5], [0.3, 0.3, 0.4], [0.1, 0.6, 0.3]])
    text = Text([[2, 1], [1, 2, 1], [1, 1, 2, 1], [1, 1, 2, 2, 1], [1, 1, 1, 2, 2], [*[2] * 9, 1]])
    report = evaluate(model, text, tokenizer=Digits(), world=FarFact())
    assert report.recall == {"1": 1.0, "2": 1.0, "3-4": pytest.approx(2 / 3), "9-16": 1.0}
    assert list(report.recall) == ["1", "2", "3-4", "9-16"]


def test_a_world_in_other_tokens_has_no_optimum_to_compare_with() -> None:
    report = evaluate(random_table(6, 3), text_of(20, 6), tokenizer=Digits(), world=FarFact(tokens="chars"))
    assert report.optimal_loss is None
    assert report.recall is None


def test_a_limit_takes_the_first_tokens_and_their_share_of_the_bytes() -> None:
    model, text = random_table(6, 0), text_of(199, 6, n_bytes=400)
    report = evaluate(model, text, tokenizer=Digits(), limit=50)
    total = nats(model, [EOS, *text.ids[:50].tolist()])
    assert report.tokens == 50
    assert report.loss == pytest.approx(total / 50, abs=1e-12)
    assert report.bits_per_byte == pytest.approx(total / math.log(2) / 100)
    assert evaluate(model, text, tokenizer=Digits(), limit=10**9).tokens == 200


def test_a_limit_in_a_world_takes_whole_documents() -> None:
    model, world = random_table(6, 0), FarFact()
    text = Text([[1, 2, 3], [4, 5], [5, 1]])
    assert evaluate(model, text, tokenizer=Digits(), world=world, limit=9).tokens == 7
    assert evaluate(model, text, tokenizer=Digits(), world=world, limit=1).tokens == 4


def test_growing_states_are_read_in_windows_and_constant_ones_carried() -> None:
    lengths: dict[str, int] = {}
    text = text_of(200, 7)
    for name in ("gpt", "lstm"):
        model = build(name, vocab_size=7, size="tiny")
        seen: list[torch.Size] = []
        model.register_forward_pre_hook(lambda _, call, seen=seen: seen.append(call[0].shape))
        evaluate(model, text, tokenizer=Digits(), length=8)
        lengths[name] = max(shape[1] for shape in seen)
    assert lengths["gpt"] == 8
    assert lengths["lstm"] > 60


def test_long_texts_are_read_in_chunks_with_the_state_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model, text = build("lstm", vocab_size=7, size="tiny").double(), text_of(100, 7)
    whole = evaluate(model, text, tokenizer=Digits())
    monkeypatch.setattr(span_module, "POSITIONS_AT_ONCE", 9)
    assert evaluate(model, text, tokenizer=Digits()).loss == pytest.approx(whole.loss, abs=1e-12)


def test_evaluation_leaves_the_model_as_it_was() -> None:
    model = build("lstm", vocab_size=7, size="tiny").train()
    model.head.eval()
    modes = [part.training for part in model.modules()]
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    evaluate(model, text_of(30, 7), tokenizer=Digits())
    assert [part.training for part in model.modules()] == modes
    assert all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.is_grad_enabled()


def test_a_report_has_plain_keys_without_what_was_not_measured() -> None:
    assert LanguageReport(1.0, math.e, 2.0, None, 5).to_dict() == {
        "loss": 1.0,
        "perplexity": math.e,
        "bits_per_byte": 2.0,
        "tokens": 5,
    }


def test_what_cannot_be_evaluated_is_refused() -> None:
    model = random_table(6, 0)
    with pytest.raises(DataError, match="held-out part is empty"):
        evaluate(model, Text([]), tokenizer=Digits())
    for length, stride in itertools.product([4], [0, 5]):
        with pytest.raises(UsageError, match="stride"):
            evaluate(model, text_of(9, 6), tokenizer=Digits(), length=length, stride=stride)


def test_an_unknown_character_costs_its_token_and_the_choice_of_one_of_all_others():
    """Bits are those of a true code, whatever the tokens: the chances of all characters at a place sum to one."""
    tokenizer = CharacterTokenizer("abc")
    text = "abc日ab😀c"
    shard = make_shard([text], tokenizer)
    model = random_table(tokenizer.vocab_size, 3)
    report = evaluate(model, shard, tokenizer=tokenizer)
    others = math.log(1_114_112 - 2_048 - 3)
    nats = report.loss * report.tokens + 2 * others
    assert report.bits_per_byte == pytest.approx(nats / math.log(2) / len(text.encode()))
    assert report.bits_per_character == pytest.approx(nats / math.log(2) / len(text))
    known = evaluate(model, make_shard(["abcab"], tokenizer), tokenizer=tokenizer)
    assert known.bits_per_byte == pytest.approx(known.loss * known.tokens / math.log(2) / 5)


def test_an_unknown_word_costs_its_token_and_eight_bits_a_byte():
    """A text of which nothing is known takes as many bits as it has, beyond the chances of its tokens."""
    tokenizer = WordTokenizer(["the", "cat"], spaced_lines=False)
    text = "the größte cat\nzebra the <unk>"
    shard = make_shard([text], tokenizer)
    model = random_table(tokenizer.vocab_size, 3)
    report = evaluate(model, shard, tokenizer=tokenizer)
    spelt = len(" größte".encode()) + len("zebra")  # the text spells <unk> itself
    bits = report.loss * report.tokens / math.log(2) + 8 * spelt
    assert report.bits_per_byte == pytest.approx(bits / len(text.encode()))
    assert report.bits_per_character == pytest.approx(bits / len(text))
    assert (report.unknown, report.unknown_share) == (3, 3 / 8)
    # Documents one by one: bits know of it, the loss by tokens does not, and bytes are those of the text.
    assert report.each is not None
    each = report.each()
    assert each.score == pytest.approx(report.loss)
    assert each.sizes is not None
    assert each.sizes.sum() == len(text.encode()) + 1  # and the end
    assert each.per_byte().score == pytest.approx(bits / (len(text.encode()) + 1))
    # Of a part of the text, that part.
    half = evaluate(model, shard, tokenizer=tokenizer, limit=4)
    bits = half.loss * 4 / math.log(2) + 8 * len(" größte".encode())
    assert half.bits_per_byte == pytest.approx(bits * 2 / len(text.encode()))


def test_a_text_scored_alone_counts_what_its_unknown_words_stand_for():
    tokenizer = WordTokenizer(["the", "cat"], spaced_lines=False)
    scored = TextGenerator(random_table(tokenizer.vocab_size, 3), tokenizer).score("the zebra")
    assert scored.score.bits_per_byte == pytest.approx((scored.score.bits + 8 * 6) / 9)
