"""Run the laws over a mixer, a model, everything registered, or a class of a person's own."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from regard.core import registry
from regard.core.config import Config
from regard.core.data_spec import EXAMPLE
from regard.core.mixer import Mixer
from regard.core.plugin import import_module
from regard.core.stack import MixerConfig
from regard.errors import RegardError, UsageError, nearest
from regard.laws import chain, form, module, slots
from regard.laws.precision import precision
from regard.laws.result import Broken, LawResult, Ledger
from regard.laws.subject import Subject, from_mixer, from_model, hostile
from regard.laws.view import CLASSES, VOCABULARY

FACTS = replace(EXAMPLE, vocab_size=VOCABULARY, n_classes=CLASSES, spans=True)
Law = Callable[[Subject, Ledger], None]

LAWS: dict[str, Law] = {
    "step": form.step,
    "chunk": form.chunk,
    "causality": form.causality,
    "padding": form.padding,
    "source": form.source,
    "packing": form.packing,
    "select": form.select,
    "position": form.position,
    "purity": module.purity,
    "gradient": module.gradient,
    "reserve": slots.reserve,
    "insert": slots.insert,
    "free": slots.free,
    "record": module.record,
    "reach": module.reach,
    "round trip": module.round_trip,
    "equivariance": module.equivariance,
    "learn": module.learn,
    "enumeration": chain.enumeration,
    "precision": precision,
}
# What makes a law not apply: a declared fact, never a wish of a test.
EXEMPT: dict[str, tuple[Callable[[Subject], bool], str]] = {
    "step": (lambda s: not s.causal, "causal = False: it looks at the future"),
    "chunk": (lambda s: not s.causal, "causal = False: it looks at the future"),
    "causality": (lambda s: not s.causal, "causal = False: it looks at the future"),
    "source": (lambda s: not s.has_source, "it reads no source beside its text"),
    "packing": (lambda s: not s.has_state, "has_state = False: it reads whole texts"),
    "position": (lambda s: not s.has_state, "has_state = False: it reads whole texts"),
    "select": (lambda s: not s.has_state, "has_state = False: there are no rows to choose of"),
    "reserve": (lambda s: not s.causal, "causal = False: it is not used step by step"),
    "insert": (lambda s: not s.causal, "causal = False: it is not used step by step"),
    "free": (lambda s: not s.causal, "causal = False: it is not used step by step"),
    "reach": (lambda s: s.width is None or s.scale > 1, "a law of mixers at ordinary inputs"),
    "enumeration": (lambda s: s.decoder is None, "it chooses no tags together"),
    "precision": (lambda s: s.scale > 1, "a law of ordinary inputs: half precision ends at 65,504"),
    "equivariance": (lambda s: s.width is None, "a law of mixers"),
    "learn": (
        lambda s: s.width is not None or (_is_fitted(s) and not hasattr(s.module, "count")),
        "a law of models that learn by steps or by counting tokens",
    ),
    "round trip": (lambda s: s.config is None, "it has no config"),
    "gradient": (
        lambda s: s.scale > 1 or not any(True for _ in s.module.parameters()),
        "saturated gates and counts have no gradient to speak of",
    ),
}


def _is_fitted(subject: Subject) -> bool:
    return subject.config is not None and subject.config.fitted


def check_mixer(
    config: MixerConfig | Callable[[], nn.Module], name: str = "", device: str = "cpu", only: Collection[str] = ()
) -> list[LawResult]:
    """All laws on a mixer, given by its config or by a function that makes it; then again with extreme inputs.

    only  names of laws, where it is asked of these alone, and not with extreme inputs.
    """
    if isinstance(config, Config):
        make, own, name = config.build, config, name or config.kind
    else:
        make, own, name = config, None, name or getattr(config, "__name__", "mixer")
    ordinary = list(_run(lambda: from_mixer(name, make, own), device, only or LAWS))
    if only:
        return ordinary
    extreme = list(_run(lambda: from_mixer(f"{name} (extreme)", make, own, scale=30.0), device))
    return ordinary + extreme


def check_model(name: str, device: str = "cpu") -> list[LawResult]:
    """All laws on a registered architecture at its tiny size, without dropout."""
    entry = registry.entry(name)
    settings = {"dropout": 0.0} if "dropout" in entry.parameters_of_preset() else {}
    config = entry.config(FACTS, "tiny", **settings)
    return list(_run(lambda: from_model(entry.name, config), device))


def check(target: str | MixerConfig | Callable[..., Any], device: str = "cpu") -> list[LawResult]:
    """A mixer example or a model by name; or a Mixer, its config, or a function that makes one, also as `module:NAME`.

    device  where all of it lies. On a GPU it is the law of precision that meets the kernels: few of them take float64.
    """
    if not isinstance(target, str):
        kind = target.kind if isinstance(target, MixerConfig) else type(target).__name__
        return _check_part(target, getattr(target, "__name__", kind), device)
    examples = registry.mixer_examples()
    known = [*examples, *registry.names()]
    if target not in known and ":" in target:
        return _check_foreign(target, device)
    if target not in known:
        raise UsageError(f"nothing to check under {target!r}{nearest(target, known)}")
    results = check_mixer(examples[target], target, device) if target in examples else []
    return results + (check_model(target, device) if target in registry.names() else [])


def check_all(device: str = "cpu") -> Iterator[list[LawResult]]:
    """Every mixer example, then every model; one list of results each."""
    for name, config in registry.mixer_examples().items():
        yield check_mixer(config, name, device)
    for name in registry.names():
        yield check_model(name, device)


def _check_foreign(target: str, device: str) -> list[LawResult]:
    path, _, attribute = target.partition(":")
    found: Any = import_module(path)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{path} has no {attribute!r}{nearest(part, [n for n in dir(found) if n[0] != '_'])}")
        found = getattr(found, part)
    if attribute in registry.names():
        return check_model(attribute, device)
    return _check_part(found, attribute, device)


def _check_part(part: Any, name: str, device: str) -> list[LawResult]:
    if isinstance(part, MixerConfig):
        return check_mixer(part, name, device)
    if inspect.isclass(part) and issubclass(part, MixerConfig):
        return [r for own, config in part.examples().items() for r in check_mixer(config, own, device)]
    if not callable(part):
        raise UsageError(f"{name} is neither a mixer, nor its config, nor a function that makes one")
    return check_mixer(lambda: _made(part, name), name, device)


def _made(factory: Callable[..., Any], target: str) -> nn.Module:
    """A mixer from a class or a function, with d_model = 8 where it asks for a width."""
    parameters = inspect.signature(factory).parameters.values()
    wanted = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    if len(wanted) > 1:
        raise UsageError(f"{target} needs {', '.join(wanted)}: check a function without arguments instead")
    made = factory(8) if wanted else factory()
    if not isinstance(made, Mixer):
        raise UsageError(f"{target} gives a {type(made).__name__}, not a regard.Mixer")
    return made


def _run(make: Callable[[], Subject], device: str = "cpu", only: Collection[str] = LAWS) -> Iterator[LawResult]:
    # To say where new tensors lie makes every call of torch slower, so on the host nothing is said.
    with nullcontext() if device == "cpu" else torch.device(device), hostile():
        subject = make()
        for name, law in LAWS.items():
            if name in only:
                yield _one(subject, name, law)


def _one(subject: Subject, name: str, law: Law) -> LawResult:
    exempt, fact = EXEMPT.get(name, (lambda _: False, ""))
    if exempt(subject):
        return LawResult(name, subject.name, None, detail=fact)
    ledger, start = Ledger(), time.perf_counter()
    held, detail = True, ""
    try:
        law(subject, ledger)
    except Broken as broken:
        held, detail = False, str(broken)
    except RegardError as error:
        held, detail = False, str(error)
    except Exception as error:
        # The subject is somebody's own code: whatever it raises is a finding, not a crash of the check.
        held, detail = False, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return LawResult(
        name, subject.name, held, ledger.error, ledger.rms, ledger.tolerance, detail, time.perf_counter() - start
    )


def failures(results: Iterable[LawResult]) -> list[LawResult]:
    return [result for result in results if result.held is False]
