"""TeX as MathML, against trees written by hand after the MathML Core specification."""

from __future__ import annotations

from typing import Any

import pytest

from regard.charts.formula import mathml
from regard.charts.markup import text_of, to_html


def row(tex: str, block: bool = False) -> list[Any]:
    return mathml(tex, block)[2:]


def mi(letter: str) -> list[Any]:
    return ["mi", {}, letter]


def mn(number: str) -> list[Any]:
    return ["mn", {}, number]


def mo(sign: str, **about: str) -> list[Any]:
    return ["mo", about, sign]


OPEN, CLOSE = mo("(", stretchy="false"), mo(")", stretchy="false")
THIN = ["mspace", {"width": "0.167em"}]


@pytest.mark.parametrize(
    ("tex", "tree"),
    [
        ("a+b", [mi("a"), mo("+"), mi("b")]),
        ("12.5x", [mn("12.5"), mi("x")]),
        ("x_i^2", [["msubsup", {}, mi("x"), mi("i"), mn("2")]]),
        ("x^{2}_i", [["msubsup", {}, mi("x"), mi("i"), mn("2")]]),
        ("h'", [["msup", {}, mi("h"), mo("′")]]),
        ("h_{t-1}", [["msub", {}, mi("h"), ["mrow", {}, mi("t"), mo("−"), mn("1")]]]),
        (r"\frac{a}{b}", [["mfrac", {}, mi("a"), mi("b")]]),
        (r"\frac12", [["mfrac", {}, mn("1"), mn("2")]]),
        (r"\sqrt{x}", [["msqrt", {}, mi("x")]]),
        (r"\sqrt[3]{x}", [["mroot", {}, mi("x"), mn("3")]]),
        (r"\alpha \odot \beta", [mi("α"), mo("⊙"), mi("β")]),
        (r"\Delta", [["mi", {"mathvariant": "normal"}, "Δ"]]),
        (r"\mathbf{x}", [mi("𝐱")]),
        (r"\mathbb{R}", [mi("ℝ")]),
        (r"\mathrm{d}", [["mi", {"mathvariant": "normal"}, "d"]]),
        (r"\hat y", [["mover", {"accent": "true"}, mi("y"), mo("^", stretchy="false")]]),
        (r"\tanh(x)", [mi("tanh"), OPEN, mi("x"), CLOSE]),
        (r"\log x", [mi("log"), THIN, mi("x")]),
        (r"2 \log x", [mn("2"), THIN, mi("log"), THIN, mi("x")]),
        (r"\operatorname{score}(q)", [mi("score"), OPEN, mi("q"), CLOSE]),
        (r"\text{if } x", [["mtext", {}, "if\u00a0"], mi("x")]),
        (r"\text{$x$ or not}", [["mrow", {}, mi("x"), ["mtext", {}, "\u00a0or not"]]]),
        ("3{,}000", [mn("3"), mo(",", lspace="0", rspace="0"), mn("000")]),
        (
            r"\left(\frac ab\right)",
            [
                [
                    "mrow",
                    {},
                    *[
                        mo("(", stretchy="true", form="prefix"),
                        ["mfrac", {}, mi("a"), mi("b")],
                        mo(")", stretchy="true", form="postfix"),
                    ],
                ]
            ],
        ),
        (
            r"\begin{matrix} 1 & 2 \\ 3 & 4 \end{matrix}",
            [["mtable", {}, *[["mtr", {}, ["mtd", {}, mn(a)], ["mtd", {}, mn(b)]] for a, b in ("12", "34")]]],
        ),
    ],
)
def test_tex_becomes_the_tree_that_it_means(tex: str, tree: list[Any]) -> None:
    assert row(tex) == tree


def test_a_sum_has_its_limits_where_the_browser_wants_them() -> None:
    sum_of = ["munderover", {}, mo("∑"), ["mrow", {}, mi("i"), mo("="), mn("1")], mi("n")]
    assert mathml(r"\sum_{i=1}^n x_i", block=True) == [
        "math",
        {"display": "block"},
        sum_of,
        ["msub", {}, mi("x"), mi("i")],
    ]


def test_what_is_wanted_below_a_maximum_stands_below_it() -> None:
    node, *_ = row(r"\argmax_y p")
    assert (node[0], node[2][1]["movablelimits"], node[2][2]) == ("munder", "true", "arg max")


@pytest.mark.parametrize("tex", ["-x", "a = -x", "(-x)", "a, -x", r"e^{-x}", r"\exp -x"])
def test_a_minus_without_a_term_before_it_is_a_sign(tex: str) -> None:
    assert 'form="prefix">−' in to_html(mathml(tex))


@pytest.mark.parametrize("tex", ["a - x", "(a) - x", "a_1 - x", r"\frac12 - x", r"\left(a\right) - x", r"|a| - x"])
def test_a_minus_after_a_term_is_an_operator(tex: str) -> None:
    assert 'form="prefix">−' not in to_html(mathml(tex))


def test_cases_and_aligned_lines_begin_at_one_place() -> None:
    cases = to_html(mathml(r"f = \begin{cases} x & x > 0 \\ 0 & \text{otherwise} \end{cases}"))
    assert cases.count('columnalign="left"') == 4
    lines = to_html(mathml(r"a &= b \\ &= c"))
    assert [part.split('"')[0] for part in lines.split('columnalign="')[1:]] == ["right", "left"] * 2
    assert to_html(mathml(r"a = b \\ c = d")).count('columnalign="left"') == 2


@pytest.mark.parametrize(
    ("tex", "told"),
    [
        (r"\foo x", r"unknown macro \foo"),
        (r"\frac{a}", "something is missing"),
        (r"\frac{a", "} is missing"),
        ("x^a^b", "two superscripts"),
        ("x_a_b", "two subscripts"),
        (r"\left( x", r"\right is missing"),
        (r"\begin{nonsense} x \end{nonsense}", "unknown environment nonsense"),
        ("a}", "} without its beginning"),
        ("5 %", r"the sign itself is \%"),
        ("{" * 1000, "nested more than"),
        (r"\hat" * 1000, "nested more than"),
        (r"\sqrt[3", "] is missing"),
    ],
)
def test_what_cannot_be_set_is_named(tex: str, told: str) -> None:
    with pytest.raises(ValueError) as wrong:
        mathml(tex)
    assert told in str(wrong.value)
    assert "\n" not in str(wrong.value)
    assert len(str(wrong.value)) < 200


# As they stand in the glossaries of the mixers, in the papers, and on the slides.
EQUATIONS = {
    "attention": r"\operatorname{Attention}(Q, K, V) = \softmax\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V",
    "additive": r"e_{tj} = v^\top \tanh(W_a s_{t-1} + U_a h_j), \quad c_t = \sum_j \alpha_{tj} h_j",
    "lstm": r"c_t = f \odot c_{t-1} + i \odot \tilde c \qquad h_t = o \odot \tanh(c_t)",
    "gru": r"h_t = (1 - z_t) \odot h_{t-1} + z_t \odot \tilde h_t",
    "s4d": r"K_j = 2 \Re(C \bar A^j \bar B), \quad \bar B = (\bar A - 1) / A \cdot B",
    "mamba": r"h_t = \exp(\Delta_t A) h_{t-1} + \Delta_t B_t x_t, \quad y_t = C_t^\top h_t + D x_t",
    "ssd": r"y = \left(L \odot (C B^\top)\right)(\Delta x), \quad L_{ij} = \exp\Big(\sum_{j < k \le i} \Delta_k A\Big)",
    "kneser-ney": r"p(w \mid h) = \frac{\max(c(hw) - D, 0)}{c(h\,\cdot)} + \gamma(h) \, p(w \mid h')",
    "backpack": r"o_i = \sum_{j \le i} \sum_{\ell=1}^{k} \alpha_{\ell i j} \, C(x_j)_\ell",
    "rope": r"\begin{pmatrix} \cos m\theta & -\sin m\theta \\ \sin m\theta & \cos m\theta \end{pmatrix}",
    "bleu": r"\text{BLEU} = \min\left(1, e^{1 - r/c}\right) \exp\left(\sum_{n=1}^4 \tfrac14 \log p_n\right)",
    "gnmt": r"\operatorname{cp}(X; Y) = \beta \sum_{i=1}^{|X|} \log \min\Big(\sum_{j=1}^{|Y|} p_{ij}, 1\Big)",
    "chain": r"p(w_1, \ldots, w_T) = \prod_{t=1}^{T} p(w_t \mid w_{<t}), \quad \mathcal L = -\frac1T \sum_t \log p_t",
    "aer": r"\mathrm{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}",
    "descent": r"\theta \leftarrow \theta - \eta \, \nabla_{\!\theta} J, \quad \frac{\partial J}{\partial w}",
}


@pytest.mark.parametrize("name", EQUATIONS)
@pytest.mark.parametrize("block", [False, True])
def test_the_equations_of_the_field_can_be_set(name: str, block: bool) -> None:
    node = mathml(EQUATIONS[name], block)
    assert "\\" not in text_of(node)
    assert to_html(node).count("<math") == 1
