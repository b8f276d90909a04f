"""Single files: whole under their name or not there, and nothing of a killed writer beside them."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from regard.storage import disk


def test_the_temporary_file_of_a_killed_writer_is_removed_and_that_of_a_living_one_never(tmp_path: Path):
    dead, alive, other = (tmp_path / f".tmp-{name}" for name in ("1-page.html", "2-page.html", "3-else.html"))
    for path in (dead, alive, other):
        path.write_text("half")
    held = os.open(alive, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    disk.publish(tmp_path / "page.html", [b"whole"])
    os.close(held)
    assert sorted(os.listdir(tmp_path)) == [alive.name, other.name, "page.html"]
    assert (tmp_path / "page.html").read_bytes() == b"whole"
