"""Following: what each part of a model gives while it reads something, and which other parts that was made from.

Nothing is known of any model. Every operation on tensors is watched: what it gives comes from the parts that its inputs
come from, and a part that is listened to begins anew. So the residual stream is found where two parts are added, keys
and values where a decoder looks at its encoder, and a recurrence where a gate comes from the state of the step before.

    q = tap(W_Q x)       q comes from the norm that gave x, and what is made of q comes from q
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from regard.core.stack import Stack
from regard.core.tap import Tap, plain, record, resting
from regard.explain.calls import Calls, finite
from regard.explain.site import is_site

# Numbers that are kept of all parts together (64 MB), and parts that are listened to.
MOST_NUMBERS, MOST_PARTS = 2**24, 2000
# Parts by their names, and the number of the call that gave what something is made of.
Origins = frozenset[tuple[str, int]]
NONE: Origins = frozenset()
# What is no calculation of its own while a model rests.
IDLE = (nn.Identity, nn.Dropout)


@dataclass(frozen=True)
class Part:
    """A part of a model that is listened to.

    name    its dotted name.
    within  the part whose calls it belongs to, where another may call it too; else nothing.
    """

    name: str
    module: nn.Module
    within: str = ""


@dataclass(frozen=True)
class Passed:
    """What a part gave of one row.

    value    (T, ...) in float32, all of its calls together; None where no room was left for it.
    shape    of that value.
    sizes    (T,) the length of the vector at each place of time.
    sources  parts that it was made from, and whether only in a step before: so a recurrence goes back to itself.
    order    in which parts were done first.
    """

    part: Part
    value: Tensor | None
    shape: tuple[int, ...]
    sizes: Tensor
    sources: dict[str, bool]
    order: int


@dataclass(frozen=True)
class Followed:
    """passed   what the parts gave, by their names, first to last.
    inputs   names of the inputs among the sources.
    outputs  of the whole, and the parts that they were made from.
    """

    passed: dict[str, Passed]
    inputs: tuple[str, ...]
    outputs: Tensor
    sources: tuple[str, ...]


@torch.no_grad()
def follow(model: nn.Module, call: Callable[..., Tensor], inputs: Sequence[Tensor], deep: bool = True) -> Followed:
    """What the parts of a model give while `call` runs it on the inputs. deep: whether it may be looked into."""
    whole = plain(model)
    names = tuple(f"input {number}" for number in range(1, len(inputs) + 1))
    listener = _Listener(_Watch())
    with resting(whole), ExitStack() as stack:
        if deep:
            stack.enter_context(record(whole, keep=_nothing))
        for part in (listened(whole) if deep else [Part("", whole)])[:MOST_PARTS]:
            stack.enter_context(listener.to(part))
        stack.enter_context(listener.watch)
        for name, value in zip(names, inputs, strict=True):
            listener.watch.mark(value, name)
        outputs = call(*inputs)
        sources = {name for name, _ in listener.watch.of(outputs)}
    passed = listener.passed()
    return Followed(passed, names, outputs, tuple(sorted(sources)) or tuple(passed)[-1:])


@torch.no_grad()
def made_of(given: Mapping[str, Tensor], call: Callable[[], Tensor]) -> tuple[Tensor, list[str]]:
    """What a calculation gives, and which of the given tensors it made use of, by their names."""
    watch = _Watch()
    with watch:
        for name, value in given.items():
            watch.mark(value, name)
        found = call()
    return found, sorted(name for name, _ in watch.of(found))


def listened(model: nn.Module) -> list[Part]:
    """The parts worth listening to: taps, what moves information or has something to show, and whole calculations
    beside these, such as a norm or a head; of such a calculation also its parts, where it has several.

    A part that stands at two places of the model has the name of the first.
    """
    found: dict[int, Part] = {}
    for part in _below(model, ""):
        found.setdefault(id(part.module), part)
    return list(found.values())


def _below(module: nn.Module, name: str) -> Iterator[Part]:
    if isinstance(module, IDLE):
        return
    if isinstance(module, Tap):
        yield Part(name, module)
        return
    children = [(f"{name}.{own}" if name else own, child) for own, child in module.named_children()]
    if is_site(module):
        yield Part(name, module)
        children = [(own, child) for own, child in children if isinstance(child, Tap) or _has_inside(child)]
    elif not _has_inside(module):
        if isinstance(module, (nn.ModuleList, nn.ModuleDict)):
            for own, child in children:
                yield from _below(child, own)
            return
        yield Part(name, module)
        inner = [(own, child) for own, child in children if not isinstance(child, (*IDLE, nn.ModuleList))]
        yield from (Part(own, child, name) for own, child in inner if len(inner) > 1)
        return
    for own, child in children:
        if not (isinstance(module, Stack) and own.rpartition(".")[2] == "streams"):
            yield from _below(child, own)
        else:  # of a layer that is one part the stream holds the same
            pairs = zip(module.layers, cast("nn.ModuleList", child), strict=True)
            yield from (Part(f"{own}.{n}", tap) for n, (layer, tap) in enumerate(pairs) if not is_site(layer))


def _has_inside(module: nn.Module) -> bool:
    """Whether there are taps or sites in a part."""
    return any(isinstance(one, Tap) or is_site(one) for one in module.modules())


def _nothing(_value: Tensor) -> None:
    return None


class _Watch(TorchDispatchMode):
    """Of every tensor the parts that it comes from, kept up while operations run.

    known    by the tensor, with how many writes there had been.
    written  by its memory, what was written into it in place, each with its number. The memory is held, so that no
             other tensor can come to lie there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.known: Any = WeakTensorKeyDictionary()
        self.written: dict[int, list[tuple[int, Origins]]] = {}
        self.held: list[torch.UntypedStorage] = []

    def mark(self, value: Tensor, name: str, call: int = 0) -> None:
        self.known[value] = (frozenset(((name, call),)), len(self.held))

    def of(self, value: Any) -> Origins:
        """The parts that a value, or all tensors in it, come from."""
        return NONE.union(*(self._of_one(one) for one in _tensors(value)))

    def _of_one(self, value: Tensor) -> Origins:
        origins, since = self.known.get(value, (NONE, 0))
        return origins.union(*(more for number, more in self.written.get(_memory(value), ()) if number > since))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        origins = NONE if _only_shapes(func) else self.of((args, kwargs))
        found = func(*args, **kwargs)
        for one in _tensors(found):
            self.known[one] = (origins, len(self.held))
        for one in _written_by(func, args, kwargs):
            self.held.append(one.untyped_storage())
            self.written.setdefault(_memory(one), []).append((len(self.held), origins))
        return found


def _only_shapes(func: Any) -> bool:
    """Whether an operation makes a tensor like another without its numbers, such as zeros_like and new_ones."""
    name = str(getattr(func, "overloadpacket", func)).rpartition(".")[2]
    return name.endswith("_like") or name.startswith("new_")


def _written_by(func: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """Tensors that an operation writes into."""
    schema = getattr(func, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    named = [*zip(schema.arguments, args, strict=False), *((one, kwargs.get(one.name)) for one in schema.arguments)]
    return _tensors([value for one, value in named if one.alias_info is not None and one.alias_info.is_write])


def _tensors(value: Any) -> list[Tensor]:
    return [one for one in tree_leaves(value) if isinstance(one, Tensor)]


def _memory(value: Tensor) -> int:
    """The memory that a tensor lies in; 0 for one that has no single one, such as a sparse one."""
    return value.untyped_storage()._cdata if value.layout is torch.strided else 0


class _Listener:
    """What passes through parts, call by call."""

    def __init__(self, watch: _Watch) -> None:
        self.watch = watch
        self.parts: dict[str, Part] = {}
        self.calls: dict[str, Calls] = {}
        self.sources: dict[str, set[tuple[str, int]]] = {}
        self.running: list[str] = []
        self.room = MOST_NUMBERS

    @contextmanager
    def to(self, part: Part) -> Iterator[None]:
        """While it is listened to. What passes is handed on as another tensor of the same numbers in the same memory,
        so that who else has it keeps where it came from."""
        enter = part.module.register_forward_pre_hook(partial(self._enter, part))
        leave = part.module.register_forward_hook(partial(self._leave, part))
        try:
            yield
        finally:
            enter.remove()
            leave.remove()

    def _enter(self, part: Part, _module: nn.Module, _inputs: Any) -> None:
        if self._is_called(part):
            self.running.append(part.name)

    def _leave(self, part: Part, _module: nn.Module, inputs: Any, output: Any) -> Any:
        if not self.running or self.running[-1] != part.name:
            return None
        self.running.pop()
        first = output[0] if isinstance(output, tuple) and output else output
        if not isinstance(first, Tensor) or first.dim() < 2:
            return None
        self.parts[part.name] = part
        calls = self.calls.setdefault(part.name, Calls(part.module))
        call = calls.count
        origins = self.watch.of(first) or self.watch.of(inputs)
        self.sources.setdefault(part.name, set()).update((name, call - number) for name, number in origins)
        self.room -= calls.add(first, self.room)
        handed = first.detach()
        self.watch.mark(handed, part.name, call)
        return _with_first(output, handed) if isinstance(output, tuple) else handed

    def _is_called(self, part: Part) -> bool:
        """Whether this call is one of the part that it is listened to in."""
        return not part.within or self.running[-1:] == [part.within]

    def passed(self) -> dict[str, Passed]:
        """What each gave, in the order in which they were done first."""
        counts = {name: calls.count for name, calls in self.calls.items()}
        return {name: self._joined(name, order, counts) for order, name in enumerate(counts)}

    def _joined(self, name: str, order: int, counts: dict[str, int]) -> Passed:
        calls = self.calls.pop(name)
        value = calls.value().cpu()
        held = finite(value)
        sizes = held.flatten(1).norm(dim=1) if held.dim() > 1 else held.abs()
        # What was given once serves every step; of what is given at each, only that of this step comes before it.
        every = sorted(self.sources[name], reverse=True)
        is_now = {source: ago <= 0 or counts.get(source, 1) == 1 for source, ago in every}
        sources = {source: not now for source, now in is_now.items()}
        kept = value.to(torch.float32) if calls.is_whole else None
        return Passed(self.parts[name], kept, calls.shape(value), sizes, sources, order)


def _with_first(output: tuple[Any, ...], first: Tensor) -> tuple[Any, ...]:
    """The same with another first value, also of a tuple whose places have names."""
    given = (first, *output[1:])
    return type(output)(*given) if hasattr(output, "_fields") else given
