"""Multi-head self-attention, causal or full, with a key-value state (Vaswani et al. 2017).

    q_i, k_i, v_i = W_Q x_i, W_K x_i, W_V x_i              for each head
    y_i = W_O [ sum_j softmax_j(score(q_i, k_j)) v_j ]     heads side by side

Glossary
score   dot, scaled_dot, additive, bilinear or cosine, see layers/score.py
H, G    heads, and groups of heads that share keys and values (Ainslie et al. 2023); G = H is the plain form
window  a position sees itself and the window - 1 positions before it (Beltagy et al. 2020)
rotary, alibi, relative  positions inside the scores, see layers/position.py and layers/distance.py
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.config import check
from regard.core.context import EMPTY, Context, places_within, real_tokens
from regard.core.mixer import Called, Mixer, Shows
from regard.core.stack import MixerConfig
from regard.core.state import State, advance, stepped, zero_position
from regard.core.tap import Tap, is_heard
from regard.kernels.decode_attention import can_decode, decode_attention
from regard.kernels.decode_cpu import AttentionStep, CompiledAttention
from regard.kernels.end_to_end import grouped, varlen_attention, varlen_takes
from regard.kernels.flex import flex_attention, flex_takes
from regard.layers.distance import RELATIVE, RelativeConfig, distance_bias
from regard.layers.linear import Linear
from regard.layers.norm import RmsNorm
from regard.layers.position import ROTARY, RotaryConfig, alibi_slopes, rotate
from regard.layers.score import AdditiveScore, DotScore, ScoreName, build_score, fused_attention, softmax
from regard.mixers.kv_cache import KeyValueState, Place, distances, repeated


@dataclass(frozen=True)
class AttentionConfig(MixerConfig, kind="attention"):
    """n_kv_heads: G, None for H. d_head: K, None for d_model / H. base: of the softmax, None for e.

    rotary: how fast such positions turn. output_bias: of the last map, None for as `bias` says. qk_epsilon: of qk_norm.
    """

    n_heads: int = 4
    n_kv_heads: int | None = None
    d_head: int | None = None
    causal: bool = True
    score: ScoreName = "scaled_dot"
    base: float | None = None
    window: int | None = None
    position: Literal["none", "rotary", "alibi", "relative"] = "none"
    bias: bool = True
    qk_norm: bool = False
    dropout: float = 0.0
    rotary: RotaryConfig = ROTARY
    output_bias: bool | None = None
    qk_epsilon: float = 1e-5
    relative: RelativeConfig = RELATIVE

    def __post_init__(self) -> None:
        heads, groups = self.n_heads, self.groups
        check(heads > 0, f"n_heads must be positive, found {heads}")
        check(
            self.d_head is not None or self.d_model % heads == 0,
            f"n_heads {heads} does not divide d_model {self.d_model}: choose a divisor, or set d_head",
        )
        check(groups > 0 and heads % groups == 0, f"n_kv_heads {groups} does not divide n_heads {heads}")
        check(self.window is None or self.window > 0, f"window must be positive, found {self.window}")
        even = self.position != "rotary" or (self.width % 2 == 0 and (self.rotary.width or 0) <= self.width)
        check(even, f"rotary positions need an even d_head of at least what is turned, found {self.width}")
        check(self.base is None or self.base > 1, f"the softmax base must exceed 1, found {self.base}")
        check(0 <= self.dropout < 1, f"dropout must lie in [0, 1), found {self.dropout}")

    @property
    def groups(self) -> int:
        return self.n_kv_heads or self.n_heads

    @property
    def width(self) -> int:
        return self.d_head or self.d_model // self.n_heads

    def build(self) -> SelfAttention:
        return SelfAttention(self)

    @classmethod
    def examples(cls) -> dict[str, MixerConfig]:
        return {
            "attention": cls(8, 2),
            "attention-full": cls(8, 2, causal=False),
            "attention-grouped": cls(16, 4, n_kv_heads=2, qk_norm=True),
            "attention-rotary": cls(8, 2, position="rotary", bias=False),
            "attention-rotary-part": cls(16, 2, position="rotary", rotary=RotaryConfig(width=4), output_bias=False),
            "attention-rotary-scaled": cls(16, 2, position="rotary", rotary=RotaryConfig(500.0, None, "llama3", 8.0)),
            "attention-alibi": cls(8, 2, position="alibi"),
            "attention-alibi-base": cls(8, 2, position="alibi", base=3.0),
            "attention-relative": cls(8, 2, position="relative", relative=RelativeConfig(8, 20), score="dot"),
            "attention-relative-full": cls(8, 2, causal=False, position="relative", relative=RelativeConfig(8, 20)),
            "attention-window": cls(8, 2, window=3),
            "attention-window-rotary": cls(8, 2, window=3, position="rotary", n_kv_heads=1),
            "attention-dot": cls(8, 2, score="dot", base=3.0),
            "attention-additive": cls(8, 2, score="additive"),
            "attention-bilinear": cls(8, 2, score="bilinear"),
            "attention-cosine": cls(8, 2, score="cosine", d_head=6),
        }


class SelfAttention(CompiledAttention, Mixer):
    """Every position asks all positions it may see. The fast path never forms the weights; the taps do."""

    state_grows = skips_state = packs = True
    shows: ClassVar[Shows] = {"weights": "attention", "values": "values"}
    writes_to_stream = ("heads_to_output",)

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__()
        self.config = config
        self.causal = config.causal
        self.reach = config.window
        unordered = not config.causal and config.position == "none" and config.window is None
        self.permutes = unordered or config.window == 1
        heads, groups, width = config.n_heads, config.groups, config.width
        self.input_to_heads = Linear(config.d_model, (heads + 2 * groups) * width, bias=config.bias)
        out = config.bias if config.output_bias is None else config.output_bias
        self.heads_to_output = Linear(heads * width, config.d_model, bias=out)
        norms = (RmsNorm(width, config.qk_epsilon) if config.qk_norm else nn.Identity() for _ in range(2))
        self.query_norm, self.key_norm = norms
        self.score = build_score(config.score, heads, width)
        self.distance_bias = distance_bias(config.position, heads, config.relative, causal=config.causal)
        self.queries, self.keys, self.values = Tap(), Tap(), Tap()
        self.scores, self.weights, self.summary = Tap(2), Tap(2), Tap()

    def init_state(self, batch_size: int) -> State:
        empty = self.zeros(batch_size, 0, self.config.groups, self.config.width)
        return KeyValueState(empty, empty, zero_position(batch_size, empty.device))

    def forward(self, x: Tensor, state: State | None = None, context: Context = EMPTY) -> Called:
        if context.offsets is not None:
            return self._packed(x, context.offsets), None
        beginning = Place(lengths=None if self.causal else context.lengths)
        if state is None:
            return self._attend(*self._placed(*self._heads(x)), beginning), None
        assert isinstance(state, KeyValueState)
        heads = self._heads(x)
        if self._decodes(heads[0], state, context):
            found = self._decoded(*heads, state)
            if found is not None:
                after = dataclasses.replace(state, count=stepped(state.count, context.owned))
                return self._output(found[:, None]), after
        bounds = state.bounds
        start = state.count[:1] if bounds.level else state.count
        q, k, v = self._placed(*heads, start)
        if not self.causal:
            after = dataclasses.replace(state, count=advance(state.count, x.shape[1], context.lengths))
            return self._attend(q, k, v, beginning), after
        after = state.append(k, v, context.lengths, bounds)
        if bounds.high == 0:
            # From the beginning, padding on the right is never seen by a real token: the causal mask is enough.
            return self._attend(q, k, v, beginning), after
        keys, values = (part[:, : bounds.high + x.shape[1]].to(q.dtype) for part in (after.keys, after.values))
        if x.shape[1] == 1 and context.lengths is None and not self._heard() and (ends := state.ends(bounds)):
            # Each row over its own slots alone: how many others use has no say in how its sums round.
            own = zip(q.split(1), keys.split(1), values.split(1), start.split(1), ends, strict=True)
            rows = [self._mixed(a, k[:, :n], v[:, :n], Place(at, True)) for a, k, v, at, n in own]
            return self._output(torch.cat(rows)), after
        return self._attend(q, keys, values, Place(start, bounds.level)), after

    def _heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, T, H, K), keys and values (B, T, G, K) as they are projected."""
        c = self.config
        heads = self.input_to_heads(x).unflatten(-1, (c.n_heads + 2 * c.groups, c.width))
        q, k, v = heads.split([c.n_heads, c.groups, c.groups], 2)
        return q, k, v

    def _placed(self, q: Tensor, k: Tensor, v: Tensor, start: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The same normed, and turned by their positions when these are rotary: from `start` (B,) on, or those that
        `start` (B, T) tells."""
        q, k = self.query_norm(q), self.key_norm(k)
        if self.config.position == "rotary":
            positions = start
            if start is not None and start.dim() == 1:
                positions = start[:, None] + torch.arange(q.shape[1], device=q.device)
            q, k = (rotate(x, positions, self.config.rotary) for x in (q, k))
        return self.queries(q), self.keys(k), self.values(v)

    def _packed(self, x: Tensor, offsets: Tensor) -> Tensor:
        """Outputs (1, P, D) of sequences end to end, each of which sees itself alone."""
        c = self.config
        places = places_within(offsets)[None].to(x.device) if c.position == "rotary" else None
        q, k, v = self._placed(*self._heads(x), places)
        fused = isinstance(self.score, DotScore) and self.distance_bias is None and not self._heard()
        if fused and varlen_takes(q, c.dropout if self.training else 0.0):
            k, v = repeated(k, c.n_heads), repeated(v, c.n_heads)
            scale = self.score.scale * math.log(c.base or math.e)
            return self._output(varlen_attention(q, k, v, offsets, causal=c.causal, window=c.window, scale=scale))

        def attend(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> Tensor:
            return self._mixed(q, k, v, Place(lengths=None if self.causal else lengths))

        return self._output(grouped([q, k, v], offsets, attend))

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, place: Place) -> Tensor:
        """Outputs (B, T, D) of queries that stand at `place` among the keys."""
        return self._output(self._mixed(q, k, v, place))

    def _mixed(self, q: Tensor, k: Tensor, v: Tensor, place: Place) -> Tensor:
        """What each head makes of the values, (B, T, H, K)."""
        k, v = (repeated(part, self.config.n_heads) for part in (k, v))
        if self._heard() or isinstance(self.score, AdditiveScore):
            return self._readable(q, k, v, place)
        return self._fast(q, k, v, place)

    def _heard(self) -> bool:
        return self.scores.recorded or self.weights.recorded

    def _output(self, y: Tensor) -> Tensor:
        """Heads (B, T, H, K) side by side, mapped to (B, T, D)."""
        return self.heads_to_output(self.summary(y).flatten(2))

    def _decodes(self, q: Tensor, state: KeyValueState, context: Context) -> bool:
        """Whether this is one token in each slot, which has a kernel of its own, from the projection on."""
        c = self.config
        plain = c.position == "none" or (c.position == "rotary" and c.rotary.plain)
        if not plain or q.shape[1] != 1 or not state.reserved or context.lengths is not None:
            return False
        heard = any(tap.recorded for tap in (self.queries, self.keys, self.values, self.scores, self.weights))
        heard = heard or is_heard(self.query_norm) or is_heard(self.key_norm) or is_heard(self.score)
        if heard or not (self.causal and isinstance(self.score, DotScore)) or (self.training and c.dropout):
            return False
        alike = not c.qk_norm or all(norm.weight.dtype == q.dtype for norm in (self.query_norm, self.key_norm))
        return alike and (can_decode if self.compiled is None else self.compiled.takes)(q[:, 0], state.keys)

    def _decoded(self, q: Tensor, k: Tensor, v: Tensor, state: KeyValueState) -> Tensor | None:
        """Heads (B, H, K) of one token by the kernel, which also norms, turns and keeps it; None without the kernel."""
        given = q[:, 0], (k[:, 0], v[:, 0]), (state.keys, state.values), state.count
        return decode_attention(*given, **self._of_kernels()) if self.compiled is None else self.compiled(*given)

    def to_step(self) -> AttentionStep:
        return AttentionStep(**self._of_kernels())

    def _of_kernels(self) -> dict[str, Any]:
        c, norms = self.config, None
        if isinstance(self.query_norm, RmsNorm) and isinstance(self.key_norm, RmsNorm):
            norms = self.query_norm.weight, self.key_norm.weight, self.query_norm.epsilon
        scale, base = self.score.scale * math.log(c.base or math.e), c.rotary.base if c.position == "rotary" else None
        return {"scale": scale, "window": c.window, "norms": norms, "base": base}

    def _readable(self, q: Tensor, k: Tensor, v: Tensor, place: Place) -> Tensor:
        """The equation as it stands: scores, softmax, weighted sum; (B, T, H, K)."""
        distance, seen = self._geometry(q, k, place)
        scores = self.score(q, k)  # (B, H, T, S)
        if self.distance_bias is not None:
            # A bias is meant for base e: in another base it is divided by what the softmax will multiply with.
            scores = scores + self.distance_bias(distance, scores) / math.log(self.config.base or math.e)
        weights = self.weights(softmax(self.scores(scores), seen[:, None], self.config.base))
        weights = F.dropout(weights, self.config.dropout, self.training)
        return torch.einsum("BHTS,BSHK->BTHK", weights, v)

    def _fast(self, q: Tensor, k: Tensor, v: Tensor, place: Place) -> Tensor:
        """The same through torch's fused kernel, whose memory is linear in the length."""
        return self.score(q, k, lambda q, k: self._fused(q, k, v, place))

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, place: Place) -> Tensor:
        """Of folded queries and keys."""
        c = self.config
        mask, is_causal, dropout = None, False, c.dropout if self.training else 0.0
        plain = c.window is None and self.distance_bias is None
        flexible = not plain and c.position != "relative" and place.start is None and place.lengths is None
        if flexible and flex_takes(q, k, dropout):
            slopes = alibi_slopes(c.n_heads, q.device).to(q.dtype) if c.position == "alibi" else None
            scale = self.score.scale * math.log(c.base or math.e)
            return flex_attention(q, k, v, causal=c.causal, window=c.window, slopes=slopes, scale=scale)
        if plain and place.start is None and place.lengths is None:
            is_causal = c.causal
        elif not (plain and place.flush and q.shape[1] == 1):
            distance, seen = self._geometry(q, k, place)
            mask = seen[:, None]
            if self.distance_bias is not None:
                mask = self.distance_bias(distance, q).masked_fill(~mask, float("-inf"))
        return fused_attention(q, k, v, mask, is_causal=is_causal, scale=self.score.scale, base=c.base, dropout=dropout)

    def _geometry(self, q: Tensor, k: Tensor, place: Place) -> tuple[Tensor, Tensor]:
        """How far behind each query a key lies, below 0 after it, and which keys it may see; (1 or B, T, S) each."""
        start = torch.zeros(1, dtype=torch.long, device=q.device) if place.start is None else place.start
        distance = distances(start, q.shape[1], k.shape[1])
        seen = distance >= 0 if self.causal else torch.ones_like(distance, dtype=torch.bool)
        if self.config.window is not None:
            seen = seen & (distance.abs() < self.config.window)
        if not self.causal and (lengths := place.lengths) is not None:
            real = real_tokens(lengths, k)[:, None]
            at_hand = lengths.device.type == "cpu" and not torch.compiler.is_compiling()
            if self.config.window is None and at_hand and int(lengths.min()) > 0:
                return distance, real
            # A padded query with no real key in sight looks at itself: a softmax over nothing would be NaN.
            seen = seen & (real | (distance == 0))
        return distance, seen
