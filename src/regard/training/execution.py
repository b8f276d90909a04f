"""Choice: how a run makes its steps on this machine, where its settings leave that open.

Whatever is chosen is kept in the checkpoint: a resume makes its steps in the same way, or their last bits would differ.
So a choice is made once, and may look at the settings, the device, the model, the shapes of the batches and the clock.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import shutil
import typing
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from regard.core.config import decode
from regard.errors import UsageError, nearest
from regard.kernels.attention_backend import NAMES, largest_shape, order_of, preferring
from regard.kernels.fp8 import fp8_products
from regard.training.precision import Precision, precision_of
from regard.training.prefetch import device_parts
from regard.training.random_streams import seed_step
from regard.training.settings import TrainSettings

if TYPE_CHECKING:
    from regard.training.session import Session

# From how many seconds of training on a compilation is repaid. It takes 20 to 60 s for a GPU and makes a step 1.3 to
# 2.5 times as fast; about a minute for a CPU, for a tenth to a half more.
REPAID = {"cuda": 240.0, "cpu": 1800.0}
# Operations a second at which a budget in steps or tokens is taken for time: low, as small models are.
SPEED = {"cuda": 5e13, "cpu": 5e10}
# Operations of a step from which on a GPU is busy enough while the host prepares the next kernels.
BUSY = 1e13
LOOKED_AT = 4  # batches, to know whether all have one shape


@dataclass(frozen=True)
class Choice:
    """How steps are made.

    attention  torch's fused kernels, the first that a call allows; empty: torch's own order.
    failed     what was chosen, could not be done here, and is not done.
    """

    precision: Precision = "float32"
    compile: bool = False
    graphs: bool = False
    attention: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    def without(self, name: str) -> Choice:
        """The same where `name` has failed."""
        return dataclasses.replace(self, failed=(*self.failed, name), **{name: False})

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


def still_asked(chosen: Choice | None, settings: TrainSettings, device: torch.device) -> Choice | None:
    """What was chosen, unless this device cannot do it or somebody has said otherwise since."""
    if chosen is None or (chosen.graphs and device.type != "cuda"):
        return None
    said = {name: getattr(settings, name) for name in ("compile", "graphs") if name not in chosen.failed}
    differs = any(isinstance(value, bool) and getattr(chosen, name) != value for name, value in said.items())
    return None if differs or chosen.precision != precision_of(settings.precision, device) else chosen


def choose(session: Session) -> Choice:
    """What the settings say and, where they say auto, what suits."""
    settings, device = session.settings, session.device
    precision = precision_of(settings.precision, device)
    is_repaid = settings.compile == "auto" and _seconds(session) >= REPAID.get(device.type, REPAID["cpu"])
    is_repaid = is_repaid and _has_compiler(device)
    asked = _operations(session) < BUSY if settings.graphs == "auto" else settings.graphs is True
    asked = asked and device.type == "cuda" and (settings.accumulate == 1 or not session.task.carries)
    asked = asked and not is_listened_to(session.model)
    fixed = (is_repaid or asked) and _has_one_shape(session)
    compiled = is_repaid and fixed if settings.compile == "auto" else settings.compile is True
    return Choice(precision, compiled, asked and fixed)


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
        session.chosen = dataclasses.replace(session.chosen, attention=choose_attention(session))
    if session.choice.compile:
        session.fast_step = torch.compile(session.training_step)


@contextmanager
def as_chosen(session: Session) -> Iterator[None]:
    """Within the context steps and evaluations run as was chosen; afterwards everything is as it was before."""
    products = fp8_products(session.model) if session.choice.precision == "fp8" else nullcontext()
    with products, preferring(session.choice.attention), _stream_of_its_own(session):
        try:
            yield
        finally:
            session.captured = None


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
    return operations / SPEED.get(session.device.type, SPEED["cpu"])


def _has_compiler(device: torch.device) -> bool:
    """Whether torch.compile finds what it needs: Triton for a GPU, a C++ compiler for a CPU."""
    if device.type == "cuda":
        return importlib.util.find_spec("triton") is not None
    return any(shutil.which(name) is not None for name in ("c++", "g++", "clang++"))
