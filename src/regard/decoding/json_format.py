"""Formats of strings that JSON Schema names, as patterns: each tells texts that every reader of the format takes."""

from __future__ import annotations

from regard.errors import UsageError

DAY = (
    r"[1-9][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))"  # no 29th of February
)
TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?(?:Z|[+\-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
LABEL = r"[a-z0-9](?:[a-z0-9\-]{0,30}[a-z0-9])?"
FORMATS = {
    "date": DAY,
    "time": TIME,
    "date-time": f"{DAY}T{TIME}",
    "uuid": "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "ipv4": rf"{BYTE}(?:\.{BYTE}){{3}}",
    "email": rf"[a-z0-9]{{1,30}}(?:[._+\-][a-z0-9]{{1,20}}){{0,1}}@{LABEL}\.(?:{LABEL}\.)?[a-z]{{2,10}}",
}


def format_of(name: object) -> str:
    """The pattern of a format."""
    if not isinstance(name, str) or name not in FORMATS:
        raise UsageError(f"format: {str(name)[:40]!r} is not known here, but {', '.join(FORMATS)}; leave it out")
    return f"^{FORMATS[name]}$"
