"""The registry: a new architecture is one new file and one line, also from outside the package.

    @register("toy", sizes={"tiny": {"d_model": 16}, ...}, paper="...")
    def toy(vocab_size: int, *, d_model: int = 64) -> ModelConfig: ...

Registering makes it train, generate, score, evaluate, be listed and be checked, with nothing else to touch. Built-in
files are imported when their name is first asked for, so that listing names costs nothing.
"""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from regard.core.data_spec import EXAMPLE, DataSpec
from regard.core.limits import require_possible
from regard.core.plugin import load_entry_points, typed_name
from regard.errors import UsageError, nearest

if TYPE_CHECKING:
    from regard.core.config import Config
    from regard.core.stack import MixerConfig

# Name to file, in the order of the road. The one line of a built-in architecture.
MODELS = {
    "ngram": "regard.models.ngram",
    "majority": "regard.models.majority",
    "naive_bayes": "regard.models.naive_bayes",
    "linear": "regard.models.linear",
    "naive": "regard.models.naive",
    "lear": "regard.models.lear",
    "dlinear": "regard.models.dlinear",
    "ibm1": "regard.models.ibm1",
    "nearest": "regard.models.nearest",
    "nearest_picture": "regard.models.nearest_picture",
    "cloze": "regard.models.cloze",
    "most_frequent": "regard.models.most_frequent",
    "hmm": "regard.models.hmm",
    "crf": "regard.models.crf",
    "dan": "regard.models.dan",
    "fnn": "regard.models.fnn",
    "rnn": "regard.models.rnn",
    "lstm": "regard.models.lstm",
    "gru": "regard.models.gru",
    "gpt": "regard.models.gpt",
    "bert": "regard.models.bert",
    "backpack": "regard.models.backpack",
    "s4d": "regard.models.s4d",
    "mamba": "regard.models.mamba",
    "mamba2": "regard.models.mamba2",
    "seq2seq": "regard.models.seq2seq",
    "bahdanau": "regard.models.bahdanau",
    "gnmt": "regard.models.gnmt",
    "transformer": "regard.models.transformer",
    "captioner": "regard.models.captioner",
    "classifier": "regard.models.classifier",
    "average": "regard.models.average",
    "ridge": "regard.models.ridge",
    "regressor": "regard.models.regressor",
    "label_rates": "regard.models.label_rates",
    "linear_labels": "regard.models.linear_labels",
    "multilabeller": "regard.models.multilabeller",
    "tagger": "regard.models.tagger",
    "forecaster": "regard.models.forecaster",
}
MIXERS = (
    *("apart", "mean", "window", "rnn", "lstm", "gru", "attention", "cross", "given", "attentive", "gnmt"),
    *("s4d", "mamba", "ssd", "senses", "lora"),
)
# Parts of saved configs that are no architectures of their own.
UNREGISTERED = (
    "models.cache",
    "models.ensemble",
    "models.sentence_encoder",
    "models.writer_ensemble",
    "decoding.mixture",
)
VOCABULARY = "vocab_size"  # the first parameter of a preset that needs nothing else of the data
SIZES = ("tiny", "small", "base", "paper")

_entries: dict[str, Entry] = {}


@dataclass(frozen=True)
class Entry:
    """What the package knows of an architecture.

    preset       returns its config. Its first parameter is `vocab_size`, or a DataSpec; keyword-only ones are what
                 `--set model.KEY=VALUE` may change.
    sizes        values of those parameters by size name.
    summary      one line for lists, the first of the preset's docstring.
    paper        where it comes from.
    parameters   the parameter count published for the `paper` size, None where there is none, and the data of the
                 paper: its vocabulary, or all that its data says of itself.
    training     training settings that suit it, such as its learning rate; a person's own settings win over them.
    rate_power   how its rate falls as it gets wider: 1 as the width, 0.5 as its root, 0 not at all (run/rate.py).
    task         what it is for, a name of regard.tasks.
    """

    name: str
    preset: Callable[..., Config]
    sizes: dict[str, dict[str, Any]]
    summary: str
    paper: str
    parameters: tuple[int | None, int | DataSpec] | None
    training: dict[str, Any]
    task: str = "text"
    rate_power: float = 1.0

    def counted_with(self, size: str, vocab_size: int) -> DataSpec:
        """The data that a size is counted with: `paper` with what it was published with, others with `vocab_size`."""
        given: int | DataSpec = self.parameters[1] if self.parameters and size == "paper" else vocab_size
        return given if isinstance(given, DataSpec) else replace(EXAMPLE, vocab_size=given)

    def config(self, spec: DataSpec | int, size: str = "small", **overrides: Any) -> Config:
        """The config at a named size with some parameters changed. A number alone is a vocabulary."""
        if size not in self.sizes:
            raise UsageError(f"{self.name} has no size {size!r}{nearest(size, self.sizes)}")
        vocab_size = spec.vocab_size if isinstance(spec, DataSpec) else spec
        if self.of_vocabulary and (not isinstance(vocab_size, int) or vocab_size < 1):
            raise UsageError(f"vocab_size must be a positive whole number, found {vocab_size!r}")
        hints = typing.get_type_hints(self.preset)
        known = self.parameters_of_preset()
        for key, value in overrides.items():
            if key not in known:
                raise UsageError(f"model.{key}: {self.name} has no such setting{nearest(key, known)}")
            overrides[key] = _as_declared(value, hints.get(key, Any), f"model.{key}")
            require_possible(overrides[key], f"model.{key}")
        given = spec if isinstance(spec, DataSpec) else replace(EXAMPLE, vocab_size=spec)
        found = self.preset(vocab_size if self.of_vocabulary else given, **(self.sizes[size] | overrides))
        require_possible(found.to_dict(), "model")
        return found

    @property
    def of_vocabulary(self) -> bool:
        """Whether the preset asks for the size of a vocabulary alone, and not for all that data says of itself."""
        first = next(iter(inspect.signature(self.preset).parameters), "")
        return first == VOCABULARY or typing.get_type_hints(self.preset).get(first) is int

    @property
    def fitted(self) -> bool:
        """Whether it is fitted at once instead of by steps along gradients."""
        return self.config(EXAMPLE, next(iter(self.sizes))).fitted

    def parameters_of_preset(self) -> dict[str, Any]:
        """Settings and their defaults."""
        parameters = inspect.signature(self.preset).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def register(
    name: str,
    *,
    sizes: dict[str, dict[str, Any]],
    paper: str = "",
    parameters: tuple[int | None, int | DataSpec] | None = None,
    training: dict[str, Any] | None = None,
    task: str = "text",
    rate_power: float = 1.0,
) -> Callable[[Callable[..., Config]], Callable[..., Config]]:
    """Add the decorated preset under `name`. A name may be taken once."""

    def add(preset: Callable[..., Config]) -> Callable[..., Config]:
        old = _entries.get(name)
        taken = old.preset.__module__ if old else MODELS.get(name, preset.__module__)
        if taken != preset.__module__:
            raise UsageError(f"the model name {name!r} is taken by {taken}")
        summary = (inspect.getdoc(preset) or name).partition("\n")[0]
        _entries[name] = Entry(name, preset, sizes, summary, paper, parameters, training or {}, task, rate_power)
        return preset

    return add


def names() -> list[str]:
    """Every registered architecture, built-in ones first."""
    _load_plugins()
    return [*MODELS, *(name for name in _entries if name not in MODELS)]


def entry(name: str) -> Entry:
    """What is registered under a plain name. Nothing but regard's own files and entry points is imported for it."""
    load_model(name)
    if name not in _entries:
        known = names()
        if name not in _entries:
            outside = "a model from outside the package is imported first: --import MODULE"
            if ":" in name:
                raise UsageError(f"model {name!r}: a file names no module; {outside}")
            raise UsageError(f"unknown model {name!r} ({outside}){nearest(name, known)}")  # the list may be cut
    return _entries[name]


def build(name: str, *, vocab_size: int, size: str = "small", **settings: Any) -> Any:
    """A bare module, such as `build("gpt", vocab_size=65, size="tiny", n_layers=3)`."""
    return entry(typed_name(name)).config(vocab_size, size, **settings).build()


def load_model(name: str) -> None:
    """Import the file of a built-in architecture, by which most parts of its saved config are known."""
    if name in MODELS:
        importlib.import_module(MODELS[name])


def load_kinds() -> None:
    """Import every built-in part, so that any saved config can be read."""
    for path in MODELS.values():
        importlib.import_module(path)
    for mixer in MIXERS:
        importlib.import_module(f"regard.mixers.{mixer}")
    for path in UNREGISTERED:
        importlib.import_module(f"regard.{path}")
    _load_plugins()


def mixers() -> dict[str, type[MixerConfig]]:
    """The config of every mixer by its kind, built-in ones and those from outside that were imported.

    What has no examples for the laws is a composition of mixers and none itself.
    """
    load_kinds()
    from regard.core.config import KINDS
    from regard.core.stack import MixerConfig

    return {name: cls for name, cls in KINDS.items() if issubclass(cls, MixerConfig) and cls.examples()}


def mixer_examples() -> dict[str, MixerConfig]:
    """The example configs of every mixer, by name: what the laws run over."""
    found: dict[str, MixerConfig] = {}
    for cls in mixers().values():
        found |= cls.examples()
    return found


def _load_plugins() -> None:
    """What installed packages announce; a model may be made of a mixer of its own."""
    for group in ("regard.mixers", "regard.models"):
        load_entry_points(group)


def _as_declared(value: Any, hint: Any, where: str) -> Any:
    """A setting from a command line or a recipe as the preset's parameter wants it."""
    from regard.core.config import decode

    return decode(list(value) if isinstance(value, tuple) else value, hint, where)
