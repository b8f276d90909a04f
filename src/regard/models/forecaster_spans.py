"""Which spans of a past a forecaster measures it by, repeats and reads as one, as far as its history reaches."""

from __future__ import annotations

from regard.core.config import check

FAR = 28  # seasons of the second level, where nothing else is said: of days a month
FEW_SEASONS, FEW_PATCHES = 5, 64


def second_level(far: int, near: int, season: int, history: int) -> int:
    """Seasons of the second level, as far as the history reaches; 0, none, where the first ones reach no less far.

    far   seasons as they were asked for; what somebody asked for and would not get is refused.
    near  those of the first levels.
    """
    reached = min(far, history // season)
    if far > 0 and far != FAR:
        check(far > near, f"model.far: expected more than the {near} seasons of the first level, or 0, found {far}")
        check(
            reached > near,
            f"model.far: a second level of {far} seasons needs a data.history of more than {near * season} steps, best "
            f"{far * season}, and that is {history}: raise it, or say 0 for one level",
        )
    return 0 if 0 <= reached <= near else reached


def patch_size(season: int, history: int) -> int:
    """Steps that are read as one: a season where the history has several, else so many that FEW_PATCHES remain."""
    if history % season == 0 and history >= FEW_SEASONS * season:
        return season
    return next(size for size in range(max(1, history // FEW_PATCHES), 0, -1) if history % size == 0)
