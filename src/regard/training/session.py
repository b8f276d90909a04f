"""Session: a run while it is in memory, and how it goes to and comes back from a checkpoint."""

from __future__ import annotations

import dataclasses
import platform
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.core.config import Config
from regard.core.state import State
from regard.errors import CheckpointError, blamed_on
from regard.storage import manifest, tensors
from regard.training import budget, checkpoint
from regard.training.captured import CapturedStep
from regard.training.checkpoint import Contents
from regard.training.counters import Counters, counters_of
from regard.training.display import Display
from regard.training.ema import Ema
from regard.training.estimate import on_meta, sizes
from regard.training.execution import Choice, choice_of, taken_up
from regard.training.flops import flops_per_target
from regard.training.losses import Loss, TrainingStep
from regard.training.metrics import Metrics
from regard.training.optimiser import Optimiser
from regard.training.parallel.ranks import ALONE, Ranks
from regard.training.precision import LossScale, Precision, autocast
from regard.training.prefetch import Prefetch
from regard.training.problem import TrainingProblem
from regard.training.random_streams import generator_states, require_generators, restore_generators
from regard.training.run_folder import RunFolder
from regard.training.saved_tensors import saved_tensors
from regard.training.settings import TrainSettings

if TYPE_CHECKING:
    from regard.training.saving import Save


@dataclass(frozen=True)
class Pending:
    """The numbers of a step that nobody has looked at yet; on a GPU looking means waiting."""

    step: int
    loss: Tensor
    norm: Tensor
    tokens: int
    samples: list[int]


@dataclass
class Session:
    """Everything that the loop reads and writes."""

    training_step: TrainingStep
    task: TrainingProblem
    settings: TrainSettings
    run: RunFolder
    display: Display
    metrics: Metrics
    optimiser: Optimiser
    ema: Ema
    device: torch.device
    ranks: Ranks = ALONE
    sample: Callable[[nn.Module], str] | None = None
    counters: Counters = field(default_factory=Counters)
    carried: State | None = None
    # How steps are made; None until it is chosen, or a checkpoint has said it.
    chosen: Choice | None = None
    # The precision in which a run that goes on began.
    began_in: Precision | None = None
    captured: CapturedStep | None = None
    # Steps made since the start or the resume.
    steps_here: int = 0
    pending: list[Pending] = field(default_factory=list)
    best_weights: dict[str, Tensor] | None = None
    train_loss: float | None = None
    rate: float = 0.0
    saved_step: int | None = None
    # The save that is being written in the background, and memory of the host for its copies, kept for the next one.
    saving: Save | None = None
    room: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    save_seconds: float = 0.0
    evaluation_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.budget = budget.parse(self.settings.budget)
        # The model and its loss as steps call them: with the gradients of all processes, or compiled.
        self.fast_step: nn.Module | Callable[..., Loss] = self.training_step
        settings, part = self.settings, self.ranks.part
        self.prefetch = Prefetch(self.task.sampler, settings.batch_size, settings.accumulate, self.device, part)
        # Whether some step's numbers were not finite where nobody looks at once. From then on no update is applied.
        self.is_bad = torch.zeros((), dtype=torch.bool, device=self.device)
        self.given = {name: torch.zeros((), device=self.device) for name in ("tokens", "rate")}
        self.loss_scale = LossScale(self.device) if settings.precision == "float16" else None
        self.start_clock()

    @property
    def model(self) -> nn.Module:
        return self.training_step.model

    @property
    def choice(self) -> Choice:
        """How steps are made."""
        return Choice() if self.chosen is None else self.chosen

    @cached_property
    def flops_per_token(self) -> float:
        """Operations of a training step for each target, counted when they are first asked for."""
        return flops_per_target(self.model, self.task.sampler.batch(0, self.settings.batch_size), self.task.objective)

    def start_clock(self) -> None:
        """Count time from now."""
        self.clock_start = self.saved_at = self.ranks.now()
        self.read_at = time.monotonic()
        self.seconds_before = self.counters.seconds

    @property
    def seconds(self) -> float:
        return self.seconds_before + self.ranks.now() - self.clock_start

    def progress(self, *, ahead_steps: float = 0.0, ahead_tokens: float = 0.0) -> float:
        """How much of the budget is spent, or will be a little ahead, 0 to 1."""
        return self.budget.progress(**self._counted(ahead_steps, ahead_tokens))

    @property
    def spent(self) -> float:
        """The same in the unit of the budget."""
        return self.budget.spent(**self._counted())

    def _counted(self, ahead_steps: float = 0.0, ahead_tokens: float = 0.0) -> dict[str, float]:
        return {
            "step": self.counters.step + ahead_steps,
            "tokens": self.counters.tokens + ahead_tokens,
            "seconds": self.seconds,
            "flops_per_token": self.flops_per_token if self.budget.kind == "flops" else 0.0,
        }

    def reason_to_end(self) -> str | None:
        """Why no further step is made, if none is."""
        patience = self.settings.patience
        if patience and self.counters.since_best >= patience:
            return "patience"
        return "budget" if self.progress() >= 1 else None

    def precision(self) -> torch.autocast:
        """Where products are rounded as was chosen; weights stay in float32."""
        return autocast(self.choice.precision, self.device)

    def contents(self) -> Contents:
        """What a checkpoint of this moment holds."""
        self.counters.seconds = self.seconds
        carried = [] if self.carried is None else [self.ranks.all_rows(part) for part in self.carried.tensors()]
        training = {f"optimiser/{name}": tensor for name, tensor in self.optimiser.tensors().items()}
        training |= {f"average/{name}": tensor for name, tensor in self.ema.tensors().items()}
        training |= {f"carried/{i}": tensor for i, tensor in enumerate(carried)}
        training |= {f"loss_scale/{name}": tensor for name, tensor in self._scale_tensors().items()}
        training |= {f"generator/{name}": tensor for name, tensor in generator_states().items()}
        state = {
            "counters": dataclasses.asdict(self.counters),
            "environment": environment(self.device, self.ranks.size),
            "choice": self.choice.to_dict(),
        }
        return Contents(tensors.weights_of(self.model), tensors.weights_metadata(self.model), training, state)

    def restore(self, path: Path, named: Collection[str] = ()) -> None:
        """Take up where the checkpoint at `path` ends. It must be verified; nothing is touched before all fits.

        named: settings that whoever resumes has given.
        """
        state = checkpoint.read_state(path)
        counters = counters_of(state, path)
        with blamed_on(path / checkpoint.STATE):
            chosen = choice_of(state.get("choice"))
        saved = saved_tensors(path, state)
        tensors.require_forms_fit(self.model, saved.weights, saved.metadata, path / checkpoint.MODEL)
        others = {"optimiser/": self.optimiser.tensors(), "average/": self.ema.tensors()}
        others |= {"loss_scale/": self._scale_tensors()}
        # Torch's own loader takes moments of other shapes and fails a step later, or not at all.
        for prefix, own in others.items():
            tensors.require_same(tensors.forms_of(own), saved.below(prefix), path)
        self._require_state_fits(saved.below("carried/"), path)
        generators = saved.whole("generator/")
        with blamed_on(path / checkpoint.OPTIMISER):
            require_generators(generators)
        saved.copy_weights(self.ranks, tensors.weights_of(self.model))
        for prefix, own in others.items():
            saved.copy(self.ranks, own, prefix)
        self._restore_state(saved.whole("carried/"))
        restore_generators(generators)
        self.counters, self.saved_step = counters, counters.step
        known = state.get("environment")
        before = known if isinstance(known, Mapping) else {}
        if chosen is not None:
            self.began_in = chosen.precision
            self.chosen = taken_up(self, chosen, before.get("device", ""), named)
        for change in environment_changes(before, environment(self.device, self.ranks.size)):
            self.display.note(f"continued with {change}: results may differ from an undisturbed run in the last bits")

    def _scale_tensors(self) -> dict[str, Tensor]:
        return {} if self.loss_scale is None else self.loss_scale.tensors()

    def _require_state_fits(self, forms: Mapping[str, tensors.Form], where: Path) -> None:
        if not forms:
            return
        fresh = self.fresh_state(self.settings.batch_size)
        wanted = {str(i): tensors.form_of(tensor) for i, tensor in enumerate(fresh.tensors())}
        # In bfloat16 what is carried has another width than what a run begins with.
        fits = wanted.keys() == forms.keys() and all(
            wanted[name].shape == form.shape and wanted[name].is_float == form.is_float for name, form in forms.items()
        )
        if not fits:
            raise CheckpointError(f"{where}: the carried state is of another architecture")

    def _restore_state(self, values: Mapping[str, Tensor]) -> None:
        if values:
            index = iter(range(len(values)))
            fresh = self.fresh_state(self.settings.batch_size)
            self.carried = fresh.map(lambda _: self.ranks.own_rows(values[str(next(index))]).to(self.device))

    def fresh_state(self, batch_size: int) -> State:
        """The state before any token."""
        model: Any = self.model
        return model.init_state(batch_size)


def description(
    config: Config | None,
    identity: Mapping[str, Any],
    settings: TrainSettings,
    device: torch.device,
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """What config.json says of a run. config, identity: of its model and of its data. about: what else is known."""
    tree = {"config": config.to_dict()} if config is not None else {}
    counted = {"sizes": sizes(on_meta(config), settings.length)} if config is not None else {}
    return {
        **about,
        "format_version": manifest.FORMAT_VERSION,
        "model": {**about.get("model", {}), **tree},
        "data": {**about.get("data", {}), **identity},
        "train": settings.to_dict(),
        "environment": environment(device),
        **counted,
    }


def environment(device: torch.device, ranks: int = 1) -> dict[str, Any]:
    """What bit-identity depends on beside the settings."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "threads": torch.get_num_threads(),
        "device": device.type,
        "machine": name,
        "ranks": ranks,
    }


def environment_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs, in words."""
    known = {"ranks": 1, **before}
    return [f"{key} {now[key]} instead of {known.get(key)}" for key in now if now[key] != known.get(key)]
