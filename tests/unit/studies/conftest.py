"""The heap of the tests of comparisons."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="package", autouse=True)
def frozen_heap() -> Iterator[None]:
    """What is imported is not looked through again.

    Every training of a comparison begins and ends with a collection of garbage, 0.2 s each over the modules of torch: a
    quarter of the time of these tests.
    """
    importlib.import_module("torch._dynamo")  # as counting operations does

    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
