"""StudyOnRun: the form of a study on a run, such as an imported model, in the place of the small one that it trains.

    regard reproduce meaning --on runs/minilm --data senses.tsv.gz

Its rule is its own and was written before it was run on any model. Seeds choose what is asked, as the weights stay.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from regard.errors import CheckpointError, DataError, RegardError, UsageError
from regard.run.run import Run, load
from regard.studies.claims.study import Lab, Study
from regard.studies.identity import content_hash, model_hash

ON = "@"  # between the name of a study and that of the run


class StudyOnRun(Study):
    """Base of such forms.

    asks  what must be so of a run, in words; `fits` is the same in code.
    form  of the data that it needs, in words; empty where it needs none.
    """

    asks: ClassVar[str] = "vectors of tokens"
    form: ClassVar[str] = ""
    refuses: ClassVar[tuple[type[RegardError], ...]] = (UsageError, DataError, CheckpointError)

    def __init__(self, run: str, data: str | None = None) -> None:
        self.path, self.data = run, data
        if self.form and data is None:
            raise UsageError(f"{self.id} on a run needs labelled text, {self.form}: name it with --data")
        if data is not None and not self.form:
            raise UsageError(f"{self.id} on a run needs no data: leave --data out")

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process loads the run by itself.
        return type(self), (self.path, self.data)

    @property
    def name(self) -> str:
        return f"{self.id}{ON}{Path(self.path).resolve().name}"

    @property
    def about(self) -> dict[str, str]:
        """The run and the data by what they hold: under the same names there may be others tomorrow."""
        return self._content

    @cached_property
    def _content(self) -> dict[str, str]:
        found = {"run_sha256": model_hash(Path(self.path).expanduser())}
        return found | ({"data_sha256": content_hash(self.rows)} if self.data else {})

    @property
    def given(self) -> dict[str, str]:
        return {"run": self.path} | ({"data": self.data} if self.data else {})

    def check(self, device: str) -> None:
        self.run(Lab("quick", 0, Path(), device))

    def run(self, lab: Lab) -> Run:
        """The run, loaded once."""
        found = self._run if self._device == lab.device else None
        if found is None:
            self._device, self._run = lab.device, load(self.path, device=lab.device)
            found = self._run
        if not self.fits(found):
            raise UsageError(f"{self.path}: {self.id} asks for {self.asks}")
        return found

    def fits(self, run: Run) -> bool:
        """Whether the run can be asked."""
        return run.task.gives_encoder and not run.fitted

    _device: str = ""
    _run: Any = None

    @cached_property
    def rows(self) -> list[Any]:
        """The labelled text, read once."""
        return self.read(self.data or "")

    def read(self, path: str) -> list[Any]:
        """What the data holds; a form that needs some writes this."""
        raise NotImplementedError(f"{type(self).__name__} reads no data: {path}")
