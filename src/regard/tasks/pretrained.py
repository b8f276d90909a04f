"""Start: what a run begins with that was learnt before, here or elsewhere.

    regard train reviews.tsv --from runs/bert        its embedding, stack and last norm under a new head
    regard train my.txt --from runs/gpt2             the whole model goes on, of a run of the same task

Names of weights are the same in a language model and in an encoder, so that they are loaded by name. With
`model.lora` what was learnt before stays as it is, and changes of low rank are learnt beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.errors import UsageError
from regard.tasks import saved_task, tasks

if TYPE_CHECKING:
    from torch import Tensor, nn

    from regard.core.config import Config
    from regard.data.tokenizer import Tokenizer
    from regard.tasks.processor import Processor
    from regard.tasks.task import Task

LORA = "lora"
OF_THE_HEAD = ("pooling", "dropout", "head", LORA)
# Before a head over what was learnt before (Devlin et al. 2019, A.3), which needs less than random vectors.
DROPOUT = 0.1
REMEMBERED = 8  # starts that are kept in memory, without their weights


@dataclass(frozen=True, eq=False)
class Start(ABC):
    """What is taken over from a run.

    path     its folder.
    task     its own. name: of its model.
    found    the config of its model, into which changes of low rank are merged.
    causal   whether it looks back only. max_length: positions that it has; None without a limit.
    version  the hash of its weights: another run of the same name is another start.
    """

    path: Path
    task: Task[Any]
    name: str
    found: Config
    causal: bool
    max_length: int | None
    version: str

    free: ClassVar[tuple[str, ...]]  # settings of the model that it leaves open
    batch_size: ClassVar[int | None] = None  # that suits it, where it is not that of the task's model

    @cached_property
    def processor(self) -> Processor | None:
        """In whose terms data is read, where the whole of a model goes on; None: what the task makes of `tokenizer`."""
        return None

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """By which it reads."""
        from regard.data import tokenizer
        from regard.training import run_folder

        return tokenizer.load(run_folder.verified_tokenizer(self.path))

    @abstractmethod
    def config(self, config: Config, changes: Collection[str]) -> Config:
        """The model. config: what the task would make. changes: settings of it that somebody gave."""

    def _refuse(self, changes: Collection[str], part: str) -> None:
        for key in changes:
            if key not in self.free:
                raise UsageError(f"model.{key}: the {part} is that of {self.path}; leave it out")

    @abstractmethod
    def taken(self, model: nn.Module) -> nn.Module:
        """The part of a model that is taken over."""

    def load(self, model: nn.Module) -> list[str]:
        """Give that part its weights; the names, in the model, of what has been learnt before."""
        from regard.layers.low_rank import is_of_low_rank
        from regard.storage import tensors

        part = self.taken(model)
        own = {name: value for name, value in tensors.weights_of(part).items() if not is_of_low_rank(name)}
        found = {name: value for name, value in self._weights().items() if name in own}
        tensors.require_same(tensors.forms_of(own), tensors.forms_of(found), self.path)
        tensors.copy_into(own, found)
        loaded = {id(value) for name, value in part.named_parameters() if name in own}
        return [name for name, value in model.named_parameters() if id(value) in loaded]

    def _weights(self) -> dict[str, Tensor]:
        """All that its file holds, checked against its hash."""
        from regard.layers.low_rank import merged
        from regard.storage import tensors
        from regard.training import run_folder
        from regard.training.before_refit import kept_before

        found = tensors.read(run_folder.verified_weights(self.path))
        return merged(found | kept_before(self.path))  # what is held out here may have been so there


class NewHead(Start):
    """The encoder of a language model, under the head of another task."""

    free: ClassVar[tuple[str, ...]] = OF_THE_HEAD
    batch_size: ClassVar[int | None] = 16  # little is to be learnt: more steps of fewer texts each bring it sooner

    def config(self, config: Config, changes: Collection[str]) -> Config:
        from regard.models.labeller import LabellerConfig

        assert isinstance(config, LabellerConfig)
        self._refuse(changes, "encoder")
        width = self.found.embedding.d_model  # pyright: ignore[reportAttributeAccessIssue]  # of a language model
        pooling = config.pooling
        if pooling is not None:
            own = getattr(self.found, "pooling", "last" if self.causal else "mean")
            pooling = replace(pooling, d_model=width, form=pooling.form if "pooling" in changes else own)
        dropout = config.dropout if "dropout" in changes else DROPOUT
        return replace(config, encoder=self._encoder(), d_memory=width, pooling=pooling, dropout=dropout)

    def _encoder(self) -> Any:
        from regard.models.encoder import EncoderConfig
        from regard.models.language import LanguageModelConfig

        assert isinstance(self.found, LanguageModelConfig)
        return EncoderConfig(self.found.embedding, self.found.stack, self.found.norm)

    def taken(self, model: nn.Module) -> nn.Module:
        whole: Any = model
        return whole.encoder


class Continued(Start):
    """A whole model that goes on with its own task, on other data."""

    free: ClassVar[tuple[str, ...]] = (LORA,)

    @cached_property
    def processor(self) -> Processor:
        from regard.training import run_folder

        return self.task.load_processor(lambda name: run_folder.verified(self.path, name))

    def config(self, config: Config, changes: Collection[str]) -> Config:
        self._refuse(changes, "model")
        return self.found

    def taken(self, model: nn.Module) -> nn.Module:
        return model


def read_start(path: str, task: Task[Any]) -> Start:
    """What a run of the task begins with, of the run in a folder; one that cannot be is refused."""
    from regard.training import run_folder

    where = Path(path).expanduser()
    run_folder.read_config(where)
    return _read(path, task.name, run_folder.weights_hash(where))


@lru_cache(REMEMBERED)
def _read(path: str, task: str, version: str) -> Start:
    """The start, once read kept as long as its weights are the same."""
    from regard.mixers.lora import without_lora
    from regard.models.language import LanguageModelConfig
    from regard.tasks import task_named
    from regard.training import run_folder
    from regard.training.saved_model import saved_model

    where, wanted = Path(path).expanduser(), task_named(task)
    saved = run_folder.read_config(where)
    own, name = saved_task(where / run_folder.CONFIG, saved), str(saved["model"].get("name"))
    is_same = own.name == task
    if not is_same and not (own.gives_encoder and wanted.takes_encoder):
        raise UsageError(_misfit(path, own, wanted))
    found = saved_model(where, saved)
    if found.weights is not None:
        raise UsageError(
            f"--from {path}: its weights are kept in few bits, for use and not for training; "
            "import it without --weights"
        )
    config, shapes = without_lora(found.config), found.shapes
    if config.fitted:
        raise UsageError(f"{path}: {name} is fitted at once and has nothing to go on with; fit it again")
    causal, longest = bool(getattr(shapes, "causal", False)), getattr(shapes, "max_length", None)
    if is_same and not getattr(getattr(shapes, "head", None), "n_answers", 1):
        takes = ", ".join(one.name for one in tasks() if one.takes_encoder)
        raise UsageError(
            f"--from {path}: gives vectors and has no head to go on with; start one of these tasks from it: {takes}"
        )
    if is_same:
        return Continued(where, own, name, config, causal, longest, version)
    if not isinstance(config, LanguageModelConfig):
        raise UsageError(f"{path}: {name} has no encoder; start from a neural model")
    return NewHead(where, own, name, config, causal, longest, version)


def _misfit(path: str, own: Task[Any], wanted: Task[Any]) -> str:
    """Why a run of one task is no start for another, and what would be."""
    giving = [one.name for one in tasks() if one.gives_encoder] if wanted.takes_encoder else []
    names = " or ".join(dict.fromkeys([wanted.name, *giving]))
    told = f"is a run of the task {own.name}, and the data is of the task {wanted.name}"
    return f"{path}: {told}; start from one of {names}"
