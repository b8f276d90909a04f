"""`regard.check` takes what is to be checked by its name, or itself: a class, its config, or a function."""

from __future__ import annotations

import pytest
from torch import nn

import regard
from regard.errors import UsageError
from regard.laws import LawResult
from regard.mixers.mean import MeanConfig, RunningMean


def held(results: list[LawResult]) -> dict[tuple[str, str], bool | None]:
    """Whether each law held, by its subject and its name."""
    return {(result.subject, result.law): result.held for result in results}


def mean() -> RunningMean:
    return MeanConfig(8).build()


def test_a_config_and_a_function_that_makes_the_mixer_keep_the_same_laws() -> None:
    by_config, by_function = held(regard.check(MeanConfig(8))), held(regard.check(mean))
    assert {subject for subject, _ in by_config} == {"mean", "mean (extreme)"}
    assert False not in by_config.values()
    # What a function makes has no config to be written and read.
    assert {place for place in by_config if by_config[place] != by_function[place]} == {
        ("mean", "round trip"),
        ("mean (extreme)", "round trip"),
    }


def test_what_is_no_mixer_is_refused_by_its_name() -> None:
    with pytest.raises(UsageError, match="int is neither a mixer, nor its config"):
        regard.check(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match=r"Identity gives a Identity, not a regard\.Mixer"):
        regard.check(nn.Identity)
