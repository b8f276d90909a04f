"""Workers: the same results in the same order from this process, from several, and from a Ray cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from regard.core.workers import Processes, ThisProcess, open_workers
from regard.errors import DataError, InputError, ResourceError, TooLong, UsageError


def squared(number: int) -> int:
    return number * number


def refused(number: int) -> int:
    raise DataError(f"file-{number} is empty") if number == 3 else TooLong("long", 5, 2)


def dies_once(mark: str, number: int) -> int:
    """Kills its own process at number 4 the first time that it gets there."""
    if number == 4 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    return number + 1


def dies(number: int) -> int:
    os._exit(number)


@pytest.fixture(scope="module")
def pool():
    with Processes(2) as workers:
        yield workers


def test_processes_give_what_this_process_gives_in_the_order_of_the_items(pool: Processes):
    assert list(pool.map(squared, range(20))) == list(ThisProcess().map(squared, range(20)))
    assert list(pool.map(squared, [])) == []


def test_few_items_are_under_way_at_a_time(pool: Processes):
    asked: list[int] = []

    def items():
        for number in range(100):
            asked.append(number)
            yield number

    results = pool.map(squared, items())
    assert next(results) == 0
    assert len(asked) <= 2 * pool.count
    results.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert list(pool.map(squared, [3])) == [9]


def test_a_failure_of_a_worker_is_raised_as_it_is(pool: Processes):
    with pytest.raises(DataError, match="file-3 is empty"):
        list(pool.map(refused, [3]))
    with pytest.raises(TooLong) as told:
        list(pool.map(refused, [1]))
    assert (told.value.most, told.value.fits) == (5, 2)


def test_an_error_of_several_words_goes_from_process_to_process():
    import pickle

    error = pickle.loads(pickle.dumps(InputError(2, "is empty")))
    assert (str(error), error.number) == ("input 3 is empty", 2)


def test_what_a_lost_worker_was_at_is_done_again(pool: Processes, tmp_path: Path):
    found = list(pool.map(partial(dies_once, str(tmp_path / "mark")), range(12)))
    assert found == list(range(1, 13))
    assert (tmp_path / "mark").exists()


def test_work_that_loses_every_worker_is_given_up_in_one_line(pool: Processes):
    with pytest.raises(ResourceError, match="lost 3 times"):
        list(pool.map(dies, [1]))


def test_processes_end_with_the_one_that_started_them(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, time\n"
        "from regard.core.workers import Processes\n"
        "workers = Processes(1)\n"  # without a guard: the script is not run again
        "print(next(workers.map(os.getpgid, [0])), *workers._pool._processes, flush=True)\n"
        "time.sleep(60)\n",
        encoding="utf-8",
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        worker = int(process.stdout.readline().split()[1])
        process.kill()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()


def test_a_count_that_is_none_and_a_cluster_that_is_none_are_refused():
    with pytest.raises(UsageError, match="from 1 to"):
        open_workers(0)
    pytest.importorskip("ray", reason="needs the package ray")
    with pytest.raises(UsageError, match="expected auto"):
        open_workers(ray="nowhere")
    with pytest.raises(ResourceError, match="does not answer"):
        open_workers(ray="127.0.0.1:1")


@pytest.mark.slow
def test_a_ray_cluster_gives_the_same(tmp_path: Path):
    ray = pytest.importorskip("ray", reason="needs the package ray")
    here = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    quiet = {"log_to_driver": False, "include_dashboard": False, "logging_level": "error"}
    ray.init(num_cpus=2, runtime_env=here, **quiet)
    try:
        with open_workers(ray="auto") as workers:
            assert workers.count == 2
            assert list(workers.map(squared, range(20))) == [number**2 for number in range(20)]
            assert list(workers.map(partial(dies_once, str(tmp_path / "mark")), range(6))) == list(range(1, 7))
            with pytest.raises(DataError, match="file-3 is empty"):
                list(workers.map(refused, [3]))
    finally:
        ray.shutdown()
