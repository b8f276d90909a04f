"""Compare: which model fits the data, by a protocol that is the same for all (docs/compare.md)."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.core.device import device_named
from regard.core.plugin import typed_name
from regard.data.worlds import PREFIX, from_spec
from regard.errors import Stopped, UsageError
from regard.run.at_hand import Data, at_hand
from regard.run.recipe import read_recipe
from regard.run.settings import START, Layer, Origin, Settings, resolve, section_of
from regard.run.task_choice import with_task
from regard.storage import disk
from regard.storage.lock import only_writer
from regard.studies.board import Board, board_for
from regard.studies.comparison import Comparison, reported_before
from regard.studies.entrant import Size, common_size, count, entrants_for, modules_of, sized
from regard.studies.identity import TRACK
from regard.studies.ledger import KEPT, agreed, clear, read_kept, refuse_other
from regard.studies.measure import recall_bits
from regard.studies.pool.opening import SideBySide, opened
from regard.studies.pool.pool import Pool
from regard.studies.preflight import fitted_layers, refuse_full_disk, refuse_too_small
from regard.studies.protocol import (
    HAND,
    SLICE,
    SMALL_BATCH,
    TEST_SHARE,
    Protocol,
    is_short,
    seeds_for,
    suitable_size,
)
from regard.studies.race import Race
from regard.studies.readings import Readings, own_tokens, read, refuse_folds
from regard.studies.row import Row
from regard.studies.scaling import AT, SCALES
from regard.tasks import task_named
from regard.tasks.dataset import Dataset
from regard.training.interrupt import Interrupt
from regard.training.run_folder import refuse_file, weights_hash
from regard.training.track import refuse_absent

RUNS, SIZE = Path("runs"), "model.size"
# Of the comparison without data. Its budget is in steps, so that what it shows does not hang on the machine.
FIRST_DATA, FIRST_BUDGET, FIRST_BATCH, FIRST_SEEDS = "world:witness", "700 steps", 16, 1


def compare(
    models: Sequence[str] | None = None,
    data: Data | None = None,
    *,
    budget: str | None = None,
    seeds: int | None = None,
    size: str | None = None,
    out: str | Path | None = None,
    recipe: str | Path | None = None,
    force: bool = False,
    parameters: int | None = None,
    scaling: bool = False,
    folds: int = 1,
    workers: int | None = None,
    ray: str | None = None,
    quiet: bool = False,
    board: Board | None = None,
    layer: Layer | None = None,
    **settings: Any,
) -> Comparison:
    """Train several models on the same data under the same budget and rank them. What is told goes to stderr.

    models      names of `regard.model_names()`, also with settings as in "lstm?n_layers=3", or folders of runs to begin
                with, as in "runs/gpt2?lora=8"; None: the ladder of the task.
    data        what `regard.train` takes; None: world:witness, 700 steps of each model.
    budget      of each model, such as "1m" or "500steps".
    seeds       trainings of each model; a winner needs three.
    size        of all models; unless told, all have as many parameters as suit the budget.
    out         the folder; runs/compare-DATA unless told. A comparison that is there goes on; force: it begins anew.
    recipe      a TOML file of settings that hold for every model.
    parameters  how many every model has.
    scaling     each is trained at four sizes, and the report has the fitted curve of loss by size.
    folds       each of so many parts of the examples is held out in turn.
    workers     trainings side by side, each in a process of its own. ray: on the cluster at that address, or auto.
    quiet       tell nothing meanwhile. board: where it is told instead. layer: settings by their whole names.
    settings    others by their key, for every model: `tokens="words"`.
    """
    side_by_side = SideBySide(workers, ray)
    given = (dict(read_recipe(recipe)) if recipe is not None else {}) | (layer or {})
    if isinstance(models, str):
        raise UsageError(f"models: expected several names in a list, found {models!r}; give [{models!r}]")
    models = None if models is None else [typed_name(text) for text in models]
    with at_hand(data, "data") as path, at_hand(settings.get("valid"), "valid") as valid:
        settings |= {} if valid is None else {"valid": valid}
        named = {"data.path": path, SIZE: size}
        given |= {key: Origin(value, "argument") for key, value in named.items() if value is not None}
        given |= {section_of(key, "gpt"): Origin(value, "argument") for key, value in settings.items()}
        refuse_absent(str(given[TRACK].value) if TRACK in given else None)
        planned = _plan(given, models, Asked(budget, seeds, parameters, folds, SCALES if scaling else (1.0,)))
        return _raced(planned, out, force, board or board_for(sys.stderr, quiet=quiet), side_by_side)


@dataclass(frozen=True)
class _Planned:
    """scales: of each label, its part of the common size. shared: settings of every model.

    starts  the runs that models begin with, each with the hash of its weights.
    """

    protocol: Protocol
    layers: dict[str, Layer]
    scales: dict[str, float]
    shared: dict[str, Any]
    starts: dict[str, str]

    @property
    def settings(self) -> list[Settings]:
        return [resolve(layer) for layer in self.layers.values()]

    @property
    def device(self) -> str:
        return str(self.settings[0]["train.device"])


@dataclass(frozen=True)
class Asked:
    """What a person may ask of the protocol; None: as the budget allows. scales: parts of the common size."""

    budget: str | None = None
    seeds: int | None = None
    parameters: int | None = None
    folds: int = 1
    scales: Sequence[float] = (1.0,)


def _plan(given: Layer, models: Sequence[str] | None, asked: Asked) -> _Planned:
    """The task is told from the data, and every entrant is checked to fit it, before anything is read."""
    is_first = "data.path" not in given
    path = FIRST_DATA if is_first else str(given["data.path"].value)
    if path == "-":
        raise UsageError("a comparison reads its data several times: save standard input to a file first")
    given = given | {"data.path": Origin(_fixed(path), HAND)}
    plain = {key: origin for key, origin in given.items() if not key.startswith("model.") or key == SIZE}
    task = str(with_task(plain)["data.task"].value)
    entrants = entrants_for(task, models)
    refuse_folds(asked.folds, task, path, plain)
    budget = asked.budget or (FIRST_BUDGET if is_first else "1m")
    seeds = seeds_for(budget, FIRST_SEEDS if is_first and asked.seeds is None else asked.seeds, asked.folds)
    per_byte = own_tokens(task, {one.label: one.changes for one in entrants})
    protocol = Protocol(path, task, budget, seeds, SLICE, TEST_SHARE, asked.parameters, asked.folds, per_byte)
    shared = given | {"data.task": Origin(task, HAND), "data.test": Origin(protocol.test, HAND)}
    device = str(given["train.device"].value) if "train.device" in given else "cpu"
    small = is_short(protocol.main_budget) and not device.startswith("cuda")
    if "train.batch_size" not in given and (is_first or small):
        shared["train.batch_size"] = Origin(FIRST_BATCH if is_first else SMALL_BATCH, HAND)
    if "train.refit" not in given and "refit" in task_named(task).of_labels:
        shared["train.refit"] = Origin(False, HAND)  # all learn from the same
    layers, scales_of = {}, {}
    for one in entrants:
        # A run has the size that it was found at.
        layer = with_task({k: v for k, v in shared.items() if k != SIZE or START not in one.changes} | one.changes)
        has_one = _has_one_size(layer)
        for scale in asked.scales if not has_one else (1.0,):
            label = one.label if len(asked.scales) == 1 or has_one else f"{one.label}{AT}{scale:g}"
            layers[label], scales_of[label] = layer, scale
    starts = {str(one.changes[START].value) for one in entrants if START in one.changes}
    hashes = {path: weights_hash(Path(path).expanduser()) for path in sorted(starts)}
    told = {key: one.value for key, one in shared.items() if key != TRACK}
    return _Planned(protocol, layers, scales_of, told, hashes)


def _has_one_size(layer: Layer) -> bool:
    """Whether a model is fitted at once, or begins with another run."""
    from regard.core.data_spec import EXAMPLE

    return START in layer or count(resolve(layer), EXAMPLE) is None


@dataclass(frozen=True)
class _Ready:
    """What a comparison has before it writes anything.

    protocol    as the data has it judged.
    parameters  the common size.
    layers      of each label, as the data can fill them. note: what was made smaller for that.
    """

    protocol: Protocol
    readings: Readings
    found: dict[str, Size]
    parameters: int
    layers: dict[str, Layer]
    note: str


def _raced(planned: _Planned, out: str | Path | None, force: bool, board: Board, workers: SideBySide) -> Comparison:
    path = Path(out).expanduser() if out is not None else RUNS / f"compare-{_data_name(planned.protocol.data)}"
    refuse_file(path)
    refuse_other(path)
    modules = modules_of(planned.settings) if workers.elsewhere else ()
    with opened(workers, planned.device, modules) as pool, only_writer(path), Interrupt() as interrupt:
        pool.warm(len(planned.layers))
        with board.preparing():
            ready = interrupt.at_once(lambda: _made_ready(planned, path, force))
        if ready is None:
            raise Stopped(
                f"stopped by {interrupt.received} while the data was read, with nothing begun; the same command "
                f"starts again"
            )
        if force:
            clear(path)
        for note in filter(None, (workers.note, ready.note)):
            board.note(note)
        comparison = _run(planned, ready, path, board, interrupt, pool)
        from regard.studies.report import write_reports

        write_reports(comparison)
        return replace(comparison, stopped=comparison.stopped or interrupt.received is not None)


def _made_ready(planned: _Planned, path: Path, force: bool) -> _Ready:
    """The data, and the size of every model; what can be refused is refused here."""
    settings, device = planned.settings, planned.device
    device_named(device)
    readings = read(planned.layers, planned.protocol)
    protocol = planned.protocol.of_data(readings.first[0].processor)
    data = {label: found[0] for label, found in readings.data.items()}
    spec = readings.first[0].spec
    common = protocol.parameters or common_size(settings, spec, suitable_size(protocol.main_budget, device))
    if not force:
        asked = {**protocol.to_dict(), **planned.shared}
        common = agreed(path, asked, planned.starts, common, readings.fingerprint)
    found = {
        label: sized(one, data[label].spec, round(common * planned.scales[label]))
        for label, one in zip(planned.layers, settings, strict=True)
    }
    layers, note = fitted_layers(planned.layers, found, data)
    refuse_too_small(protocol, {label: resolve(layer) for label, layer in layers.items()}, found, data)
    refuse_full_disk(path, found, protocol)
    return _Ready(protocol, readings, found, common, layers, note)


def _run(planned: _Planned, ready: _Ready, path: Path, board: Board, interrupt: Interrupt, pool: Pool) -> Comparison:
    protocol = ready.protocol
    told = {
        "protocol": protocol.to_dict(),
        "settings": planned.shared,
        "parameters": ready.parameters,
        "data": ready.readings.fingerprint,
        "starts": (read_kept(path) or {}).get("starts", {}) | planned.starts,
    }
    disk.publish(path / KEPT, [json.dumps(told, default=str).encode()])
    race = Race(protocol, ready.layers, ready.found, ready.readings, path, board, interrupt, pool)
    board.begin(list(planned.layers))
    try:
        rows = race.run()
    finally:
        board.finish()
    best = _optimum(rows, ready.readings.first[0], protocol)
    left_out = tuple(label for label in reported_before(path) if label not in planned.layers)
    return Comparison(protocol, tuple(rows), path, _facts(ready.readings), best, race.stopped, left_out)


def _fixed(path: str) -> str:
    """A world with its seed in its address, so that every seed of training meets the same data."""
    if not path.startswith(PREFIX) or "seed=" in path:
        return path
    from_spec(path)
    return f"{path}{'&' if '?' in path else '?'}seed=0"


def _data_name(path: str) -> str:
    name = path.removeprefix(PREFIX).partition("?")[0] if path.startswith(PREFIX) else Path(path.partition(",")[0]).stem
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:40] or "data"


def _facts(readings: Readings) -> dict[str, Any]:
    """What the data is, in plain keys."""
    world = readings.first[0].world
    bits = recall_bits(world) if world is not None else None
    known = {} if bits is None else {"recall_bits": round(bits, 1)}
    return known | readings.about()


def _optimum(rows: Sequence[Row], data: Dataset[Any], protocol: Protocol) -> float | None:
    """The best possible score on the same test part, where the data or an evaluation knows it."""
    measured = [run["scores"].get(f"optimal_{protocol.metric}") for row in rows for run in row.runs]
    known = [data.best.get(protocol.metric), *measured]
    return next((value for value in known if value is not None), None)
