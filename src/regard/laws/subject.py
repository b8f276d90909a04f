"""Subject: a mixer or a model as the laws see it, so that each law is written once for both."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from regard.core.config import Config
from regard.core.context import EMPTY, Context, real_tokens, row_count
from regard.core.mixer import Mixer
from regard.core.state import State
from regard.laws import chance
from regard.laws.result import Broken
from regard.laws.view import PADDING, VOCABULARY, Stateless, elsewhere, view


@runtime_checkable
class ScoresWays(Protocol):
    """What chooses the tags of a sentence together and says by which score; see `regard.layers.crf.Decodes`."""

    def decode(self, vectors: Tensor, lengths: Tensor, allowed: Any = None) -> Tensor: ...

    def log_chances(self, vectors: Tensor, lengths: Tensor) -> Tensor: ...

    def score_ways(self, vectors: Tensor, ways: Tensor) -> Tensor:
        """The score (N,) of each way (N, T) to tag the words of one sentence (1, T, D), up to what all have."""
        ...


@dataclass(frozen=True)
class Subject:
    """module    in float64, every parameter moved away from its initial value so that no zero hides a mistake.
    facts     where `causal`, `state_grows`, `reach`, `chunk_sizes` and `permutes` are declared.
    width     of the vectors a mixer takes; None for a model, which takes tokens.
    scale     of the random inputs; large ones drive gates to 0 and 1.
    dtype     of the vectors that a mixer takes.
    memory    seed and slots of what a mixer looks at where it needs to; the last slot is padding.
    """

    name: str
    module: nn.Module
    facts: Mixer
    width: int | None
    config: Config | None = None
    scale: float = 1.0
    dtype: torch.dtype = torch.float64
    memory: tuple[int, int] = (3, 5)

    def inputs(self, batch: int, length: int, seed: int = 0) -> Tensor:
        """Random vectors (B, T, D) or tokens (B, T), always the same for the same numbers."""
        if self.width is None:
            return chance.whole(PADDING, batch, length, seed=seed)
        return (self.scale * chance.normal(batch, length, self.width, seed=seed)).to(self.dtype)

    def changed(self, x: Tensor, t: int) -> Tensor:
        """x with something else at position t."""
        x = x.clone()
        x[:, t] = (x[:, t] + 1) % PADDING if self.width is None else -x[:, t] + 1.0
        return x

    def poisoned(self, poison: float) -> Subject:
        """The same with `poison` for the vector of the token that no text has; of a mixer it is in its inputs."""
        if self.width is not None:
            return self
        module = copy.deepcopy(self.module)
        for part in module.modules():
            if isinstance(part, nn.Embedding) and part.num_embeddings == VOCABULARY:
                part.weight.data[PADDING] = poison
        return replace(self, module=module)

    def with_padding(self, x: Tensor, lengths: Tensor, poison: float) -> Tensor:
        """x with poison after the first `lengths` (B,) tokens of each row."""
        padded = ~real_tokens(lengths, x)
        if self.width is None:
            return x.masked_fill(padded, PADDING)
        return x.masked_fill(padded[..., None], poison)

    def told(self, y: Tensor) -> Tensor:
        """Outputs without what a shared table makes of the token that no text has."""
        return y[..., :PADDING] if self.width is None and y.shape[-1] == VOCABULARY else y

    def state(self, batch: int, seen: int = 0, seed: int = 99) -> State:
        """The state after `seen` random tokens."""
        state = self.module.init_state(batch)  # pyright: ignore[reportCallIssue]
        return state if seen == 0 else self(self.inputs(batch, seen, seed), state)[1]

    def elsewhere(self) -> Subject:
        """The same with something else to look at, of another length, where it looks at anything."""
        module = elsewhere(self.module) if self.has_source else self.module
        return replace(self, module=module, memory=(4, 7))

    def __call__(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        y, after = self.module(x, state, self._with_memory(context, state.batch_size))
        return self._answer(y), after

    def whole(self, x: Tensor, context: Context = EMPTY) -> Tensor:
        """The outputs from the beginning, without a state."""
        y, after = self.module(x, None, self._with_memory(context, row_count(x, context)))
        if after is not None:
            raise Broken("without a state a call gave one back: nothing is to be kept")
        return self._answer(y)

    def _answer(self, y: Tensor) -> Tensor:
        """Outputs of a mixer as they are, and the logits of a model."""
        head: Any = None if self.width is not None else self.module.head
        return y if head is None else head(y)

    def _with_memory(self, context: Context, batch_size: int) -> Context:
        """The context with something to look at where that is needed: the same for every row, its padding poisoned."""
        if self.width is None or not getattr(self.facts, "needs_memory", False):
            return context
        seed, slots = self.memory
        memory = chance.normal(1, slots, self.width, seed=seed)
        memory[:, slots - 1 :] = float("nan")
        memory, lengths = memory.to(self.dtype), torch.full((batch_size,), slots - 1)
        return replace(context, memory=memory.expand(batch_size, -1, -1), memory_lengths=lengths)

    def one(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One token by the subject's own step where it has one; (B, 1, ...)."""
        step = getattr(self.module, "step", None)
        if step is None:
            return self(x, state)
        y, state = step(x[:, 0], state, self._with_memory(EMPTY, state.batch_size))
        return y[:, None], state

    @property
    def decoder(self) -> ScoresWays | None:
        """What chooses the tags of a sentence together, and says by which score; None where nothing does."""
        whole = getattr(self.module, "model", self.module)
        return next((part for part in (whole, getattr(whole, "head", None)) if isinstance(part, ScoresWays)), None)

    def every_answer(self, x: Tensor, state: State) -> Tensor:
        """The outputs, and beside them the chances of tags that are chosen together: what the loss may look at."""
        y, decoder = self(x, state)[0], self.decoder
        if decoder is None:
            return y
        lengths = torch.full(x.shape[:1], x.shape[1])
        return torch.cat([y, decoder.log_chances(self.vectors(x, EMPTY), lengths)], -1)

    def vectors(self, x: Tensor, context: Context) -> Tensor:
        """What such a model gives before a head has made answers of it."""
        assert isinstance(self.module, Stateless)
        return self.module.vectors(x, context)

    @property
    def causal(self) -> bool:
        return bool(self.facts.causal)

    @property
    def has_state(self) -> bool:
        return bool(getattr(self.facts, "has_state", True))

    @property
    def has_source(self) -> bool:
        return hasattr(self.module, "source")

    @property
    def looks_outside(self) -> bool:
        """Whether what it looks at beside its own text is in its state."""
        return self.has_source or bool(getattr(self.facts, "needs_memory", False))

    @property
    def chunk_sizes(self) -> tuple[int, ...]:
        return self.facts.chunk_sizes


def from_mixer(name: str, make: Callable[[], nn.Module], config: Config | None = None, scale: float = 1.0) -> Subject:
    module = prepared(make)
    width = config.d_model if config is not None else getattr(module, "d_model", 8)  # pyright: ignore
    assert isinstance(module, Mixer)
    return Subject(name, module, module, width, config, scale)


def from_model(name: str, config: Config) -> Subject:
    module = view(prepared(config.build_example))
    facts: Any = getattr(module, "stack", module)
    return Subject(name, module, facts, None, config)


def prepared(make: Callable[[], nn.Module]) -> nn.Module:
    """Built from a fixed seed, in float64, in evaluation mode, with asymmetric weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1234)
        module = make().double()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter += 0.2 * torch.randn_like(parameter)
    return at_rest(module)


def at_rest(module: nn.Module) -> nn.Module:
    """In evaluation mode, but for recurrences without dropout: there alone cuDNN keeps what gradients need."""
    module.eval()
    for part in module.modules():
        if isinstance(part, nn.RNNBase) and not part.dropout:
            part.train()
    return module


@contextmanager
def hostile() -> Iterator[None]:
    """Memory that is not written to holds NaN, algorithms are deterministic and float32 is no narrower type, while the
    block runs."""
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    memory: Any = torch.utils.deterministic
    filling, narrow = memory.fill_uninitialized_memory, torch.backends.cudnn.allow_tf32
    torch.use_deterministic_algorithms(True, warn_only=True)
    memory.fill_uninitialized_memory, torch.backends.cudnn.allow_tf32 = True, False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        memory.fill_uninitialized_memory, torch.backends.cudnn.allow_tf32 = filling, narrow


def snapshot(module: nn.Module) -> dict[str, object]:
    """Every attribute, parameter and buffer of every part, to see whether a call changed one."""
    found: dict[str, object] = {}
    for name, part in module.named_modules():
        for key, value in vars(part).items():
            if key == "_modules":
                found[f"{name}.{key}"] = sorted(value)
            elif key in ("_parameters", "_buffers"):
                tensors = {k: v.detach().clone() for k, v in value.items() if v is not None}
                found[f"{name}.{key}"] = {k: v.tolist() for k, v in tensors.items()}
            elif not key.endswith("_hooks") and "hook" not in key:
                found[f"{name}.{key}"] = _plain(value)
    return found


def _plain(value: object) -> object:
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    try:
        return copy.copy(value) if isinstance(value, (dict, set)) else value
    except TypeError:
        return repr(value)
