"""Markdown as nodes, against HTML written by hand; and that nothing but text comes out of hostile words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.charts.markup import all_to_html, is_safe, text_of, to_html
from regard.charts.prose import nodes


def html(markdown: str) -> str:
    return all_to_html(nodes(markdown))


@pytest.mark.parametrize(
    ("markdown", "told"),
    [
        ("# One *two* #", "<h1>One <em>two</em></h1>"),
        ("a\nb", "<p>a\nb</p>"),
        ("a  \nb", "<p>a<br>b</p>"),
        ("a\n\nb", "<p>a</p>\n<p>b</p>"),
        ("**a *b* c** d", "<p><strong>a <em>b</em> c</strong> d</p>"),
        ("***a***", "<p><em><strong>a</strong></em></p>"),
        ("snake_case_name and 2 * 3 * 4", "<p>snake_case_name and 2 * 3 * 4</p>"),
        ("_a_ \\*b\\*", "<p><em>a</em> *b*</p>"),
        ("`a *b* <c>`", "<p><code>a *b* &lt;c&gt;</code></p>"),
        ("``a ` b``", "<p><code>a ` b</code></p>"),
        ("[a *b*](c_d_e.md#f)", '<p><a href="c_d_e.md#f">a <em>b</em></a></p>'),
        ('![a](b.svg "t")', '<p><img src="b.svg" alt="a"></p>'),
        ("<https://a.org/b>", '<p><a href="https://a.org/b" rel="noreferrer">https://a.org/b</a></p>'),
        ("- a\n- b\n  - c\n- d", "<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>"),
        ("- a\n\n- b", "<ul><li><p>a</p></li><li><p>b</p></li></ul>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        ("1. a\n   b\n2. c", "<ol><li>a\nb</li><li>c</li></ol>"),
        ("> a\n> b", "<blockquote><p>a\nb</p></blockquote>"),
        ("a\n- b", "<p>a</p>\n<ul><li>b</li></ul>"),
        ("in\n1990. b", "<p>in\n1990. b</p>"),
        ("```python\na < b\n\nc\n```\nd", '<pre><code class="language-python">a &lt; b\n\nc</code></pre>\n<p>d</p>'),
        ("***", "<hr>"),
        ("$5 and $6", "<p>$5 and $6</p>"),
        ("$x$", "<p><math><mi>x</mi></math></p>"),
        ("$$\nx\n$$", '<p class="formula"><math display="block"><mi>x</mi></math></p>'),
        ("a $$x$$ b", '<p>a <math display="block"><mi>x</mi></math> b</p>'),
        ("`$x$`", "<p><code>$x$</code></p>"),
    ],
)
def test_markdown_becomes_the_html_that_it_means(markdown: str, told: str) -> None:
    assert html(markdown) == told


def test_a_table_has_a_head_and_sides() -> None:
    told = html("| a | b |\n|---|--:|\n| `x|y` | **1** |\n| only one |")
    assert told.startswith('<div class="wide"><table><thead><tr><th scope="col">a</th><th scope="col" class="number">')
    assert '<td><code>x|y</code></td><td class="number"><strong>1</strong></td>' in told
    assert told.endswith('<tr><td>only one</td><td class="number"></td></tr></tbody></table></div>')


@pytest.mark.parametrize(
    "markdown",
    [
        "<script>alert(1)</script>",
        '<img src=x onerror="alert(1)">',
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](java\tscript:alert(1))",
        "[a](<java\\script:alert(1)>)",
        "[a](data:text/html;base64,AAAA)",
        "[a](vbscript:x)",
        "[a](//elsewhere.org)",
        "[a](/\\elsewhere.org)",
        "![a](https://elsewhere.org/x.png)",
        "![a](data:image/svg+xml;base64,AAAA)",
        "<javascript:alert(1)>",
        '[a](x "t\\" onmouseover=alert(1)")',
        "`</code><script>`",
        r"$\text{</mtext><script>alert(1)</script>}$",
        "```html\n</code></pre><script>alert(1)</script>\n```",
    ],
)
def test_hostile_words_are_words(markdown: str) -> None:
    told = html(markdown)
    assert "<script" not in told
    assert "<img src=x" not in told
    assert "elsewhere.org" not in told.partition("href=")[2]
    assert 'src="' not in told
    for scheme in ("javascript:", "data:", "vbscript:"):
        assert f'href="{scheme}' not in told.lower()
    assert ' onmouseover="' not in told


def refusal(text: str) -> str:
    """Why a text cannot be read; nothing where it can."""
    try:
        all_to_html(nodes(text))
    except ValueError as refused:
        return str(refused)
    return ""


@given(st.text(alphabet="a$*_`[]()!<>|\\-#1. \n&:{}^", max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_text_can_be_read_or_is_refused_in_one_line(text: str) -> None:
    assert "\n" not in refusal(text)


@pytest.mark.parametrize("text", ["*" * 3000, "[" * 3000, "`" * 2999 + "a", "> " * 3000 + "a", "|" * 3000, "$" * 2001])
def test_long_rows_of_signs_are_read_in_no_time(text: str) -> None:
    assert len(refusal(text)) < 200


@pytest.mark.parametrize("node", [["script", {}, "x"], ["p", {"onclick": "x"}], ["p", {"style": "x"}]])
def test_markup_that_is_not_on_the_list_is_refused(node: list[object]) -> None:
    with pytest.raises(ValueError):
        to_html(node)


def test_an_address_that_leads_elsewhere_is_refused_in_markup_too() -> None:
    with pytest.raises(ValueError):
        to_html(["a", {"href": "javascript:x"}, "a"])
    assert all(map(is_safe, ("#a", "a/b?c", "HTTPS://a.org")))
    assert not is_safe("https://a.org", web=False)


def test_the_words_of_a_node_are_those_that_are_read() -> None:
    assert text_of(nodes("a *b* `c`")[0]) == "a b c"
