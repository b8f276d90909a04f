"""Equations in plain text as TeX, against TeX written by hand; all of those that the package shows can be set."""

from __future__ import annotations

import pytest

from regard.charts.formula import mathml
from regard.explain.notation import BY_HAND, tex_of
from regard.explain.view import Note, Numbers
from regard.explain.worked import example, examples


def tight(tex: str) -> str:
    return tex.replace(" ", "")


@pytest.mark.parametrize(
    ("plain", "tex"),
    [
        ("h_t = tanh(W_h h_(t-1) + W_i x_t)", r"h_{t} = \tanh(W_{h} h_{t-1} + W_{i} x_{t})"),
        ("c_t = f * c_(t-1) + i * c~", r"c_{t} = f \odot c_{t-1} + i \odot \tilde{c}"),
        ("e_tj = v_a . tanh(U_a h_j)", r"e_{tj} = v_{a} \cdot \tanh(U_{a} h_{j})"),
        ("S = Q K^T", r"S = Q K^{\top}"),
        ("c = h_T", "c = h_{T}"),
        ("c_t = sum_j alpha_tj h_j", r"c_{t} = \sum_{j} \alpha_{tj} h_{j}"),
        ("u_i = sum over r != i, l of C(x_r)_l", r"u_{i} = \sum_{r \ne i, l} C(x_{r})_{l}"),
        ("P(w_i | w_1 .. w_(i-1))", r"P(w_{i} \mid w_{1} \,\ldots\, w_{i-1})"),
        ("d^-0.5 |Y|", "d^{-0.5} |Y|"),
        ("m = 2^(-8 h / H)    j <= i", r"m = 2^{-8 h / H} \qquad j \le i"),
        ("0.1 x 2 (theta_t - 3)", r"0.1 \times 2 (\theta_{t} - 3)"),
        ("A\nB", r"A \\ B"),
        ("the product up to each word", ""),
    ],
)
def test_plain_equations_have_the_tex_that_they_mean(plain: str, tex: str) -> None:
    assert tight(tex_of(plain)) == tight(tex)


@pytest.mark.parametrize("plain", BY_HAND)
def test_what_is_written_by_hand_can_be_set(plain: str) -> None:
    assert mathml(BY_HAND[plain], block=True)


@pytest.mark.parametrize("name", examples())
def test_the_equations_of_worked_examples_are_set_on_a_page_and_plain_elsewhere(name: str) -> None:
    for panel in example(name).panels:
        plain = panel.equation if isinstance(panel, Numbers) else ""
        if isinstance(panel, Note) and panel.style == "equation":
            plain = panel.text
        told = panel.to_page()
        assert ("math" in told) == bool(plain and tex_of(plain))
        assert "tex" not in told
        if plain:
            assert plain in panel.to_dict().values()
