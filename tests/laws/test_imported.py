"""Models of other programs keep every law that ours do, with the settings that they come with."""

from __future__ import annotations

from pathlib import Path

import pytest

from foreign_models import BOTH_WAYS, CAUSAL, TRANSLATORS, ours_of, theirs_of
from regard.core.stack import MixerConfig
from regard.laws import check_mixer
from regard.laws.check import LAWS


def kept(config: MixerConfig, name: str) -> None:
    results = check_mixer(config, name)
    broken = [f"{r.subject}, law {r.law!r}: {r.detail}" for r in results if r.held is False]
    assert not broken, "\n" + "\n".join(broken)
    assert {r.law for r in results} == set(LAWS)
    assert sum(r.held is True for r in results) >= len(LAWS) // 2


@pytest.mark.parametrize("name", CAUSAL | BOTH_WAYS)
def test_a_stack_keeps_the_laws(name: str, tmp_path: Path) -> None:
    kept(ours_of(theirs_of(name), tmp_path).config.stack, name)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_both_sides_keep_the_laws(name: str, tmp_path: Path) -> None:
    config = ours_of(theirs_of(name), tmp_path).config
    kept(config.encoder.stack, f"{name}, what reads")
    kept(config.decoder.stack, f"{name}, what writes")
