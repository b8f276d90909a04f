"""Composition: Block (a mixer and a position-wise net on a residual stream), Stack, Residual.

Each is itself a mixer, so that they nest, and their configs nest in the same way.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from regard.core.config import Config, check
from regard.core.context import EMPTY, Context
from regard.core.dropout import dropout, locks
from regard.core.mixer import Called, Mixer
from regard.core.state import Chain, State
from regard.core.tap import Tap, anybody_listens, is_heard


@dataclass(frozen=True)
class MixerConfig(Config):
    """A config whose `build()` returns a mixer. `d_model` is the width of its input and output.

    d_read, d_given  these two apart, where a mixer has them so.
    """

    d_model: int

    @property
    def d_read(self) -> int:
        return self.d_model

    @property
    def d_given(self) -> int:
        return self.d_model

    def build(self) -> Mixer:
        raise NotImplementedError(f"{type(self).__name__} must write build")

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        """Tiny configs, by name, on which the laws are run. At least one for every branch of the mathematics."""
        return {}


@dataclass(frozen=True)
class BlockConfig(MixerConfig, kind="block"):
    """x + mixer(norm(x)), then x + mlp(norm(x)); or norm(x + mixer(x)), then norm(x + mlp(x)).

    mixer      what moves information between positions.
    mlp        what happens at one position after it, or None.
    norm       config of the normalisation of each part, or None.
    residual   whether each part is added to the stream or replaces it.
    dropout    on what each part writes to the stream; `locked`: the same units at every position of a row.
    placement  of the norm: before each part, on what it reads (Xiong et al. 2020), or after it, on the stream itself
               (Vaswani et al. 2017). parallel: before each, both read the same stream and x + mixer(norm(x)) +
               mlp(norm(x)) comes out (Black et al. 2022). around: before each, and a second norm on what it writes.
    """

    mixer: MixerConfig
    mlp: Config | None = None
    norm: Config | None = None
    residual: bool = True
    dropout: float = 0.0
    placement: Literal["before", "after", "parallel", "around"] = "before"
    locked: bool = False

    def __post_init__(self) -> None:
        check(0 <= self.dropout < 1, f"dropout must lie in [0, 1), found {self.dropout}")

    @property
    def d_read(self) -> int:
        return self.d_model if self.residual else self.mixer.d_read

    @property
    def d_given(self) -> int:
        return self.d_model if self.residual else self.mixer.d_given

    def build(self) -> Block:
        return Block(self)


class Block(Mixer):
    """One layer: a mixer and an optional position-wise net, each normalised and added to the residual stream.

    recomputes  whether its forward pass is made a second time on the way back instead of keeping what it came to in
                memory: gradient checkpointing (Chen et al. 2016). The gradient is the same, dropout included.
    """

    composed = skips_state = packs = True
    recomputes = False

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.mixer = config.mixer.build()
        self.d_read = config.d_read
        self.mixer_norm = config.norm.build() if config.norm else nn.Identity()
        self.mlp = config.mlp.build() if config.mlp else None
        self.mlp_norm = (config.norm.build() if config.norm else nn.Identity()) if config.mlp else None
        around = config.norm if config.placement == "around" else None
        self.mixer_after = around.build() if around else None
        self.mlp_after = around.build() if around and config.mlp else None
        self.dropout = dropout(config.dropout, config.locked)
        self.residual = config.residual
        self.norm_follows = config.placement == "after"
        self.parallel = config.placement == "parallel"
        inherit_facts(self, [self.mixer])
        self.packs = type(self).packs and self.mixer.packs and not locks(self)

    def init_state(self, batch_size: int) -> State:
        return self.mixer.init_state(batch_size)

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        # Who listens is to hear every part once.
        if self.recomputes and self.training and torch.is_grad_enabled() and not anybody_listens():
            return checkpoint(self._made, x, state, context, use_reentrant=False)
        return self._made(x, state, context)

    def _made(self, x: Tensor, state: State | None, context: Context) -> Called:
        y, state = self.mixer(self._read(x, self.mixer_norm), state, context)
        return self._after_mixer(x, y if self.mixer_after is None else self.mixer_after(y)), state

    def _after_mixer(self, x: Tensor, y: Tensor) -> Tensor:
        if self.mlp is None or self.mlp_norm is None:
            return self._write(x, y, self.mixer_norm)
        if self.parallel:
            return self._write(self._write(x, y, self.mixer_norm), self.mlp(self.mlp_norm(x)), self.mlp_norm)
        if self.mlp_after is not None:
            x = self._write(x, y, self.mixer_norm)
            return self._write(x, self.mlp_after(self.mlp(self.mlp_norm(x))), self.mlp_norm)
        if not self.residual or self.norm_follows or not adds(self.mlp_norm):
            x = self._write(x, y, self.mixer_norm)
            return self._write(x, self.mlp(self._read(x, self.mlp_norm)), self.mlp_norm)
        # The same with the sums left to the parts beside them.
        x, read = self.mlp_norm(x, self.dropout(y))
        drops = is_heard(self.dropout) or (self.training and isinstance(self.dropout, nn.Dropout))
        if adds(self.mlp) and not drops:
            return self.mlp(read, residual=x)
        return self._write(x, self.mlp(read), self.mlp_norm)

    def _read(self, stream: Tensor, norm: nn.Module) -> Tensor:
        return stream if self.norm_follows else norm(stream)

    def _write(self, stream: Tensor, part: Tensor, norm: nn.Module) -> Tensor:
        part = self.dropout(part)
        if self.norm_follows and self.residual and adds(norm):
            return norm(stream, part)[1]
        stream = stream + part if self.residual else part
        return norm(stream) if self.norm_follows else stream


@dataclass(frozen=True)
class StackConfig(MixerConfig, kind="stack"):
    """Layers one after the other; those within may be wider than what goes in and comes out.

    shared  parts, named as from a layer, that all layers which have them have as one, such as mixer.distance_bias.
    """

    layers: tuple[MixerConfig, ...]
    shared: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check(len(self.layers) > 0, "a stack needs at least one layer: n_layers must be 1 or more")
        for i, (below, layer) in enumerate(itertools.pairwise(self.layers), 1):
            found, given = layer.d_read, below.d_given
            check(found == given, f"layer {i} reads a width of {found}, and the layer below it gives {given}")
        last = self.layers[-1].d_model
        check(last == self.d_model, f"the last layer has width {last}, the stack {self.d_model}")

    @property
    def d_read(self) -> int:
        return self.layers[0].d_read

    @property
    def d_given(self) -> int:
        return self.layers[-1].d_given

    def build(self) -> Stack:
        return Stack(self)


class Stack(Mixer):
    """Layers applied one after the other; its state is the chain of theirs."""

    composed = skips_state = packs = True

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layer.build() for layer in config.layers)
        self.streams = nn.ModuleList(Tap() for _ in config.layers)  # what comes out of each layer
        share(self._mixers(), config.shared)
        inherit_facts(self, self._mixers())
        self.packs = type(self).packs and all(layer.packs for layer in self._mixers())

    @property
    def one_stream(self) -> bool:
        """Whether every layer adds to what the one before gave, so that whoever reads the last can read them all."""
        return all(getattr(layer, "residual", False) for layer in self.layers)

    def _mixers(self) -> list[Mixer]:
        return list(self.layers)  # pyright: ignore[reportReturnType]  # ModuleList forgets its element type

    def init_state(self, batch_size: int) -> State:
        return Chain(tuple(layer.init_state(batch_size) for layer in self._mixers()))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        assert state is None or isinstance(state, Chain)
        before = [None] * len(self.layers) if state is None else state.parts
        after = []
        for layer, stream, part in zip(self.layers, self.streams, before, strict=True):
            x, part = layer(x, part, context)
            x = stream(x)
            after.append(part)
        return x, None if state is None else Chain(tuple(after))


@dataclass(frozen=True)
class ResidualConfig(MixerConfig, kind="residual"):
    """x + mixer(x): the mixer reads from and writes to the residual stream."""

    mixer: MixerConfig

    def build(self) -> Block:
        return Block(BlockConfig(self.d_model, self.mixer))


def outer_blocks(model: nn.Module) -> list[Block]:
    """The blocks of a model that lie in no other one."""
    blocks = [part for part in model.modules() if isinstance(part, Block)]
    inside = {id(part) for block in blocks for part in block.modules() if part is not block}
    return [block for block in blocks if id(block) not in inside]


def share(layers: list[Mixer], parts: tuple[str, ...]) -> None:
    """Give the parts of these names of the first layer that has one to all others that do."""
    for path, _, name in (part.rpartition(".") for part in parts):
        owners = [dict(layer.named_modules()).get(path) for layer in layers]
        having = [owner for owner in owners if isinstance(getattr(owner, name, None), nn.Module)]
        check(len(having) > 0, f"shared: no layer has {path}.{name}")
        for owner in having[1:]:
            setattr(owner, name, getattr(having[0], name))


def adds(part: nn.Module) -> bool:
    """Whether a norm or a position-wise net is given what it is added to, which saves a pass over the stream.

    It says so itself (`adds`). Who listens to it is to see what goes in and its own output, and with gradients there is
    nothing to gain.
    """
    return getattr(part, "adds", False) and not torch.is_grad_enabled() and not is_heard(part)


def inherit_facts(whole: Mixer, parts: list[Mixer]) -> None:
    """What a composition may say of itself, from what its parts say."""
    whole.causal = all(part.causal for part in parts)
    whole.state_grows = any(part.state_grows for part in parts)
    whole.permutes = all(part.permutes for part in parts)
    whole.needs_memory = any(part.needs_memory for part in parts)
    whole.chunk_sizes = tuple(sorted({size for part in parts for size in part.chunk_sizes}))
    reaches = [part.reach for part in parts]
    # Each layer of finite reach r looks r - 1 positions further back than the one below it.
    whole.reach = None if None in reaches else 1 + sum(r - 1 for r in reaches if r is not None)
