"""What an error says to a client: all that it names, and no place of the machine."""

from __future__ import annotations

import pytest

from regard.decoding.automaton import automaton
from regard.errors import UsageError
from regard.serving.engine.ask import refusal


@pytest.mark.parametrize(
    ("pattern", "named"), [(r"(a)\1", r"\1"), (r"\p{L}+", r"\p{L}"), (r"a\b", r"\b"), (r"[\Z]", r"\Z")]
)
def test_what_a_pattern_may_not_have_is_named(pattern: str, named: str) -> None:
    with pytest.raises(UsageError) as error:
        automaton(pattern)
    assert refusal(1, error.value)["message"].endswith(f": {named} is not known")


@pytest.mark.parametrize("path", ["/home/a/x.txt", "~/x", "C:\\a\\b.txt", "D:/a b", "/", "/etc"])
def test_a_place_of_the_machine_is_not(path: str) -> None:
    told = refusal(1, UsageError(f"{path}: is no file, see '{path}' (/tmp/y)"))["message"]
    assert path.split(" ")[0] not in told
    assert "/tmp" not in told
    assert "is no file" in told
