"""Requests that join and leave between steps: each becomes what it would alone. Numbers in float64."""

from __future__ import annotations

import dataclasses
import gc
import math
import random
import warnings
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from decoding.table import TableModel, bigram_table, random_table
from regard.core import registry
from regard.core.context import EMPTY, Context
from regard.core.mixer import Mixer
from regard.core.registry import build
from regard.core.state import State, zero_position
from regard.decoding.engine import ENTRIES, Engine
from regard.decoding.generate import Limits, generate
from regard.decoding.logits_processing import GREEDY, Sampling
from regard.decoding.mixture import Mixture
from regard.decoding.prefix_cache import PrefixCache
from regard.decoding.row import Drawn
from regard.errors import UsageError
from regard.layers.head import LinearHead
from regard.models.cache import CacheConfig

AHEAD = [1, 5]
every_ahead = pytest.mark.parametrize("ahead", AHEAD)
SETTINGS = [GREEDY, Sampling(), Sampling(0.8, top_k=5), Sampling(1.2, top_p=0.9), Sampling(min_p=0.1)]


@dataclass(frozen=True)
class Wish:
    """A request: what is asked for, and the number of the step before which it comes."""

    prompt: list[int]
    limits: Limits
    settings: Sampling
    row: int
    at: int = 0

    def submit(self, engine: Engine) -> int:
        return engine.submit(self.prompt, self.limits, self.settings, seed=7, row=self.row)


def texts(found: list[Drawn], n: int) -> list[list[Drawn]]:
    return [[drawn for drawn in found if drawn.request == i] for i in range(n)]


def served(engine: Engine, wishes: list[Wish]) -> list[list[Drawn]]:
    """What each wish becomes when all are made at their times."""
    found: list[Drawn] = []
    left = sorted(wishes, key=lambda wish: wish.at)
    order = {}
    for step in range(10_000):
        while left and left[0].at <= step:
            wish = left.pop(0)
            order[wish.row] = wish.submit(engine)
        if not left and not engine.busy:
            break
        found += engine.step()
    by_request = texts(found, len(wishes))
    return [by_request[order[wish.row]] for wish in wishes]


def told(drawn: list[Drawn]) -> list[tuple[Any, ...]]:
    return [(d.token, d.finish, d.slides, pytest.approx(d.log_prob, abs=1e-10)) for d in drawn]


def many_wishes(vocabulary: int, n: int, seed: int, longest: int) -> list[Wish]:
    chance = random.Random(seed)
    return [
        Wish(
            [chance.randrange(vocabulary) for _ in range(chance.randint(1, longest))],
            Limits(chance.choice([1, 3, 30]), eos_id=chance.choice([None, 0])),
            SETTINGS[i % len(SETTINGS)],
            row=i,
            at=chance.randint(0, 25),
        )
        for i in range(n)
    ]


def sharp(name: str) -> Any:
    torch.manual_seed(1)
    model = build(name, vocab_size=11, size="tiny").double().eval()
    for head in (part for part in model.modules() if isinstance(part, LinearHead)):
        nn.init.normal_(head.weight)
    return model


@every_ahead
@pytest.mark.parametrize("name", ["gpt", "lstm", "mamba2", "fnn"])
def test_rows_that_join_and_leave_at_any_step_become_what_they_do_alone(name: str, ahead: int) -> None:
    """More requests than slots, of all settings, prompts up to four chunks long, some beyond the model's window."""
    model = sharp(name)
    wishes = many_wishes(11, 14, seed=3, longest=20)
    wishes.append(Wish([1] * 70, Limits(12), Sampling(), row=14, at=4))
    with Engine(model, 3, chunk=6, ahead=ahead) as engine:
        together = served(engine, wishes)
    for wish, found in zip(wishes, together, strict=True):
        with Engine(model, 3, chunk=6, ahead=ahead) as engine:
            [alone] = served(engine, [dataclasses.replace(wish, at=0)])
        assert told(found) == told(alone)
        assert [d.finish for d in found[:-1]] == [None] * (len(found) - 1)
        assert found[-1].finish in ("eos", "length")


@pytest.mark.parametrize("name", ["gpt", "lstm", "mamba2", "fnn"])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_prompts_read_side_by_side_in_the_same_shapes_become_what_they_do_alone(name: str, device: str) -> None:
    """Also where beginnings are known from before; from one token to four chunks."""
    model = sharp(name).to(device, torch.float64)
    wishes = many_wishes(11, 14, seed=3, longest=70)
    wishes += [Wish([1] * 40 + [i], Limits(9), Sampling(), row=14 + i, at=3 * i) for i in range(6)]
    with Engine(model, 4, together=3, steady=True, chunk=16) as engine:
        engine.arrivals.prefixes = PrefixCache(1 << 22)
        together = served(engine, wishes)
        assert engine.arrivals.prefixes.read >= 32
    for wish, found in zip(wishes, together, strict=True):
        with Engine(model, 4, together=3, steady=True, chunk=16) as engine:
            [alone] = served(engine, [dataclasses.replace(wish, at=0)])
        assert told(found) == told(alone)


def test_with_a_last_position_prompts_read_side_by_side_are_those_read_one_by_one() -> None:
    """To the window and beyond, where it slides and each slide is counted once, however often shapes are compared."""
    torch.manual_seed(1)
    model: Any = build("gpt", vocab_size=11, size="tiny", position="learned", max_length=40).double().eval()
    assert model.max_length == 40
    wishes = [Wish([i % 11] * (15 + 9 * i), Limits(30), GREEDY, row=i) for i in range(6)]
    with Engine(model, 3, together=3, steady=True, chunk=16) as engine:
        engine.arrivals.prefixes = PrefixCache(1 << 22)
        found = served(engine, wishes)
        assert engine.room == 40
    with Engine(model, 1, chunk=16) as engine:
        plain = served(engine, wishes)
    assert [told(text) for text in found] == [told(text) for text in plain]
    assert max(one.slides for text in found for one in text) > 1


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("together", [1, 4])
def test_however_prompts_are_read_and_slots_given_up_texts_are_the_same(together: int, compact: bool) -> None:
    model, wishes = sharp("gpt"), many_wishes(11, 12, seed=5, longest=20)
    with Engine(model, 4, together=together, compact=compact) as engine:
        found = served(engine, wishes)
    with Engine(model, 1) as engine:
        plain = served(engine, wishes)
    assert [told(text) for text in found] == [told(text) for text in plain]


@every_ahead
def test_several_tokens_before_the_host_looks_are_those_of_one_at_a_time(ahead: int) -> None:
    model = random_table(7, seed=1, max_length=9)
    prompts = [torch.tensor(p) for p in ([1], [2, 3, 4], [5, 6] * 4, [1] * 30)]
    limits = Limits(25, eos_id=0)
    expected = generate(model, prompts, limits=limits, seed=7)
    wishes = [Wish(p.tolist(), limits, Sampling(), row=i) for i, p in enumerate(prompts)]
    with Engine(model, 4, ahead=ahead) as engine:
        found = served(engine, wishes)
    for text, generation in zip(found, expected, strict=True):
        assert tuple(d.token for d in text) == generation.tokens
        assert (text[-1].finish, text[-1].slides) == (generation.finish, generation.slides)


def test_a_long_prompt_in_chunks_equals_one_call_and_stalls_nobody() -> None:
    model = sharp("gpt")
    with Engine(model, 2, chunk=4) as engine:
        first = engine.submit([1, 2], Limits(40), GREEDY)
        engine.step()
        second = engine.submit(list(range(11)) * 3, Limits(5), GREEDY)
        kinds = [[drawn.request for drawn in engine.step()] for _ in range(9)]
        assert kinds == [[first]] * 8 + [[second]]
    whole = torch.tensor([list(range(11)) * 3])
    with torch.no_grad():
        logits = model.head(model(whole)[0][:, -1])
    with Engine(model, 1, chunk=4) as engine:
        engine.submit(whole[0].tolist(), Limits(1), GREEDY)
        found = [drawn for _ in range(9) for drawn in engine.step()]
    assert found[0].token == int(logits.argmax())
    assert found[0].log_prob == pytest.approx(float(logits.log_softmax(-1).max()), abs=1e-12)


@every_ahead
@pytest.mark.parametrize("together", [1, 2])
def test_prompts_that_come_without_end_let_the_rows_in_the_slots_go_on(together: int, ahead: int) -> None:
    """Those that end with their first token fill no slot; of those that do, a few come before the others go on."""
    model = random_table(7, seed=1)
    with Engine(model, 12, together=together, ahead=ahead) as engine:
        first = engine.submit([1], Limits(400))
        engine.step()
        for longest, most in ((1, 0), (1000, ENTRIES)):
            for _ in range(10):
                engine.submit([2, 3], Limits(longest))
            waited = 0
            while engine.waiting and waited <= most:
                came = {drawn.request for drawn in engine.step()}
                waited = 0 if first in came else waited + 1
            assert waited <= most


@every_ahead
def test_free_slots_are_filled_before_the_rows_in_others_go_on(ahead: int) -> None:
    with Engine(random_table(7, seed=1), 12, ahead=ahead) as engine:
        asked = [engine.submit([1], Limits(400)) for _ in range(ENTRIES)]
        for request in asked:
            assert [drawn.request for drawn in engine.step()] == [request]
        late = engine.submit([1], Limits(400))
        assert {drawn.request for drawn in engine.step()} == set(asked)
        assert [drawn.request for drawn in engine.step()] == [late]


def test_slots_that_were_filled_and_left_again_take_others() -> None:
    with Engine(random_table(7, seed=1), 12) as engine:
        gone = [engine.submit([1], Limits(400)) for _ in range(ENTRIES)]
        for _ in gone:
            engine.step()
        assert all(engine.cancel(request) for request in gone)
        stays = engine.submit([1], Limits(400))
        assert [drawn.request for drawn in engine.step()] == [stays]


@every_ahead
def test_cancelled_requests_leave_wherever_they_are(ahead: int) -> None:
    model = random_table(7, seed=1)
    with Engine(model, 2, chunk=2, ahead=ahead) as engine:
        stays = engine.submit([1], Limits(30), seed=7)
        stepping = engine.submit([2], Limits(30))
        while not any(row is not None and row.request == stepping for row in engine.slots.rows):
            engine.step()
        assert engine.cancel(stepping)
        reading = engine.submit([3] * 9, Limits(30))
        waiting = engine.submit([3], Limits(30))
        found = engine.step()
        assert engine.cancel(reading)
        assert engine.cancel(waiting)
        while engine.busy:
            found += engine.step()
        assert {drawn.request for drawn in found} == {stays}
        assert not any(engine.cancel(request) for request in (stays, stepping, reading, waiting, 99, -1))
        assert engine.step() == []


@every_ahead
def test_states_are_of_graphs_only_where_whoever_takes_them_copies_them(ahead: int) -> None:
    chunks = Engine(sharp("lstm"), 2, together=2, steady=True, ahead=ahead).arrivals.first_chunks
    assert chunks is not None
    assert chunks.captured.told == ("no graphs: not asked for" if ahead == 1 else "no graphs: the device is cpu")


@pytest.mark.parametrize("together", [1, 2])
def test_a_prompt_that_nobody_waits_for_is_not_read_to_its_end(together: int) -> None:
    model = sharp("lstm")
    with Engine(model, 2, together=together, chunk=2) as engine:
        gone = [engine.submit([3] * 400, Limits(4)) for _ in range(together)]
        engine.step()
        assert all(engine.cancel(request) for request in gone)
        stays = engine.submit([1, 2], Limits(1))
        assert [drawn.request for drawn in engine.step()] == [stays]
        assert not engine.arrivals.rows


def test_nothing_is_left_of_a_row_that_has_gone() -> None:
    model = sharp("gpt")
    with Engine(model, 2) as engine:
        engine.submit([1, 2, 3], Limits(4), GREEDY)
        engine.submit([1], Limits(30), GREEDY)
        for _ in range(12):
            engine.step()
        rows = [row is None for row in engine.slots.rows]
        assert sorted(rows) == [False, True]
        empty = rows.index(True)
        assert int(engine.slots.held.state.position[empty]) == 0


@every_ahead
def test_logits_that_are_no_numbers_end_their_row_alone(ahead: int) -> None:
    model = bigram_table([[0.0, 1.0, 0, 0], [0.0, 0.0, 1.0, 0], [math.nan] * 4, [0, 0, 0, 1.0]])
    with Engine(model, 2, ahead=ahead) as engine:
        sick, well = engine.submit([0], Limits(9)), engine.submit([3], Limits(9))
        found: list[Drawn] = []
        while engine.busy:
            found += engine.step()
    assert [d.finish for d in texts(found, 2)[sick]] == [None, None, "numeric"]
    assert [d.token for d in texts(found, 2)[well]] == [3] * 9


def test_room_grows_in_few_steps_and_never_beyond_the_window() -> None:
    model = sharp("gpt")
    with Engine(model, 2, ahead=4) as engine:
        engine.submit([1], Limits(500), GREEDY)
        rooms = set()
        while engine.busy:
            engine.step()
            rooms.add(engine.room)
    assert rooms <= {0, model.max_length or 0} | {256, 512}


def test_what_cannot_be_served_is_refused_in_one_line() -> None:
    model = random_table(5, seed=0, max_length=4)
    for name, options in (("slots", {"slots": 0}), ("together", {"slots": 1, "together": 0}), ("chunk", {"chunk": 0})):
        with pytest.raises(UsageError, match=f"an engine needs {name} of at least 1, found 0"):
            Engine(model, **{"slots": 1, **options})
    with Engine(model, 1) as engine:
        with pytest.raises(UsageError, match="a prompt is empty: begin it with the start symbol"):
            engine.submit([], Limits(3))
        with pytest.raises(UsageError, match="a prompt has token 5, but the model knows 0 to 4"):
            engine.submit([1, 5], Limits(3))
        with pytest.raises(UsageError, match="a prompt has 5 tokens, more than the window of 4: shorten it"):
            engine.submit([1] * 5, Limits(3, slide=False))
        assert not engine.busy
        assert engine.step() == []


class Fading(Mixer):
    """A stranger's mixer: y_t = x_t + f y_(t-1), written as `step` alone, with a buffer that two fields share."""

    def __init__(self) -> None:
        super().__init__()
        self.share = nn.Parameter(torch.tensor(0.5))

    def init_state(self, batch_size: int) -> State:
        zeros = self.zeros(batch_size, 8)
        return FadingState(zeros, zeros, zero_position(batch_size))

    def step(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        assert isinstance(state, FadingState)
        y = x + self.share * state.before + 0.1 * state.older
        return y, FadingState(y, state.before, state.count + 1)


@dataclass(frozen=True)
class FadingState(State):
    before: Tensor
    older: Tensor
    count: Tensor

    @property
    def position(self) -> Tensor:
        return self.count


class StrangersModel(nn.Module):
    vocab_size, max_length, causal = 11, None, True

    def __init__(self) -> None:
        super().__init__()
        self.table, self.mixer, self.head = nn.Embedding(11, 8), Fading(), nn.Linear(8, 11)

    def init_state(self, batch_size: int) -> State:
        return self.mixer.init_state(batch_size).map(lambda part: part.to(self.table.weight.device))

    def forward(self, tokens: Tensor, state: State | None = None, context: Context = EMPTY) -> tuple[Tensor, Any]:
        return self.mixer(self.table(tokens), state, context)


@every_ahead
def test_a_strangers_mixer_generates(ahead: int) -> None:
    torch.manual_seed(0)
    model, wishes = StrangersModel().double(), many_wishes(11, 9, seed=8, longest=9)
    with Engine(model, 3, chunk=4, ahead=ahead) as engine:
        found = served(engine, wishes)
    for wish, text in zip(wishes, found, strict=True):
        tokens = list(wish.prompt)
        for drawn in text:
            with torch.no_grad():
                logits = model.head(model(torch.tensor([tokens]))[0][0, -1])
            assert drawn.log_prob == pytest.approx(float(logits.log_softmax(-1)[drawn.token]), abs=1e-10)
            tokens.append(drawn.token)


TEXT = [name for name in registry.names() if registry.entry(name).task == "text"]


def example(name: str, dtype: torch.dtype) -> Any:
    torch.manual_seed(0)
    return registry.entry(name).config(31, "tiny").build_example().to(dtype).eval()


@pytest.mark.sweep(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", TEXT)
def test_every_language_model_generates_in_every_number_type(name: str, dtype: torch.dtype) -> None:
    model = example(name, dtype)
    for ahead in AHEAD:
        with Engine(model, 2, chunk=3, ahead=ahead) as engine:
            found = served(engine, many_wishes(31, 4, seed=1, longest=7))
        assert all(text and math.isfinite(text[-1].log_prob) for text in found)


@every_ahead
def test_counts_a_cache_and_a_mixture_generate(ahead: int) -> None:
    cache = CacheConfig(31, 20, 0.9, prior=5.0).build()
    counts, net = example("ngram", torch.float32), example("lstm", torch.float32)
    for model in (cache, Mixture([counts, cache, net], [0.5, 0.2, 0.3])):
        wishes = many_wishes(31, 5, seed=1, longest=7)
        with Engine(model, 2, chunk=3, ahead=ahead) as engine:
            found = served(engine, wishes)
        with Engine(model, 1, chunk=3) as engine:
            assert [[d.token for d in text] for text in served(engine, wishes)] == [[d.token for d in t] for t in found]


def test_the_model_is_in_evaluation_mode_within_and_as_before_without() -> None:
    model = build("lstm", vocab_size=11, size="tiny").train()
    with Engine(model, 1):
        assert not model.training
    assert model.training


def test_outside_of_its_context_an_engine_draws_nothing() -> None:
    model = build("lstm", vocab_size=11, size="tiny").train()
    engine = Engine(model, 1)
    for _ in range(2):
        for refused in (engine.step, lambda: engine.submit([1], Limits(3))):
            with pytest.raises(UsageError, match="an engine draws within its context"):
                refused()
        with engine:
            engine.submit([1], Limits(1))
            assert len(engine.step()) == 1


def test_only_where_looking_is_waiting_several_tokens_are_drawn_before_the_host_looks() -> None:
    model = build("lstm", vocab_size=11, size="tiny")
    assert Engine(model, 1).slots.ahead == 1
    assert Engine(model.to("meta"), 1).slots.ahead == 1


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", TEXT)
def test_with_and_without_graphs_the_texts_are_the_same(name: str, dtype: torch.dtype) -> None:
    model, wishes = example(name, dtype).cuda(), many_wishes(31, 8, seed=2, longest=9)
    found = []
    with warnings.catch_warnings(action="ignore"):
        for graphs in (True, False):
            with Engine(model, 3, chunk=4, graphs=graphs) as engine:
                found.append([[d.token for d in text] for text in served(engine, wishes)])
                assert engine.told != "graphs" or graphs
    assert found[0] == found[1]


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in TEXT if name != "ngram"])
def test_a_step_of_every_neural_model_is_captured(name: str) -> None:
    model = example(name, torch.float32).cuda()
    with Engine(model, 2) as engine:
        engine.submit([1, 2], Limits(20), Sampling(top_p=0.9))
        while engine.busy:
            engine.step()
        assert engine.told == "graphs"


@pytest.mark.gpu
def test_a_step_that_waits_for_the_device_is_run_as_it_is_and_said_once() -> None:
    class Waiting(StrangersModel):
        def forward(self, *arguments: Any) -> tuple[Tensor, Any]:
            found = super().forward(*arguments)
            found[0].sum().item()
            return found

    torch.manual_seed(0)
    model = Waiting().cuda()
    with warnings.catch_warnings(record=True) as said, Engine(model, 2) as engine:
        warnings.simplefilter("always")
        engine.submit([1], Limits(40))
        while engine.busy:
            engine.step()
    assert ["without CUDA graphs" in str(one.message) for one in said] == [True]


@pytest.mark.gpu
def test_graphs_leave_no_memory_behind() -> None:
    model = example("gpt", torch.float32).cuda()

    def once() -> int:
        with Engine(model, 4) as engine:
            for row in range(4):
                engine.submit([1, 2], Limits(60), SETTINGS[row])
            while engine.busy:
                engine.step()
        del engine
        gc.collect()
        torch.cuda.empty_cache()
        return torch.cuda.memory_reserved()

    before = [once() for _ in range(2)][-1]
    assert [once() for _ in range(3)][-1] <= before


def test_a_model_that_is_no_module_is_served_too() -> None:
    assert isinstance(random_table(5, seed=0), TableModel)
    with Engine(random_table(5, seed=0), 2) as engine:
        engine.submit([1], Limits(1))
        assert [d.finish for d in engine.step()] == ["length"]
