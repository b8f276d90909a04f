"""The pipe between the server and the processes that it starts."""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import pytest

import regard
from regard.serving.wire import messages, module_command, packed


def test_a_message_that_ends_in_its_middle_ends_the_stream() -> None:
    whole = packed({"screen": 1})
    for torn in (b"", whole[:2], whole[:-1]):
        assert list(messages(io.BytesIO(whole + torn))) == [{"screen": 1}]


@pytest.mark.parametrize("name", ["regard.serving.sitter", "regard.serving.engine.process"])
def test_a_process_imports_nothing_from_the_folder_that_it_is_started_in(name: str, tmp_path: Path) -> None:
    for module in ("json", "torch", "typing", "regard"):
        (tmp_path / f"{module}.py").write_text("open('imported', 'w')\n", encoding="utf-8")
    source = str(Path(regard.__file__).parents[1])
    ended = subprocess.run(
        module_command(name),
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": source},
        timeout=60,
    )
    assert ended.returncode == 0
    assert not (tmp_path / "imported").exists()
