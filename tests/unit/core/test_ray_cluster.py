"""Whether a Ray cluster is still there is asked of its head, without Ray."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest

from regard.core import ray_workers
from regard.core.ray_workers import Cluster
from regard.errors import ResourceError


def test_a_cluster_whose_head_is_gone_is_given_up_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(ray_workers, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with socket.create_server(("127.0.0.1", 0)) as head:
        host, port = head.getsockname()
        context = SimpleNamespace(gcs_address=f"{host}:{port}")
        cluster = Cluster(SimpleNamespace(get_runtime_context=lambda: context))
        now[0] = 100.0
        cluster.require()
    now[0] = 110.0
    cluster.require()  # it may be about to come back
    now[0] = 100.0 + ray_workers.GONE + 1
    with pytest.raises(ResourceError, match=f"the cluster at {host}:{port} is gone"):
        cluster.require()
    assert cluster.is_gone
