"""What the names of TeX stand for in formulas: letters, operators, relations, functions, accents.

Bold, script and double-struck letters are characters of their own (Unicode, Mathematical Alphanumeric Symbols), so that
a formula needs no style sheet.
"""

from __future__ import annotations

from regard.charts.markup import words

GREEK = "alpha beta gamma delta zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi omega"
GREEK_CAPITALS = "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
LETTERS = {
    **dict(zip(GREEK.split(), "αβγδζηθικλμνξπρστυϕχψω", strict=True)),
    "epsilon": "ϵ",
    "varepsilon": "ε",
    "varphi": "φ",
    "vartheta": "ϑ",
    "varrho": "ϱ",
    "varsigma": "ς",
    "ell": "ℓ",
    "imath": "ı",
    "jmath": "ȷ",
    "hbar": "ℏ",
}
# Upright, as TeX sets them.
CAPITALS = {
    **dict(zip(GREEK_CAPITALS.split(), "ΓΔΘΛΞΠΣΥΦΨΩ", strict=True)),
    "infty": "∞",
    "nabla": "∇",
    "partial": "∂",
    "emptyset": "∅",
    "varnothing": "∅",
    "top": "⊤",
    "bot": "⊥",
    "Re": "Re",
    "Im": "Im",
    "ldots": "…",
    "dots": "…",
    "cdots": "⋯",
    "vdots": "⋮",
    "ddots": "⋱",
    "prime": "′",
    "%": "%",
    "#": "#",
    "$": "$",
    "&": "&",
    "_": "_",
    "checkmark": "✓",
    "dagger": "†",
}
# With the room of a binary operator on both sides.
BINARY = {
    "cdot": "⋅",
    "times": "×",
    "div": "÷",
    "pm": "±",
    "mp": "∓",
    "ast": "∗",
    "star": "⋆",
    "circ": "∘",
    "bullet": "∙",
    "odot": "⊙",
    "oplus": "⊕",
    "otimes": "⊗",
    "ominus": "⊖",
    "cup": "∪",
    "cap": "∩",
    "setminus": "∖",
    "land": "∧",
    "wedge": "∧",
    "lor": "∨",
    "vee": "∨",
}
# With the room of a relation on both sides.
RELATIONS = {
    "sim": "∼",
    "simeq": "≃",
    "approx": "≈",
    "cong": "≅",
    "equiv": "≡",
    "propto": "∝",
    "triangleq": "≜",
    "leq": "≤",
    "le": "≤",
    "geq": "≥",
    "ge": "≥",
    "neq": "≠",
    "ne": "≠",
    "ll": "≪",
    "gg": "≫",
    "lt": "<",
    "gt": ">",
    "in": "∈",
    "notin": "∉",
    "ni": "∋",
    "subset": "⊂",
    "subseteq": "⊆",
    "supset": "⊃",
    "supseteq": "⊇",
    "to": "→",
    "rightarrow": "→",
    "leftarrow": "←",
    "gets": "←",
    "leftrightarrow": "↔",
    "mapsto": "↦",
    "longrightarrow": "⟶",
    "Rightarrow": "⇒",
    "Leftarrow": "⇐",
    "Leftrightarrow": "⇔",
    "implies": "⟹",
    "iff": "⟺",
    "uparrow": "↑",
    "downarrow": "↓",
    "mid": "|",
    "parallel": "∥",
    "perp": "⊥",
    "coloneqq": "≔",
    "vdash": "⊢",
}
LARGE = {
    "sum": "∑",
    "prod": "∏",
    "coprod": "∐",
    "int": "∫",
    "oint": "∮",
    "bigcup": "⋃",
    "bigcap": "⋂",
    "bigoplus": "⨁",
    "bigotimes": "⨂",
    "bigodot": "⨀",
}
FENCES = {
    "(": "(",
    ")": ")",
    "[": "[",
    "]": "]",
    "|": "|",
    "/": "/",
    "lbrace": "{",
    "rbrace": "}",
    "{": "{",
    "}": "}",
    "langle": "⟨",
    "rangle": "⟩",
    "lfloor": "⌊",
    "rfloor": "⌋",
    "lceil": "⌈",
    "rceil": "⌉",
    "vert": "|",
    "lvert": "|",
    "rvert": "|",
    "Vert": "‖",
    "lVert": "‖",
    "rVert": "‖",
    "backslash": "\\",
}
OPENS = frozenset("([{⟨⌊⌈")
# Words set upright; what stands below those of the second list goes under them.
FUNCTIONS = words(
    "log ln lg exp sin cos tan sinh cosh tanh sec csc cot arcsin arccos arctan arg deg det dim gcd hom ker Pr "
    "softmax sigmoid softplus ReLU relu silu gelu diag sign tr rank Var Cov KL BLEU"
)
LIMITS = words("max min sup inf lim argmax argmin")
ACCENTS = {
    "hat": "^",
    "widehat": "^",
    "tilde": "~",
    "widetilde": "~",
    "bar": "¯",
    "overline": "¯",
    "vec": "→",
    "dot": "˙",
    "ddot": "¨",
    "check": "ˇ",
    "breve": "˘",
}
STRETCHED = frozenset({"widehat", "widetilde", "overline", "overrightarrow"})
SPACES = {",": 3 / 18, ":": 4 / 18, ">": 4 / 18, ";": 5 / 18, "!": -3 / 18, " ": 6 / 18, "~": 6 / 18}
SPACES |= {"quad": 1.0, "qquad": 2.0, "thinspace": 3 / 18, "enspace": 0.5}
# Of each kind of letter: where A, a and 0 begin, and the letters that Unicode had before.
STYLES: dict[str, tuple[int, int, int, dict[str, str]]] = {
    "bold": (0x1D400, 0x1D41A, 0x1D7CE, {}),
    "script": (0x1D49C, 0x1D4B6, 0, dict(zip("BEFHILMRego", "ℬℰℱℋℐℒℳℛℯℊℴ", strict=True))),
    "double": (0x1D538, 0x1D552, 0x1D7D8, dict(zip("CHNPQRZ", "ℂℍℕℙℚℝℤ", strict=True))),
    "fraktur": (0x1D504, 0x1D51E, 0, dict(zip("CHIRZ", "ℭℌℑℜℨ", strict=True))),
    "sans": (0x1D5A0, 0x1D5BA, 0x1D7E2, {}),
    "mono": (0x1D670, 0x1D68A, 0x1D7F6, {}),
}
BOLD_GREEK = {
    **{chr(0x391 + place): chr(0x1D6A8 + place) for place in range(25)},
    **{chr(0x3B1 + place): chr(0x1D6C2 + place) for place in range(25)},
    "ϵ": "\U0001d6dc",
    "ϕ": "\U0001d6df",
    "∇": "\U0001d6c1",
}
STYLED = {
    "mathbf": "bold",
    "boldsymbol": "bold",
    "bm": "bold",
    "mathcal": "script",
    "mathscr": "script",
    "mathbb": "double",
    "mathfrak": "fraktur",
    "mathsf": "sans",
    "mathtt": "mono",
    "mathrm": "upright",
    "mathit": "italic",
}
TEXTS = {"text": "", "textrm": "", "mbox": "", "textit": "em", "textbf": "strong", "texttt": "code"}
ENVIRONMENTS = {
    "matrix": ("", ""),
    "pmatrix": ("(", ")"),
    "bmatrix": ("[", "]"),
    "Bmatrix": ("{", "}"),
    "vmatrix": ("|", "|"),
    "Vmatrix": ("‖", "‖"),
    "smallmatrix": ("", ""),
    "array": ("", ""),
    "cases": ("{", ""),
    "aligned": ("", ""),
    "align": ("", ""),
    "align*": ("", ""),
    "split": ("", ""),
    "gathered": ("", ""),
}
ALIGNED = frozenset({"aligned", "align", "align*", "split"})


def styled(letters: str, style: str) -> str:
    """Letters of another kind; what has no such form stays as it is.

    >>> styled("Rh", "double")
    'ℝ𝕙'
    """
    capital, small, digit, before = STYLES[style]
    return "".join(_styled(letter, style, capital, small, digit, before) for letter in letters)


def _styled(letter: str, style: str, capital: int, small: int, digit: int, before: dict[str, str]) -> str:
    if letter in before:
        return before[letter]
    if "A" <= letter <= "Z":
        return chr(capital + ord(letter) - ord("A"))
    if "a" <= letter <= "z":
        return chr(small + ord(letter) - ord("a"))
    if digit and "0" <= letter <= "9":
        return chr(digit + ord(letter) - ord("0"))
    return BOLD_GREEK.get(letter, letter) if style == "bold" else letter
