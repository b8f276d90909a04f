"""How a server is set up."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True)
class Settings:
    """paths       folders by the names of their runs.
    keys        any of which lets a client in; none: everybody is let in.
    rate        requests a minute of one key, or of one address where there are no keys; 0 for any number.
    queue       requests that may wait beside those in slots.
    max_tokens  tokens that a request may ask for at most.
    timeout     seconds that a request may take; drain: that a server which is told to end waits for those underway.
    memory, slots, chunk, precision, threads, device, idle, plugins  of the engine.
    """

    paths: dict[str, Path]
    host: str = "127.0.0.1"
    port: int = 8000
    keys: tuple[str, ...] = ()
    rate: int = 0
    queue: int = 256
    max_tokens: int = 4096
    timeout: float = 120.0
    drain: float = 30.0
    logs: bool = True
    logs_prompts: bool = False
    memory: int | None = None
    slots: int | None = None
    chunk: int = 256
    precision: str | None = None
    threads: int | None = None
    device: str = "auto"
    idle: float = 600.0
    plugins: list[str] = field(default_factory=list)

    @property
    def is_local(self) -> bool:
        """Whether nothing but this machine can reach it."""
        return self.host in LOOPBACK

    def of_engine(self) -> dict[str, Any]:
        """The first message of the engine."""
        names = ("memory", "slots", "chunk", "precision", "threads", "device", "idle", "plugins")
        told = {name: value for name, value in dataclasses.asdict(self).items() if name in names}
        return told | {"paths": {name: str(path.resolve()) for name, path in self.paths.items()}}
