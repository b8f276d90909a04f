"""Kill a run with SIGKILL at random moments, continue it each time, and compare its weights with an undisturbed run.

    python benchmarks/kill_resume.py --kills 20 --model lstm

The moments are real time, drawn uniformly; a save is under way in a good part of them. Ends with 1 when the weights
differ or a continued run fails.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tests" / "faults")]

from nursery import Request, bear, end_of  # noqa: E402

from regard.training import checkpoint  # noqa: E402
from tiny_run import folder_hash, model_of  # noqa: E402


def undisturbed(path: Path, name: str, settings: dict) -> float:
    """Seconds of a run that nobody kills."""
    start = time.monotonic()
    code = end_of(bear(Request(str(path), name, settings=settings)))
    if code:
        sys.exit(f"the undisturbed run ended with {code}: {Path(f'{path}.err').read_text()}")
    return time.monotonic() - start


def killed(request: Request, delay: float) -> bool:
    """Whether the kill came before the run's end."""
    child = bear(request)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    code = end_of(child)
    if code not in (0, -signal.SIGKILL):
        sys.exit(f"a continued run ended with {code}: {Path(f'{request.path}.err').read_text()}")
    return code != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--model", default="lstm")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    settings = {"budget": f"{options.steps}steps", "save_every": 5, "evaluate_every": 20}
    model_of(options.model)  # imports what the children need, once
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        whole, broken = Path(folder) / "whole", Path(folder) / "broken"
        seconds = undisturbed(whole, options.model, settings)
        request = Request(str(broken), options.model, settings=settings)
        done, unfinished = 0, 0
        while done < options.kills:
            done += killed(request, chance.uniform(0, 1.5 * seconds / options.kills))
            unfinished += any(name.startswith(".tmp") for name in os.listdir(broken / "checkpoints"))
        reached = max(checkpoint.steps(broken / "checkpoints"), default=0)
        code = end_of(bear(request))
        if code:
            sys.exit(f"the last run ended with {code}: {Path(f'{broken}.err').read_text()}")
        same = folder_hash(whole, options.steps) == folder_hash(broken, options.steps)
        kept = (whole / "model.safetensors").read_bytes() == (broken / "model.safetensors").read_bytes()
        words = ["equal" if one else "DIFFER" for one in (same, kept)]
        print(f"{options.model}: {done} kills, {unfinished} within a save, step {reached} of {options.steps} by then;")
        print(f"last weights {words[0]}, best weights {words[1]}, {folder_hash(broken, options.steps)[:16]}")
        sys.exit(0 if same and kept else 1)


if __name__ == "__main__":
    main()
