"""The frame of a report: one self-contained HTML file, system fonts, light and dark, for screens from 400 px and paper.

The policy in its head lets one script run, by its hash, which sorts tables and copies numbers; nothing is loaded.
Without scripts everything is still there to read.
"""

from __future__ import annotations

import csv
import io
from base64 import b64encode
from collections.abc import Mapping, Sequence, Set
from hashlib import sha256
from html import escape

STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #00734f; --bad: #b3261e; --open: #8a6d00;
  --ink: #1c2024; --faint: #5b6670; --ground: #fff; --card: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --good: #4fd1a5; --bad: #ff8a80; --open: #ffd54f;
  --ink: #e8ecf0; --faint: #a3afba; --ground: #14181c; --card: #1d2329; } }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 76rem; margin: 0 auto; padding: 1.5rem 1rem 4rem;
  color: var(--ink); background: var(--ground); overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; }
h1:has(+ .answer) { font-size: 1rem; font-weight: 600; color: var(--faint); margin: 0 0 0.5rem; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 0.6rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; } .wide table { overflow-wrap: normal; }
th, td { text-align: left; padding: 0.35rem 0.6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; color: var(--faint); white-space: nowrap; } .wide td.name { white-space: nowrap; }
td.number, th.number { text-align: right; white-space: nowrap; }
td.text { min-width: 16rem; }
.answers td:first-child { width: 38%; } .answers td:nth-child(2) { min-width: 6rem; }
.said { display: inline-block; margin-right: 1.1rem; }
td.share { text-align: right; background: color-mix(in srgb, #009e73 calc(var(--share) * 55%), transparent); }
th[aria-sort] { cursor: pointer; } th[aria-sort]:hover { color: var(--ink); }
th[aria-sort=ascending]::after { content: " \\2191"; } th[aria-sort=descending]::after { content: " \\2193"; }
.dot { display: inline-block; width: 0.7em; height: 0.7em; border-radius: 50%; margin-right: 0.45em; }
.good { color: var(--good); } .bad { color: var(--bad); } .open { color: var(--open); }
svg, img { width: 100%; max-width: 46rem; height: auto; display: block; margin: 0.8rem 0; }
.inside { overflow-x: auto; } .inside svg { min-width: 52rem; max-width: none; }
img { background: #fff; color-scheme: light; }
figure { margin: 0; padding: 0.9rem 1rem 0.5rem; background: var(--card); border-radius: 10px; min-width: 0; }
figure svg { max-width: none; margin: 0; }
figure.first { margin: 1.2rem 0 1rem; } figure .narrow { display: none; }
pre { white-space: pre-wrap; background: #8881; padding: 0.6rem 0.8rem; border-radius: 6px; font-size: 0.88rem; }
.lead { font-size: 1.1rem; } .answer { font-size: 1.6rem; line-height: 1.3; font-weight: 650; margin: 0 0 0.7rem;
  text-wrap: balance; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 1rem; }
details { margin: 0.6rem 0; } summary { cursor: pointer; } small { color: var(--faint); }
details.csv { margin: 0.3rem 0; font-size: 0.85rem; color: var(--faint); }
details.csv pre { max-height: 16rem; overflow: auto; white-space: pre; overflow-wrap: normal; }
button { font: inherit; padding: 0.15rem 0.7rem; border: 1px solid var(--line); border-radius: 6px; color: inherit;
  background: transparent; cursor: pointer; }
@media (max-width: 640px) { .answers thead { display: none; }
  .answers :is(tr, td) { display: block; width: auto !important; } .answers tr { border-bottom: 1px solid var(--line); }
  .answers td { border: 0; padding: 0.2rem 0; } .answers td:first-child { font-weight: 600; }
  .answers td:nth-child(2)::before { content: "right: "; }
  body { padding: 1rem 0.75rem 3rem; } .answer { font-size: 1.25rem; }
  figure { padding: 0.7rem 0.5rem 0.4rem; } figure .broad { display: none; } figure .narrow { display: block; } }
@media print { :root { color-scheme: light; --ink: #000; --faint: #444; --ground: #fff; --card: #fff; }
  body { max-width: none; padding: 0; font-size: 10.5pt; } figure, tr { break-inside: avoid; }
  h2 { break-after: avoid; } details:not([open]), details.csv, button { display: none; }
  .wide, .inside { overflow: visible; } .inside svg { min-width: 0; }
  .charts { grid-template-columns: 1fr 1fr; }
  td.share, .dot { print-color-adjust: exact; } }
"""
# A cell is sorted by the number it begins with, such as 12.1k, 1,234 or 1m 05s; those without one come last.
SCRIPT = """
const UNITS = { k: 1e3, M: 1e6, G: 1e9, T: 1e12 };
function number(text) {
  const spans = [...text.matchAll(/([\\d.]+)(h|m|s)(?= |$)/g)];
  if (spans.length) return spans.reduce((sum, [, n, unit]) => sum + n * { h: 3600, m: 60, s: 1 }[unit], 0);
  const found = text.replaceAll(",", "").match(/^(-?[\\d.]+(?:e[+-]?\\d+)?)([kMGT])?/);
  return found ? Number(found[1]) * (UNITS[found[2]] ?? 1) : NaN;
}
function sort(head) {
  const [table, place] = [head.closest("table"), head.cellIndex];
  const up = head.ariaSort !== "ascending";
  const isNumber = head.classList.contains("number");
  const key = (row) => isNumber ? number(row.cells[place].innerText) : row.cells[place].innerText;
  const compare = (a, b) => isNumber
    ? (isNaN(a) - isNaN(b)) || (up ? a - b : b - a) || 0
    : (up ? 1 : -1) * a.localeCompare(b);
  const rows = [...table.tBodies[0].rows].sort((a, b) => compare(key(a), key(b)));
  for (const other of head.parentNode.cells) other.ariaSort = "none";
  head.ariaSort = up ? "ascending" : "descending";
  table.tBodies[0].append(...rows);
}
for (const head of document.querySelectorAll("table.sortable th")) {
  head.tabIndex = 0;
  head.ariaSort = "none";
  head.addEventListener("click", () => sort(head));
  head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(head); });
}
for (const held of document.querySelectorAll("details.csv")) {
  const button = document.createElement("button");
  const text = held.querySelector("pre");
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(text);
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch { button.textContent = document.execCommand("copy") ? "Copied" : "Selected: press Ctrl-C"; }
  });
  text.before(button);
}
"""
HASH = b64encode(sha256(SCRIPT.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; script-src 'sha256-{HASH}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
TALL = 900


def page(title: str, body: str) -> str:
    """A whole page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}<script>{SCRIPT}</script></body></html>\n"
    )


def framed(title: str, whole: str) -> str:
    """A whole page that stands within another one, such as a notebook, and has no part in it."""
    return (
        f'<iframe sandbox="allow-scripts" title="{escape(title)}" srcdoc="{escape(whole)}" '
        f'style="width:100%;height:{TALL}px;border:0"></iframe>'
    )


def figure(svg: str, about: str) -> str:
    """A drawing that may have been read from a file: as an image, in which no script of it runs."""
    data = b64encode(svg.encode()).decode()
    return f'<img alt="{escape(about)}" src="data:image/svg+xml;base64,{data}">' if svg else ""


def numbers(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows to copy as CSV."""
    held = io.StringIO()
    csv.writer(held, lineterminator="\n").writerows([columns, *rows])
    return f'<details class="csv"><summary>CSV</summary><pre>{escape(held.getvalue())}</pre></details>'


def html_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Set[int] = frozenset(),
    colours: Mapping[str, str] | None = None,
) -> str:
    """A table of plain texts that a click on a heading sorts.

    right    columns of numbers, which stand at the right.
    colours  of names: a cell or heading that is one of them has its dot.
    """

    def told(text: str) -> str:
        colour = (colours or {}).get(text)
        return f'<span class="dot" style="background:{colour}"></span>{escape(text)}' if colour else escape(text)

    def mark(place: int, text: str) -> str:
        return ' class="number"' if place in right else ' class="name"' if text in (colours or {}) else ""

    head = "".join(f"<th{mark(place, name)}>{told(name)}</th>" for place, name in enumerate(columns))
    lines = ("".join(f"<td{mark(place, cell)}>{told(cell)}</td>" for place, cell in enumerate(row)) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<div class="wide"><table class="sortable"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )
