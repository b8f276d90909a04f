"""`regard explain`: look inside a run, or work an example of the lectures out in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.options import CommonOnDevice, command
from regard.cli.screen import checked_text, given_text
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.cli.screen import Screen
    from regard.explain.view import View

STEPS, PROBE = "steps", "probe"


@dataclass(frozen=True)
class Asked:
    """Which view, and of what."""

    view: Annotated[str | None, typer.Option(help="Which view; --list names them.", metavar="NAME")] = None
    steps: Annotated[bool, typer.Option("--steps", help="Every number at one position; --view steps.")] = False
    layer: Annotated[int | None, typer.Option(help="A layer, from 1 on.", metavar="N")] = None
    head: Annotated[int | None, typer.Option(help="A head, from 1 on; the mean without it.", metavar="N")] = None
    neuron: Annotated[int | None, typer.Option(help="A unit of a net, from 1 on.", metavar="N")] = None
    position: Annotated[
        int | None, typer.Option(help="A token by its number, from 1 on; 0 is the start.", metavar="N")
    ] = None
    side: Annotated[str | None, typer.Option(help="source or target, of a model with both.", metavar="NAME")] = None
    target: Annotated[str | None, typer.Option(help="What is written from the source.", metavar="TEXT")] = None
    merge: Annotated[bool, typer.Option("--words", help="Tokens of one word together.")] = False
    hide_sink: Annotated[bool, typer.Option("--hide-sink", help="Without the first column.")] = False
    by_values: Annotated[bool, typer.Option("--by-values", help="Weights times size of values.")] = False
    reduce: Annotated[int, typer.Option(help="Numbers shown of a vector; 0 for all.", min=0)] = 4
    sort: Annotated[str, typer.Option(help="Of the view grid: layer, name, entropy, ...", metavar="BY")] = ""


@dataclass(frozen=True)
class WhatIf:
    """What could be otherwise."""

    compare: Annotated[
        tuple[str, str] | None, typer.Option(help="Two texts with a word in common.", metavar="TEXT TEXT")
    ] = None
    word: Annotated[str, typer.Option(help="The word of both.", metavar="WORD")] = ""
    scale: Annotated[
        str, typer.Option("--set-sense", help="Scale a sense, such as sick:2=0.0.", metavar="WORD:K=X")
    ] = ""
    temperature: Annotated[float, typer.Option(help="Of the next token.", min=0.0)] = 1.0
    top_k: Annotated[int | None, typer.Option(help="Of the next token.", min=1)] = None
    top_p: Annotated[float, typer.Option(help="Of the next token.", min=0.0, max=1.0)] = 1.0
    seed: Annotated[int, typer.Option(help="Of a shuffle.", min=0)] = 0


@dataclass(frozen=True)
class Files:
    """Where a view is saved instead of shown."""

    html: Annotated[str | None, typer.Option(help="Save as a page.", metavar="FILE")] = None
    png: Annotated[str | None, typer.Option(help="Save as a picture.", metavar="FILE")] = None
    svg: Annotated[str | None, typer.Option(help="Save as a drawing with its fonts.", metavar="FILE")] = None
    animate: Annotated[
        str | None, typer.Option(help="Save steps or an alignment as a moving .png or .svg.", metavar="FILE")
    ] = None
    size: Annotated[
        str | None,
        typer.Option(help="Of pictures: page, slide (1920x1080), wide (2560x1080), or WxH.", metavar="SIZE"),
    ] = None
    seconds: Annotated[float | None, typer.Option(help="How long a step of --animate stays; 2.", metavar="S")] = None
    panel: Annotated[
        list[str], typer.Option(help="Show this panel alone, by its number or key. Repeatable.", metavar="NAME")
    ] = field(default_factory=list)
    once: Annotated[bool, typer.Option("--once", help="Play --animate once, not for ever.")] = False

    @property
    def named(self) -> dict[str, str]:
        """The files that are asked for, by the option that names them."""
        found = {"html": self.html, "png": self.png, "svg": self.svg, "animate": self.animate}
        return {option: path for option, path in found.items() if path is not None}

    def check(self) -> None:
        """Refuse names that say something else than their option, and options of files that are not asked for."""
        for option, path in self.named.items():
            if option != "animate" and not path.lower().endswith(f".{option}"):
                raise UsageError(f"--{option} {path}: the name of the file must end in .{option}")
        if self.size is not None and not {"png", "svg", "animate"} & self.named.keys():
            raise UsageError(f"--size {self.size} is of a picture: name its file with --png, --svg or --animate")
        if self.animate is None and (self.once or self.seconds is not None):
            raise UsageError("--seconds and --once are of an animation: name its file with --animate")


def add_to(app: typer.Typer) -> None:
    command(app, "explain")(explain)


def explain(
    common: CommonOnDevice,
    asked: Asked,
    what_if: WhatIf,
    files: Files,
    run: Annotated[
        str, typer.Argument(help="A run; or `steps` for an example, `probe` for probes.", metavar="RUN")
    ] = STEPS,
    text: Annotated[str | None, typer.Argument(help="What it reads; stdin without it.", metavar="TEXT")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Name the views of a run, or the examples.")] = False,
    data: Annotated[str, typer.Option(help="Tagged text for probes.", metavar="DATA")] = "world:tags",
) -> None:
    """Look inside a run, or work an example out in numbers.

    regard explain steps ab, regard explain RUN "some text", regard explain RUN "some text" --steps --layer 2 --head 3
    """
    screen = common.screen
    files.check()
    if run == STEPS:
        if (asked, what_if) != (Asked(), WhatIf()):
            raise UsageError("an example is shown as it is: options of views are for runs")
        _example(screen, text, listed, files)
        return
    from regard.run.run import load

    if run == PROBE:
        from regard.explain.probe import probe

        if text is None:
            raise UsageError("name a run: regard explain probe RUN --data world:tags")
        _show(screen, probe(load(text, device=common.device or "auto"), data), files)
        return
    loaded = load(run, device=common.device or "auto")
    if listed:
        screen.object({"views": loaded.views})
        screen.table(("view", "what it shows"), list(loaded.views.items()))
        return
    view, given, options = _asked(loaded, asked, what_if, text)
    _show(screen, loaded.explain(given, view, **options), files)


def _asked(run: Any, asked: Asked, what_if: WhatIf, text: str | None) -> tuple[str | None, str, dict[str, Any]]:
    """The name of the view, the input and the options."""
    from regard.explain.registry import capabilities

    options = {name: value for name, value in vars(asked).items() if name not in ("view", "steps")}
    options |= {name: value for name, value in vars(what_if).items() if name != "compare"}
    view = STEPS if asked.steps else asked.view
    if asked.steps and asked.view not in (None, STEPS):
        raise UsageError(f"--steps is a view of its own: leave out --view {asked.view}")
    if what_if.compare is not None:
        if text is not None:
            raise UsageError("--compare has both texts: leave the other one out")
        first, second = (checked_text(one, "the text") for one in what_if.compare)
        if not what_if.word:
            raise UsageError("--compare: name the word of both texts with --word")
        return view or "meaning", first, options | {"other": second}
    if view == "meaning" and not what_if.word:
        raise UsageError('meaning is of a word: regard explain RUN "TEXT" --view meaning --word WORD, or --compare')
    if what_if.scale:
        view = view or "senses"
    own = text is None and run.task.reads_files
    given = "" if own else given_text(text)
    if not given and not own:
        raise UsageError('there is nothing to explain: regard explain RUN "some text", or a text on stdin')
    if view is None and asked.position is not None and capabilities(run).fitted:
        view = STEPS
    return view, given or "", options


def _example(screen: Screen, name: str | None, listed: bool, files: Files) -> None:
    from regard.explain.worked import example, examples

    if listed or name is None:
        screen.object({"examples": examples()})
        screen.table(("example", "what it works out"), list(examples().items()))
        return
    _show(screen, example(name), files)


def _show(screen: Screen, view: View, files: Files) -> None:
    """Save the view where files are named, else show it."""
    view = view.only(*files.panel) if files.panel else view
    from regard.explain.render.file import save
    from regard.explain.render.frames import animate

    for option, path in files.named.items():
        if option == "animate":
            seconds = 2.0 if files.seconds is None else files.seconds
            saved = [animate(view, path, seconds, not files.once, files.size or "slide", screen.note)]
        else:
            saved = save(view, path, files.size or "page" if option != "html" else "page", screen.note)
        screen.note(f"saved {saved[0]}" if len(saved) == 1 else f"saved {saved[0]} to {saved[-1].name}")
    if screen.json:
        screen.object(view.to_dict())
    elif not files.named:
        view.show()
