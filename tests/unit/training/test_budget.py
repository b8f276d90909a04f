from __future__ import annotations

import pytest

from regard.errors import UsageError
from regard.training import budget
from regard.training.budget import Budget


@pytest.mark.parametrize(
    ("text", "kind", "amount"),
    [
        ("90s", "seconds", 90), ("2m", "seconds", 120), ("1.5h", "seconds", 5400), ("500steps", "steps", 500),
        ("500 steps", "steps", 500), ("1step", "steps", 1), ("2ksteps", "steps", 2000), ("3Mtokens", "tokens", 3e6),
        ("3e6tokens", "tokens", 3e6), ("1e15flops", "flops", 1e15), ("2Pflops", "flops", 2e15), (" 9 s ", "seconds", 9),
    ],
)  # fmt: skip
def test_a_budget_is_read(text, kind, amount):
    assert budget.parse(text) == Budget(kind, amount)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "m",
        "-2m",
        "0s",
        "nan s",
        "1e999s",
        "2M",
        "3ks",
        "1.5steps",
        "5 parsecs",
        "2m30s",
        "١s",
        "9" * 400 + "s",
    ],
)
def test_what_is_no_budget_is_refused_with_examples(text):
    with pytest.raises(UsageError, match=r"train\.budget: "):
        budget.parse(text)


@pytest.mark.parametrize(("kind", "spent"), [("seconds", 3.0), ("steps", 10), ("tokens", 40), ("flops", 400)])
def test_progress_is_the_part_spent_and_never_above_one(kind, spent):
    numbers = {"step": 10, "tokens": 40, "seconds": 3.0, "flops_per_token": 10}
    assert Budget(kind, 2 * spent).progress(**numbers) == 0.5
    assert Budget(kind, spent / 2).progress(**numbers) == 1
