"""Drawings one after the other as one SVG that moves, by CSS alone; what they have in common is written once.

Who asked for less motion, and a program that knows no animation, sees the last drawing, in which all is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from regard.charts.drawing import Drawing
from regard.charts.embed import Embedded
from regard.charts.svg import shape_of, whole_file

LONG = 60  # letters of what is worth a name


def moving_svg(frames: Sequence[Drawing], scale: float, seconds: float, loop: bool, fonts: Embedded) -> str:
    """The text of a file of drawings of one size, `seconds` each, once or for ever."""
    written = [[shape_of(shape, fonts) for shape in frame.shapes] for frame in frames]
    often = Counter(shape for frame in written for shape in set(frame))
    names = {shape: f"s{n}" for n, shape in enumerate(one for one in often if often[one] > 1 and len(one) > LONG)}
    held = "".join(f'<g id="{name}">{shape}</g>\n' for shape, name in names.items())
    parts = []
    for number, frame in enumerate(written):
        shapes = "\n".join(f'<use href="#{names[shape]}"/>' if shape in names else shape for shape in frame)
        last = " last" if number == len(written) - 1 else ""
        parts.append(f'<g class="frame{last}" style="--at:{number}">\n{shapes}\n</g>')
    inside = f"<defs>\n{held}</defs>\n" + "\n".join(parts)
    return whole_file(frames[0], scale, inside, fonts, style=_style(len(frames), seconds, loop))


def _style(count: int, seconds: float, loop: bool) -> str:
    """Each frame is seen for its share of the time; played once, the last one stays."""
    share = f"{100 / count:.4f}%"
    # A frame of a loop began before the file was opened, as far back as it is from being seen.
    start = f"calc((var(--at) - {count}) * {seconds:g}s)" if loop else f"calc(var(--at) * {seconds:g}s)"
    turn = f"frame {count * seconds:g}s step-end {start} {'infinite' if loop else '1'}"
    stays = "" if loop else ".last{animation-fill-mode:forwards;animation-name:stay}"
    return (
        ".frame{visibility:hidden}.last{visibility:visible}"
        "@media (prefers-reduced-motion:no-preference){"
        f".last{{visibility:hidden}}.frame{{animation:{turn}}}{stays}}}"
        f"@keyframes frame{{0%{{visibility:visible}}{share},100%{{visibility:hidden}}}}"
        "@keyframes stay{0%,100%{visibility:visible}}"
    )
