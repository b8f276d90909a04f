"""TensorBoard: event files in the run folder, or in the folder that `dir=` names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.training.track import TrackedRun, installed, register_tracker, taken


@register_tracker("tensorboard")
class TensorBoard:
    """Scalars by step, and as texts the settings and what the model writes."""

    def __init__(self, run: TrackedRun, options: dict[str, str]) -> None:
        named = taken(options, ("dir",), "tensorboard").get("dir")
        self.folder = run.folder if named is None else Path(named).expanduser() / run.name
        installed("tensorboard", "pip install 'regard[track]'")
        self.writer: Any = None

    def start(self, settings: Mapping[str, Any]) -> None:
        boards = installed("torch.utils.tensorboard", "pip install 'regard[track]'")
        self.writer = boards.SummaryWriter(str(self.folder))
        table = "\n".join(f"| {key} | {value} |" for key, value in settings.items())
        self.writer.add_text("settings", f"| setting | value |\n| --- | --- |\n{table}")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)

    def text(self, step: int, text: str) -> None:
        self.writer.add_text("sample", text, step)

    def end(self, status: str) -> None:
        self.writer.add_text("status", status)
        self.writer.close()
