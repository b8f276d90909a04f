"""The bytes of a GGUF file, a tensor at a time; what is in one: `gguf_file.py`."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from regard.errors import UsageError
from regard.interop.gguf_file import ALIGNMENT, ARRAY, BOOL, MAGIC, STRING
from regard.storage.tensors import Form

VERSION = 3
WHOLE, NUMBER = 4, 6  # types of values: uint32, float32
SIGNED = 5  # of lists
SINGLE, HALF = 0, 1  # types of tensors


class NamedTensors(Protocol):
    def __getitem__(self, name: str, /) -> Tensor: ...


def gguf_chunks(
    facts: Mapping[str, Any], forms: Mapping[str, Form], tensors: NamedTensors, *, half: bool
) -> Iterator[bytes]:
    """facts: keys and values. forms: of the tensors. half: matrices in 16 bits; vectors keep 32, as llama.cpp wants."""
    yield MAGIC + struct.pack("<IQQ", VERSION, len(forms), len(facts))
    for key, value in facts.items():
        yield _string(key) + _value(value)
    start, described = 0, []
    for name, form in forms.items():
        narrow = half and len(form.shape) > 1
        dimensions = struct.pack(f"<I{len(form.shape)}Q", len(form.shape), *reversed(form.shape))
        described.append(_string(name) + dimensions + struct.pack("<IQ", HALF if narrow else SINGLE, start))
        start += _padded(form.nbytes // (2 if narrow else 1))
    header = b"".join(described)
    yield header
    size = 4 + 20 + sum(len(_string(key) + _value(value)) for key, value in facts.items()) + len(header)
    yield b"\0" * (_padded(size) - size)
    for name, form in forms.items():
        narrow = half and len(form.shape) > 1
        tensor = tensors[name].to(torch.float16 if narrow else torch.float32)
        if narrow and not bool(tensor.isfinite().all()):
            most = torch.finfo(torch.float16).max
            raise UsageError(f"--half: {name} has numbers above {most:,.0f}, the largest of 16 bits; leave it out")
        numbers = tensor.contiguous().numpy().tobytes()
        yield numbers
        yield b"\0" * (_padded(len(numbers)) - len(numbers))


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: Any) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<I?", BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", WHOLE, value)
    if isinstance(value, float):
        return struct.pack("<If", NUMBER, value)
    if isinstance(value, str):
        return struct.pack("<I", STRING) + _string(value)
    first = value[0] if value else ""
    if isinstance(first, str):
        return struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(map(_string, value))
    kind, dtype = (SIGNED, "<i4") if isinstance(first, int) else (NUMBER, "<f4")
    return struct.pack("<IIQ", ARRAY, kind, len(value)) + np.array(value, dtype).tobytes()
