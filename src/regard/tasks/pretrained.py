"""Start: the encoder of a trained language model, which a run of another task begins with.

    regard train reviews.tsv --from runs/bert        its embedding, stack and last norm under a new head

Names of weights are the same in a language model and in an encoder, so that they are loaded by name.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import UsageError
from regard.tasks import saved_task, tasks

if TYPE_CHECKING:
    from regard.core.config import Config
    from regard.data.tokenizer import Tokenizer
    from regard.models.encoder import EncoderConfig
    from regard.models.labeller import Labeller
    from regard.tasks.task import Task

OF_THE_HEAD = ("pooling", "dropout", "head")


@dataclass(frozen=True, eq=False)
class Start:
    """What is taken over from a run.

    path       its folder.
    tokenizer  by which its encoder reads.
    encoder    the config of embedding, stack and norm. causal: whether it looks back only.
    weights    its file of weights, checked against its hash.
    """

    path: Path
    tokenizer: Tokenizer
    encoder: EncoderConfig
    d_model: int
    causal: bool
    weights: Path

    def config(self, config: Config, changes: Collection[str]) -> Config:
        """The labeller `config` over this encoder. changes: settings of the model, of which the encoder takes none."""
        from regard.models.labeller import LabellerConfig

        assert isinstance(config, LabellerConfig)
        changed = [key for key in changes if key not in OF_THE_HEAD]
        if changed:
            raise UsageError(f"model.{changed[0]}: the encoder is that of {self.path}; leave it out")
        pooling = replace(config.pooling, d_model=self.d_model) if config.pooling else None
        return replace(config, encoder=self.encoder, d_memory=self.d_model, pooling=pooling)

    def load(self, model: Labeller) -> None:
        """Give the encoder its weights."""
        from regard.storage import tensors

        own = tensors.weights_of(model.encoder)
        found = {name: value for name, value in tensors.read(self.weights).items() if name in own}
        tensors.require_same(tensors.forms_of(own), tensors.forms_of(found), self.weights)
        tensors.copy_into(own, found)


def require_start(task: Task[Any]) -> None:
    """Refuse a task whose models have no encoder to load."""
    if not task.takes_encoder:
        having = " and ".join(one.name for one in tasks() if one.takes_encoder)
        raise UsageError(f"--from: a run of the task {task.name} has no encoder to load; {having} have")


def read_start(path: str) -> Start:
    """The encoder in a run folder; a run that has none is refused."""
    from regard.data import tokenizer
    from regard.models.encoder import EncoderConfig
    from regard.models.language import LanguageModelConfig
    from regard.training import run_folder
    from regard.training.saved_model import saved_model

    where = Path(path).expanduser()
    saved = run_folder.read_config(where)
    task = saved_task(where / run_folder.CONFIG, saved)
    if not task.gives_encoder:
        having = " or ".join(one.name for one in tasks() if one.gives_encoder)
        raise UsageError(f"--from {path}: is a run of the task {task.name}; start from one of {having}")
    found = saved_model(where, saved)
    if found.weights is not None:
        raise UsageError(
            f"--from {path}: its weights are kept in few bits, for use and not for training; "
            "import it without --weights"
        )
    config = found.config
    if not isinstance(config, LanguageModelConfig):
        raise UsageError(f"--from {path}: {saved['model'].get('name')} has no encoder; start from a neural model")
    whole: Any = found.shapes
    return Start(
        where,
        tokenizer.load(run_folder.verified_tokenizer(where)),
        EncoderConfig(config.embedding, config.stack, config.norm),
        config.embedding.d_model,
        bool(whole.causal),
        run_folder.verified_weights(where),
    )
