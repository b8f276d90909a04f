"""Kill a run with SIGKILL at random moments, continue it each time, and compare its weights with an undisturbed run.

    python benchmarks/kill_resume.py --kills 20 --model lstm

The moments are real time, counted from the first step that a life makes and drawn so that they spread over the whole
run; a save is under way in a good part of them. Ends with 1 when the weights differ or a continued run fails.
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
from regard.training.run_folder import TEMPORARY  # noqa: E402
from tiny_run import folder_hash, model_of  # noqa: E402

SAVE_EVERY = 2  # steps; about half of the time then goes into saves
STARTED = " parameters, budget "  # in the line with which a display announces the first step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--model", default="lstm")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    settings = {"budget": f"{options.steps}steps", "save_every": SAVE_EVERY, "evaluate_every": 20}
    model_of(options.model)  # imports what the children need, once
    with tempfile.TemporaryDirectory() as folder:
        whole, broken = Path(folder) / "whole", Path(folder) / "broken"
        seconds = undisturbed(Request(str(whole), options.model, settings=settings))
        request = Request(str(broken), options.model, settings=settings)
        reached, saving = kill_often(request, options.kills, options.steps, seconds, random.Random(options.seed))
        require(0, end_of(bear(request)), request)
        same = folder_hash(whole, options.steps) == folder_hash(broken, options.steps)
        kept = (whole / "model.safetensors").read_bytes() == (broken / "model.safetensors").read_bytes()
        words = ["equal" if one else "DIFFER" for one in (same, kept)]
        print(f"{options.model}: {len(reached)} kills, {saving} within a save; of {options.steps} steps saved at each:")
        print(" ".join(map(str, reached)))
        print(f"last weights {words[0]}, best weights {words[1]}, {folder_hash(broken, options.steps)[:16]}")
        sys.exit(0 if same and kept else 1)


def kill_often(
    request: Request, kills: int, steps: int, seconds: float, chance: random.Random
) -> tuple[list[int], int]:
    """The step saved last at each kill, and how many kills came within a save."""
    path, reached, saving = Path(request.path), list[int](), 0
    for left in range(kills, 0, -1):
        steps_left = steps - (reached[-1] if reached else 0)
        child = bear_and_wait(request)
        time.sleep(moment(chance, steps_left, left, seconds / steps))
        os.kill(child, signal.SIGKILL)
        if require(-signal.SIGKILL, end_of(child), request) == 0:
            break
        reached.append(max(checkpoint.steps(path / "checkpoints"), default=0))
        names = os.listdir(path) + os.listdir(path / "checkpoints")
        saving += any(name.startswith(TEMPORARY) for name in names)
    return reached, saving


def moment(chance: random.Random, steps_left: int, kills_left: int, seconds_a_step: float) -> float:
    """Seconds from a life's first step to its kill: drawn so that the kills left spread over the steps left.

    What comes after the last save is lost with a life, half of the steps between two saves in the mean. The end stays
    out of reach also of a life that is faster than the undisturbed run was.
    """
    mean = steps_left / (kills_left + 1) + SAVE_EVERY / 2
    return chance.uniform(0, min(2 * mean, 0.8 * steps_left)) * seconds_a_step


def undisturbed(request: Request) -> float:
    """Seconds of all steps of a run that nobody kills."""
    child = bear_and_wait(request)
    start = time.monotonic()
    require(0, end_of(child), request)
    return time.monotonic() - start


def bear_and_wait(request: Request) -> int:
    """A child that has come to its first step. Starting takes as long as many steps, and would take most kills."""
    messages = Path(f"{request.path}.err")
    messages.unlink(missing_ok=True)
    child = bear(request)
    while not (messages.exists() and STARTED in messages.read_text()):
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
        time.sleep(0.001)
    return child


def require(expected: int, code: int, request: Request) -> int:
    """The exit code of a child, which may have come to its end before its kill but not to another one."""
    if code not in (0, expected):
        sys.exit(f"a run ended with {code}: {Path(f'{request.path}.err').read_text()}")
    return code


if __name__ == "__main__":
    main()
