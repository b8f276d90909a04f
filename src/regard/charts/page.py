"""The frame of a report: one self-contained HTML file, system fonts, light and dark."""

from __future__ import annotations

from base64 import b64encode
from html import escape

STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #00734f; --bad: #b3261e; --open: #8a6d00; }
@media (prefers-color-scheme: dark) { :root { --good: #4fd1a5; --bad: #ff8a80; --open: #ffd54f; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; margin-inline: calc(50% - min(50vw - 1.5rem, 42rem)); }
.wide table { width: auto; min-width: min(100%, 60rem); margin: auto; }
th, td { text-align: left; padding: 0.3rem 0.6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); } .open { color: var(--open); }
svg, img { width: 100%; max-width: 46rem; height: auto; display: block; margin: 0.8rem 0; }
img { background: #fff; color-scheme: light; }
pre { white-space: pre-wrap; background: #8881; padding: 0.6rem 0.8rem; border-radius: 4px; font-size: 0.9rem; }
.lead { font-size: 1.1rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 1rem; }
details { margin: 0.6rem 0; } small { opacity: 0.8; }
"""
# Nothing runs and nothing is loaded, whatever the words and figures on the page are.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def page(title: str, body: str) -> str:
    """A whole page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def figure(svg: str, about: str) -> str:
    """A drawing that may have been read from a file: as an image, in which no script of it runs."""
    data = b64encode(svg.encode()).decode()
    return f'<img alt="{escape(about)}" src="data:image/svg+xml;base64,{data}">' if svg else ""


def html_table(columns: list[str], rows: list[list[str]], numbers: set[int] = frozenset()) -> str:  # pyright: ignore[reportArgumentType]
    """A table of plain texts; columns in `numbers` stand at the right."""
    mark = [' class="number"' if place in numbers else "" for place in range(len(columns))]
    head = "".join(f"<th{mark[place]}>{escape(name)}</th>" for place, name in enumerate(columns))
    lines = ("".join(f"<td{mark[place]}>{escape(cell)}</td>" for place, cell in enumerate(row)) for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(f"<tr>{line}</tr>" for line in lines)}</table></div>'
