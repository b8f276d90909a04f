"""TrainSettings: how a run trains, whatever the model. Every value is checked when it is made.

Each field says what a resume may do with it:

    identity  part of what the run is: another value is another run, and is refused with both values shown
    override  may be changed when the caller says so by name
    free      may be changed at will: it touches no weight, or only warns (threads, device)
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from regard.core.device import is_device_name
from regard.errors import UsageError, nearest
from regard.training import budget, class_weights
from regard.training.track import names_in, parsed

OnResume = Literal["identity", "override", "free"]
DEFAULT_LR = 1e-3
FORMER = "tensorboard"  # what was a setting of its own


UNITS = {"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class _Rule:
    """What a value may be, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]


def _count(low: int, high: int) -> _Rule:
    return _Rule(f"a whole number from {low} to {high}", lambda v: _is_whole(v) and low <= v <= high)


def _number(low: float, high: float, words: str) -> _Rule:
    return _Rule(words, lambda v: _is_number(v) and low <= v <= high)


def _choice(*options: str) -> _Rule:
    return _Rule(" or ".join(options), lambda v: v in options)


def _maybe(rule: _Rule) -> _Rule:
    return _Rule(f"{rule.words}, or nothing", lambda v: v is None or rule.holds(v))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < math.inf


def _is_betas(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(_is_number(part) and 0 <= part < 1 for part in value)


def _is_budget(value: Any) -> bool:
    return isinstance(value, str) and bool(budget.parse(value))


def _bytes(size: str) -> int:
    """
    >>> _bytes("512M"), _bytes("1.5 GiB")
    (536870912, 1610612736)
    """
    found = re.fullmatch(r"([0-9]+(?:[.][0-9]+)?) ?([MGT])(?:i?B)?", size)
    return int(float(found[1]) * UNITS[found[2]]) if found else 0


def _is_size(value: Any) -> bool:
    return isinstance(value, str) and _bytes(value) >= 16 * UNITS["M"]


def _is_tracks(value: Any) -> bool:
    return value is None or (isinstance(value, str) and bool(parsed(value)))


def _is_named(value: Any) -> bool:
    return isinstance(value, str) and all(word.strip() for word in value.split(","))


def _setting(default: Any, on_resume: OnResume, rule: _Rule) -> Any:
    return dataclasses.field(default=default, metadata={"on_resume": on_resume, "rule": rule})


YES_NO = _Rule("true or false", lambda v: isinstance(v, bool))
AUTO_YES_NO = _Rule("auto, true or false", lambda v: isinstance(v, bool) or v == "auto")
FRACTION = _number(0, 1, "a number from 0 to 1")
BELOW_ONE = _Rule("a number from 0 up to 1", lambda v: _is_number(v) and 0 <= v < 1)
FACTOR = _Rule("a number above 0 and up to 1", lambda v: _is_number(v) and 0 < v <= 1)
RATE = _Rule("a number above 0 and up to 100", lambda v: _is_number(v) and 0 < v <= 100)


@dataclass(frozen=True)
class TrainSettings:
    """How a run trains.

    budget          when it ends: 90s, 2m, 1h, 500steps, 3Mtokens, 1e15flops
    batch_size      rows of one forward pass; with `accumulate` so many passes make one step
    length          tokens of context in a row
    samples         "windows" of a stream of text, "documents" one by one; "auto" asks the data
    carry_state     truncated backpropagation: each row goes on where it ended, the state carried over; None decides:
                    yes when the state does not grow and the samples are windows
    packed          documents end to end, of every length in a batch, instead of rows of similar length with padding
    lr              None: the model's own, else 1e-3
    warmup          below 1 a part of the budget, from 1 on a count of steps
    min_lr          the last rate as a part of `lr`
    betas           AdamW's two memories. A second of 0.95 forgets a rare word's row between two sights of it, and the
                    softmax's small pushes then move the row at full rate: a perplexity of 150.5 against 120.5 with
                    0.999 (docs/log.md)
    clip            largest norm of the gradient; 0 for none
    label_smoothing part of a target's weight that goes to other classes while training; 0 for none
    smoothing       which share it: "all" classes, the target among them, or only the "others"
    class_weights   how much examples of a class count: "none" all the same, "balanced" the more the rarer it is, or as
                    written, such as spam=5,ham=1
    calibrate       whether a temperature is found on the held-out part that makes the chances of classes true
    refit           whether what is solved for before the first step is solved for once more with the held-out part too,
                    when all is chosen by that; auto: where it was split off data, in no comparison (docs/labels.md)
    ar, tar         what is added to the loss of a language model while training for the size of the vectors that its
                    head reads, and for their change from token to token (Merity et al. 2018, 4.6)
    word_dropout    part of the input words that is hidden while training, reached after `word_dropout_ramp` steps
    ema             decay of the moving average of the weights, which is then what is evaluated and kept; 0 for none
    precision       of the large products; weights, moments and the loss are in float32. With float16 the loss is
                    scaled, fp8 needs a GPU that has it; auto is bfloat16 on a GPU that has it, else float32
    compile, graphs whether a step is compiled, and on a GPU captured as one graph; auto: on a GPU, where the budget
                    repays it. A step that cannot be is made as it reads, and that is told
    gradient_checkpointing  whether each layer is computed a second time on the way back, which leaves its activations
                    out of memory and takes about a third more time
    evaluate_every  steps; None: so that evaluation takes about a twentieth of the time
    save_every      steps; None: every half minute, or less often when saving is slow
    save_async      whether training goes on while a copy of what is saved is written; auto: unless copies would fill
                    more than a quarter of the host's memory
    keep            checkpoints kept beside the best
    sample_every    evaluations between two samples of text; 0 for none
    patience        evaluations without improvement after which the run ends; 0 for no limit
    choose_by       the best weights have the best "score" of the task, where it has one, or the lowest held-out "loss"
    on_save_error   "stop", or "warn" and go on training
    threads, device None and "auto": what the machine offers
    track           where the numbers go beside the run folder, such as tensorboard, wandb or mlflow (docs/training.md)
    ensemble        trainings, at the seeds from `seed` on, whose answers are averaged; the budget is for all of them
    start           the folder of a run that this one begins with; None: all weights are random
    vectors         a file of word vectors, or a run they were imported to, that embeddings begin with, word by word
    freeze          parts of the model that are left as they are, by name, such as embedding,layers.0-3
    layer_decay     rates fall by this factor from each layer to the one below it; 1: all learn at the same
    parallel        how several processes train one model: "ddp", each holds all of it, "fsdp", each a part of every
                    layer; auto: the second where the first does not fit (docs/scale.md)
    memory, spill   of a model that counts: about how much memory to work in, such as 512M or 2G, and the folder for
                    what does not fit; None is the system's for temporary files
    """

    budget: str = _setting("2m", "override", _Rule(f"one of {budget.EXAMPLES}", _is_budget))
    batch_size: int = _setting(32, "identity", _count(1, 1 << 20))
    accumulate: int = _setting(1, "identity", _count(1, 1 << 16))
    length: int = _setting(128, "identity", _count(1, 1 << 24))
    samples: Literal["auto", "windows", "documents"] = _setting(
        "auto", "identity", _choice("auto", "windows", "documents")
    )
    carry_state: bool | None = _setting(None, "identity", _maybe(YES_NO))
    packed: bool = _setting(False, "identity", YES_NO)
    optimiser: Literal["adamw", "muon"] = _setting("adamw", "identity", _choice("adamw", "muon"))
    lr: float | None = _setting(None, "override", _maybe(RATE))
    weight_decay: float = _setting(0.1, "override", _number(0, 10, "a number from 0 to 10"))
    betas: tuple[float, float] = _setting((0.9, 0.999), "override", _Rule("two numbers from 0 up to 1", _is_betas))
    schedule: Literal["cosine", "linear", "constant", "inverse_root"] = _setting(
        "cosine", "override", _choice("cosine", "linear", "constant", "inverse_root")
    )
    warmup: float = _setting(0.05, "override", _number(0, 1e9, "a part of the budget below 1, or a count of steps"))
    min_lr: float = _setting(0.1, "override", FRACTION)
    clip: float = _setting(1.0, "override", _number(0, 1e9, "a number from 0 on"))
    label_smoothing: float = _setting(0.0, "override", BELOW_ONE)
    smoothing: Literal["all", "others"] = _setting("all", "override", _choice("all", "others"))
    class_weights: str = _setting(class_weights.NONE, "identity", _Rule(class_weights.WORDS, class_weights.is_allowed))
    calibrate: bool = _setting(True, "free", YES_NO)
    refit: bool | str = _setting("auto", "free", AUTO_YES_NO)
    ar: float = _setting(0.0, "override", _number(0, 1e6, "a number from 0 on"))
    tar: float = _setting(0.0, "override", _number(0, 1e6, "a number from 0 on"))
    word_dropout: float = _setting(0.0, "identity", BELOW_ONE)
    word_dropout_ramp: int = _setting(0, "identity", _count(0, 1 << 40))
    ema: float = _setting(0.0, "identity", BELOW_ONE)
    precision: Literal["auto", "float32", "bfloat16", "float16", "fp8"] = _setting(
        "auto", "identity", _choice("auto", "float32", "bfloat16", "float16", "fp8")
    )
    compile: bool | str = _setting("auto", "override", AUTO_YES_NO)
    graphs: bool | str = _setting("auto", "override", AUTO_YES_NO)
    gradient_checkpointing: bool = _setting(False, "free", YES_NO)
    evaluate_every: int | None = _setting(None, "free", _maybe(_count(1, 1 << 40)))
    save_every: int | None = _setting(None, "free", _maybe(_count(1, 1 << 40)))
    save_async: bool | str = _setting("auto", "free", AUTO_YES_NO)
    keep: int = _setting(2, "free", _count(1, 1 << 20))
    sample_every: int = _setting(1, "free", _count(0, 1 << 40))
    patience: int = _setting(0, "free", _count(0, 1 << 40))
    choose_by: Literal["score", "loss"] = _setting("score", "free", _choice("score", "loss"))
    on_save_error: Literal["stop", "warn"] = _setting("stop", "free", _choice("stop", "warn"))
    track: str | None = _setting(None, "free", _Rule("trackers such as tensorboard, joined by spaces", _is_tracks))
    memory: str = _setting("1G", "free", _Rule("a size such as 512M or 2G, at least 16M", lambda v: _is_size(v)))
    spill: str | None = _setting(None, "free", _Rule("the path of a folder", lambda v: v is None or isinstance(v, str)))
    ensemble: int = _setting(1, "identity", _count(1, 64))
    start: str | None = _setting(
        None, "identity", _Rule("the folder of a run", lambda v: v is None or isinstance(v, str))
    )
    vectors: str | None = _setting(
        None, "identity", _Rule("a file of word vectors", lambda v: v is None or isinstance(v, str))
    )
    freeze: str | None = _setting(None, "identity", _maybe(_Rule("names of parts, joined by commas", _is_named)))
    layer_decay: float = _setting(1.0, "override", FACTOR)
    parallel: Literal["auto", "none", "ddp", "fsdp"] = _setting("auto", "free", _choice("auto", "none", "ddp", "fsdp"))
    seed: int = _setting(0, "identity", _count(0, 2**63 - 1))
    threads: int | None = _setting(None, "free", _maybe(_count(1, 4096)))
    device: str = _setting("auto", "free", _Rule("auto, cpu, cuda or cuda:N", is_device_name))

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, rule = getattr(self, field.name), field.metadata["rule"]
            if not rule.holds(value):
                raise UsageError(f"train.{field.name}: found {value!r}, allowed is {rule.words}")

    @property
    def memory_bytes(self) -> int:
        """`memory` in bytes."""
        return _bytes(self.memory)

    @property
    def rate(self) -> float:
        """The highest learning rate."""
        return DEFAULT_LR if self.lr is None else self.lr

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        plain = dataclasses.asdict(self)
        # What trackers are told is for who typed it: it may name a server, and files are handed on.
        return plain | {"betas": list(self.betas), "track": names_in(self.track)}


def from_dict(values: Mapping[str, Any]) -> TrainSettings:
    """The settings that `to_dict` wrote, or some of them: the others take their defaults."""
    known = {field.name for field in dataclasses.fields(TrainSettings)}
    values = renamed(values)
    for key in values:
        if key not in known:
            raise UsageError(f"train.{key}: there is no such setting{nearest(key, known)}")
    betas = values.get("betas")
    return TrainSettings(**{**values, **({"betas": tuple(betas)} if isinstance(betas, list) else {})})


def renamed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with what an earlier regard called `tensorboard` under its present name.

    >>> renamed({"tensorboard": True, "lr": 0.1}), renamed({"tensorboard": False})
    ({'track': 'tensorboard', 'lr': 0.1}, {})
    """
    plain = dict(values)
    was = plain.pop(FORMER, False)
    if not isinstance(was, bool):
        raise UsageError(f"train.{FORMER}: found {was!r}, allowed is {YES_NO.words}; train.track names trackers")
    return plain if not was else {"track": FORMER} | plain


def on_resume(name: str) -> OnResume:
    """The class of a field."""
    fields = {field.name: field for field in dataclasses.fields(TrainSettings)}
    return fields[name].metadata["on_resume"]


def require_resumable(saved: TrainSettings, asked: TrainSettings, override: Collection[str] = ()) -> None:
    """Refuse to continue a run with settings that make it another run, or that nobody asked to change."""
    for name in override:
        if name not in {field.name for field in dataclasses.fields(TrainSettings)}:
            known = [field.name for field in dataclasses.fields(TrainSettings)]
            raise UsageError(f"train.{name}: there is no such setting{nearest(name, known)}")
        if on_resume(name) == "identity":
            raise UsageError(f"train.{name}: part of what the run is, a resume cannot change it; start a new run")
    for field in dataclasses.fields(TrainSettings):
        old, new = getattr(saved, field.name), getattr(asked, field.name)
        kind = field.metadata["on_resume"]
        if old == new or kind == "free" or (kind == "override" and field.name in override):
            continue
        where = f"train.{field.name}: the run was started with {old!r} and is continued with {new!r}"
        if kind == "identity":
            raise UsageError(f"{where}; give the old value or start a new run with another --out")
        raise UsageError(f"{where}; give the old value, or name the new one with --set train.{field.name}=VALUE")
