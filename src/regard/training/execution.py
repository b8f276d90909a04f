"""How a run makes its steps on this machine: in which number type, compiled, captured, with which attention kernels.

Whatever is chosen is kept in the checkpoint: a resume makes its steps in the same way, or their last bits would differ.
So a choice is made once, and may look at the settings, the device, the model, the shapes of the batches and the clock.
What somebody has asked for and cannot be done is told, and done without.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from regard.core.config import decode
from regard.errors import LONGEST_TOLD, UsageError, nearest
from regard.kernels.attention_backend import NAMES, largest_shape, order_of, preferring
from regard.kernels.fp8 import MULTIPLE, SMALLEST, fp8_maps, fp8_products
from regard.training.precision import Precision, has, precision_of
from regard.training.prefetch import device_parts
from regard.training.random_streams import seed_step

if TYPE_CHECKING:
    from regard.training.session import Session

# From how many seconds of training on a GPU on a compilation is repaid, which takes 20 to 60 s and makes a step 1.3 to
# 2.5 times as fast. On a CPU, where a minute gains a tenth to a half, a step is compiled only if somebody asks for it.
REPAID = 240.0
# Operations a second at which a budget in steps or tokens is taken for time: low, as small models are.
SPEED = 5e13
# Operations of a step from which on a GPU is busy enough while the host prepares the next kernels.
BUSY = 1e13
LOOKED_AT = 4  # batches, to know whether all have one shape


@dataclass(frozen=True)
class Choice:
    """How steps are made.

    attention  torch's fused kernels, the first that a call allows; empty: torch's own order.
    failed     what was asked for or chosen, could not be done here, and is not done.
    """

    precision: Precision = "float32"
    compile: bool = False
    graphs: bool = False
    attention: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    def having(self, name: str, value: bool) -> Choice:
        """The same with another `name`, "compile" or "graphs", of which no failure is known any more."""
        failed = tuple(other for other in self.failed if other != name)
        return dataclasses.replace(self, failed=failed, **{name: value})

    def without(self, name: str) -> Choice:
        """The same where `name` has failed."""
        less = self.having(name, False)
        return dataclasses.replace(less, failed=(*less.failed, name))

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"attention": list(self.attention), "failed": list(self.failed)}

    @property
    def told(self) -> str:
        """In a few words, such as "bfloat16, compiled, cudnn attention"."""
        words: list[str] = [self.precision]
        words += ["compiled"] if self.compile else []
        words += ["one captured graph a step"] if self.graphs else []
        words += [f"{self.attention[0].partition('_')[0].lower()} attention"] if self.attention else []
        return ", ".join(words)


def choice_of(value: Any) -> Choice | None:
    """The choice that a checkpoint holds; None in one of before there were any."""
    if value is None:
        return None
    hints = typing.get_type_hints(Choice)
    if not isinstance(value, dict) or not value.keys() <= hints.keys():
        raise UsageError("choice: not that of a run")
    found = Choice(**{key: decode(part, hints[key], f"choice.{key}") for key, part in value.items()})
    for name in found.attention:
        if name not in NAMES:
            raise UsageError(f"choice.attention: {name!r} is no kernel{nearest(name, NAMES)}")
    return found


def taken_up(session: Session, before: Choice, device: str, named: Collection[str]) -> Choice | None:
    """What the checkpoint of a run on `device` says of its steps, with what was said otherwise since.

    None where it does not hold on this device: all is chosen anew then, except for the precision.
    named: settings that whoever resumes has given. Of these, what has failed before is tried again.
    """
    here = session.device
    if device != here.type or (before.graphs and here.type != "cuda") or not has(before.precision, here):
        return None
    chosen = before
    for name in ("compile", "graphs"):
        asked = getattr(session.settings, name)
        if asked in ("auto", getattr(before, name)):
            continue
        if name in before.failed and name not in named:
            again = f"--set train.{name}=true tries it"
            session.display.note(f"train.{name}: has failed before and is not tried again; {again}")
        elif asked and name == "graphs":
            chosen = _captured_if_possible(session, chosen)
        else:
            chosen = chosen.having(name, asked)
    return chosen


def choose(session: Session) -> Choice:
    """What the settings say and, where they say auto, what suits."""
    settings, on_gpu = session.settings, session.device.type == "cuda"
    chosen = _in_large_enough_maps(session, Choice(_precision(session)))
    if settings.compile is True or (settings.compile == "auto" and on_gpu and _compiling_is_repaid(session)):
        chosen = chosen.having("compile", True)
    if settings.graphs is True or (settings.graphs == "auto" and on_gpu and _operations(session) < BUSY):
        return _captured_if_possible(session, chosen)
    return chosen


def _precision(session: Session) -> Precision:
    """As said; where that is left open, the one in which a run that goes on began, if this device has it."""
    asked, began = session.settings.precision, session.began_in
    own = precision_of(asked, session.device)
    if asked != "auto" or began is None or began == own:
        return own
    if has(began, session.device):
        return began
    session.display.note(
        f"WARNING: continued in {own}: the run began in {began}, which this device lacks; its results will differ"
    )
    return own


def _in_large_enough_maps(session: Session, chosen: Choice) -> Choice:
    """bfloat16 in the place of fp8 where a model has no map for it, which is told."""
    if chosen.precision != "fp8" or fp8_maps(session.model):
        return chosen
    kind = f"linear maps of at least {SMALLEST:,} weights, in multiples of {MULTIPLE} each way"
    told = f"train.precision: fp8 is for {kind}, and this model has none"
    session.display.note(f"WARNING: {told}; it is trained in bfloat16")
    return dataclasses.replace(chosen, precision="bfloat16", failed=("fp8",))


def _captured_if_possible(session: Session, chosen: Choice) -> Choice:
    """With captured steps; where they cannot be, without, and somebody who has asked for them is told why."""
    reason = _why_not_captured(session)
    if reason is None:
        return chosen.having("graphs", True)
    if session.settings.graphs is not True:
        return chosen
    session.display.note(f"WARNING: train.graphs: {reason}; the step is made uncaptured")
    return chosen.without("graphs")


def _why_not_captured(session: Session) -> str | None:
    if session.device.type != "cuda":
        return f"a step is captured on a GPU only, and this is a {session.device.type.upper()}"
    if session.ranks.size > 1:
        return f"{session.ranks.size} processes make it together"
    if session.settings.accumulate > 1 and session.task.carries:
        return f"a state is carried between the {session.settings.accumulate} batches of a step"
    if session.settings.gradient_checkpointing:
        return "layers are computed a second time, with the state of chance of the first"
    if is_listened_to(session.model):
        return "hooks are registered on the model, which a captured step would not call"
    return None if _has_one_shape(session) else "batches are of several shapes, or have rows that are not full"


def choose_attention(session: Session) -> tuple[str, ...]:
    """Attention kernels, the fastest first, by trying them at the shapes of the first batch."""
    if session.device.type != "cuda":
        return ()
    loaded = session.prefetch.take(session.counters.step)
    loaded.wait()
    batch = loaded.batches[0]

    def forward() -> None:
        state = session.fresh_state(batch.tokens.shape[0]) if session.task.carries else None
        with torch.no_grad(), session.precision():
            session.training_step(batch, state)

    seed_step(session.settings.seed, session.counters.step, session.device)
    shape = largest_shape(forward)
    return () if shape is None else tuple(name for name, _ in order_of(shape, session.device))


def settle(session: Session) -> None:
    """Choose how steps are made, unless a checkpoint has said it, and make ready for it."""
    if session.chosen is None:
        session.chosen = choose(session)
        attention = session.ranks.shared(choose_attention(session))
        session.chosen = dataclasses.replace(session.chosen, attention=attention)
    session.fast_step = session.ranks.wrapped(session.training_step)
    if session.choice.compile:
        session.fast_step = torch.compile(session.fast_step)


@contextmanager
def as_chosen(session: Session) -> Iterator[None]:
    """Within the context steps and evaluations run as was chosen; afterwards everything is as it was before."""
    products = fp8_products(session.model) if session.choice.precision == "fp8" else nullcontext()
    is_compiled = session.choice.compile
    with products, preferring(session.choice.attention), _stream_of_its_own(session):
        try:
            yield
        finally:
            session.captured, session.fast_step = None, session.training_step
            if is_compiled:
                # All runs compile the same function, and a compiler gives one up that it has compiled eight times.
                torch.compiler.reset()


def fall_back(session: Session, name: str, error: Exception) -> None:
    """Go on without `name`, "compile" or "graphs", which has failed, and say so."""
    session.chosen = session.choice.without(name)
    what, way = ("compiling the step", "as it reads") if name == "compile" else ("capturing the step", "uncaptured")
    if name == "compile":
        session.fast_step = session.training_step
    told = " ".join(str(error).split())
    brief = told if len(told) <= LONGEST_TOLD else f"{told[:LONGEST_TOLD]}..."
    session.display.note(f"WARNING: {what} failed ({type(error).__name__}: {brief}); it is made {way}")


@contextmanager
def _stream_of_its_own(session: Session) -> Iterator[None]:
    """Where steps are captured everything runs on one stream, which is not the default one: that one cannot be."""
    if not session.choice.graphs:
        yield
        return
    stream, before = torch.cuda.Stream(session.device), torch.cuda.current_stream(session.device)
    stream.wait_stream(before)
    try:
        with torch.cuda.stream(stream):  # and on its device
            yield
    finally:
        before.wait_stream(stream)


def _has_one_shape(session: Session) -> bool:
    """Whether batches are alike, all of their rows full: what is compiled or captured is so for one shape."""
    shapes = set()
    for number in range(LOOKED_AT):
        batch = session.task.sampler.batch(number, session.settings.batch_size)
        if batch.ragged or batch.source_lengths is not None:
            return False
        shapes.add(tuple(part.shape for part in device_parts(batch)))
    return len(shapes) == 1


def is_listened_to(model: nn.Module) -> bool:
    """Whether somebody's hooks are called in a step: in a captured one they would be called once and never again."""
    parts = (part for module in model.modules() for part in (module._forward_hooks, module._forward_pre_hooks))
    backward = (part for module in model.modules() for part in (module._backward_hooks, module._backward_pre_hooks))
    names = ("_backward_hooks", "_post_accumulate_grad_hooks")
    weights = (getattr(parameter, name, None) for parameter in model.parameters() for name in names)
    return any(bool(hooks) for hooks in (*parts, *backward, *weights))


def _compiling_is_repaid(session: Session) -> bool:
    """Whether the budget is long enough, for batches of one shape, where there is what a compiler needs for a GPU.

    Steps that several processes make are compiled only if somebody asks for it: none of them can fall back alone.
    """
    repaid = _seconds(session) >= REPAID and session.ranks.size == 1
    return repaid and find_spec("triton") is not None and _has_one_shape(session)


def _operations(session: Session) -> float:
    """Of a step, about: six for each parameter and target (Kaplan et al. 2020, 2.1)."""
    settings = session.settings
    parameters = sum(parameter.numel() for parameter in session.model.parameters())
    return 6.0 * parameters * settings.batch_size * settings.length * settings.accumulate


def _seconds(session: Session) -> float:
    """How long the whole budget will last, about."""
    budget, step = session.budget, _operations(session)
    if budget.kind == "seconds":
        return budget.amount
    tokens = session.settings.batch_size * session.settings.length * session.settings.accumulate
    operations = {"steps": step, "tokens": step / tokens, "flops": 1.0}[budget.kind] * budget.amount
    return operations / SPEED
