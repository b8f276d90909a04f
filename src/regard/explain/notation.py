r"""Equations as this package writes them in plain text, in TeX, so that a page can set them.

    tex_of("h_t = tanh(W_h h_(t-1) + W_i x_t)")     h_{t-1}, \tanh and so on

Letters with `_` and `^`, `( )` around what belongs together, names of Greek letters and of functions, `*` for a product
of each with each, ` . ` for a dot product, ` / ` for a division. Fractions and a few others are written by hand.
"""

from __future__ import annotations

import re

from regard.charts import symbols

MOST_WORDS = 3  # of plain English; more are a sentence, which stays one
TOKEN = re.compile(
    r"(?P<tag></?\w+>)|(?P<gap> {2,})|\.\.|\d+(?:\.\d+)?|(?P<word>[A-Za-z]+)|<=|>=|!=|<-|(?P<script>[_^])|."
)
SCRIPT = re.compile(r"-?(?:\d+(?:\.\d+)?[a-z]*|[A-Za-z]+\d*)")
OVER = re.compile(r"\b(sum|softmax) over (.+?) of +")
TIMES = re.compile(r"(?<=[\d)nh]) x (?=[\d(nd])")
SIGNS = {"<=": r"\le ", ">=": r"\ge ", "!=": r"\ne ", "<-": r"\leftarrow ", "..": r"\,\ldots\, ", "*": r" \odot "}
SIGNS |= {".": r" \cdot ", "~": r" \approx ", "×": r" \times ", "{": r"\{", "}": r"\}"}
LARGE = {"sum": r"\sum", "prod": r"\prod", "grad": r"\nabla "}
TOGETHER = frozenset({"dt"})  # letters that are one name
UPRIGHT = frozenset({"PE", "emb", "score", "RNN", "lp", "cp"})
GAP = r" \qquad "
LONG_SUBSCRIPT = 3  # letters up to which each is an index

BY_HAND = {
    "c(v w)": r"c(v\,w)",
    "emb_i = c_i + p_i    p a table of max_length x d": (
        r"\operatorname{emb}_i = c_i + p_i \qquad p \text{ a table of max\_length} \times d"
    ),
    "y_t = g(W [x_(t-W+1) ; .. ; x_t] + b) = g(sum of a part for each place + b)": (
        r"y_t = g\big(W [x_{t-W+1}; \ldots; x_t] + b\big) = g\Big(\sum_{k=1}^{W} W_k \, x_{t-W+k} + b\Big)"
    ),
    "o_t = sum_j sum_l alpha_ljt C(x_j)_l        the senses C(x) never change with the context": (
        r"o_t = \sum_j \sum_l \alpha_{ljt} \, C(x_j)_l \qquad "
        r"\text{the senses } C(x) \text{ never change with the context}"
    ),
    "alpha_lij = softmax over j of  B [j = i] m_li + B/2 [all senses of x_j are zero]": (
        r"\alpha_{lij} = \softmax_j \left( B \, [j = i] \, m_{li} + "
        r"\frac{B}{2} \, [\text{all senses of } x_j \text{ are zero}] \right)"
    ),
    "P(w | v) = c(v w) / sum_w c(v w)": r"P(w \mid v) = \frac{c(v\,w)}{\sum_w c(v\,w)}",
    "P(w | v) = (c(v w) + 1) / (sum_w c(v w) + 3)": r"P(w \mid v) = \frac{c(v\,w) + 1}{\sum_w c(v\,w) + 3}",
    "weights_i = b^score_i / sum_j b^score_j        b = 3, b = e": (
        r"\text{weights}_i = \frac{b^{\text{score}_i}}{\sum_j b^{\text{score}_j}} \qquad b = 3, \; b = e"
    ),
    "(e_1 + e_2 + e_3 + e_4) / 4": r"\frac{e_1 + e_2 + e_3 + e_4}{4}",
    "S = Q K^T / sqrt(3)": r"S = \frac{Q K^\top}{\sqrt{3}}",
    "exp(- sum_j a_j log a_j)": r"\exp\left(-\sum_j a_j \log a_j\right)",
    "cos(a, b) = a . b / (|a| |b|)": r"\cos(a, b) = \frac{a \cdot b}{|a| \, |b|}",
    "L = (L_1 + L_2 + L_3) / 3        perplexity = e^L": (
        r"L = \frac{L_1 + L_2 + L_3}{3} \qquad \text{perplexity} = e^L"
    ),
    "sum of all L_t / number of words": r"\frac{\sum L_t}{\text{number of words}}",
    "PE[p, 2k] = sin(p / 10000^(2k/d))    PE[p, 2k+1] = cos(p / 10000^(2k/d))    d = 8": (
        r"\mathrm{PE}_{p, 2k} = \sin\left(\frac{p}{10000^{2k/d}}\right) \qquad "
        r"\mathrm{PE}_{p, 2k+1} = \cos\left(\frac{p}{10000^{2k/d}}\right) \qquad d = 8"
    ),
    "(x_2k, x_2k+1) turned by p / 10000^(2k/d)    d = 4": (
        r"(x_{2k}, x_{2k+1}) \text{ turned by } \frac{p}{10000^{2k/d}} \qquad d = 4"
    ),
    "s(Y, X) = log P(Y | X) / lp(Y) + cp(X; Y)\n"
    "lp(Y) = (5 + |Y|)^alpha / (5 + 1)^alpha\n"
    "cp(X; Y) = beta sum_i log(min(sum_j p_ij, 1))    i over source, j over target": (
        r"s(Y, X) &= \frac{\log P(Y \mid X)}{\operatorname{lp}(Y)} + \operatorname{cp}(X; Y) \\"
        r"\operatorname{lp}(Y) &= \frac{(5 + |Y|)^\alpha}{(5 + 1)^\alpha} \\"
        r"\operatorname{cp}(X; Y) &= \beta \sum_i \log \min\Big(\sum_j p_{ij}, 1\Big) "
        r"\qquad i \text{ over source, } j \text{ over target}"
    ),
    "lp = ((5 + |Y|) / 6)^alpha": r"\operatorname{lp} = \left(\frac{5 + |Y|}{6}\right)^\alpha",
    "log p / lp": r"\frac{\log p}{\operatorname{lp}}",
    "s = log p / lp + cp": r"s = \frac{\log p}{\operatorname{lp}} + \operatorname{cp}",
    "cp = 0.2 sum_i log(min(sum_j p_ij, 1))": (r"\operatorname{cp} = 0.2 \sum_i \log \min\Big(\sum_j p_{ij}, 1\Big)"),
    "alpha_lii = m_li / sum_l m_li, and 0 where nothing matches": (
        r"\alpha_{lii} = \frac{m_{li}}{\sum_l m_{li}} \text{, and } 0 \text{ where nothing matches}"
    ),
    "A~ = exp(dt A)    B~ = (A~ - 1) / A": r"\tilde A = \exp(dt\, A) \qquad \tilde B = \frac{\tilde A - 1}{A}",
    "A~ = (1 + dt A / 2) / (1 - dt A / 2)    B~ = dt / (1 - dt A / 2)": (
        r"\tilde A = \frac{1 + dt\, A / 2}{1 - dt\, A / 2} \qquad \tilde B = \frac{dt}{1 - dt\, A / 2}"
    ),
    "y = K * u + D u": r"y = K * u + D u",
    "c_t = 1 * c_(t-1) + i * 1": r"c_t = 1 \cdot c_{t-1} + i \cdot 1",
    "A_n = -1/2 + i (N/pi) (N/(2n+1) - 1),  N = 8": (
        r"A_n = -\frac12 + i \, \frac{N}{\pi} \left(\frac{N}{2n + 1} - 1\right), \qquad N = 8"
    ),
    "A_n = -1/2 + i pi n": r"A_n = -\frac12 + i \pi n",
    "rate(s) = d^-0.5 min(s^-0.5, s warmup^-1.5)": (
        r"\text{rate}(s) = d^{-0.5} \min\left(s^{-0.5}, \; s \cdot \text{warmup}^{-1.5}\right)"
    ),
    "y_t = (x_1 + .. + x_t) / t": r"y_t = \frac{x_1 + \ldots + x_t}{t}",
    "e_j = q . k_j / sqrt(K)": r"e_j = \frac{q \cdot k_j}{\sqrt K}",
    "e_j = tau q . k_j / (|q| |k_j|)": r"e_j = \tau \, \frac{q \cdot k_j}{|q| \, |k_j|}",
}


def tex_of(equation: str) -> str:
    """The TeX of an equation; nothing where it is words rather than one."""
    if equation in BY_HAND:
        return BY_HAND[equation]
    lines = [_line(TIMES.sub(" × ", OVER.sub(r"\1_(\2) ", line))) for line in equation.splitlines()]
    return "" if any(line is None for line in lines) else r" \\ ".join(map(str, lines))


def _line(text: str) -> str | None:
    parts: list[str] = []
    place, words = 0, 0
    while place < len(text):
        found = TOKEN.match(text, place)
        assert found is not None
        begin, place = place, found.end()
        script, word = found["script"], found["word"]
        after = text[place:]
        if script:
            inside, place = _script(text, place, above=script == "^")
            parts.append(f"{script}{{{inside}}}")
        elif word == "sqrt" and after.startswith("("):
            inside, place = _script(text, place)
            parts.append(rf"\sqrt{{{inside}}}")
        elif word:
            told, is_plain = _word(word, after)
            words += is_plain
            place += after.startswith("~")
            parts.append(rf"\tilde{{{told}}}" if after.startswith("~") else told)
        else:
            parts.append(_sign(found, text[begin - 1 : begin], after))
    return None if words > MOST_WORDS else "".join(parts)


def _sign(found: re.Match[str], before: str, after: str) -> str:
    """What is no name: a number, a sign, a gap between two equations."""
    if found["tag"]:
        return rf"\text{{{found['tag']}}}\,"
    if found["gap"]:
        return GAP if len(found["gap"]) > 2 else r"\;"
    if found[0] == "|":
        return r" \mid " if before == " " and after.startswith(" ") else "|"
    return SIGNS.get(found[0], found[0])


def _script(text: str, place: int, above: bool = False) -> tuple[str, int]:
    """What stands below, above or under a root from a place on, and where it ends."""
    if text.startswith("(", place):
        depth, end = 1, place + 1
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        return _line(text[place + 1 : end - 1]) or "", end
    found = SCRIPT.match(text, place)
    if found is None:
        return "", place
    told = found[0]
    if told == "T" and above:
        told = r"\top"
    elif told in symbols.LETTERS:
        told = f"\\{told}"
    elif told.isalpha() and len(told) > LONG_SUBSCRIPT:
        told = rf"\text{{{told}}}"
    return told, found.end()


def _word(word: str, after: str) -> tuple[str, bool]:
    """A name or a word in TeX, and whether it is one of plain English."""
    if word in LARGE:
        return LARGE[word], False
    if len(word) == 1 or word in TOGETHER:
        return f"{word} " if word in TOGETHER else word, False
    if word in symbols.LETTERS:
        return f"\\{word} ", False
    if word in symbols.FUNCTIONS or word in symbols.LIMITS:
        return f"\\{word} ", False
    if word in UPRIGHT or after.startswith(("(", "_", "^")):
        return rf"\operatorname{{{word}}}", False
    return rf"\;\text{{{word}}}\;", True
