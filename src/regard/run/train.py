"""From settings to a trained run: prepare the data, count what it takes, build, train.

Whatever can be refused is refused before anything is written.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.core.device import device_named
from regard.core.fitted import Noted
from regard.core.plugin import typed_name
from regard.data.in_memory import described
from regard.errors import UsageError
from regard.run.at_hand import Data, at_hand
from regard.run.calibration import calibrate
from regard.run.dataset import begin, fitted, load_dataset, saved_processor, start_of, task_of, tell, told_smaller, work
from regard.run.going_on import config_of
from regard.run.live import display_for, working
from regard.run.many import is_fitted, refuse_many, resumed, together
from regard.run.paths import require_name
from regard.run.plan import CONFIG, Job, plan
from regard.run.refit import refit
from regard.run.settings import Origin, Settings
from regard.run.start import begin_from, refuse_lora_alone, refuse_vectors
from regard.storage.lock import refuse_in_use
from regard.tasks.verbs import Fits, able
from regard.training.budget import parse

if TYPE_CHECKING:
    from regard.core.config import Config
    from regard.run.run import Run
    from regard.tasks.dataset import Dataset
    from regard.tasks.task import Task
    from regard.training.display import Display, Result
    from regard.training.parallel.ranks import Ranks
    from regard.training.resume import Resume
    from regard.training.settings import TrainSettings


def train(
    model: str | None = None,
    data: Data | None = None,
    *,
    budget: str | None = None,
    size: str | None = None,
    out: str | Path | None = None,
    recipe: str | Path | None = None,
    resume: bool = False,
    like: str | Path | None = None,
    quiet: bool = False,
    **settings: Any,
) -> Run:
    """Train a registered model on data, and give back the run. What is told meanwhile goes to stderr.

    model     a name of `regard.model_names()`; None: the one that suits the data.
    data      a path, a pattern, world:NAME or hf:NAME; or data itself: a list of texts, of (text, label), of
              (source, target), of (words, tags) or of mappings, a mapping of columns, a frame of pandas or polars, an
              Arrow table, a `datasets.Dataset`, or an iterator of such rows. None: the world of stories.
    budget    such as "90s", "5m", "500steps" or "3Mtokens"; two minutes unless told.
    size      tiny, small, base or paper.
    out       the run folder; runs/MODEL unless told.
    recipe    a TOML file of settings, or the name of one that comes with regard.
    resume    go on with the run in `out`.
    like      a run whose settings this one begins with.
    quiet     tell nothing meanwhile.
    settings  any other by its key: `d_model=128, lr=1e-3, tokens="words"`. `valid` takes what `data` takes, or a rule
              such as "hash:0.1".
    """
    if model is not None and not isinstance(model, str):
        raise UsageError(f"model: expected the name of a model, found {described(model)}; data comes second")
    if budget is not None and not isinstance(budget, str):
        parse(f"{budget}")  # says how a number is written as a budget
    name = None if model is None else typed_name(model)
    with at_hand(data, "data") as path, at_hand(settings.get("valid"), "valid") as valid:
        named = {"model.name": name, "data.path": path, "train.budget": budget, "model.size": size}
        changes = {key: Origin(value, "argument") for key, value in named.items() if value is not None}
        keywords = settings | ({} if valid is None else {"valid": valid})
        goes_on = "last" if resume else "no"
        job = plan(recipe=recipe, changes=changes, keywords=keywords, out=out, like=like, resume=resumed(goes_on))
        with together(job) as (ranks, job):
            display = display_for(sys.stderr, job.title, quiet=quiet or not ranks.is_first)
            return train_run(job, display, ranks=ranks)[0]


def train_run(
    job: Job, display: Display | None = None, data: Dataset[Any] | None = None, ranks: Ranks | None = None
) -> tuple[Run, Result]:
    """Train, and give back the run with its best weights.

    data   what `load_dataset` gave for a job on the same data.
    ranks  the processes that do it together, each of which calls this with the same job.
    """
    from regard.run.run import load_folder
    from regard.training.display import Silent
    from regard.training.parallel.ranks import ALONE

    ranks = ranks or ALONE
    display = display or Silent()
    training = ranks.first(lambda: checked(job))
    if ranks.size > 1:
        refuse_many(job, training)
    task = task_of(job.settings)
    with working(display):
        own = None if job.resume == "no" else saved_processor(job.settings, job.out)
        dataset = data or load_dataset(job.settings, own)
        config = config_of(job, dataset)
        if config.fitted:
            result = _fitted(job, task, config, dataset, training, display)
        elif training.ensemble == 1:
            result = _learnt(job, task, config, dataset, training, display, ranks)
        else:
            result = _ensemble(job, task, config, dataset, training, display)
        device = str(ranks.device(device_named(training.device)))
        run = load_folder(job.out, device=device, processor=dataset.processor)
        run.dataset = dataset
        ranks.first(lambda: calibrate(run, training.calibrate))
        ranks.first(lambda: refit(run, job.settings, display))
        return run, result


def _fitted(
    job: Job, task: Task[Any], config: Config, dataset: Dataset[Any], training: TrainSettings, display: Display
) -> Result:
    """A model that is fitted at once."""
    from regard.data.settings import from_dict
    from regard.training.fitted_run import USED, fit_run

    for key in sorted(set(job.changed) - USED):
        display.note(f"train.{key} has no effect: {job.settings['model.name']} is fitted at once")
    tell(job.settings, dataset, display)
    model = config.build()
    problem = able(task, Fits, job.out).fitting(dataset, model, training, from_dict(job.settings.section("data")))
    return fit_run(model, problem, training, job.out, about=description(job.settings, dataset), display=display)


def _learnt(
    job: Job,
    task: Task[Any],
    config: Config,
    dataset: Dataset[Any],
    training: TrainSettings,
    display: Display,
    ranks: Ranks,
) -> Result:
    """A model that is trained by steps, from the beginning or from the encoder of another run."""
    from regard.training import loop
    from regard.training.frozen import freeze
    from regard.training.random_streams import seed_all
    from regard.training.saved_config import BEGUN
    from regard.training.settings import from_dict

    ranks = _tell_need(job, config, training, display, ranks)
    tell(job.settings, dataset, display)
    seed_all(training.seed)
    model = config.build()
    start, kept = start_of(job.settings), list[str]()

    def note(text: str) -> None:
        kept.append(text)
        display.note(text)

    if start is None or start.processor is None:
        begin(model, job.settings, dataset, Noted(note))
    if start is not None:
        begin_from(start, model, job.settings)
    freeze(model, training.freeze)
    settings, problem = fitted(job.settings, lambda asked: work(asked, dataset, model))
    if settings is not job.settings:
        display.note(told_smaller(job.settings, settings))
    return loop.train(
        model,
        problem,
        from_dict(settings.section("train")),
        job.out,
        about=description(settings, dataset) | ({BEGUN: {"notes": kept}} if kept else {}),
        display=display,
        sample=(lambda trained: task.sample(trained, dataset)) if job.samples else None,
        resume=_resume(job),
        ranks=ranks,
    )


def _ensemble(
    job: Job, task: Task[Any], config: Config, dataset: Dataset[Any], training: TrainSettings, display: Display
) -> Result:
    """Several seeds of one model, and the mean of their answers."""
    from regard.run.ensemble import Ensemble, train_ensemble
    from regard.training.parallel.ranks import ALONE
    from regard.training.settings import from_dict

    def part(settings: Settings, out: Path, display: Display) -> Result:
        # Parts that a resume finds go on, and those that it does not find begin.
        own = replace(job, settings=settings, out=out, resume="no" if job.resume == "no" else "auto")
        return _learnt(own, task, config, dataset, from_dict(settings.section("train")), display, ALONE)

    about, override = description(job.settings, dataset), _resume(job).override
    of = Ensemble(job.settings, training, job.out, about, task, config, dataset, override)
    return train_ensemble(of, display, part)


def checked(job: Job) -> TrainSettings:
    """Everything that can be refused before the data is read, which may take a while."""
    from regard.training import run_folder, settings
    from regard.training.precision import precision_of
    from regard.training.track import refuse_absent

    require_name(job.out)
    run_folder.refuse_file(job.out)
    refuse_in_use(job.out)
    fitted = is_fitted(job.settings)
    if job.resume == "no" and (job.out / CONFIG).exists():
        go_on = "" if fitted else "continue it with --resume or "
        raise UsageError(f"{job.out}: already holds a run; {go_on}choose another --out")
    training = settings.from_dict(job.settings.section("train"))
    if training.spill is not None and not Path(training.spill).expanduser().is_dir():
        raise UsageError(f"--spill {training.spill}: there is no such folder")
    if fitted and job.resume != "no":
        raise UsageError(
            f"{job.settings['model.name']} is fitted at once, there is nothing to resume; fit it again into another "
            f"--out (counts of texts can be merged: docs/counting.md)"
        )
    refuse_lora_alone(job.settings)
    if job.resume == "no":
        refuse_vectors(job.settings)
    precision_of(training.precision, device_named(training.device))
    refuse_absent(training.track)
    return training


def _tell_need(job: Job, config: Config, training: TrainSettings, display: Display, ranks: Ranks) -> Ranks:
    """Say what the run will take, and refuse it when the machine has less. The ranks in the way that suits this."""
    from regard.training.estimate import RESERVED, estimate, gigabytes, memory_limit, refuse_too_large

    sizes = {"batch_size": training.batch_size, "length": training.length}
    need = estimate(config, ema=training.ema > 0, recomputes=training.gradient_checkpointing, **sizes)
    device = ranks.device(device_named(training.device))
    limit = ranks.memory(memory_limit(str(device)), device)
    ranks = ranks.as_set(training, need.shared(1, ranks.size).total, int(RESERVED * limit))
    if job.is_large:
        return ranks
    need = need.shared(ranks.holders, ranks.size)
    refuse_too_large(need, limit, **sizes)
    each = f" in each of {ranks.size} processes, {ranks.way}" if ranks.size > 1 else ""
    display.note(f"{need.parameters:,} parameters; training them takes about {gigabytes(need.total)} of memory{each}")
    return ranks


def description(settings: Settings, dataset: Dataset[Any]) -> dict[str, Any]:
    """What config.json says of the settings and of the data beside what the training loop knows."""
    from regard.core.version import __version__

    model, start = settings.section("model"), start_of(settings)
    if start is not None:  # what a preset says is not so of what was found
        model = {key: value for key, value in model.items() if key in ("name", "size", *start.free)}
    return {
        "regard": __version__,
        "model": {"name": model.pop("name"), "size": model.pop("size"), "settings": model},
        "data": settings.section("data"),
        "origins": settings.origins,
        "understood": dataset.account.to_dict() if dataset.account is not None else {},
    }


def _resume(job: Job) -> Resume:
    from regard.training import settings
    from regard.training.resume import Resume

    allowed = [name for name in job.changed if settings.on_resume(name) == "override"]
    return Resume(job.resume, allowed)  # pyright: ignore[reportArgumentType]  # checked by the command
