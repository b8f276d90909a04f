"""Diagram: what was followed through a model, as nodes with words and matrices, and the groups that these make up.

What a node is called and how it is drawn comes from what its part is and declares: a tap and its meaning, a mixer and
its mechanism, the name of a norm, a head or an embedding. No model is known by its name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from regard.core.stack import Block, Stack
from regard.core.tap import Tap, Trace, plain
from regard.explain.flow import FlowEdge, FlowGroup, FlowNode
from regard.explain.following import Followed, Passed, made_of
from regard.explain.mechanism import Mechanism, mechanism_of
from regard.explain.site import Site, is_site, kind_of, side_at, sites
from regard.tasks.reading import Reading

NOTES = {
    "attention": "how much each position looks at each other one; a row sums to 1",
    "alignment": "how much each position looks at each one of the memory; a row sums to 1",
    "values": "what the weights bring",
    "gate": "from 0, shut, to 1, open",
    "keep": "the share of the state that each token leaves, from 0 to 1",
    "state": "what is carried on after each token",
    "pooling": "what each position counts in the vector of the whole",
    "neurons": "hidden units of a net at each position",
}
WEIGHTS = ("attention", "alignment", "pooling")
ROLES = ("norm", "head", "embedding")
MOST_SLICES = 64
HEADS = frozenset({"attention", "alignment"})


class Diagram:
    """The nodes, groups and edges of what was followed."""

    def __init__(self, reading: Reading, followed: Followed) -> None:
        self.reading = reading
        self.followed = followed
        self.model = plain(reading.model)
        self.modules = dict(self.model.named_modules())
        self.sites = {site.name: site for site in sites(reading)}
        self.places = {name: self._place(name) for name in followed.passed}
        self.groups = self._groups()
        self.nodes = [*self._inputs(), *(self._node(passed) for passed in followed.passed.values())]
        self.edges = list(self._edges())
        self._work_out()

    def _place(self, name: str) -> str:
        """Where a node is taken to be: what leaves a layer in the layer."""
        above, _, own = name.rpartition(".")
        stack, _, last = above.rpartition(".")
        is_stream = last == "streams" and isinstance(self.modules[stack], Stack)
        return f"{stack}.layers.{own}.stream".removeprefix(".") if is_stream else name

    def _groups(self) -> dict[str, FlowGroup]:
        """Parts of the model that several nodes are in, outer ones first; of two that hold the same the inner one."""
        members: dict[str, set[str]] = {}
        for name, place in self.places.items():
            for above in _above(place, itself=True):
                members.setdefault(above, set()).add(name)
        kept = [name for name in self.modules if len(members.get(name, ())) > 1 and name and self._may_group(name)]
        same = {frozenset(members[name]): name for name in kept}
        kept = [name for name in kept if same[frozenset(members[name])] == name]
        groups: dict[str, FlowGroup] = {}
        for name in kept:
            parent = next((above for above in _above(name) if above in kept), "")
            groups[name] = FlowGroup(name, *self._called(name), parent)
        return groups

    def _may_group(self, name: str) -> bool:
        return not isinstance(self.modules[name], (nn.ModuleList, nn.ModuleDict))

    def _called(self, name: str) -> tuple[str, str]:
        """The label and the kind of a group."""
        module = self.modules[name]
        number = self._layer(name)
        if number is not None:
            return f"layer {number}", "layer"
        if is_site(module):
            return kind_of(module), "mixer"
        if isinstance(module, Stack):
            count = len(module.layers)
            return f"{count} layer{'s' if count != 1 else ''}", "stack"
        return words(name), "layer" if isinstance(module, Block) else "part"

    def _layer(self, name: str) -> int | None:
        """The number of a layer of a stack, from 1 on."""
        above, _, own = name.rpartition(".")
        stack, _, last = above.rpartition(".")
        return int(own) + 1 if last == "layers" and isinstance(self.modules[stack], Stack) else None

    def _inputs(self) -> list[FlowNode]:
        """What goes in, on each side."""
        nodes = []
        for name, side, value in zip(self.followed.inputs, self.reading.sides, self.reading.inputs, strict=True):
            row = value[0].detach().float().cpu()
            values = None if row.dim() < 2 else row.reshape(-1, *row.shape[-2:]).numpy()
            own = side.name if row.dim() == 1 or row.shape[0] == len(side) else ""
            nodes.append(
                FlowNode(name, side.name, "input", side=own, shape=tuple(row.shape), values=values, band=side.name)
            )
        return nodes

    def _node(self, passed: Passed) -> FlowNode:
        name, module = passed.part.name, passed.part.module
        site = self.sites.get(name.rpartition(".")[0] if isinstance(module, Tap) else name)
        side = site.rows if site else side_at(self.reading, name)
        is_backward = ".future." in f".{name}."
        meaning = _meaning(name, site) if isinstance(module, Tap) else ""
        values = None if passed.value is None else sliced(passed.value, is_backward, meaning in HEADS)
        weighed = values if meaning in WEIGHTS and values is not None and values.size else None
        sizes = None if weighed is None else np.fmax.reduce(weighed, axis=(0, 2), initial=0.0)
        count = passed.shape[0]
        own = next((one.name for one in (side, *self.reading.sides) if count == len(one)), "")
        columns = site.columns.name if site and meaning in HEADS else ""
        place = self.places[name]
        group = next((above for above in _above(place, itself=True) if above in self.groups), "")
        label, kind = self._label(passed, site, meaning)
        return FlowNode(
            name, label, kind, group, own, passed.shape, values,
            slices=_slice_names(site, values),
            columns=[f"side:{columns}"] if columns and passed.shape[-1] == self._length(columns) else [],
            sizes=(passed.sizes.numpy()[:: -1 if is_backward else 1] if sizes is None else sizes).tolist(),
            measure="largest weight" if sizes is not None else "length",
            note=NOTES.get(meaning, "") if isinstance(module, Tap) else self._note(module),
            band=side.name,
            is_main=self._is_main(name, group),
        )  # fmt: skip

    def _length(self, side: str) -> int:
        return len(self.reading.side(side))

    def _label(self, passed: Passed, site: Site | None, meaning: str) -> tuple[str, str]:
        name, module = passed.part.name, passed.part.module
        if self.places[name] != name:
            return f"after {words(self.places[name].rpartition('.')[0])}", "stream"
        if isinstance(module, Tap):
            own = name.rpartition(".")[2]
            return site.called(own) if site else words(own), "weights" if meaning in WEIGHTS else "tap"
        if is_site(module):
            kind = kind_of(module)
            return f"{kind} output" if name in self.groups else kind, "net" if kind == "net" else "mixer"
        own = name.rpartition(".")[2] or str(self.reading.owner.config["model"].get("name", "model"))
        role = next((role for role in ROLES if own.endswith(role) or type(module).__name__.lower().endswith(role)), "")
        return words(name) or own, role or "part"

    def _note(self, module: nn.Module) -> str:
        known = mechanism_of(module)
        return f"what {known.named} gives" if known and known.named else ""

    def _is_main(self, name: str, group: str) -> bool:
        """Whether a node lies outside of every layer, or is what leaves one."""
        if self.places[name] != name or self._layer(name) is not None:
            return True
        if name and name == group:  # what a part with parts of its own gives
            group = self.groups[group].parent
        return group == "" or self.groups[group].kind == "stack" or group in ("encoder", "decoder")

    def _edges(self) -> list[FlowEdge]:
        passed = self.followed.passed
        found = []
        for name, one in passed.items():
            for source, was_before in sorted(one.sources.items()):
                is_later = source in passed and passed[source].order >= one.order
                found.append(FlowEdge(source, name, was_before or is_later))
        return found

    def _work_out(self) -> None:
        """States that no tap shows, and matrices that a fitted model's answer is made of."""
        for name, site in self.sites.items():
            known = site.mechanism
            if known is None or name not in self.followed.passed:
                continue
            if known.states is not None:
                self._add_states(site, known)
            if known.parts is not None and name == "":
                self._add_parts(known)

    def _add_states(self, site: Site, known: Mechanism) -> None:
        of = [name for name in self.followed.passed if name.startswith(f"{site.name}.")]
        held = [self.followed.passed[name] for name in of]
        work_out = known.states
        if work_out is None or any(one.value is None for one in held):
            return
        dtype = next(site.module.parameters()).dtype
        arrays = {one.part.name: _untimed(one).to(site.module.device_of_state(), dtype) for one in held}
        found, used = made_of(arrays, lambda: work_out(site, Trace(arrays, self.followed.outputs, 0.0)))
        states = found.float().cpu()
        values = sliced(states, ".future." in f".{site.name}.", False)
        name, group = f"{site.name}.state", site.name if site.name in self.groups else ""
        sizes = states.flatten(1).norm(dim=1).tolist()
        node = FlowNode(
            name, "state", "tap", group, site.rows.name, tuple(states.shape), values, _slice_names(site, values),
            sizes=sizes, note="what is carried on after each token, worked out from the taps", band=site.rows.name,
            is_main=False,
        )  # fmt: skip
        self._put_before(site.name, node)
        self.edges += [FlowEdge(one, name) for one in used] + [FlowEdge(name, site.name)]

    def _add_parts(self, known: Mechanism) -> None:
        """Matrices of a model that is one part, between its input and what it gives."""
        worked = [] if known.parts is None else known.parts(self.reading)
        used = {name for one in worked for name in one.made_of}
        for one in worked:
            values = clean(torch.from_numpy(np.atleast_2d(one.values)).float())[None]
            sizes = np.sqrt(np.nansum(values[0] ** 2, 1)).tolist()
            side = "" if one.rows else self.reading.sides[0].name
            shape = values.shape[1:]
            node = FlowNode(
                *(one.name, one.name, "part", "", side, shape, values, (), one.rows, one.columns, sizes),
                note=one.note, band=self.reading.sides[0].name,
            )  # fmt: skip
            self._put_before("", node)
            sources = one.made_of or self.followed.inputs[:1]
            self.edges += [FlowEdge(source, one.name) for source in sources]
            self.edges += [] if one.name in used else [FlowEdge(one.name, "")]
        if worked:
            self.edges = [edge for edge in self.edges if edge.target or edge.source not in self.followed.inputs]

    def _put_before(self, name: str, node: FlowNode) -> None:
        place = next(place for place, one in enumerate(self.nodes) if one.name == name)
        self.nodes.insert(place, node)


def words(name: str) -> str:
    """What a part is called by its name: its last word, with a number the word before it.

    >>> words("stack.layers.0"), words("embedding.token_to_vector")
    ('layer 1', 'token to vector')
    """
    above, _, own = name.rpartition(".")
    if own.isdigit():
        return f"{above.rpartition('.')[2].removesuffix('s').replace('_', ' ')} {int(own) + 1}".strip()
    return own.replace("_", " ")


def sliced(value: Tensor, is_backward: bool, turns_columns: bool) -> np.ndarray:
    """(T, ...) as matrices (n, T, K): one for each head, unless there are too many."""
    flat = value[:, None] if value.dim() == 1 else value
    if flat.dim() > 3:
        flat = flat.flatten(2)
    if flat.dim() == 3 and flat.shape[1] > MOST_SLICES:
        flat = flat.flatten(1)
    each = flat[None] if flat.dim() == 2 else flat.transpose(0, 1)
    if is_backward:
        each = each.flip(1, 2) if turns_columns else each.flip(1)
    return clean(each)


def clean(value: Tensor) -> np.ndarray:
    """Numbers to be shown; what is infinite, as a score that may not be, is a gap."""
    found = value.float().numpy()
    return np.ascontiguousarray(np.where(np.isfinite(found), found, np.nan))


def _above(name: str, itself: bool = False) -> list[str]:
    """Names of the parts that a part is in, the innermost first."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(len(parts) - (not itself), 0, -1)]


def _meaning(name: str, site: Site | None) -> str:
    return getattr(site.module, "shows", {}).get(name.rpartition(".")[2], "") if site else ""


def _slice_names(site: Site | None, values: np.ndarray | None) -> Sequence[str]:
    if values is None or len(values) == 1:
        return ()
    word = "head" if site is not None and site.shows & HEADS else "part"
    return [f"{word} {number + 1}" for number in range(len(values))]


def _untimed(passed: Passed) -> Tensor:
    """The value as its tap saw it, with a batch of one."""
    assert passed.value is not None
    axis = getattr(passed.part.module, "axis", 1) or 1
    return passed.value.movedim(0, max(0, axis - 1))[None]
