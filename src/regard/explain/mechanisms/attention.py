"""Attention worked out for one query: scores, softmax, weighted sum."""

from __future__ import annotations

import numpy as np

from regard.explain.mechanisms.calculation import Calculation, heaviest
from regard.explain.view import Bars, Note, Numbers, Panel

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
    head = (given.options.head or 1) - 1
    q = given.seen["queries"][given.place, head]
    share = config.n_heads // given.seen["keys"].shape[1]
    keys, values = (given.seen[name][:, head // share] for name in ("keys", "values"))
    scores, weights = given.seen["scores"][head, given.place], given.seen["weights"][head, given.place]
    kept = heaviest(np.where(weights > 0, weights, -1.0))
    kept = kept[weights[kept] > 0]
    names = [f"{given.site.columns.labels[j]} ({j + 1})" for j in kept]
    units = [str(number + 1) for number in range(given.short(q).shape[-1])]
    base = "" if config.base is None else f" in base {config.base:g}"
    left_out = int((weights > 0).sum()) - len(kept)
    few = f"the {len(kept)} heaviest of {len(kept) + left_out} positions" if left_out else ""
    return [
        Note(text=f"Head {head + 1} of {config.n_heads}: {given.label!r} asks, and every position it may see answers."),
        Numbers(
            title="Query",
            key="query",
            equation="q = W_Q x",
            values=given.short(q)[None],
            rows=[given.label],
            columns=units,
            note=given.cut(len(q)),
        ),
        Numbers(
            title="Keys",
            key="keys",
            equation="k_j = W_K x_j",
            values=given.short(keys[kept]),
            rows=names,
            columns=units,
        ),
        Numbers(
            title="Scores",
            key="scores",
            equation=SCORES[config.score],
            values=scores[kept][None],
            columns=names,
            note=few,
        ),
        Numbers(
            title="Weights",
            key="weights",
            equation=f"a = softmax(e){base}",
            values=weights[kept][None],
            columns=names,
            marked=[(0, int(weights[kept].argmax()))],
            note=f"they sum to {weights.sum():.4g}; positions that may not be seen have none",
        ),
        Bars(title="Where it looks", names=names, values=weights[kept].tolist(), unit="weight"),
        Numbers(
            title="Values",
            key="values",
            equation="v_j = W_V x_j",
            values=given.short(values[kept]),
            rows=names,
            columns=[str(number + 1) for number in range(given.short(values).shape[-1])],
        ),
        Numbers(
            title="Context",
            key="context",
            equation="c = sum_j a_j v_j",
            values=given.short(weights @ values)[None],
            rows=[given.label],
            columns=[str(number + 1) for number in range(given.short(values).shape[-1])],
        ),
    ]
