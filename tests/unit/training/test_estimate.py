"""The estimate that stands before every allocation."""

from __future__ import annotations

import subprocess
import sys

import pytest

from regard.core.registry import entry, names
from regard.errors import ResourceError
from regard.training.estimate import Estimate, count_parameters, estimate, on_meta, refuse_too_large


@pytest.mark.parametrize("name", names())
def test_parameters_counted_without_allocating_are_those_of_the_model(name: str):
    config = entry(name).config(50, "tiny")
    shapes = on_meta(config)
    assert {parameter.device.type for parameter in shapes.parameters()} <= {"meta"}
    assert all(buffer.device.type == "meta" for buffer in shapes.buffers())
    assert count_parameters(shapes) == count_parameters(config.build())


def test_counting_every_model_does_without_the_compiler_of_torch():
    """torch._dynamo takes two seconds to import, which `regard list` would wait for."""
    program = (
        "import sys; from regard.run import catalogue; catalogue.models(); sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=120).returncode == 0


def test_a_billion_parameters_cost_no_memory_to_count():
    config = entry("gpt").config(50_000, "paper", d_model=8192, n_heads=64)
    need = estimate(config, batch_size=8, length=1024)
    assert need.parameters > 9e9
    assert need.weights == need.gradients == 4 * need.parameters
    assert need.optimiser == 8 * need.parameters


def test_what_does_not_fit_is_refused_with_the_setting_to_lower():
    heavy = Estimate(10**9, 4 * 10**9, 4 * 10**9, 8 * 10**9, 10**9)
    with pytest.raises(ResourceError, match="smaller --size"):
        refuse_too_large(heavy, 10**9, batch_size=8, length=64)
    wide = Estimate(10**6, 4 * 10**6, 4 * 10**6, 8 * 10**6, 10**10)
    with pytest.raises(ResourceError, match=r"train\.batch_size=8"):
        refuse_too_large(wide, 10**9, batch_size=8, length=64)
    refuse_too_large(wide, 10**12, batch_size=8, length=64)
