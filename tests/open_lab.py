"""A server of the page that answers while a test runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from regard.serving.lab import Lab
from regard.serving.provider import Provider


@contextmanager
def answering(provider: Provider) -> Iterator[Lab]:
    """The server of a provider, at any free port."""
    with Lab(provider) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
