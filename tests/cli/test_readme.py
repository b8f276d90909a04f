"""The commands of the README do what it says, on smaller models and for fewer steps."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

from calling import TEXT, TINY, call_here, commands_of, environment

from regard.core import registry

README = Path(__file__).parents[2] / "README.md"
LONG = ("check --all", "check my_module:MyMixer", "bench", "reproduce mask", "lab")
SMALL = {
    "world:translation": "train=30&valid=4",
    "world:shapes": "train=12&valid=8",
    "world:reviews": "train=30&valid=6",
    "world:tags": "train=20&valid=4",
    "world:electricity": "train=21&valid=3",
    "world:stories": "train=20&valid=3",
}
SHORT_COMPARE = (*("--size", "tiny", "--budget", "8steps", "--seeds", "1", "--force"), "--set", "train.length=64")
SHORT = (*TINY, "--budget", "2steps", "--quiet")


def commands() -> list[list[str]]:
    """Those of the README that take no minutes."""
    return [argv for argv in commands_of(README) if not shlex.join(argv).startswith(LONG)]


def test_every_command_of_the_readme_works_in_its_order(here: Path):
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    found = commands()
    assert len(found) > 8
    for argv in found:
        # With one seed the run has no number.
        argv = [word.removesuffix("-0") for word in argv]
        if argv[:2] == ["train", "--resume"]:
            argv = [*argv, "--budget", "20steps", "--quiet"]
        elif argv[:2] == ["train", "--like"]:
            argv = [*argv, *SHORT]
        elif argv[0] == "train":
            world = next((word for word in argv if word.startswith("world:")), None)
            argv = [f"{word}?{SMALL[word]}" if word == world else word for word in argv]
            data = [] if "my.txt" in argv or world else ["world:stories?train=20&valid=3"]
            argv = [*argv, *data, *SHORT]
        if argv[0] == "compare":
            # The whole ladder once, on the world.
            few = ["--models", "ngram,lstm"] if "my.txt" in argv and "--models" not in argv else []
            argv = [*argv, *few, *([] if "my.txt" in argv else ["world:witness?train=40&valid=8"]), *SHORT_COMPARE]
        outcome = call_here(*argv)
        assert outcome.code == 0, (argv, outcome.err)
        assert outcome.out or "saved" in outcome.err


def test_the_table_of_models_names_every_model():
    table = README.read_text(encoding="utf-8").partition("\n## Models\n")[2].partition("\n## ")[0]
    named = re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `")))
    assert sorted(named) == sorted(registry.MODELS)


def test_the_python_of_the_readme_runs_from_top_to_bottom(here: Path):
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    short = block.replace('budget="20s"', 'budget="2steps", size="tiny"').replace('"30s"', '"12steps", size="tiny"')
    assert short.count('steps", size') == 2
    done = subprocess.run([sys.executable, "-c", short], cwd=here, env=environment(), capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()


def test_the_page_of_the_readme_is_there_until_ctrl_c(here: Path):
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", "lab", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=here,
        env=environment(),
    )
    assert process.stdout is not None
    try:
        url = json.loads(process.stdout.readline())["url"]
        with urlopen(url, timeout=30) as answer:
            assert b"regard" in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.communicate(timeout=30)
