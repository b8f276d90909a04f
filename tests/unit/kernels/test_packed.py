"""Products by copies of matrices are torch's own, and the copies are those of the weights as they are now."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from regard.core import registry
from regard.decoding.ending import Limits
from regard.decoding.generate import PACKING_REPAYS, generate
from regard.decoding.logits_processing import GREEDY
from regard.kernels import packed
from regard.kernels.packed import packed_weights
from regard.layers.head import LinearHead
from regard.layers.linear import Linear
from regard.training.optimiser import Optimiser
from regard.training.settings import TrainSettings

needs_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="no oneDNN")


@pytest.fixture(autouse=True)
def _small_matrices_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "SMALLEST", 1)


@needs_onednn
@torch.no_grad()
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [1, 5, 16])
@pytest.mark.parametrize(("wide", "many"), [(48, 33), (33, 48), (7, 1)])
def test_a_product_by_a_copy_is_torchs_own(wide: int, many: int, rows: int, bias: bool) -> None:
    for part in (Linear(wide, many, bias=bias), LinearHead(wide, many, bias=bias)):
        for x in (torch.randn(rows, wide), torch.randn(rows, 3, wide), torch.randn(rows, 2, wide)[:, -1]):
            exact = torch.nn.functional.linear(x.double(), part.weight.double(), part.bias.double() if bias else None)
            with packed_weights(part, rows):
                assert part.packed is not None
                torch.testing.assert_close(part(x).double(), exact, rtol=1e-5, atol=1e-5)
            assert part.packed is None


@needs_onednn
@torch.no_grad()
def test_a_weight_that_has_changed_is_copied_again_and_one_that_has_not_is_not() -> None:
    part, x = Linear(8, 12), torch.randn(1, 8)
    with packed_weights(part, 1):
        first = part.packed
    with packed_weights(part, 1):
        assert part.packed is first
    part.weight.mul_(2)
    with packed_weights(part, 1):
        assert part.packed is not first
        torch.testing.assert_close(part(x), torch.nn.functional.linear(x, part.weight, part.bias))


@needs_onednn
def test_a_step_of_training_is_a_change() -> None:
    part, x = Linear(8, 12), torch.randn(1, 8)
    trained = Optimiser(part, TrainSettings())
    for _ in range(3):
        with packed_weights(part, 1), torch.no_grad():
            torch.testing.assert_close(part(x), torch.nn.functional.linear(x, part.weight, part.bias))
        part(x).sum().backward()
        trained.step(0.1)


@needs_onednn
def test_contexts_may_overlap_and_gradients_pass_by_the_copy() -> None:
    part, x = Linear(8, 12), torch.randn(2, 8)
    with packed_weights(part, 1):
        with packed_weights(part, 16):
            used = part.packed
        assert used is not None
        assert part.packed is used
        assert part(x).requires_grad
        assert not used.takes(x)
        with torch.no_grad():
            assert used.takes(x)
            assert not used.takes(x.double())
            with torch.autocast("cpu", torch.bfloat16):
                assert not used.takes(x)
    assert part.packed is None


@needs_onednn
@torch.no_grad()
def test_what_a_copy_cannot_be_multiplied_with_is_torchs() -> None:
    part, x = Linear(8, 12), torch.randn(2, 8, dtype=torch.complex64).conj().imag
    with packed_weights(part, 16):
        assert part.packed is not None
        torch.testing.assert_close(part(x), torch.nn.functional.linear(x, part.weight, part.bias))
        rows = torch.func.vmap(lambda row: part(row))(x)
        torch.testing.assert_close(rows, torch.nn.functional.linear(x, part.weight, part.bias))
        for width in (7, 900):
            with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
                part(torch.randn(2, width))


@needs_onednn
@torch.no_grad()
@pytest.mark.parametrize("rows", [1, 16])
def test_bfloat16_is_copied_where_the_processor_multiplies_it(rows: int) -> None:
    part, x = Linear(48, 33).bfloat16(), torch.randn(rows, 48).bfloat16()
    exact = torch.nn.functional.linear(x.double(), part.weight.double(), part.bias.double())
    with packed_weights(part, rows):
        assert bool(part.packed) == packed._has_bfloat16()
        torch.testing.assert_close(part(x).double(), exact, rtol=2**-8, atol=2**-8)


def test_what_is_too_large_or_of_another_type_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = Linear(8, 12).double()
    with packed_weights(wide, 1):
        assert wide.packed is None
    large = Linear(8, 12)
    monkeypatch.setattr(packed, "MOST_BYTES", large.weight.nbytes - 1)
    with packed_weights(large, 1):
        assert large.packed is None


@needs_onednn
@pytest.mark.parametrize("batch", [1, 3])
def test_texts_by_copies_are_the_same_texts(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = registry.build("gpt", vocab_size=29, size="tiny").eval()
    prompts = [torch.randint(29, (5,)) for _ in range(batch)]
    seen: list[bool] = []
    product = packed.Packed.product

    def watched(self: packed.Packed, x: Tensor, bias: Tensor | None) -> Tensor:
        seen.append(True)
        return product(self, x, bias)

    monkeypatch.setattr(packed.Packed, "product", watched)
    long = generate(model, prompts, limits=Limits(PACKING_REPAYS), settings=GREEDY)
    assert seen
    seen.clear()
    short = generate(model, prompts, limits=Limits(PACKING_REPAYS - 1), settings=GREEDY)
    assert not seen
    assert [one.tokens[:-1] for one in long] == [one.tokens for one in short]
