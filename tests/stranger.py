"""Parts from outside the package: a retention mixer, a language model of it, a look and a study, as people write them.

`written(name, ...)` is the text of a module whose parts are called after `name`; planted errors are changes of it.
"""

from __future__ import annotations

SOURCE = '''
"""Retention: what was written fades by the same share at every token (Sun et al. 2023).

    y_t = sum_(s<=t) gamma^(t-s) (q_t . k_s) v_s          S_t = gamma S_(t-1) + k_t^T v_t,   y_t = q_t S_t
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from regard.core.context import EMPTY, Context
from regard.core.mixer import Mixer, Shows
from regard.core.registry import register
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.core.state import State, advance, zero_position
from regard.core.tap import Tap
from regard.layers.embedding import EmbeddingConfig
from regard.layers.norm import NormConfig
from regard.models.language import LanguageModelConfig


@dataclass(frozen=True)
class RetentionState(State):
    """memory (B, K, V): S."""

    memory: Tensor
    count: Tensor

    @property
    def position(self) -> Tensor:
        return self.count


@dataclass(frozen=True)
class RetentionConfig(MixerConfig, kind="NAME_mixer"):
    decay: float = 0.9

    def build(self) -> Retention:
        return Retention(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        return {"NAME_mixer": cls(8), "NAME_mixer-fast": cls(8, 0.5)}


class Retention(Mixer):
    """The sum over the past for a chunk, the recurrence for a step."""

    shows: ClassVar[Shows] = {SHOWS}
    writes_to_stream = ("values_to_output",)

    def __init__(self, config: RetentionConfig) -> None:
        super().__init__()
        self.decay, width = config.decay, config.d_model
        self.input_to_heads = nn.Linear(width, 3 * width, bias=False)
        self.values_to_output = nn.Linear(width, width)
        self.memory = Tap(None)

    def init_state(self, batch_size: int) -> State:
        width = self.values_to_output.in_features
        memory = self.zeros(batch_size, width, width, dtype=self.dtype_of_sums())
        return RetentionState(memory, zero_position(batch_size, memory.device))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> tuple[Tensor, State]:
        state = self.init_state(len(x)) if state is None else state
        if self.memory.recorded:
            return super().forward(x, state, context)
        q, k, v = self.input_to_heads(x).to(state.memory.dtype).chunk(3, -1)
        t = torch.arange(x.shape[1], device=x.device)
        age = t[:, None] - t
        weights = torch.where(age >= 0, self.decay ** age.clamp(min=0).to(q.dtype), 0.0)
        y = torch.einsum("BTK,BSK,TS,BSV->BTV", q, k, weights, v)
        carried = self.decay ** (t + 1).to(q.dtype)
        y = y + torch.einsum("BTK,BKV,T->BTV", q, state.memory, carried)
        count = torch.full((len(x),), x.shape[1], device=x.device) if context.lengths is None else context.lengths
        left = count[:, None] - 1 - t  # tokens after each, of a row
        share = torch.where(left >= 0, self.decay ** left.clamp(min=0).to(q.dtype), 0.0)
        written = torch.einsum("BSK,BS,BSV->BKV", k, share, v)
        memory = self.decay ** count.to(q.dtype)[:, None, None] * state.memory + written
        after = RetentionState(memory, advance(state.count, x.shape[1], context.lengths))
        return self.values_to_output(y.to(x.dtype)), after

    def step(self, x: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        q, k, v = self.input_to_heads(x).to(state.memory.dtype).chunk(3, -1)
        memory = self.memory(self.decay * state.memory + k[:, :, None] * v[:, None])
        y = torch.einsum("BK,BKV->BV", q, memory)
        return self.values_to_output(y.to(x.dtype)), RetentionState(memory, state.count + 1)


@register("NAME", sizes={"tiny": {"d_model": 16}, "small": {}}, paper="Sun et al. 2023, Retentive network")
def NAME(vocab_size: int, *, d_model: int = 64, n_layers: int = 2, dropout: float = 0.0) -> LanguageModelConfig:
    """A memory that fades by the same share at every token."""
    norm = NormConfig(d_model)
    block = BlockConfig(d_model, RetentionConfig(d_model), norm=norm, dropout=dropout)
    return LanguageModelConfig(EmbeddingConfig(vocab_size, d_model), StackConfig(d_model, (block,) * n_layers), norm)
'''
MORE = '''

from regard.explain.look import Look, register_look
from regard.explain.view import Note, View
from regard.studies.claims.study import Study, judged
from regard.studies.registry import register_study


def length(reading, options):
    """How many positions there are."""
    return View("The length", [Note(text=f"{len(reading.main)} positions", style="answer", key="length")])


register_look(Look("NAME_length", "how long a text is", length, fits=lambda can: can.tokens))


@register_study
class Fading(Study):
    id = "NAME_fading"
    claim = "What was written fades."
    source = "a module from outside"
    rule = "the memory after a token without a key is smaller"

    @torch.no_grad()
    def measure(self, lab):
        mixer = RetentionConfig(4).build()
        state = mixer.init_state(1)
        _, state = mixer.step(torch.ones(1, 4), state)
        _, after = mixer.step(torch.zeros(1, 4), state)
        return {"before": float(state.memory.norm()), "after": float(after.memory.norm())}

    def judge(self, found):
        return judged(found, lambda one: one["after"] < one["before"], "it was measured")

    def figure(self, found):
        return "<svg/>"
'''


def written(name: str, *, state: bool = False, more: bool = False) -> str:
    """The module of a stranger; `state` when it says that its memory can be seen, `more` with a look and a study."""
    source = SOURCE + (MORE if more else "")
    return source.replace("{SHOWS}", '{"memory": "state"}' if state else "{}").replace("NAME", name)
