"""Seeds of studies measured ahead, side by side, while the results are taken in the order of the studies."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from regard.errors import ResourceError
from regard.studies.pool.pool import ATTEMPTS, Ended, Failed, Job, Pool


class Ahead:
    """Jobs under way in a pool, in their order as there is room; `result` waits for one of them."""

    def __init__(self, pool: Pool, jobs: Mapping[Hashable, Job]) -> None:
        self.pool, self.jobs = pool, dict(jobs)
        self.waiting, self.ended, self.lost = list(jobs), dict[Hashable, Ended](), dict[Hashable, int]()

    def result(self, key: Hashable) -> Any:
        """What a job gave; raises what it failed with."""
        while key not in self.ended:
            while self.waiting and self.pool.room:
                following = self.waiting.pop(0)
                self.pool.submit(following, self.jobs[following])
            for ended in self.pool.wait(lambda *_: None):
                self._heed(ended)
        ended = self.ended[key]
        if ended.how == "done":
            return ended.result
        raise Failed(ended.text, ended.code)

    def _heed(self, ended: Ended) -> None:
        if ended.how == "lost":
            self.lost[ended.key] = self.lost.get(ended.key, 0) + 1
            if self.lost[ended.key] < ATTEMPTS:
                self.waiting.insert(0, ended.key)
                return
            text = f"a worker was lost {ATTEMPTS} times ({ended.text})"
            ended = Ended(ended.key, "failed", text=text, code=ResourceError.exit_code)
        self.ended[ended.key] = ended


class Called:
    """A job that calls a function of a module with values, and tells nothing meanwhile."""

    def __init__(self, function: Callable[..., Any], *given: Any) -> None:
        self.function, self.given = function, given

    def __call__(self, tell: Callable[[Any], None]) -> Any:
        return self.function(*self.given)
