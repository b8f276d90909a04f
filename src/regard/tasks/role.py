"""Which column of another table a run reads: as somebody says, as it was in training, or as such columns are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.data.unlabelled import Role

if TYPE_CHECKING:
    from regard.data.settings import DataSettings
    from regard.tasks.task import Trained


def role_of(
    run: Trained, settings: DataSettings, setting: str, usual: tuple[str, ...], role: str | None = None
) -> Role:
    """The column that a run reads of another table. role: what it is called in the account, where it is not as set."""
    said, own = getattr(settings, setting), getattr(run.settings, setting)
    understood = run.config.get("understood")
    columns = understood.get("columns") if isinstance(understood, dict) else None
    trained = columns.get(role or setting) if isinstance(columns, dict) else None
    # What the run was trained on is looked for, what somebody says of this table must be there.
    return Role(setting, said if said != own else None, trained if isinstance(trained, str) else own, usual)
