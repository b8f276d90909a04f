"""What proposes tokens to the texts of a run: another run, or the text so far."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.data.tokenizer import as_file
from regard.decoding.draft import LOOKUP, TOKENS, Drafter
from regard.errors import UsageError
from regard.storage import manifest
from regard.tasks.verbs import Generates

if TYPE_CHECKING:
    from regard.run.run import Run


def drafter_of(run: Run, draft: str | Path | Run, tokens: int) -> Drafter:
    """What drafts for a run: the prompt and the text so far, or a run with the same tokenizer."""
    from regard.run.run import Run

    run.able(Generates)
    if draft == LOOKUP:
        return Drafter.of_text(tokens)
    other = draft if isinstance(draft, Run) else _drafting_from(run, draft)
    if as_file(other.tokenizer) != as_file(run.tokenizer):
        raise UsageError(
            f"{other.path} cannot draft for {run.path}: their tokenizers differ; train both on the same tokens"
        )
    return Drafter.of_model(other.writer.model, tokens, other.writer.window)


def with_drafter(run: Run, options: dict[str, Any]) -> dict[str, Any]:
    """The options with a draft that was named made into what drafts."""
    draft, tokens = options.get("draft"), options.get("draft_tokens")
    rest = {name: value for name, value in options.items() if name not in ("draft", "draft_tokens")}
    if draft is not None and not isinstance(draft, Drafter):
        return rest | {"draft": drafter_of(run, draft, TOKENS if tokens is None else tokens)}
    if tokens is not None:
        raise UsageError("draft_tokens is how many tokens a draft that is named beside it proposes; name a draft")
    return rest if draft is None else rest | {"draft": draft}


def _drafting_from(run: Run, path: str | Path) -> Run:
    """The run in a folder, on this run's device: the one that was loaded last, where the folder is as it was."""
    from regard.run.run import load

    device, where = str(run.device), Path(path).expanduser().resolve()
    # A model in another format has no manifest by which to know that it is the same.
    key = (where, device, manifest.read(where)) if (where / manifest.NAME).exists() else None
    if key is not None and run.drafting is not None and run.drafting[0] == key:
        return run.drafting[1]
    run.drafting = (key, load(path, device=device))
    return run.drafting[1]
