"""`regard lecture`: the lectures, listed, sat in the terminal, or written as a page, a notebook or Markdown."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.failure import telling
from regard.cli.options import Common, command
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.cli.screen import Screen
    from regard.lectures.notebook import Lecture


@dataclass(frozen=True)
class Ways:
    """How a lecture comes out."""

    html: Annotated[str | None, typer.Option(help="Write what was shown as a page.", metavar="FILE")] = None
    notebook: Annotated[str | None, typer.Option(help="Write the notebook, to change it.", metavar="FILE")] = None
    markdown: Annotated[str | None, typer.Option(help="Write NAME.md and its figures.", metavar="FOLDER")] = None
    opens: Annotated[bool, typer.Option("--open", help="Show it large in the browser, on the page of the lab.")] = False
    solutions: Annotated[bool, typer.Option("--solutions", help="Print solutions of exercises, too.")] = False
    again: Annotated[bool, typer.Option("--again", help="Run it anew where it was run before.")] = False


def add_to(app: typer.Typer) -> None:
    command(app, "lecture")(lecture)


def lecture(
    common: Common,
    ways: Ways,
    name: Annotated[
        str | None, typer.Argument(help="A lecture by its name or number, or a notebook.", metavar="[LECTURE]")
    ] = None,
) -> None:
    """Sit a lecture: a question, an experiment, pictures, exercises, a verdict.

    Without a name the lectures are listed. All code of a lecture is run, also that of a notebook of your own: name only
    one that you would run.
    """
    from regard.lectures import catalogue

    if name is None:
        if ways != Ways():
            raise UsageError("name the lecture: regard lecture lists them")
        _list(common.screen)
        return
    found = catalogue.lecture(name)
    if ways.notebook is not None:
        _copy(common.screen, found, ways.notebook)
    if ways.opens:
        _open(common, found)
    elif ways.html is not None or ways.markdown is not None or ways.notebook is None:
        with telling(lambda: f"lecture {found.name} was not sat to its end"):
            _sit(common.screen, found, ways)


def _list(screen: Screen) -> None:
    from regard.lectures import catalogue

    found = catalogue.lectures()
    told = [{"name": one.name, "number": one.number, "title": one.title, "question": one.question} for one in found]
    screen.object({"lectures": told})
    screen.table(("#", "lecture", "question"), [(one.number, one.name, one.question) for one in found])
    screen.hint(f"regard lecture {found[0].name} sits one; --open shows it in the browser")


def _sit(screen: Screen, found: Lecture, ways: Ways) -> None:
    if ways.markdown is not None:
        from regard.lectures import markdown
        from regard.lectures.execution import screens

        screen.note(f"saved {markdown.write(found, screens(found), Path(ways.markdown))}")
    if ways.html is not None:
        _page(screen, found, ways)
    if screen.json:
        screen.object(_sitting(screen, found, ways.again))
    elif ways.markdown is None and ways.html is None:
        _print(screen, found, ways.solutions)


def _print(screen: Screen, found: Lecture, solutions: bool) -> None:
    from regard.lectures.execution import screens
    from regard.lectures.printed import Printer

    printer = Printer(sys.stdout)
    for one in screens(found):
        printer.screen(one, len(found.screens), solutions)
    if found.exercises:
        screen.hint(f"exercises are answered in the notebook: regard lecture {found.name} --notebook mine.ipynb")


def _page(screen: Screen, found: Lecture, ways: Ways) -> None:
    from regard.explain.render.lecture import lecture_html
    from regard.storage import disk

    path = _named(ways.html or "", "html", ".html")
    text = lecture_html(_sitting(screen, found, ways.again))
    disk.write_for_person(path, [text.encode("utf-8")])
    screen.note(f"saved {path}")


def _sitting(screen: Screen, found: Lecture, again: bool) -> dict[str, Any]:
    """A sitting that was made before, unless it is to be made anew."""
    from regard.lectures.sitting import keep, kept, sit

    def tell(number: int, shown: dict[str, Any]) -> None:
        screen.note(f"{number}/{len(found.screens)} {shown['title']}")

    known = None if again else kept(found)
    if known is None:
        known = sit(found, tell)
        keep(found, known)
    return known


def _open(common: Common, found: Lecture) -> None:
    """The page of the lab, which shows the lecture large; Ctrl-C ends it."""
    from regard.cli.lab import serve_page
    from regard.lectures import catalogue

    if found.digest not in (one.digest for one in catalogue.lectures()):  # a changed copy has the name, too
        raise UsageError(f"{found.path}: --open shows lectures of the package; --html FILE makes a page of yours")
    serve_page(common, [], 0, f"#show={found.name}")


def _copy(screen: Screen, found: Lecture, to: str) -> None:
    """The notebook as it is, without outputs, for Jupyter; one that is there stays."""
    from regard.storage import disk

    path = _named(to, "notebook", ".ipynb")
    if path.exists():
        raise UsageError(f"{path}: there is a file already, perhaps with changes of yours; name another")
    disk.write_for_person(path, [found.path.read_bytes()])
    screen.note(f"saved {path}")


def _named(to: str, option: str, suffix: str) -> Path:
    path = Path(to)
    if path.suffix.lower() != suffix:
        raise UsageError(f"--{option} {to}: the name of the file must end in {suffix}")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent} to write into")
    return path
