"""Kill one of two ranks at random moments, continue each time, and compare the weights with those of a whole run.

    python benchmarks/kill_ranks.py --kills 40 --way ddp

Which rank, at which batch, held-out batch or file operation is drawn; a save is under way in a good part of them. Ends
with 1 when the weights differ, a continued run fails, or a rank outlives the other by more than ten seconds.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tests" / "faults")]

import torch  # noqa: E402
from rank_nursery import Request, trained  # noqa: E402

from regard.training import checkpoint  # noqa: E402
from tiny_run import model_of  # noqa: E402

LATEST = 10.0
ENDED = 128 + signal.SIGTERM  # of who was ended with the other, as torchrun does, before it knew that it is alone
MOMENTS = {"operation": 60, "batch": 6, "evaluation": 4}  # of a life, from its first on


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--way", choices=["ddp", "fsdp"], default="ddp")
    parser.add_argument("--model", default="lstm")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model_of(options.model)  # imports what the children need, once
    chance, kills, ended, slowest = random.Random(options.seed), 0, 0, 0.0
    settings = {"budget": f"{options.steps}steps", "save_every": 2, "evaluate_every": 5, "parallel": options.way}
    with tempfile.TemporaryDirectory() as folder:
        whole, broken = Path(folder) / "whole", Path(folder) / "broken"
        require(trained(Request(str(whole), name=options.model, settings=settings)), [0, 0])
        while kills < options.kills:
            harmed = chance.randint(0, 1)
            kind = chance.choice(["operation", "batch", "evaluation"] if harmed == 0 else ["batch", "evaluation"])
            request = Request(str(broken), name=options.model, settings=settings, harmed=harmed)
            request.at, request.signals = (kind, chance.randint(1, MOMENTS[kind])), (signal.SIGKILL,)
            answer = trained(request)
            if answer["codes"] == [0, 0]:
                break
            codes = [6, 6]
            codes[harmed] = -signal.SIGKILL
            if answer["codes"][1 - harmed] == ENDED:
                codes[1 - harmed], ended = ENDED, ended + 1
            require(answer, codes)
            checkpoint.newest(broken / "checkpoints", fall_back=False)
            kills, slowest = kills + 1, max(slowest, answer["seconds"])
        reached = max(checkpoint.steps(broken / "checkpoints"), default=0)
        require(trained(Request(str(broken), name=options.model, settings=settings)), [0, 0])
        same = (whole / "model.safetensors").read_bytes() == (broken / "model.safetensors").read_bytes()
    print(f"{options.model}, {options.way}: {kills} kills up to step {reached} of {options.steps}, weights "
          f"{'equal' if same else 'DIFFER'}; the other rank had ended after {slowest:.1f} s at most, "
          f"{ended} by the signal")  # fmt: skip
    sys.exit(0 if same and slowest < LATEST else 1)


def require(answer: dict, codes: list[int]) -> None:
    if answer["codes"] != codes:
        sys.exit(f"exit codes {answer['codes']} instead of {codes}: {answer['texts']}")


if __name__ == "__main__":
    main()
