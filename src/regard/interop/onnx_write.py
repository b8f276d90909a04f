"""Writing the graphs of a model as ONNX, and trying them in onnxruntime before anything is kept."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.context import real_tokens
from regard.errors import NumericError, UsageError
from regard.interop.onnx_graph import BATCH, Graph, Graphs

NEEDED = ("onnx", "onnxscript", "onnxruntime")
STEPS = 4  # that a step graph is tried for
FARTHEST = 1e-4  # from the model's own answers, of the size of the largest where that is above 1


def require_onnx() -> None:
    """Refuse where the packages are missing."""
    for name in NEEDED:
        try:
            importlib.import_module(name)
        except ImportError:
            raise UsageError(f"--to onnx needs {name}: pip install 'regard[export]'") from None


def write_graph(graph: Graph, path: Path) -> None:
    """The file of one graph."""
    try:
        with torch.no_grad(), _quiet():
            program: Any = torch.onnx.export(
                graph.module.eval(),
                tuple(graph.inputs.values()),
                dynamo=True,
                input_names=list(graph.inputs),
                output_names=graph.outputs,
                dynamic_shapes=_shapes(graph),
                verbose=False,
            )
    except Exception as error:
        reason = " ".join(str(error.__cause__ or error).split())
        raise UsageError(f"{path.name}: torch makes no ONNX graph of it: {reason[:240]}") from error
    program.save(path)


def _shapes(graph: Graph) -> dict[str, Any]:
    """Axes by the arguments of the module, of which the last may stand for all others."""
    axes = [graph.axes[name] for name in graph.inputs]
    parameters = inspect.signature(graph.module.forward).parameters.values()
    found: dict[str, Any] = {}
    for number, parameter in enumerate(parameters):
        if parameter.kind is parameter.VAR_POSITIONAL:
            found[parameter.name] = tuple(axes[number:])
        elif number < len(axes):
            found[parameter.name] = axes[number]
    return found


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch says to those who develop it."""
    named = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "torch.export", "onnx_ir")]
    before = [one.level for one in named]
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for one in named:
            one.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for one, level in zip(named, before, strict=True):
                one.setLevel(level)


class Session:
    """A file in onnxruntime: tensors in by name, tensors out by name."""

    def __init__(self, path: Path) -> None:
        runtime: Any = importlib.import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.log_severity_level = 3  # errors alone
        options.intra_op_num_threads = 1
        self._inner = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = {one.name: one.shape for one in self._inner.get_inputs()}
        self.outputs = [one.name for one in self._inner.get_outputs()]

    def __call__(self, **given: np.ndarray) -> dict[str, np.ndarray]:
        wanted = {name: given[name] for name in self.inputs}
        return dict(zip(self.outputs, self._inner.run(None, wanted), strict=True))


def largest_difference(graphs: Graphs, folder: Path) -> float:
    """How far what onnxruntime computes is from the model, at most, over a few steps or of a whole input.

    Once with the inputs that the graph was made with, once with one row of them, and with shorter and longer texts,
    which it was not.
    """
    found = 0.0
    first = graphs.graphs[0]
    sessions = {graph.name: Session(folder / f"{graph.name}.onnx") for graph in graphs.graphs}
    for graph in graphs.graphs:
        _require_any_size(graph, sessions[graph.name])
    for given in (first.inputs, {name: tensor[:1] for name, tensor in first.inputs.items()}, *first.others):
        if "step" in graphs.named:
            found = max(found, *_stepped(graphs, sessions, given))
        else:
            found = max(found, _at_once(first, sessions[first.name], given))
    if not found <= FARTHEST:
        raise NumericError(f"{folder.name}: the ONNX graph differs from the model by {found:.1e}, above {FARTHEST}")
    return found


def facts_of(graphs: Graphs) -> dict[str, Any]:
    """What programs have to know of the graphs, as JSON."""
    files = {
        f"{graph.name}.onnx": {
            "inputs": {
                name: {"type": str(tensor.dtype).removeprefix("torch."), "shape": _sizes(graph, name)}
                for name, tensor in graph.inputs.items()
            },
            "outputs": graph.outputs,
        }
        for graph in graphs.graphs
    }
    carried = {"next.": "state."} if "step" in graphs.named else {}
    return {"graphs": files, "carried": carried, "room": graphs.room}


def _sizes(graph: Graph, name: str) -> list[int | str]:
    return [graph.axes[name].get(axis, size) for axis, size in enumerate(graph.inputs[name].shape)]


def _at_once(graph: Graph, session: Session, given: dict[str, Tensor]) -> float:
    with torch.no_grad():
        expected: Tensor = graph.own(*given.values())
    found = session(**_arrays(given))[graph.outputs[0]]
    if "lengths" in given and expected.dim() == 3:  # what stands after the end of a text means nothing
        real = real_tokens(given["lengths"], expected)
        found, expected = found[real.numpy()], expected[real]
    return _apart(found, expected)


def _stepped(graphs: Graphs, sessions: dict[str, Session], given: dict[str, Tensor]) -> Iterator[float]:
    """Of the state before any token, and of the logits after each step."""
    start, step = graphs.named["start"], graphs.named["step"]
    begun, going = sessions["start"], sessions["step"]
    rows = len(next(iter(given.values())))
    state = begun(**_arrays(given))
    with torch.no_grad():
        own: list[Tensor] = list(start.own(*given.values()))
        yield max([0.0, *(_apart(state[name], tensor) for name, tensor in zip(start.outputs, own, strict=True))])
        for number in range(STEPS):
            tokens = step.inputs["tokens"][:rows].roll(number)
            logits, *own = step.own(tokens, *own)
            told = going(tokens=tokens.numpy(), **state)
            yield _apart(told["logits"], logits)
            state = {name.replace("next", "state", 1): value for name, value in told.items() if name != "logits"}


def _arrays(given: dict[str, Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in given.items()}


def _require_any_size(graph: Graph, session: Session) -> None:
    """A batch that torch took for a constant is no batch."""
    for name, shape in session.inputs.items():
        if BATCH in graph.axes[name].values() and isinstance(shape[0], int):
            raise UsageError(f"{graph.name}.onnx: {name}: the graph has {shape[0]} rows, which were to be any number")


def _apart(found: np.ndarray, expected: Tensor) -> float:
    """The largest difference, of the size of the largest number where that is above 1."""
    if expected.shape != found.shape:
        return float("inf")
    if not expected.numel():
        return 0.0
    wanted = expected.double().numpy()
    apart = float(np.abs(found - wanted).max() / max(1.0, np.abs(wanted).max()))
    return apart if np.isfinite(apart) else float("inf")
