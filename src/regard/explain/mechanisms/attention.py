"""Attention worked out for one query: scores, softmax, weighted sum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from regard.explain.look import numbered, numbers
from regard.explain.mechanism import Mechanism, register_mechanism
from regard.explain.mechanisms.calculation import Calculation, heaviest
from regard.explain.notation import tex_of
from regard.explain.view import Bars, Note, Numbers, Panel
from regard.mixers.attention import SelfAttention
from regard.mixers.cross import CrossAttention

SCORES = {
    "dot": "e_j = q . k_j",
    "scaled_dot": "e_j = q . k_j / sqrt(K)",
    "additive": "e_j = v . tanh(q + k_j)",
    "bilinear": "e_j = q . (W k_j)",
    "cosine": "e_j = tau q . k_j / (|q| |k_j|)",
}


def attention(given: Calculation) -> list[Panel]:
    """Query, keys, scores, weights, values and what comes out, of one head."""
    config = given.site.module.config
    head = 0 if given.options.head is None else given.options.head - 1
    q = given.seen["queries"][given.place, head]
    share = config.n_heads // given.seen["keys"].shape[1]
    keys, values = (given.seen[name][:, head // share] for name in ("keys", "values"))
    scores, weights = given.seen["scores"][head, given.place], given.seen["weights"][head, given.place]
    kept = heaviest(np.where(weights > 0, weights, -1.0))
    kept = kept[weights[kept] > 0]
    positions = numbers(given.site.columns)
    names = [numbered(given.site.columns.labels[j], positions[j]) for j in kept]
    before, after = _maps(config)
    return [
        Note(text=f"Head {head + 1} of {config.n_heads}: {given.label!r} asks, and every position it may see answers."),
        _vectors(given, q[None], [given.label], "query", f"q = {before}W_Q x{after}", given.cut(len(q))),
        _vectors(given, keys[kept], names, "keys", f"k_j = {before}W_K x_j{after}"),
        *_looking(config, names, scores[kept], weights, kept),
        _vectors(given, values[kept], names, "values", "v_j = W_V x_j"),
        _vectors(given, (weights @ values)[None], [given.label], "context", "c = sum_j a_j v_j"),
    ]


def _looking(config: Any, names: list[str], scores: np.ndarray, weights: np.ndarray, kept: np.ndarray) -> list[Panel]:
    """Scores and weights of what is seen."""
    base = "" if config.base is None else f" in base {config.base:g}"
    seen = int((weights > 0).sum())
    few = f"the {len(kept)} heaviest of {seen} positions" if seen > len(kept) else ""
    farther = " - m (t - j), m the slope of the head" if getattr(config, "position", "") == "alibi" else ""
    equation = SCORES[config.score] + farther
    return [
        Numbers(
            title="Scores",
            key="scores",
            equation=equation,
            tex=tex_of(equation),
            values=scores[None],
            columns=names,
            note=few,
        ),
        Numbers(
            title="Weights",
            key="weights",
            equation=f"a = softmax(e){base}",
            tex=tex_of(f"a = softmax(e){base}"),
            values=weights[kept][None],
            columns=names,
            marked=[(0, int(weights[kept].argmax()))],
            note=f"they sum to {weights.sum():.4g}; positions that may not be seen have none",
        ),
        Bars(title="Where it looks", names=names, values=weights[kept].tolist(), unit="weight"),
    ]


def _maps(config: Any) -> tuple[str, str]:
    """What is done to queries and keys beside their maps, before them and after them in the equation."""
    rotated = getattr(config, "position", "") == "rotary"
    before = ("rotate " if rotated else "") + ("norm " if config.qk_norm else "")
    return (f"{before.strip()}(", ")") if before else ("", "")


def _vectors(
    given: Calculation, vectors: np.ndarray, rows: list[str], key: str, equation: str, note: str = ""
) -> Numbers:
    shown = given.short(vectors)
    columns = [str(number + 1) for number in range(shown.shape[-1])]
    title = key.capitalize()
    told = Numbers(title=title, key=key, values=shown, rows=rows, columns=columns, note=note)
    return replace(told, equation=equation, tex=tex_of(equation))


def _order(module: SelfAttention) -> str:
    """Why it feels order."""
    config = module.config
    told = [
        "a causal mask" if config.causal else "",
        f"{config.position} positions in its scores" if config.position != "none" else "",
        f"a window of {config.window}" if config.window is not None else "",
    ]
    return ", ".join(part for part in told if part)


_SELF = Mechanism("attention", "self-attention", "self-attention", attention, order=_order, rank=3)
_CROSS = Mechanism("cross", "attention over a source", "attention over the source", attention, rank=2)
register_mechanism(SelfAttention, _SELF)
register_mechanism(CrossAttention, _CROSS)
