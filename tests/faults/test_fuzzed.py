"""A few commands and folders of a fuzzing round, always the same ones; `fuzzing.py` makes as many as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz_grammar import Grammar, Ground
from fuzzing import call, in_children
from hostile_folders import hostile_folders


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    folder = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        made = Ground(folder)
        made.train(call)
    return made


@pytest.fixture(autouse=True)
def _within(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ground.folder)


def test_commands_of_real_flags_succeed_or_fail_in_one_line(ground: Ground) -> None:
    grammar = Grammar(ground, seed=5)
    records = list(in_children(iter([[grammar.command() for _ in range(40)]])))
    assert [record for record in records if record["finding"]] == []
    assert len(records) == 40


def test_folders_changed_by_a_knowing_hand_are_read_or_refused_in_one_line(ground: Ground) -> None:
    records = list(in_children(hostile_folders(ground.runs, 12, seed=5)))
    assert [record for record in records if record["finding"]] == []
    assert len(records) == 36
    assert not list(Path("hostile").iterdir())
