"""Mixers that are wrong in one way each: the law that should catch it does, and says where."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from regard.core.context import EMPTY, Context, real_tokens
from regard.core.mixer import Mixer
from regard.core.stack import MixerConfig
from regard.core.state import State, advance, zero_position
from regard.core.tap import Tap
from regard.laws import LawResult, check, check_mixer
from regard.mixers.attention import AttentionConfig, SelfAttention
from regard.mixers.cross import CrossAttention, CrossAttentionConfig
from regard.mixers.kv_cache import Bounds, KeyValueState
from regard.mixers.memory import MemoryState

pytestmark = pytest.mark.usefixtures("unchecked_shapes")
WIDTH = 4


@dataclass(frozen=True)
class TraceState(State):
    """trace (B, D): the fading sum so far."""

    trace: Tensor
    count: Tensor

    @property
    def position(self) -> Tensor:
        return self.count


class Trace(Mixer):
    """A fading sum, y_t = W s_t with s_t = a s_(t-1) + x_t, and nothing wrong with it."""

    def __init__(self) -> None:
        super().__init__()
        self.d_model = WIDTH
        self.fade = nn.Parameter(torch.full((WIDTH,), 0.5))
        self.trace_to_output = nn.Linear(WIDTH, WIDTH)
        self.seen = Tap()

    def init_state(self, batch_size: int) -> State:
        return TraceState(self.zeros(batch_size, WIDTH), zero_position(batch_size))

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        assert isinstance(state, TraceState)
        trace, traces, real = state.trace, [], real_tokens(context.lengths, x)
        for t in range(x.shape[1]):
            trace = torch.where(real[:, t, None], self.fade.sigmoid() * trace + x[:, t], trace)
            traces.append(trace)
        after = TraceState(trace, advance(state.count, x.shape[1], context.lengths))
        return self.trace_to_output(self.seen(torch.stack(traces, 1))), after


class LooksAhead(Trace):
    """Each output has a little of the next position in it."""

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        y, state = super().forward(x, state, context)
        ahead = torch.cat([x[:, 1:], torch.zeros_like(x[:, :1])], 1)
        return y + 1e-3 * ahead, state


class StepForgets(Trace):
    """One step at a time, the first number of the state is lost."""

    def step(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        y, after = super().step(x, state, context)
        assert isinstance(after, TraceState)
        kept = torch.tensor([0.0, 1.0, 1.0, 1.0], dtype=x.dtype)
        return y, dataclasses.replace(after, trace=after.trace * kept)


class CountsPadding(Trace):
    """Padding goes into the sum as if it were real; the count alone is right."""

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        assert isinstance(state, TraceState)
        y, after = super().forward(x, state)
        return y, dataclasses.replace(after, count=advance(state.count, x.shape[1], context.lengths))


class NeverCounts(Trace):
    """Everything is right but the count, which stays where it was."""

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        assert isinstance(state, TraceState)
        y, after = super().forward(x, state, context)
        return y, dataclasses.replace(after, count=state.count)


class StateOfFloat32(Trace):
    """Whatever the weights are, the sum comes back in another number type than it went in."""

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        y, after = super().forward(x, state, context)
        assert isinstance(after, TraceState)
        wide = torch.promote_types(after.trace.dtype, torch.float32)
        return y, dataclasses.replace(after, trace=after.trace.to(wide))


class AnswersInFloat32(Trace):
    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        y, after = super().forward(x, state, context)
        return y.to(torch.promote_types(y.dtype, torch.float32)), after


class RoundsInside(Trace):
    """The outputs have the right type, and no more digits than half precision has."""

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        y, after = super().forward(x, state, context)
        return (y if y.dtype == torch.float64 else y.to(torch.bfloat16).to(y.dtype)), after


class Overflows(Trace):
    """A square that half precision cannot hold, on the way to something small."""

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        y, after = super().forward(x, state, context)
        return y + 1e-9 * (1e3 * x).square() / (1 + x.square()), after


class MultipliesPadding(Trace):
    """Padding, which it says others blank, is weighed with 0 over the whole row: that undoes only what is finite."""

    composed = True

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        y, after = super().forward(x, state, context)
        return y + (0 * x).sum(1, keepdim=True), after


class KeepsState(Trace):
    """The last trace stays on the module."""

    last: Tensor | None = None

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        y, state = super().forward(x, state, context)
        assert isinstance(state, TraceState)
        self.last = state.trace
        return y, state


class WritesIntoState(Trace):
    """The state that was given is changed in place."""

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        assert isinstance(state, TraceState)
        y, after = super().forward(x, state, context)
        assert isinstance(after, TraceState)
        state.trace.data.copy_(after.trace)
        return y, after


class PacksWithoutReset(Trace):
    """Says that it takes sequences end to end, and reads them as one."""

    packs = True

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        state = state if context.offsets is None else self.init_state(len(x))
        return super().forward(x, state, dataclasses.replace(context, offsets=None))


class ModeMatters(Trace):
    """In training, outputs are scaled."""

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        y, state = super().forward(x, state, context)
        return (1.01 * y if self.training else y), state


class StartsOver(Trace):
    """A chunk of more than one token begins from zero, whatever the state says."""

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        assert isinstance(state, TraceState)
        start = state if x.shape[1] == 1 else dataclasses.replace(state, trace=torch.zeros_like(state.trace))
        return super().forward(x, start, context)


class DeadParameter(Trace):
    """A parameter that no output depends on."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.ones(WIDTH))


class Halved(torch.autograd.Function):
    """The identity with half its gradient."""

    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: object, *gradients: Tensor) -> Tensor:
        return 0.5 * gradients[0]


class WrongGradient(Trace):
    """The outputs are right, the gradient of the fade is half of what it should be."""

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        y, state = super().forward(x, state, context)
        return Halved.apply(y), state


class LoudTap(Tap):
    """A tap that is no identity while somebody listens."""

    def forward(self, value: Tensor) -> Tensor:
        return value + 1e-4 if self.recorded else value


class TapChangesValue(Trace):
    def __init__(self) -> None:
        super().__init__()
        self.seen = LoudTap()


class SilentTap(Trace):
    """A tap that nothing ever passes."""

    def __init__(self) -> None:
        super().__init__()
        self.never = Tap()


class ForgetsTooSoon(Trace):
    """Declares a reach that it goes beyond."""

    reach = 3


class MixesRows(Trace):
    """Each row also sees the mean of the batch."""

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        return super().forward(x + 0.01 * x.mean(0, keepdim=True), state, context)


class ClaimsToPermute(Trace):
    permutes = True


class WrongAttention(SelfAttention):
    """Attention whose states are of a class of their own."""

    state_type: type[KeyValueState] = KeyValueState

    def __init__(self) -> None:
        super().__init__(AttentionConfig(WIDTH, 2))
        self.d_model = WIDTH

    def init_state(self, batch_size: int) -> State:
        return retyped(super().init_state(batch_size), self.state_type)

    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        y, after = super().forward(x, state, context)
        return y, retyped(after, self.state_type)


def retyped(state: State | None, kind: type[State]) -> State:
    assert state is not None
    return kind(**{f.name: getattr(state, f.name) for f in dataclasses.fields(state)})


class ShortState(KeyValueState):
    """Room is made by dropping the newest slot."""

    def reserve(self, length: int, memory: int | None = None) -> KeyValueState:
        state, used = super().reserve(length), self.keys.shape[1]
        if used:
            state.keys[:, used - 1] = 0
        return state


class ReserveLosesSlot(WrongAttention):
    state_type = ShortState


class GrowingState(KeyValueState):
    """Asked for room it stays one that grows."""

    def reserve(self, length: int, memory: int | None = None) -> KeyValueState:
        return self


class ReserveGrows(WrongAttention):
    state_type = GrowingState


class RingState(KeyValueState):
    """A token beyond the room takes the slot of the first."""

    def append(self, keys: Tensor, values: Tensor, lengths: Tensor | None, bounds: Bounds) -> KeyValueState:
        room = self.keys.shape[1]
        if not self.reserved or bounds.high < room:
            return super().append(keys, values, lengths, bounds)
        return dataclasses.replace(self, count=advance(self.count, keys.shape[1], lengths))


class NeverRefuses(WrongAttention):
    state_type = RingState


class CountlessState(KeyValueState):
    """An inserted row brings its keys and values, and stands where its slot stood."""

    def insert(self, rows: Tensor, other: KeyValueState) -> KeyValueState:
        return dataclasses.replace(super().insert(rows, other), count=self.count)


class InsertKeepsCount(WrongAttention):
    state_type = CountlessState


class SharedState(KeyValueState):
    """Rows are inserted in place, also where the state is somebody else's."""

    def insert(self, rows: Tensor, other: KeyValueState) -> KeyValueState:
        self.count.index_copy_(0, rows, other.count)
        return super().insert(rows, other)


class InsertWritesIntoState(WrongAttention):
    state_type = SharedState


class MessyState(KeyValueState):
    """Row 1 is written to, whichever rows were named."""

    def insert(self, rows: Tensor, other: KeyValueState) -> KeyValueState:
        after = super().insert(rows, other)
        after.values[1] += 1
        return after


class InsertTouchesOthers(WrongAttention):
    state_type = MessyState


class OldMemoryState(MemoryState):
    """An inserted row looks at what its slot has looked at before."""

    def insert(self, rows: Tensor, other: MemoryState) -> MemoryState:
        return dataclasses.replace(self, count=self.count.index_copy(0, rows, other.count))


class InsertKeepsMemory(CrossAttention):
    def __init__(self) -> None:
        super().__init__(CrossAttentionConfig(WIDTH, 2))
        self.d_model = WIDTH

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> tuple[Tensor, State | None]:
        y, after = super().forward(x, state, context)
        return y, None if after is None else retyped(after, OldMemoryState)


class EmptyState(KeyValueState):
    """A freed row stands at the beginning, with its keys and values where they were."""

    def free(self, rows: Tensor) -> KeyValueState:
        return dataclasses.replace(self, count=self.count.index_fill(0, rows, 0), ragged=True)


class FreeLeavesSlots(WrongAttention):
    state_type = EmptyState


class LazyState(KeyValueState):
    """Slots that nobody copies when rows are reordered."""

    def reorder(self, index: Tensor, moved: Tensor) -> KeyValueState:
        return super().reorder(index, moved[:0])


class ReorderCopiesNothing(WrongAttention):
    state_type = LazyState


class FadedState(TraceState):
    """What is freed is multiplied by 0, which undoes only what is finite."""

    def free(self, rows: Tensor) -> TraceState:
        after = super().free(rows)
        return dataclasses.replace(after, trace=self.trace.index_copy(0, rows, 0 * self.trace[rows]))


class FreeMultiplies(Trace):
    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        y, after = super().forward(x, state, context)
        return y, retyped(after, FadedState)


class KeptState(TraceState):
    """The count of a freed row goes on."""

    def free(self, rows: Tensor) -> TraceState:
        return dataclasses.replace(super().free(rows), count=self.count)


class FreeKeepsCount(Trace):
    def forward(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        y, after = super().forward(x, state, context)
        return y, retyped(after, KeptState)


@dataclass(frozen=True)
class ForgetfulConfig(MixerConfig, kind="forgetful-trace"):
    """A config that does not write one of its fields."""

    shift: float = 0.0
    unwritten: ClassVar[str] = "shift"

    def build(self) -> Mixer:
        return Trace()

    def to_dict(self) -> dict[str, object]:
        return {key: value for key, value in super().to_dict().items() if key != self.unwritten}


def broken(results: list[LawResult]) -> dict[str, str]:
    """Detail of every law that did not hold at ordinary inputs."""
    return {r.law: r.detail for r in results if r.held is False and "(extreme)" not in r.subject}


def test_the_mixer_they_all_start_from_keeps_the_laws() -> None:
    assert broken(check_mixer(Trace)) == {}


@pytest.mark.parametrize(
    ("wrong", "law", "said"),
    [
        (LooksAhead, "causality", "2 tokens, position 1 changed, outputs before it: at [0, 0, "),
        (StepForgets, "step", "2 steps against one forward, 0 tokens seen before: at [0, 1, 0]"),
        (CountsPadding, "padding", "against alone, after a second chunk, tensor 0 of TraceState: at [0, 0] got"),
        (MultipliesPadding, "padding", "nan in the padding after 1 tokens: not finite at [0, 0, 0]"),
        (NeverCounts, "position", "TraceState.position is [0, 0, 0] after 0 + 4 tokens, which are [4, 4, 4]"),
        (StateOfFloat32, "precision", "bfloat16, chunk 0 to 4: a tensor of the state was bfloat16 and became float32"),
        (AnswersInFloat32, "precision", "bfloat16, 6 tokens without a state: numbers of type float32"),
        (RoundsInside, "precision", "roundings of its number type from float64, at most 16"),
        (Overflows, "precision", "float16, 6 tokens without a state: not finite at"),
        (KeepsState, "purity", "a call changed the attribute .last"),
        (WritesIntoState, "purity", "tensor 0 of the state that was given to the call"),
        (PacksWithoutReset, "packing", "packed lengths [3, 1, 17, 5] without a state against one by one: at [0, 3, 0]"),
        (ModeMatters, "purity", "in training mode against evaluation mode"),
        (StartsOver, "chunk", "1 + 1 tokens against 2, 2 seen before: at [0, 0, 0] got"),
        (DeadParameter, "gradient", "the gradient of unused is zero everywhere"),
        (WrongGradient, "gradient", "gradient of fade along a direction"),
        (ReserveLosesSlot, "reserve", "step 0 after 3 tokens, room for 9, reserved after them"),
        (
            ReserveGrows,
            "reserve",
            "step 0 after 3 tokens, room for 9: a shape or a constant of a reserved state changed",
        ),
        (NeverRefuses, "reserve", "a token after all of 3 tokens, room for 9 was not refused"),
        (
            InsertKeepsCount,
            "insert",
            "CountlessState.position is [4, 1, 2] after rows of 0 tokens into rows of [4, 1, 2]",
        ),
        (
            InsertWritesIntoState,
            "insert",
            "rows of 0 tokens into rows of [4, 1, 2], a state that was to stay as it was",
        ),
        (InsertTouchesOthers, "insert", "rows of 0 tokens into rows of [4, 1, 2], row 1 after it, call 0"),
        (InsertKeepsMemory, "insert", "rows of 0 tokens into rows of [4, 1, 2], row 2 after it, call 0"),
        (FreeLeavesSlots, "free", "row 1 freed after nan, tensor 0 of EmptyState: not finite at"),
        (FreeMultiplies, "free", "row 1 freed after nan, tensor 0 of FadedState: not finite at [0, 0]"),
        (FreeKeepsCount, "free", "KeptState.position is [4, 4, 4] after row 1 freed after nan, which are [4, 0, 4]"),
        (TapChangesValue, "record", "outputs while listening to *, 0 tokens seen before"),
        (SilentTap, "record", "the tap never is never passed"),
        (ForgetsTooSoon, "reach", "y_t feels x_(t-3)"),
        (MixesRows, "padding", "row 0 against alone"),
        (MixesRows, "select", "rows [2, 0, 0, 1] selected before against after"),
        (ReorderCopiesNothing, "select", "rows [0, 0, 2] reordered against selected, 3 tokens seen before"),
        (ClaimsToPermute, "equivariance", "positions permuted by"),
    ],
)
def test_wrong_mixer_is_caught_by_its_law(wrong: type[Mixer], law: str, said: str) -> None:
    found = broken(check_mixer(wrong))
    assert law in found, f"the law {law!r} held; broken: {found}"
    assert said in found[law]
    assert "\n" not in found[law]


def test_config_that_loses_a_field_is_caught_by_the_round_trip() -> None:
    assert broken(check_mixer(ForgetfulConfig(WIDTH))) == {}
    found = broken(check_mixer(ForgetfulConfig(WIDTH, shift=1.0)))
    assert found == {"round trip": "the config read back from JSON differs from the one written"}


def test_mixer_that_raises_is_a_finding_and_no_crash() -> None:
    class Raises(Trace):
        def step(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
            raise RuntimeError("no step today")

    assert broken(check_mixer(Raises))["step"] == "RuntimeError: no step today"


def test_a_class_of_ones_own_is_checked_by_module_and_name() -> None:
    assert broken(check(f"{__name__}:Trace")) == {}
    assert "causality" in broken(check(f"{__name__}:LooksAhead"))
