from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from decoding.table import Letters, TableModel, bigram_table, prompt, random_table
from regard.core.context import Context
from regard.core.registry import build
from regard.core.state import State
from regard.decoding import logits as logits_module
from regard.decoding.draft import Drafter
from regard.decoding.generate import Generation, Limits, generate, stream
from regard.decoding.logits_processing import GREEDY, Sampling
from regard.decoding.slots import Slots
from regard.errors import NumericError, UsageError

GOLDEN = Path(__file__).parents[2] / "golden"
WARPED = Sampling(temperature=0.8, top_k=5, top_p=0.95)


def one_by_one(model: object, prompts: list[Tensor], **options: object) -> list[Generation]:
    return [generate(model, [p], first=i, **options)[0] for i, p in enumerate(prompts)]  # pyright: ignore


def assert_same(some: list[Generation], others: list[Generation]) -> None:
    assert [(g.tokens, g.finish, g.slides) for g in some] == [(g.tokens, g.finish, g.slides) for g in others]
    for one, other in zip(some, others, strict=True):
        assert one.log_probs == pytest.approx(other.log_probs, abs=1e-11)


def test_greedy_generation_stops_after_the_end_symbol_which_is_not_part_of_the_text() -> None:
    case = json.loads((GOLDEN / "chain_rule.json").read_text())
    words = [*case["prefix"], *case["continuation"]]
    rows = [[0.1] * 6 for _ in words]
    for i, probability in zip(range(2, 5), (0.4, 0.5, 0.25), strict=True):
        rows[i] = [(1 - probability) / 5] * 6
        rows[i][i + 1] = probability
    eos = words.index("[EOS]")
    shown = [f"{word} " for word in words]
    [result] = generate(
        bigram_table(rows),
        [prompt(0, 1, 2)],
        limits=Limits(max_tokens=9, eos_id=eos),
        settings=GREEDY,
        streamer=lambda: Letters(shown),
    )
    assert result.tokens == (3, 4, 5)
    assert result.finish == "eos"
    assert result.text == "great day "
    assert math.fsum(result.log_probs) == pytest.approx(case["log_joint_with_eos"], abs=1e-12)


@pytest.mark.parametrize("settings", [GREEDY, Sampling(), WARPED])
def test_a_batch_of_unequal_prompts_equals_one_by_one(settings: Sampling) -> None:
    model = random_table(7, seed=1)
    prompts = [prompt(1), prompt(2, 3, 4), prompt(5, 6), prompt(1, 2, 3, 4, 5), prompt(6)]
    options = {"limits": Limits(max_tokens=12, eos_id=0), "settings": settings, "seed": 3}
    together = generate(model, prompts, **options)  # pyright: ignore
    assert_same(together, one_by_one(model, prompts, **options))
    assert len({len(g.tokens) for g in together}) > 1


def test_rows_that_have_ended_leave_the_batch_and_no_token_is_computed_twice() -> None:
    model = random_table(7, seed=1)
    prompts = [prompt(1), prompt(2, 3, 4), prompt(5, 6)]
    results = generate(model, prompts, limits=Limits(max_tokens=12, eos_id=0))
    lengths = [len(g.tokens) for g in results]
    steps = [(sum(n > done for n in lengths), 1) for done in range(1, max(lengths))]
    assert model.calls == [(3, 3), *steps]
    assert sorted({rows for rows, _ in steps}) != [3]


def test_the_seed_and_the_number_of_the_prompt_decide_what_is_drawn() -> None:
    model = random_table(7, seed=1, scale=0.3)
    limits = Limits(max_tokens=20)
    same = [prompt(1)] * 3
    results = [generate(model, same, limits=limits, seed=seed) for seed in (0, 0, 1)]
    assert results[0] == results[1]
    assert len({g.tokens for g in results[0] + results[2]}) == 6
    longer = generate(model, same, limits=Limits(max_tokens=30), seed=0)
    assert [g.tokens[:20] for g in longer] == [g.tokens for g in results[0]]


def test_draws_follow_the_warped_distribution_and_report_raw_log_probs() -> None:
    """4,000 draws of one token with p = 0.5 0.3 0.15 0.05 at temperature 0.5, cut to the best three."""
    p = [0.5, 0.3, 0.15, 0.05]
    results = generate(
        bigram_table([p] * 4),
        [prompt(0)] * 4000,
        limits=Limits(max_tokens=1),
        settings=Sampling(temperature=0.5, top_k=3),
    )
    squares = [x * x for x in p[:3]]
    for token, square in enumerate(squares):
        share = square / sum(squares)
        found = sum(g.tokens == (token,) for g in results) / 4000
        assert abs(found - share) < 4 * math.sqrt(share * (1 - share) / 4000)
    assert {g.tokens[0] for g in results} == {0, 1, 2}
    assert all(g.log_probs[0] == pytest.approx(math.log(p[g.tokens[0]]), abs=1e-12) for g in results)


def test_streamed_pieces_are_the_generation() -> None:
    model = random_table(6, seed=4)
    words = ["", "a", "bc", "c", "ab", "\n"]
    options = {
        "limits": Limits(max_tokens=15, eos_id=0, stop=("cab", "\n\n")),
        "streamer": lambda: Letters(words),
        "seed": 5,
    }
    prompts = [prompt(0, i) for i in range(6)]
    results = generate(model, prompts, **options)  # pyright: ignore
    pieces = list(stream(model, prompts, **options))  # pyright: ignore
    assert {g.finish for g in results} >= {"eos", "stop"}
    for i, result in enumerate(results):
        mine = [piece for piece in pieces if piece.row == i]
        assert tuple(piece.token for piece in mine) == result.tokens
        assert tuple(piece.log_prob for piece in mine) == result.log_probs
        assert "".join(piece.text for piece in mine) == result.text
        assert [piece.finish for piece in mine] == [None] * (len(mine) - 1) + [result.finish]
        spelt = "".join(words[token] for token in result.tokens)
        cut = min((spelt.find(s) for s in ("cab", "\n\n") if s in spelt), default=len(spelt))
        assert result.text == spelt[:cut]
        assert (result.finish == "stop") == (cut < len(spelt))


def test_a_stop_string_that_spans_tokens_is_never_shown() -> None:
    chain = bigram_table([[0.0 if j != (i + 1) % 4 else 1.0 for j in range(4)] for i in range(4)])
    words = ["x", "yS", "TO", "Pz"]
    pieces = list(
        stream(chain, [prompt(0)], limits=Limits(max_tokens=9, stop=("STOP",)), streamer=lambda: Letters(words), seed=0)
    )
    assert [piece.text for piece in pieces] == ["y", "", ""]
    assert pieces[-1].finish == "stop"


def test_text_held_back_comes_out_when_the_tokens_are_spent() -> None:
    chain = bigram_table([[0.0, 1.0], [1.0, 0.0]])
    [result] = generate(
        chain, [prompt(0)], limits=Limits(max_tokens=3, stop=("baba",)), streamer=lambda: Letters(["a", "b"])
    )
    assert (result.text, result.finish) == ("bab", "length")


def test_a_stop_string_completed_by_the_last_token_is_a_stop() -> None:
    chain = bigram_table([[0.0, 1.0], [1.0, 0.0]])
    [result] = generate(
        chain, [prompt(0)], limits=Limits(max_tokens=3, stop=("ab",)), streamer=lambda: Letters(["a", "b"])
    )
    assert (result.text, result.finish, len(result.tokens)) == ("b", "stop", 3)


def test_the_last_words_of_a_streamer_are_part_of_the_text() -> None:
    class Late(Letters):
        def finish(self) -> str:
            return "!"

    [result] = generate(bigram_table([[1.0]]), [prompt(0)], limits=Limits(2), streamer=lambda: Late(["a"]))
    assert result.text == "aa!"


def test_a_full_window_ends_the_text_when_it_may_not_slide() -> None:
    model = random_table(5, seed=2, max_length=6)
    limits = Limits(max_tokens=20, slide=False)
    results = generate(model, [prompt(1, 2), prompt(1, 2, 3, 4, 0, 1), prompt(3)], limits=limits)
    assert [len(g.tokens) for g in results] == [5, 1, 6]
    assert {g.finish for g in results} == {"context"}
    assert {g.slides for g in results} == {0}
    exact = generate(model, [prompt(1, 2)], limits=Limits(max_tokens=5, slide=False))
    assert exact[0].finish == "length"


@pytest.mark.parametrize("window", [1, 2, 5, 6])
def test_a_sliding_window_goes_on_from_its_last_half(window: int) -> None:
    """Against the definition: the context is everything, or, once full, its last half and what follows."""
    model = random_table(5, seed=2, max_length=window)
    [result] = generate(model, [prompt(1, 2)], limits=Limits(max_tokens=17), settings=GREEDY)
    context, drawn, slides = [1, 2], [], 0
    for _ in range(17):
        if len(context) > window:
            context = context[-max(1, window // 2) :]
            slides += 1
        logits, _ = model(torch.tensor([context]), model.init_state(1), Context())
        drawn.append(int(logits[0, -1].argmax()))
        context.append(drawn[-1])
    assert result.tokens == tuple(drawn)
    assert (result.finish, result.slides) == ("length", slides)
    assert slides > 0


def test_sliding_rows_do_not_disturb_each_other() -> None:
    model = random_table(5, seed=2, max_length=6)
    prompts = [prompt(1, 2), prompt(*[3, 1] * 6), prompt(3), prompt(1, 2, 3, 4, 0, 1), prompt(4, 4)]
    options = {"limits": Limits(max_tokens=25, eos_id=0), "settings": Sampling(), "seed": 9}
    together = generate(model, prompts, **options)  # pyright: ignore
    assert_same(together, one_by_one(model, prompts, **options))
    assert max(g.slides for g in together) > 1


@pytest.mark.parametrize("name", ["gpt", "lstm"])
def test_neural_models_generate_alone_as_in_a_batch(name: str) -> None:
    torch.manual_seed(0)
    model = build(name, vocab_size=11, size="tiny").double()
    prompts = [prompt(1), prompt(2, 3, 4, 9, 10), prompt(5, 6), prompt(*range(11))]
    options = {"limits": Limits(max_tokens=40, eos_id=0), "settings": Sampling(1.3), "seed": 1}
    assert_same(generate(model, prompts, **options), one_by_one(model, prompts, **options))  # pyright: ignore


def test_room_is_reserved_once_and_nothing_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("gpt", vocab_size=11, size="tiny")
    sizes = []
    real_draw = Slots.draw

    def draw(self: Slots, steps: int) -> object:
        found = real_draw(self, steps)
        sizes.append(self.held.state.nbytes)
        return found

    monkeypatch.setattr(Slots, "draw", draw)
    generate(model, [prompt(1, 2), prompt(3)], limits=Limits(max_tokens=8))
    assert sizes == [model.init_state(2).reserve(2 + 8 - 1).nbytes] * 7


def test_room_doubles_when_a_very_long_text_has_used_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logits_module, "STEPS_RESERVED", 3)
    torch.manual_seed(0)
    model = build("gpt", vocab_size=11, size="tiny").double()
    options = {"limits": Limits(max_tokens=12), "seed": 2}
    small = generate(model, [prompt(1, 2), prompt(3)], **options)  # pyright: ignore
    monkeypatch.undo()
    assert_same(small, generate(model, [prompt(1, 2), prompt(3)], **options))  # pyright: ignore


def test_the_model_is_put_back_in_its_mode_part_by_part() -> None:
    model = build("lstm", vocab_size=11, size="tiny").train()
    model.embedding.eval()
    before = [part.training for part in model.modules()]
    pieces = stream(model, [prompt(1)], limits=Limits(max_tokens=5))
    next(pieces)
    assert not any(part.training for part in model.modules())
    pieces.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert [part.training for part in model.modules()] == before
    generate(model, [prompt(1)], limits=Limits(max_tokens=2))
    assert [part.training for part in model.modules()] == before


def test_nothing_is_recorded_for_gradients() -> None:
    class Watch(nn.Module):
        def __init__(self, table: TableModel) -> None:
            super().__init__()
            self.table = table
            self.weight = nn.Parameter(torch.ones(1, dtype=torch.float64))
            self.vocab_size, self.max_length, self.init_state = table.vocab_size, None, table.init_state
            self.graphs: list[bool] = []
            self.head = nn.Identity()

        def forward(self, *arguments: object) -> tuple[Tensor, object]:
            logits, state = self.table(*arguments)  # pyright: ignore
            self.graphs.append((logits * self.weight).requires_grad)
            return logits, state

    model = Watch(random_table(5, seed=0))
    pieces = stream(model, [prompt(1)], limits=Limits(max_tokens=3))  # pyright: ignore
    for _ in itertools.islice(pieces, 2):
        assert torch.is_grad_enabled()
    assert not any(model.graphs)


def test_no_prompts_give_no_texts() -> None:
    assert generate(random_table(5, seed=0), [], limits=Limits(max_tokens=3)) == []


def test_a_prompt_that_cannot_be_read_is_refused_with_its_number() -> None:
    model = random_table(5, seed=0, max_length=4)
    for wrong in (prompt(5), prompt(-1)):
        with pytest.raises(UsageError, match=r"prompt 1 has token .* the model knows 0 to 4"):
            generate(model, [prompt(1), wrong], limits=Limits(max_tokens=3))
    with pytest.raises(UsageError, match="prompt 0 is empty"):
        generate(model, [prompt()], limits=Limits(max_tokens=3))
    with pytest.raises(UsageError, match="prompt 0 has 5 tokens, more than the window of 4"):
        generate(model, [prompt(*[1] * 5)], limits=Limits(max_tokens=3, slide=False))


def test_limits_that_cannot_be_met_are_refused() -> None:
    with pytest.raises(UsageError, match="max_tokens"):
        Limits(max_tokens=0)
    with pytest.raises(UsageError, match="stop strings need a streamer"):
        generate(random_table(5, seed=0), [prompt(1)], limits=Limits(max_tokens=3, stop=("a",)))


@pytest.mark.parametrize("settings", [GREEDY, WARPED])
def test_logits_that_are_not_numbers_are_named(settings: Sampling) -> None:
    model = bigram_table([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [math.nan] * 3])
    with pytest.raises(NumericError, match="token 2 of prompt 0"):
        generate(model, [prompt(0)], limits=Limits(max_tokens=5), settings=settings)


@pytest.mark.parametrize("drafter", [None, Drafter.of_text()])
def test_what_texts_begin_with_keeps_no_gradients(drafter: Drafter | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source is encoded for texts alone."""
    given: Any = build("seq2seq", vocab_size=11, size="tiny")
    given = given.given(torch.tensor([[3, 4, 5], [7, 8, 9]]))
    begun: list[State] = []
    start = given.init_state
    monkeypatch.setattr(given, "init_state", lambda n: begun.append(start(n)) or begun[-1])
    generate(given, [prompt(1), prompt(2)], limits=Limits(3), draft=drafter)
    assert begun
    assert not any(tensor.requires_grad for state in begun for tensor in state.tensors())
