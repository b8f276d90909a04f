"""Weights & Biases: offline, in the run folder, unless `mode=online` or WANDB_MODE says otherwise.

Options are those of `wandb.init`, such as `project=mine,entity=us,tags=first+long`; `wandb sync` sends what was kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from regard.training.track import FAILED, TrackedRun, installed, register_tracker

PROJECT = "regard"


@register_tracker("wandb")
class WeightsAndBiases:
    """A run of W&B, in the group of the folder that the run lies in."""

    def __init__(self, run: TrackedRun, options: dict[str, str]) -> None:
        self.wandb = installed("wandb", "pip install wandb")
        usual = {"project": PROJECT, "name": run.name, "group": run.group}
        self.given: dict[str, Any] = usual | {"mode": os.environ.get("WANDB_MODE", "offline")} | options
        if "tags" in self.given:
            self.given["tags"] = self.given["tags"].split("+")
        self.folder = run.folder
        self.run: Any = None

    def start(self, settings: Mapping[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        quiet = {"silent": True, "console": "off"}  # the screen is the training's
        self.run = self.wandb.init(dir=str(self.folder), config=dict(settings), settings=quiet, **self.given)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self.run.log(dict(metrics), step=step)

    def text(self, step: int, text: str) -> None:
        self.run.log({"sample": text}, step=step)

    def end(self, status: str) -> None:
        self.run.summary["status"] = status
        self.run.finish(exit_code=int(status == FAILED))
