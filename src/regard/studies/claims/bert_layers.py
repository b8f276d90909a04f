"""What a masked language model knows where: probes of its layers, heads that can go, patterns of attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.core.model import logits_of
from regard.core.registry import build
from regard.core.tap import record
from regard.data.batch import NOT_COUNTED
from regard.data.corpus import prepare
from regard.mixers.attention import SelfAttention
from regard.studies.claims.fitting import LinearProbe, accuracy, fit
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

LENGTH, HEADS, HIDDEN = 32, 4, 0.15
ZONES = 8
OFFSETS = (-2, -1, 0, 1, 2)


@register_study
class Bertology(Study):
    id: ClassVar[str] = "bert_layers"
    claim: ClassVar[str] = (
        "Of a masked language model the lower layers know best where a word stands, many heads can be removed at "
        "little cost, and heads look along diagonals and at single words."
    )
    source: ClassVar[str] = "Rogers, Kovaleva, Rumshisky 2020, BERTology: sections 3 and 6; on world:stories"
    rule: ClassVar[str] = (
        "a linear probe of the position is best at a layer of the lower half; removing the third of the heads whose "
        "own removal costs least raises the loss by under 5 per cent; at least one head has half of its weight at one "
        "distance, and one has half of it on one place or one word"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        corpus = prepare("world:stories?train=4000&valid=300", seed=lab.seed)
        vocab_size = corpus.tokenizer.vocab_size
        text, held = (_rows(part.ids).to(lab.device) for part in (corpus.train, corpus.valid))
        torch.manual_seed(lab.seed)
        sizes = {"d_model": lab.pick(32, 48, 192), "n_layers": lab.pick(2, 4, 6), "n_heads": HEADS}
        # Rotary positions stand in no vector: there would be nothing to probe.
        model = build("bert", vocab_size=vocab_size + 1, size="tiny", position="learned", **sizes).to(lab.device)

        def batch(step: int) -> tuple[Tensor, Tensor]:
            generator = torch.Generator().manual_seed(lab.seed * 1_000_000 + step)
            chosen = torch.randint(len(text), (16,), generator=generator).to(text.device)
            return hidden(text[chosen], vocab_size, generator)

        losses = fit(model, batch, lab.pick(600, 1000, 1500), 1e-2, optimiser="muon")
        test, choosing = (
            hidden(part, vocab_size, torch.Generator().manual_seed(9)) for part in (held[:150], held[150:300])
        )
        layers = _layers(model, held)
        return {
            "train": sum(losses[-20:]) / 20,
            "position": [_probe(layer, _zones(held), ZONES, lab) for layer in layers],
            "class": [_probe(layer, _classes(held, text, vocab_size), 4, lab) for layer in layers],
            "pruning": _pruning(model, choosing, test),
            "patterns": patterns(model, held[:100]),
        }

    def judge(self, found: Sequence[Found]) -> Verdict:
        layers = range(len(found[0]["position"]))
        told = ", ".join(f"{sum(one['position'][i] for one in found) / len(found):.2f}" for i in layers)
        kinds = ", ".join(f"{mean(found, 'patterns', kind):.1f} {kind}" for kind in ("diagonal", "vertical"))
        return judged(
            found,
            lambda one: (
                best_layer(one["position"]) <= (len(one["position"]) - 1) / 2
                and one["pruning"]["rise"] < 0.05
                and one["patterns"]["diagonal"] >= 1
                and one["patterns"]["vertical"] >= 1
            ),
            f"positions told rightly from embedding to last layer: {told}; without the least important "
            f"{found[0]['pruning']['removed']} of {found[0]['pruning']['heads']} heads the loss rises by "
            f"{100 * mean(found, 'pruning', 'rise'):.1f} per cent; heads of a pattern: {kinds}",
        )

    def figure(self, found: Sequence[Found]) -> str:
        layers = range(len(found[0]["position"]))
        lines = [
            Series(label, [(i, sum(one[key][i] for one in found) / len(found)) for i in layers])
            for key, label in (("position", "position"), ("class", "frequency class"))
        ]
        return line_chart("Probes by layer", lines, Axis("layer"), Axis("share right", low=0.0, high=1.0))


def best_layer(shares: Sequence[float]) -> int:
    """The first of the layers at which the probe is best."""
    return max(range(len(shares)), key=lambda i: shares[i])


def hidden(rows: Tensor, mask_id: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Rows with some words hidden, and those words."""
    chosen = (torch.rand(rows.shape, generator=generator) < HIDDEN).to(rows.device)
    return rows.masked_fill(chosen, mask_id), rows.masked_fill(~chosen, NOT_COUNTED)


def _rows(ids: Any) -> Tensor:
    tokens = torch.from_numpy(ids.astype("int64"))
    return tokens[: len(tokens) // LENGTH * LENGTH].view(-1, LENGTH)


@torch.no_grad()
def _layers(model: Any, rows: Tensor) -> list[Tensor]:
    """The vectors before the first layer and after each, (B, T, D)."""
    x = model.embedding(rows, torch.zeros(len(rows), dtype=torch.long, device=rows.device))
    found = [x]
    for layer in model.stack.layers:
        x = layer(x)
        found.append(x)
    return found


def _zones(rows: Tensor) -> Tensor:
    """In which eighth of its row each word stands."""
    return (torch.arange(LENGTH, device=rows.device) * ZONES // LENGTH).expand(rows.shape)


def _classes(rows: Tensor, text: Tensor, vocab_size: int) -> Tensor:
    """The frequency class of the word that follows, of four that are equally common; not counted at the end."""
    counts = torch.bincount(text.flatten(), minlength=vocab_size)
    order = counts.argsort(descending=True)
    shares = counts[order].cumsum(0) / counts.sum()
    classes = torch.empty_like(order)
    classes[order] = (shares * 4).long().clamp(max=3)
    return torch.cat([classes[rows[:, 1:]], torch.full_like(rows[:, :1], NOT_COUNTED)], 1)


def _probe(vectors: Tensor, classes: Tensor, count: int, lab: Lab) -> float:
    """How often a linear map fitted on the first half of the rows is right in the second."""
    half = len(vectors) // 2
    torch.manual_seed(lab.seed)
    probe = LinearProbe(vectors.shape[-1], count, is_normed=True).to(vectors.device)
    fit(probe, lambda _: (vectors[:half], classes[:half]), 100, 0.02)
    return accuracy(probe, vectors[half:], classes[half:])


def _pruning(model: nn.Module, choosing: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> dict[str, float]:
    """What removing the least important third of the heads costs. Importance is measured on other text."""
    heads = [(mixer, h) for mixer in _attentions(model) for h in range(HEADS)]
    costs = []
    for head in heads:
        with _removed([head]):
            costs.append(_loss(model, *choosing))
    least = sorted(range(len(heads)), key=lambda i: costs[i])[: len(heads) // 3]
    whole = _loss(model, *test)
    with _removed([heads[i] for i in least]):
        pruned = _loss(model, *test)
    return {"heads": len(heads), "removed": len(least), "loss": whole, "pruned": pruned, "rise": pruned / whole - 1}


def _attentions(model: nn.Module) -> list[SelfAttention]:
    return [part for part in model.modules() if isinstance(part, SelfAttention)]


@contextmanager
def _removed(heads: Sequence[tuple[SelfAttention, int]]) -> Iterator[None]:
    """These heads say nothing."""

    def silence(head: int) -> Any:
        def hook(_tap: nn.Module, _inputs: object, summary: Tensor) -> Tensor:
            keep = torch.ones(summary.shape[2], 1, device=summary.device)
            keep[head] = 0
            return summary * keep

        return hook

    handles = [mixer.summary.register_forward_hook(silence(head)) for mixer, head in heads]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def _loss(model: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    return float(cross_entropy(logits_of(model, inputs).flatten(0, 1), targets.flatten(), ignore_index=NOT_COUNTED))


@torch.no_grad()
def patterns(model: nn.Module, rows: Tensor) -> dict[str, int]:
    """How many heads have half of their weight at one distance, and on one place or one word."""
    with record(model, "*.weights") as seen:
        model(rows)
    found = {"diagonal": 0, "vertical": 0}
    for (weights,) in seen.values():
        for head in weights.unbind(1):  # (B, T, S)
            at_distance = max(float(head.diagonal(offset, 1, 2).sum() / head.sum()) for offset in OFFSETS)
            on_place = float(head.mean((0, 1)).max())
            by_word = torch.zeros(int(rows.max()) + 1, device=rows.device)
            by_word.index_add_(0, rows.flatten(), head.mean(1).flatten())
            on_word = float(by_word.max() / len(rows))
            found["diagonal"] += at_distance >= 0.5
            found["vertical"] += max(on_place, on_word) >= 0.5
    return found
