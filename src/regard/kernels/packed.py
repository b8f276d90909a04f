"""Packed matrices: y = x W^T + b on a CPU from a copy of W that lies in the order in which it is read.

torch's product reads W row by row, which for few rows of x reaches half of what memory gives, and for some rows a
third of what oneDNN does. All products of a step of GPT-2's size, in ms on two busy cores, each the tenth
percentile of repeated calls:

                                        1 row    16 rows
    torch.nn.functional.linear           53       155
    W^T with its rows end to end         33       166
    oneDNN's blocks, made for the rows   40        56

Where there is a C compiler, few rows of float32 are multiplied without a copy and as fast (decode_cpu.py), and
attention of one token is compiled for any number of rows. There, and where vectors have 512 bits, panels made for
compiled products (product.py) stand in for oneDNN's blocks: 13.5 ms for 16 rows on two free cores on which those take
14.8. In bfloat16, where the processor multiplies such numbers,
oneDNN's blocks take 8 ms for 1 row and 11 ms for 16, on two free cores on which those of float32 take 14 and 18.

Copies are as large as the matrices. They stand beside them as long as these live and do not change, so that the next
text finds them; a model whose copies were larger than MOST_BYTES is used as it is. All forms are equal up to the
rounding of their numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from regard.kernels import decode_cpu
from regard.kernels.compiled import library
from regard.kernels.compiled_call import are_plain
from regard.kernels.decode_cpu import FEW_ROWS, Compiled, CompiledAttention, Step
from regard.kernels.product import by_panels, fit, has_wide_vectors, panels_of

SMALLEST = 1 << 18  # weights, below which a matrix stays near the processor anyhow
MOST_BYTES = 4 << 30
LARGE = 1 << 25  # bytes of matrices from which on compiling pays


Form = Literal["turned", "blocks", "panels"]


@dataclass(frozen=True)
class Packed:
    """A copy of W (N, K): W^T, blocks that oneDNN alone can read, or panels for compiled products.

    version  of the matrix that was copied.
    """

    copy: Tensor
    form: Form
    size: tuple[int, int]
    version: tuple[int, int]

    def takes(self, x: Tensor, bias: Tensor | None = None) -> bool:
        """Whether a product with x has no use for gradients and for other number types."""
        if torch.is_grad_enabled() or torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
            return False
        if self.form == "panels" and not (are_plain(x, bias) and fit(x, self.size, bias)):
            return False
        return x.dtype == self.copy.dtype and x.device.type == "cpu" and x.numel() > 0

    def product(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """x W^T + b (..., N) of x (..., K)."""
        rows = x.reshape(-1, x.shape[-1])
        if self.form == "panels":
            y = by_panels(rows, self.copy, bias, self.size[0])
        elif self.form == "blocks":
            y = torch.ops.mkldnn._linear_pointwise(rows, self.copy, bias, "none", [], "")
        else:
            y = torch.mm(rows, self.copy) if bias is None else torch.addmm(bias, rows, self.copy)
        return y.view(*x.shape[:-1], y.shape[-1])


class PackedLinear(Compiled, nn.Linear):
    """A linear map that multiplies by compiled code, or by the copy of its weight, while there is one."""

    packed: Packed | None = None

    def to_step(self) -> Step | None:
        return decode_cpu.linear(self.weight, self.bias)

    def by_copy(self, x: Tensor) -> Tensor | None:
        """x W^T + b, where compiled code or a copy takes x."""
        y = None if self.compiled is None else self.compiled(x)
        if y is not None:
            return y
        taken = self.packed is not None and self.packed.takes(x, self.bias)
        return self.packed.product(x, self.bias) if self.packed is not None and taken else None


_copies: WeakIdKeyDictionary = WeakIdKeyDictionary()
_users: WeakIdKeyDictionary = WeakIdKeyDictionary()
_lock = threading.Lock()


@contextmanager
def packed_weights(model: object, rows: int, *, copies: bool = True) -> Iterator[None]:
    """Within the context the large matrices of a model on a CPU are read by compiled code, or from copies made for so
    many rows. copies: whether making these pays.

    Contexts of one model may overlap: the copies are those of the first, and are used until the last has ended.
    """
    if not isinstance(model, nn.Module):
        yield
        return
    with _lock:
        users = _users.get(model) or 0
        if not users:
            _use_copies(model, rows, copies)
        _users[model] = users + 1
    try:
        yield
    finally:
        with _lock:
            _users[model] -= 1
            if not _users[model]:
                for part in model.modules():
                    if isinstance(part, Compiled):
                        part.compiled = None
                for part in _parts(model):
                    part.packed = None


def _use_copies(model: nn.Module, rows: int, copies: bool) -> None:
    if is_large(model) and library() is not None:
        # Attention of one token is compiled for any number of rows: torch's takes seven times as long over a mask.
        for part in model.modules():
            if isinstance(part, CompiledAttention) or (isinstance(part, Compiled) and rows <= FEW_ROWS):
                _compile(part)
        copies = copies and (rows > FEW_ROWS or any(part.weight.dtype == torch.bfloat16 for part in _parts(model)))
    if not copies:
        return
    parts = [part for part in _parts(model) if _is_taken(part.weight)]
    weights = {id(part.weight): part.weight for part in parts}
    if sum(weight.nbytes for weight in weights.values()) > MOST_BYTES:
        return
    for part in parts:
        part.packed = packed(part.weight, rows)


def _compile(part: Compiled) -> None:
    part.compiled = part.to_step()


def is_large(model: nn.Module) -> bool:
    """Whether a step of a model on a CPU reads so much that compiling its parts pays."""
    tensors = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}.values()
    return sum(tensor.nbytes for tensor in tensors if tensor.dim() > 1 and tensor.device.type == "cpu") >= LARGE


def packed(weight: Tensor, rows: int) -> Packed:
    """The copy of a matrix (N, K) that is fastest for so many rows, made once."""
    version = (weight._version, weight.data_ptr())
    form = _best_form(weight, rows)
    found = _copies.get(weight)
    if found is not None and found.version == version and found.form == form:
        return found
    with torch.no_grad():
        _copies[weight] = found = Packed(
            _copy(weight.detach(), form, rows), form, (len(weight), weight.shape[1]), version
        )
    return found


def _best_form(weight: Tensor, rows: int) -> Form:
    if weight.dtype == torch.float32 and has_wide_vectors() and library() is not None:
        return "panels"
    few = rows == 1 and weight.shape[0] >= weight.shape[1] and weight.dtype != torch.bfloat16
    return "turned" if few else "blocks"


def _copy(matrix: Tensor, form: Form, rows: int) -> Tensor:
    if form == "panels":
        return panels_of(matrix)
    return matrix.t().contiguous() if form == "turned" else torch.ops.mkldnn._reorder_linear_weight(matrix, rows)


def _parts(model: nn.Module) -> list[PackedLinear]:
    """Those that have weights of their own."""
    return [part for part in model.modules() if isinstance(part, PackedLinear) and "weight" in part._parameters]


def _is_taken(weight: Tensor) -> bool:
    multiplied = weight.dtype == torch.float32 or (weight.dtype == torch.bfloat16 and _has_bfloat16())
    plain = weight.device.type == "cpu" and multiplied and weight.is_contiguous()
    # Without a version nobody would know that the numbers have changed.
    whole = type(weight) in (Tensor, nn.Parameter) and not weight.is_inference()
    return plain and whole and weight.numel() >= SMALLEST and torch.backends.mkldnn.is_available()


def _has_bfloat16() -> bool:
    """Whether this processor multiplies numbers of bfloat16 by itself."""
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
