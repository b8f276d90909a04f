"""Trainings of several seeds as one ensemble: what their mean scores on what they held out, beside each alone.

    python benchmarks/together.py RUN RUN ... [--beam]

The runs have one config and one vocabulary; where there is one machine for each, they may be trained at once, where
`train.ensemble` trains one after the other.
"""

from __future__ import annotations

import argparse
import copy
import json
from typing import Any

from tasks import BEAMS

import regard


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--beam", action="store_true", help="also with a beam")
    given = parser.parse_args()
    runs = [regard.load(path, device=given.device) for path in given.runs]
    ways = {"": {}} | (BEAMS if given.beam else {})
    for label, run in [*zip(given.runs, runs, strict=True), (f"{len(runs)} together", together(runs))]:
        scores = {way: run.evaluate(**options).to_dict() for way, options in ways.items()}
        print(json.dumps({"label": label, "scores": scores}), flush=True)


def together(runs: list[Any]) -> Any:
    """The first run with the mean of all for its model."""
    first = runs[0]
    model = first.task.combined(first.model.config, len(runs)).build()
    for part, run in zip(model.parts, runs, strict=True):
        part.load_state_dict(run.model.state_dict())
    whole = copy.copy(first)
    whole.model = model.to(first.device).eval()
    return whole


if __name__ == "__main__":
    main()
