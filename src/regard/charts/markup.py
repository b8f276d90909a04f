"""Markup as plain data: what prose and formulas are made of, for a page, a file or a notebook.

A node is a list, `[tag, {attributes}, *children]`; children are strings, which are text and never markup, or nodes. It
is plain JSON, so that it travels to a page as it is. There is a short list of tags and attributes, and no way to write
a script, a style or a listener: what is not on it is refused here, and once more where the page builds elements
(`explain/web/markup.js`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any, TypeAlias

Node: TypeAlias = list[Any]


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


HTML = words(
    "a blockquote br code del div em h1 h2 h3 h4 h5 h6 hr img li ol p pre span strong sub sup table tbody td th thead "
    "tr ul"
)
MATHML = words(
    "math mfrac mi mn mo mover mroot mrow mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover"
)
ATTRIBUTES = words(
    "accent alt class columnalign dir display displaystyle form href linethickness lspace mathvariant maxsize minsize "
    "movablelimits rel rspace scope src start stretchy symmetric title width"
)
VOID = frozenset({"br", "hr", "img"})
ADDRESSES = ("href", "src")
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
WEB = re.compile(r"https?://[^/\\]", re.IGNORECASE)
# A browser leaves these out of an address before it reads it, so that java\tscript: would be one.
UNSEEN = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ufeff]")


def is_safe(address: str, *, web: bool = True) -> bool:
    """Whether an address is relative, a place of the page (#), or, where `web`, one of http or https.

    >>> [is_safe(one) for one in ("a/b.html#c", "https://example.org", "javascript:alert(1)", "//example.org")]
    [True, True, False, False]
    """
    if UNSEEN.search(address) or address.startswith(("/", "\\")):
        return False
    if SCHEME.match(address):
        return web and WEB.match(address) is not None
    return True


def to_html(node: Node | str) -> str:
    """A node as HTML, every word of it escaped."""
    if isinstance(node, str):
        return escape(node, quote=False)
    tag, attributes, *children = node
    if tag not in HTML and tag not in MATHML:
        raise ValueError(f"markup: no tag {tag!r} is known")
    told = "".join(f' {name}="{escape(_attribute(name, str(value)))}"' for name, value in attributes.items())
    if tag in VOID:
        return f"<{tag}{told}>"
    return f"<{tag}{told}>{''.join(map(to_html, children))}</{tag}>"


def text_of(node: Node | str) -> str:
    """The words of a node without their markup."""
    return node if isinstance(node, str) else "".join(map(text_of, node[2:]))


def all_to_html(nodes: Iterable[Node | str]) -> str:
    """Nodes one after the other, each on a line of its own."""
    return "\n".join(map(to_html, nodes))


def _attribute(name: str, value: str) -> str:
    """The value of an attribute that may be written."""
    if name not in ATTRIBUTES:
        raise ValueError(f"markup: no attribute {name!r} is known")
    if name in ADDRESSES and not is_safe(value, web=name == "href"):
        raise ValueError(f"markup: {name}={value[:80]!r} leads elsewhere than to a page")
    return value
