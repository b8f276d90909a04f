"""Linear maps in 8 bits: y = x W^T with x and W rounded to e4m3, and gradients to e5m2, for GPUs that multiply these.

    q(x) = round_8bit(x / s),  s = max |x| / largest_8bit        one scale for the whole tensor, taken from it as it is
    y    = s_x s_W q(x) q(W)^T                                   added up in float32, given in bfloat16
    d_x  = s_g s_W q(g) q(W),    d_W = s_g s_x q(g)^T q(x)       g the gradient of y

e4m3 has three bits of fraction and reaches 448, e5m2 has two and reaches 57,344 (Micikevicius et al. 2022). Products of
sizes that the units do not take, and all products in evaluation, stay in bfloat16.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

DEVICES = ("cuda",)
FORWARD, BACKWARD = torch.float8_e4m3fn, torch.float8_e5m2
# Sizes of matrices are multiples of it.
MULTIPLE = 16
# Below this many weights rounding costs more time than the product saves.
SMALLEST = 1 << 18


def quantised(x: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """x in 8 bits and the scale, in float32, by which it is to be multiplied."""
    scale = (x.abs().amax().float() / torch.finfo(dtype).max).clamp(min=1e-12)
    return (x.float() / scale).to(dtype), scale


def product(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, exact: bool = False) -> Tensor:
    """a b^T (n, m) in bfloat16 of a (n, k) and b (m, k), both in 8 bits with rows end to end.

    exact: add up in float32 all along, which gradients want.
    """
    options = {"out_dtype": torch.bfloat16, "use_fast_accum": not exact}
    return torch._scaled_mm(a, b.t(), scale_a, scale_b, **options)  # pyright: ignore[reportPrivateImportUsage]


def product_readable(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, **_: bool) -> Tensor:
    """The same added up in float32, on any device."""
    return ((a.float() * scale_a) @ (b.float() * scale_b).t()).bfloat16()


class _Fp8Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor) -> Tensor:
        x_8, scale_x = quantised(x, FORWARD)
        weight_8, scale_w = quantised(weight, FORWARD)
        ctx.save_for_backward(x_8, scale_x, weight_8, scale_w)
        return product(x_8, weight_8, scale_x, scale_w)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        x_8, scale_x, weight_8, scale_w = ctx.saved_tensors
        g, scale_g = quantised(gradients[0].contiguous(), BACKWARD)
        d_x = product(g, weight_8.t().contiguous(), scale_g, scale_w, exact=True)
        d_weight = product(g.t().contiguous(), x_8.t().contiguous(), scale_g, scale_x, exact=True)
        return d_x, d_weight


def fp8_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b (..., m) in bfloat16 of x (..., k) and W (m, k)."""
    rows = x.reshape(-1, x.shape[-1]).bfloat16()
    y = _Fp8Linear.apply(rows, weight.bfloat16())
    y = y.reshape(*x.shape[:-1], len(weight))  # pyright: ignore[reportAttributeAccessIssue]
    return y if bias is None else y + bias.to(y.dtype)


def fp8_product(self: nn.Linear, x: Tensor) -> Tensor:
    """The product of a linear map: in 8 bits while it is trained."""
    n_rows = x.numel() // max(1, x.shape[-1])
    is_training = self.training and torch.is_grad_enabled()
    if not is_training or x.device.type not in DEVICES or n_rows % MULTIPLE or not n_rows:
        return F.linear(x, self.weight, self.bias)
    return fp8_linear(x, self.weight, self.bias)


@cache
def with_fp8(kind: type[nn.Linear]) -> type[nn.Linear]:
    """The class of linear maps whose products are in 8 bits; one that has its product apart keeps all else."""
    method = "product" if hasattr(kind, "product") else "forward"
    return type(f"Fp8{kind.__name__}", (kind,), {method: fp8_product})


def fp8_maps(model: nn.Module) -> list[nn.Linear]:
    """The linear maps of a model that are large enough, and of sizes that the units take.

    A head with a class of its own is none of them: its loss has its own products.
    """
    return [part for part in model.modules() if isinstance(part, nn.Linear) and _is_taken(part)]


@contextmanager
def fp8_products(model: nn.Module) -> Iterator[int]:
    """Within the context the large linear maps of a model compute in 8 bits; how many they are is given."""
    maps = fp8_maps(model)
    kinds = [type(part) for part in maps]
    for part, kind in zip(maps, kinds, strict=True):
        part.__class__ = with_fp8(kind)
    try:
        yield len(maps)
    finally:
        for part, kind in zip(maps, kinds, strict=True):
            part.__class__ = kind


def _is_taken(part: nn.Linear) -> bool:
    own = type(part) is nn.Linear or hasattr(part, "product")
    whole = part.in_features % MULTIPLE == 0 and part.out_features % MULTIPLE == 0
    return own and whole and part.weight.numel() >= SMALLEST
