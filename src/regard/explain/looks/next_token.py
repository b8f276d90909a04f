"""What a model expects: the next token of a text, the word under a mask, the class of a text, the tags of its words.

The raw distribution is the model's own; the warped one is what a token is drawn from at a temperature, with a cut.
"""

from __future__ import annotations

import math

from torch import Tensor

from regard.core.device import wide
from regard.decoding.logits_processing import Sampling, largest, warped_log_probs
from regard.explain.look import Look, Options, numbers, position_control, register_look
from regard.explain.outcome import Outcome, number_of, outcome
from regard.explain.view import Bars, Control, Heat, Listing, Panel, View
from regard.tasks.reading import Reading

TOP = 12
CAVEAT = "A high probability says what the model expects, not that it is right, nor why it expects it."


def next_token(reading: Reading, options: Options) -> View:
    """What comes after a position."""
    found = outcome(reading, options.position)
    sampling = Sampling(options.temperature, options.top_k, options.top_p)
    title = f"What comes after {reading.main.labels[found.place or 0]!r}"
    panels = [*_distributions(reading, found, sampling), _history(reading)]
    return _view(title, panels, reading, found, _sliders(options))


def masked_token(reading: Reading, options: Options) -> View:
    """What stands at a position, such as that of a mask."""
    found = outcome(reading, options.position)
    sampling = Sampling(options.temperature, options.top_k, options.top_p)
    title = f"What stands at position {number_of(reading, found.place)}"
    return _view(title, _distributions(reading, found, sampling), reading, found, _sliders(options))


def class_of(reading: Reading, options: Options) -> View:
    """The class of the whole text, or the tag of every word."""
    found = outcome(reading, options.position)
    plain = Sampling()
    if found.place is None:
        return _view("Which class it is", _distributions(reading, found, plain), reading, found, [])
    label = reading.main.labels[found.place]
    panels = [_tags(reading), *_distributions(reading, found, plain)]
    return _view(f"Which tag {label!r} and the other words have", panels, reading, found, [])


def _view(title: str, panels: list[Panel], reading: Reading, found: Outcome, sliders: list[Control]) -> View:
    number = number_of(reading, found.place)
    places = [] if number is None else [position_control(reading.main, number)]
    about = {"position": number} if number is not None else {}
    return View(title, panels, about, CAVEAT, [*places, *sliders])


def _distributions(reading: Reading, found: Outcome, sampling: Sampling) -> list[Panel]:
    """The raw distribution, and the warped one where it is another."""
    log_probs = found.log_probs
    shown = largest(log_probs, min(TOP, len(log_probs))).tolist()
    names = [reading.named(token) for token in shown]
    rest = max(0.0, 1 - float(log_probs[shown].exp().sum()))
    entropy = float(-(log_probs.exp() * log_probs).nan_to_num().sum()) / math.log(2)
    note = f"Entropy {entropy:.2f} bits, as of {2**entropy:.1f} equally likely answers"
    note += f"; the {len(log_probs) - len(shown)} not shown have {rest:.3g} together." if rest > 1e-9 else "."
    raw = Bars(
        title="The model's own (raw) distribution",
        names=names,
        values=log_probs[shown].exp().tolist(),
        unit="probability",
        note=note,
        key="raw",
    )
    if sampling == Sampling():
        return [raw]
    return [raw, _warped(log_probs, shown, names, sampling)]


def _warped(log_probs: Tensor, shown: list[int], names: list[str], sampling: Sampling) -> Bars:
    warped = warped_log_probs(log_probs, sampling).exp()
    left = int((warped > 0).sum())
    told = {"temperature": sampling.temperature, "top_k": sampling.top_k, "top_p": sampling.top_p}
    asked = ", ".join(f"{name} {value:g}" for name, value in told.items() if value is not None)
    return Bars(
        title="What a token is drawn from (warped)",
        names=names,
        values=warped[shown].tolist(),
        unit="probability",
        note=f"{asked}: {left} of {len(warped)} tokens can be drawn.",
        key="warped",
    )


def _history(reading: Reading) -> Listing:
    """What was expected at each position of the text and what came."""
    log_probs = wide(reading.run()[0]).log_softmax(-1)
    best = log_probs.argmax(-1)
    rows = []
    for place, number in enumerate(numbers(reading.main)):
        target = reading.targets[place] if reading.targets else None
        row = [number, reading.main.labels[place], reading.named(int(best[place]))]
        row.append(float(log_probs[place].max().exp()))
        if target is None:
            rows.append([*row, None, None, None])
            continue
        rank = int((log_probs[place] > log_probs[place, target]).sum()) + 1
        rows.append([*row, reading.named(target), float(log_probs[place, target].exp()), rank])
    columns = ["position#", "after", "expected", "p#", "came", "p of it#", "rank#"]
    return Listing(title="What was expected on the way", columns=columns, rows=rows, key="expected")


def _tags(reading: Reading) -> Heat:
    """Probabilities of the tags (tags, T) that are likely anywhere."""
    probs = wide(reading.run()[0]).softmax(-1)  # (T, C)
    shown = largest(probs.amax(0), min(TOP, probs.shape[1])).sort().values
    return Heat(
        title="Tags of all words",
        weights=probs[:, shown].T.cpu().numpy(),
        rows=[reading.named(tag) for tag in shown.tolist()],
        columns=reading.main.labels,
        row_name="tag",
        column_name="word",
        scale="probability",
        key="tags",
    )


def _sliders(options: Options) -> list[Control]:
    few = {1, 2, 5, 10, 20, 50, 100} | {options.top_k or 1}
    return [
        Control(name="temperature", label="temperature", kind="range", value=options.temperature, high=2.0, step=0.05),
        Control(name="top_k", label="top k", kind="choice", value=options.top_k, values=[None, *sorted(few)]),
        Control(name="top_p", label="top p", kind="range", value=options.top_p, low=0.05, high=1.0, step=0.05),
    ]


register_look(
    Look(
        "next",
        "which tokens may come next, raw and as they are drawn, and what was expected on the way",
        next_token,
        fits=lambda can: can.next,
    )
)
register_look(Look("fill", "which words may stand at a mask", masked_token, fits=lambda can: can.mask and can.answers))
register_look(Look("answer", "how sure the model is of a class or of each tag", class_of, fits=lambda can: can.classes))
