"""MLflow: a database in the run folder, or the server or store that `uri=` or MLFLOW_TRACKING_URI names.

The client is asked, never MLflow's one run of the process: several runs of one process stay apart.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from regard.training.track import FAILED, FINISHED, STOPPED, TrackedRun, installed, register_tracker, taken

ADVICE = "pip install mlflow"
STATUSES = {FINISHED: "FINISHED", STOPPED: "KILLED", FAILED: "FAILED"}
PARAMETERS, LONGEST = 100, 500  # of one request, and characters of one value


@register_tracker("mlflow")
class MLflow:
    """A run of MLflow in the experiment `experiment=`, without one in that of the folder above the run's."""

    def __init__(self, run: TrackedRun, options: dict[str, str]) -> None:
        self.options = taken(options, ("uri", "experiment", "name"), "mlflow")
        self.mlflow, self.entities = installed("mlflow", ADVICE), installed("mlflow.entities", ADVICE)
        self.tracked = run
        self.client: Any = None
        self.run_id = ""

    def start(self, settings: Mapping[str, Any]) -> None:
        folder = self.tracked.folder
        uri, artifacts = self.options.get("uri") or os.environ.get("MLFLOW_TRACKING_URI"), None
        if uri is None:
            folder.mkdir(parents=True, exist_ok=True)
            uri, artifacts = f"sqlite:///{(folder / 'mlflow.db').as_posix()}", (folder / "artifacts").as_uri()
        self.client = self.mlflow.MlflowClient(tracking_uri=uri)
        name = self.options.get("experiment") or self.tracked.group or "regard"
        known = self.client.get_experiment_by_name(name)
        number = known.experiment_id if known else self.client.create_experiment(name, artifact_location=artifacts)
        made = self.client.create_run(number, run_name=self.options.get("name") or self.tracked.name)
        self.run_id = made.info.run_id
        told = [self.entities.Param(key, str(value)[:LONGEST]) for key, value in settings.items()]
        for first in range(0, len(told), PARAMETERS):
            self.client.log_batch(self.run_id, params=told[first : first + PARAMETERS])

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        now = int(time.time() * 1000)
        found = [self.entities.Metric(name, float(value), now, step) for name, value in metrics.items()]
        self.client.log_batch(self.run_id, metrics=found)

    def text(self, step: int, text: str) -> None:
        self.client.log_text(self.run_id, text, f"samples/{step:08}.txt")

    def end(self, status: str) -> None:
        self.client.set_terminated(self.run_id, STATUSES[status])
