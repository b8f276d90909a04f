"""Rotary positions from the beginning, whose angles are kept, and from anywhere, in complex and in real numbers."""

from __future__ import annotations

import threading

import pytest
import torch

from regard.layers import position
from regard.layers.position import kept_turns, rotate
from regard.training.flops import Counter


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_from_the_beginning_is_from_position_0(dtype):
    x = torch.randn(2, 7, 3, 8).to(dtype)
    for _ in range(2):  # computed, then read
        assert torch.equal(rotate(x), rotate(x, torch.arange(7)[None]))


def test_real_numbers_turn_as_complex_ones_do(monkeypatch):
    x = torch.randn(2, 7, 3, 8, dtype=torch.float64, requires_grad=True)
    g, found = torch.randn(2, 7, 3, 8, dtype=torch.float64), []
    for compiling in (False, True):
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda value=compiling: value)
        y = rotate(x, torch.arange(5, 12)[None])
        found.append((y, *torch.autograd.grad(y, x, g)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-14, atol=1e-14)


def test_what_is_compiled_does_not_depend_on_what_is_kept(monkeypatch):
    x = torch.randn(1, 6, 1, 8)
    expected = rotate(x)
    wrong = torch.full((1, 6, 1, 4), float("nan"))
    monkeypatch.setattr(position, "_kept", dict.fromkeys(position._kept, (wrong, wrong)))
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    torch.testing.assert_close(rotate(x), expected)


def test_what_is_kept_is_bounded_and_may_be_made_without_gradients():
    position._kept.clear()
    with torch.inference_mode():
        rotate(torch.randn(1, 4, 1, 6))
    x = torch.randn(1, 4, 1, 6, requires_grad=True)
    rotate(x).sum().backward()
    assert x.grad is not None
    for length in range(1, 40):
        rotate(torch.randn(1, length, 1, 6))
    assert len(position._kept) == position.MOST_KEPT


class Interrupted(dict):
    """A full dictionary, in which another thread wants to keep angles just as something is about to be thrown out."""

    def __init__(self):
        super().__init__()
        self.others = []

    def interrupt(self):
        if len(self) >= position.MOST_KEPT and not self.others:
            self.others.append(threading.Thread(target=rotate, args=(torch.randn(1, 60, 1, 6),)))
            self.others[0].start()
            self.others[0].join(0.2)  # it is done, or waits for us

    def pop(self, *given):
        self.interrupt()
        return super().pop(*given)

    def __delitem__(self, key):
        self.interrupt()
        super().__delitem__(key)


def test_two_threads_keep_angles_one_after_the_other(monkeypatch):
    kept = Interrupted()
    monkeypatch.setattr(position, "_kept", kept)
    for length in range(1, 20):
        rotate(torch.randn(1, length, 1, 6))
    kept.others.pop().join()
    assert len(kept) == position.MOST_KEPT
    assert 60 in {key[0] for key in kept}


def test_angles_that_are_used_stay_and_others_go():
    position._kept.clear()
    rotate(torch.randn(1, 3, 1, 6))
    # Other threads of the process may rotate too.
    mine = next(cosine for (length, width, *_), (cosine, _) in position._kept.items() if (length, width) == (3, 6))
    for length in range(4, 40):
        rotate(torch.randn(1, length, 1, 6))
        rotate(torch.randn(1, 3, 1, 6))
    assert any(mine is cosine for cosine, _ in kept_turns(torch.device("cpu")))


def test_operations_are_counted_alike_whether_or_not_angles_are_kept():
    position._kept.clear()
    totals = []
    for _ in range(2):
        with Counter() as counter:
            rotate(torch.randn(2, 5, 2, 8))
        totals.append(counter.total)
    assert totals[0] == totals[1]
