"""The bare training loop of the studies, and the probe that it fits."""

from __future__ import annotations

import torch

from regard.studies.claims.fitting import LinearProbe, accuracy, fit


def test_a_linear_probe_tells_classes_that_a_line_parts_and_guesses_where_nothing_does():
    draw = torch.Generator().manual_seed(0)
    classes = torch.randint(2, (400,), generator=draw)
    noise = torch.randn(400, 4, generator=draw)
    told = noise + torch.nn.functional.one_hot(classes, 4) * 8.0
    for vectors, right in ((told, 1.0), (noise, 0.5)):
        for is_normed in (False, True):
            torch.manual_seed(0)
            probe = LinearProbe(4, 2, is_normed=is_normed)
            fit(probe, lambda _, given=vectors: (given[:200], classes[:200]), 100, 0.05)
            assert abs(accuracy(probe, vectors[200:], classes[200:]) - right) < 0.1
