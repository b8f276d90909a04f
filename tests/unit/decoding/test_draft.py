from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from decoding.table import Letters, TableModel, bigram_table, prompt, random_table
from regard.core.registry import entry, names
from regard.core.state import Chain
from regard.decoding import acceptance
from regard.decoding.acceptance import Proposal
from regard.decoding.draft import Drafter, LookupDraft
from regard.decoding.generate import Generation, Limits, generate, stream
from regard.decoding.logits_processing import GREEDY, Sampling, warped_log_probs
from regard.decoding.reader import TRIALS, Reader
from regard.errors import NumericError, UsageError

V = 5
SAMPLES = 4000
WARPED = Sampling(temperature=1.4, top_k=4, top_p=0.95, min_p=0.02)


class Guess:
    """A draft that always proposes the same tokens, surely."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens = list(tokens)

    def propose(self, text: Sequence[int], count: int, settings: Sampling, chances: Sequence[float]) -> Proposal:
        return Proposal(self.tokens[:count])


TABLE = random_table(V, seed=1)
DRAFTS: dict[str, Callable[[], Drafter]] = {
    "good": lambda: Drafter.of_model(near(TABLE, 0.3)),
    "bad": lambda: Drafter.of_model(random_table(V, seed=9)),
    "same": lambda: Drafter.of_model(random_table(V, seed=1)),
    "sure": lambda: Drafter(lambda: Guess([2, 2, 3, 1])),
    "text": Drafter.of_text,
}


def near(model: TableModel, scale: float) -> TableModel:
    generator = torch.Generator().manual_seed(5)
    return TableModel(model.logits + scale * torch.randn(model.logits.shape, generator=generator, dtype=torch.float64))


def chi_square(found: Tensor, p: Tensor) -> tuple[float, int]:
    """The statistic of counts beside probabilities, and its degrees of freedom; rare outcomes are put together."""
    assert found[p == 0].sum() == 0
    expected = p * found.sum()
    rare = expected < 5
    counts = torch.cat([found[~rare], found[rare].sum()[None]])
    means = torch.cat([expected[~rare], expected[rare].sum()[None]])
    counts, means = counts[means > 0], means[means > 0]
    return float(((counts - means) ** 2 / means).sum()), max(0, len(means) - 1)


def likely(statistic: float, freedom: int) -> bool:
    """Below the quantile 1 - 1e-4, by the cube root of Wilson and Hilferty 1931."""
    a = 2 / (9 * freedom)
    return statistic < freedom * (1 - a + 3.719 * math.sqrt(a)) ** 3


def transitions(tokens: Sequence[int], p: Tensor) -> tuple[float, int]:
    """chi_square of what followed every pair of tokens, all pairs together: p depends on them alone."""
    counts = torch.zeros(V, V, V)
    for a, b, c in zip(tokens, tokens[1:], tokens[2:], strict=False):
        counts[a, b, c] += 1
    parts = [chi_square(counts[a, b], p[a, b].float()) for a in range(V) for b in range(V)]
    return sum(part[0] for part in parts), sum(part[1] for part in parts)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("settings", [Sampling(), WARPED])
@pytest.mark.parametrize("name", list(DRAFTS))
def test_tokens_have_the_distribution_that_they_have_without_a_draft(name: str, settings: Sampling) -> None:
    drafter = DRAFTS[name]()
    [found] = generate(TABLE, [prompt(2, 3)], limits=Limits(SAMPLES), settings=settings, seed=4, draft=drafter)
    statistic, freedom = transitions(found.tokens, warped_log_probs(TABLE.logits, settings).exp())
    assert freedom > 25
    assert likely(statistic, freedom)
    assert drafter.tally.accepted > 0
    assert (drafter.tally.accepted == drafter.tally.proposed) == (name == "same")


def test_first_tokens_of_many_texts_have_their_distribution() -> None:
    """Pairs of tokens, the second often proposed together with the first."""
    options = {"limits": Limits(2), "seed": 4, "draft": DRAFTS["good"]()}
    results = generate(TABLE, [prompt(2, 3)] * 1000, **options)  # pyright: ignore[reportArgumentType]
    p = TABLE.logits.softmax(-1)
    exact = p[2, 3][:, None] * p[3, torch.arange(V)]
    drawn = torch.tensor([found.tokens for found in results])
    counts = torch.bincount(drawn[:, 0] * V + drawn[:, 1], minlength=V * V).double()
    assert likely(*chi_square(counts, exact.flatten()))


def test_a_draft_that_is_taken_at_its_word_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests of distributions are worth: with every proposal accepted they fail."""
    monkeypatch.setattr(
        acceptance, "_accepted", lambda p, proposed, q, c: [*proposed, acceptance.drawn(p[-1], c[-1].draw)]
    )
    [found] = generate(TABLE, [prompt(2, 3)], limits=Limits(SAMPLES), seed=4, draft=DRAFTS["good"]())
    assert not likely(*transitions(found.tokens, TABLE.logits.softmax(-1)))


def test_a_rejected_token_is_not_drawn_from_the_whole_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """With p in the place of max(0, p - q) they fail as well."""
    clamp = torch.Tensor.clamp
    monkeypatch.setattr(
        torch.Tensor, "clamp", lambda rest, **ends: rest * 0 if ends == {"min": 0} else clamp(rest, **ends)
    )
    [found] = generate(TABLE, [prompt(2, 3)], limits=Limits(SAMPLES), seed=4, draft=DRAFTS["bad"]())
    assert not likely(*transitions(found.tokens, TABLE.logits.softmax(-1)))


def text_models() -> list[str]:
    """Registered models that write text."""
    return [name for name in names() if entry(name).task == "text"]


def built(name: str, seed: int, vocab_size: int = 13) -> Any:
    """With weights so large that a greedy text does not fall into a rhythm at once; one that counts has counted."""
    torch.manual_seed(seed)
    config = entry(name).config(vocab_size, "tiny")
    if config.fitted:
        return config.build_example()
    model = config.build().double().eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.data.mul_(2.0)
    return model


def assert_same(one: Generation, other: Generation) -> None:
    assert (one.tokens, one.finish, one.slides) == (other.tokens, other.finish, other.slides)
    assert one.log_probs == pytest.approx(other.log_probs, abs=1e-9)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", text_models())
def test_a_greedy_text_is_the_text_without_a_draft(name: str) -> None:
    model = built(name, 0)
    limits = Limits(max_tokens=40, window=30)  # it slides once or more
    options = {"limits": limits, "settings": GREEDY}
    prompts = [prompt(1, 2, 3, 1, 2), prompt(4)]
    alone = generate(model, prompts, **options)  # pyright: ignore
    for drafter in (
        Drafter.of_text(),
        Drafter.of_model(built("gru", 1, model.vocab_size)),
        Drafter.of_model(model, 3, window=9),
    ):
        for one, other in zip(alone, generate(model, prompts, draft=drafter, **options), strict=True):  # pyright: ignore
            assert_same(one, other)


@pytest.mark.parametrize("name", text_models())
def test_a_reader_that_was_taken_back_says_what_one_says_that_has_read_the_text_alone(name: str) -> None:
    model = built(name, 0)
    text = [1, 2, 3, 4, 5, 6, 7, 8]
    reader = Reader(model)
    reader.skip(text[:3])
    for end, guess in ((4, [9, 9, 9]), (5, [6, 7, 9, 9]), (8, [9])):
        reader.read([*reader.follow(text[:end]), *guess])
    unread = reader.follow([*text, 0])
    with torch.no_grad():
        found = model.head(reader.read(unread)[-1])
        expected = model.head(model(torch.tensor([[*text, 0]]))[0][0, -1])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    assert int(reader.state.position) == len(text) + 1


def test_attention_goes_back_in_its_slots_and_a_recurrence_to_a_state_that_was_kept() -> None:
    for name, rewinds in (("gpt", True), ("lstm", False)):
        reader = Reader(built(name, 0))  # pyright: ignore[reportArgumentType]
        reader.skip([1, 2, 3])
        reader.read([4, 5, 6])
        assert reader.rewinds is rewinds
        assert reader.follow([1, 2, 3, 4, 7]) == ([7] if rewinds else [4, 7])


def test_a_chain_is_rewound_only_as_a_whole() -> None:
    count = torch.tensor([1])
    gpt, lstm = (built(name, 0).init_state(1) for name in ("gpt", "lstm"))  # pyright: ignore[reportCallIssue]
    assert gpt.rewind(count) is not None
    assert Chain((gpt, lstm)).rewind(count) is None


@pytest.mark.parametrize("window", [4, 5, 6, 9])
@pytest.mark.parametrize("slide", [True, False])
def test_no_proposal_leads_beyond_the_window(window: int, slide: bool) -> None:
    """The table refuses to be led beyond its window."""
    model = random_table(V, seed=2, max_length=window)
    options = {"limits": Limits(max_tokens=17, slide=slide), "settings": GREEDY}
    [alone] = generate(model, [prompt(1, 2, 3)], **options)  # pyright: ignore
    for drafter in (Drafter.of_model(model, 7), Drafter(lambda: Guess([1] * 7), 7)):
        [found] = generate(model, [prompt(1, 2, 3)], draft=drafter, **options)  # pyright: ignore
        assert_same(found, alone)
    assert alone.finish == ("length" if slide else "context")


def cycle(n: int, slip: float = 0.01) -> TableModel:
    """0, 1, .. n - 1, 0, .. with hardly any chance of another token."""
    rows = [[slip / (n - 1)] * n for _ in range(n)]
    for i in range(n):
        rows[i][(i + 1) % n] = 1 - slip
    return bigram_table(rows)


def test_an_end_inside_the_accepted_tokens_ends_the_text() -> None:
    model = cycle(8)
    drafter = Drafter.of_model(cycle(8), 7)
    [found] = generate(model, [prompt(0)], limits=Limits(max_tokens=50, eos_id=3), settings=GREEDY, draft=drafter)
    assert (found.tokens, found.finish) == ((1, 2, 3), "eos")
    assert drafter.tally.tokens == 3


def test_a_stop_string_inside_the_accepted_tokens_ends_the_text() -> None:
    letters = list("abcdefgh")
    drafter = Drafter.of_model(cycle(8), 7)
    options = {"limits": Limits(50, stop=("de",)), "settings": GREEDY, "streamer": lambda: Letters(letters)}
    results = generate(cycle(8), [prompt(0), prompt(5)], draft=drafter, **options)  # pyright: ignore
    assert [(found.text, found.finish) for found in results] == [("bc", "stop"), ("ghabc", "stop")]
    pieces = list(stream(cycle(8), [prompt(0)], draft=drafter, **options))  # pyright: ignore
    assert "".join(piece.text for piece in pieces) == "bc"


def test_as_many_tokens_as_asked_for_are_written_whatever_is_proposed() -> None:
    for most in range(1, 9):
        drafter = Drafter.of_model(cycle(8), 5)
        [found] = generate(cycle(8), [prompt(0)], limits=Limits(most), settings=GREEDY, draft=drafter)
        assert (len(found.tokens), found.finish, drafter.tally.tokens) == (most, "length", most)


def test_a_text_is_a_function_of_seed_and_row() -> None:
    options = {"limits": Limits(12), "seed": 3}
    together = generate(TABLE, [prompt(1)] * 3, draft=DRAFTS["good"](), **options)  # pyright: ignore
    [second] = generate(TABLE, [prompt(1)], first=1, draft=DRAFTS["good"](), **options)  # pyright: ignore
    assert second == together[1]
    assert len({found.tokens for found in together}) == 3


def test_the_tally_counts_tokens_reads_and_what_was_accepted() -> None:
    model, drafter = cycle(8, slip=1e-9), Drafter.of_model(cycle(8), 4)
    generate(model, [prompt(0)], limits=Limits(20), settings=GREEDY, draft=drafter)
    tally = drafter.tally
    assert (tally.tokens, tally.reads, tally.proposed, tally.accepted) == (20, 4, 16, 16)
    assert (tally.acceptance, tally.tokens_per_read) == (1, 5)
    assert tally.to_dict()["estimated_speed_up"] > 0
    assert tally.told.startswith("draft: 16 of 16 proposed tokens accepted (100%), 5.00 tokens per read of the model")


def test_a_read_of_one_token_is_measured_once_and_only_where_a_text_goes_on() -> None:
    model, drafter = random_table(V, seed=1), Drafter(lambda: Guess([2, 3]), 2)
    generate(model, [prompt(1)] * 5, limits=Limits(1), draft=drafter)
    assert len(model.calls) == drafter.tally.reads == 5
    assert drafter.tally.alone is drafter.tally.speed_up is None
    assert drafter.tally.to_dict()["estimated_seconds_without"] is None
    generate(model, [prompt(1)] * 5, limits=Limits(9), draft=drafter)
    assert len(model.calls) == drafter.tally.reads + TRIALS
    assert drafter.tally.alone == pytest.approx(50 * (drafter.tally.single or 0))


def test_a_drafted_prompt_that_must_not_slide_is_refused_where_it_does_not_fit() -> None:
    options = {"limits": Limits(3, slide=False, window=4), "settings": GREEDY}
    for drafter in (None, Drafter.of_text()):
        with pytest.raises(UsageError, match="prompt 1 has 5 tokens, more than the window of 4: shorten it"):
            generate(TABLE, [prompt(1), prompt(*[1] * 5)], draft=drafter, **options)  # pyright: ignore
        assert generate(TABLE, [prompt(*[1] * 4)], draft=drafter, **options)[0].finish == "context"  # pyright: ignore


@pytest.mark.parametrize("name", ["seq2seq", "bahdanau", "transformer"])
def test_rows_with_sources_of_their_own_are_drafted_from_them(name: str) -> None:
    torch.manual_seed(0)
    model: Any = entry(name).config(13, "tiny").build().double().eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.data.mul_(2.0)
    given = model.given(torch.tensor([[3, 4, 5], [7, 8, 9], [1, 1, 2]]))
    options = {"limits": Limits(20, window=9), "settings": GREEDY}
    prompts = [prompt(1), prompt(1, 2), prompt(1)]
    alone = generate(given, prompts, **options)  # pyright: ignore
    assert alone[0].log_probs != alone[2].log_probs
    for drafter in (Drafter.of_text(), Drafter.of_model(built("gru", 1))):
        for one, other in zip(alone, generate(given, prompts, draft=drafter, **options), strict=True):  # pyright: ignore
            assert_same(one, other)


def test_a_text_that_repeats_itself_drafts_itself() -> None:
    drafter = Drafter.of_text(4)
    generate(cycle(8, slip=0.005), [prompt(*range(8), *range(8))], limits=Limits(200), draft=drafter)
    assert drafter.tally.acceptance > 0.85  # pyright: ignore[reportOptionalOperand]
    assert drafter.tally.tokens_per_read > 3  # pyright: ignore[reportOptionalOperand]


def test_where_nothing_was_proposed_the_tally_says_so() -> None:
    drafter = Drafter.of_text()
    generate(cycle(8), [prompt(0)], limits=Limits(4), settings=GREEDY, draft=drafter)
    assert drafter.tally.acceptance is None
    assert "nothing" in drafter.tally.told


def test_a_model_without_numbers_is_told_and_a_draft_without_them_is_not_asked() -> None:
    broken = random_table(V, seed=1)
    broken.logits[:, 2] = math.nan
    for settings in (GREEDY, WARPED):
        [found] = generate(
            TABLE, [prompt(1)], limits=Limits(9), settings=settings, draft=Drafter.of_model(broken), seed=2
        )
        assert len(found.tokens) == 9
        with pytest.raises(NumericError, match="token 1 of prompt 0"):
            generate(
                cycle_to(broken), [prompt(1)], limits=Limits(9), settings=settings, draft=Drafter(lambda: Guess([2, 3]))
            )


def cycle_to(broken: TableModel) -> TableModel:
    """1 leads to 2, after which there are no numbers."""
    logits = broken.logits.clone()
    logits[:, 1] = -math.inf
    logits[:, 1, 2] = 0
    return TableModel(logits)


def test_a_draft_of_another_vocabulary_is_refused() -> None:
    with pytest.raises(UsageError, match="a draft of 7 tokens cannot propose for a model of 5"):
        generate(TABLE, [prompt(1)], limits=Limits(9), draft=Drafter.of_model(random_table(7, seed=1)))
    with pytest.raises(UsageError, match="at least 1 token, found 0"):
        Drafter.of_text(0)


def test_lookup_is_a_draft_that_needs_no_chance() -> None:
    proposal = LookupDraft().propose([1, 2, 3, 1, 2], 3, Sampling(), [])
    assert proposal == Proposal([3, 1, 2], None)
