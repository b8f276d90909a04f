"""The machine under an experiment: what its numbers may depend on, and the memory it had to give."""

from __future__ import annotations

import gc
import platform
import re
from pathlib import Path


def versions() -> dict[str, str]:
    """What the numbers may depend on."""
    import torch

    from regard.core.version import __version__

    name = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()
    return {
        "regard": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": name,
        "threads": str(torch.get_num_threads()),
    }


class Peak:
    """The most memory that this process had since `start`, in bytes; None where the system does not tell."""

    def __init__(self, device: str) -> None:
        self.on_gpu = device.startswith("cuda")

    def start(self) -> None:
        """Forget what was before."""
        gc.collect()
        if self.on_gpu:
            import torch

            torch.cuda.reset_peak_memory_stats()
            return
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            return

    def read(self) -> int | None:
        if self.on_gpu:
            import torch

            return torch.cuda.max_memory_allocated()
        try:
            found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        except OSError:
            return None
        return int(found[1]) * 1024 if found else None
