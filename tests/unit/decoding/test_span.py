from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.table import random_table
from regard.core.model import logits_of
from regard.core.registry import build
from regard.decoding import logits as logits_module
from regard.decoding import span as span_module
from regard.decoding.span import Span, read_spans, whole, windows


@settings(max_examples=300, deadline=None)
@given(st.integers(-1, 5), st.integers(1, 60), st.integers(1, 20), st.data())
def test_windows_count_every_token_once_with_the_context_they_promise(
    begin: int, n: int, length: int, data: st.DataObject
) -> None:
    stride = data.draw(st.one_of(st.none(), st.integers(1, length)))
    spans = windows(begin, begin + n, length, stride)
    counted = [index for span in spans for index in range(span.counted, span.end + 1)]
    assert counted == list(range(begin + 1, begin + n + 1))
    new = max(1, length // 2) if stride is None else stride
    for span in spans:
        assert span.begin >= begin
        assert span.length <= length
        assert span.begin == begin or span.counted - span.begin - 1 >= length - new


def test_readings_are_the_chain_rule_whatever_is_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_module, "POSITIONS_AT_ONCE", 5)
    model = random_table(6, seed=0)
    ids = np.random.default_rng(0).integers(0, 6, 60).astype(np.uint16)
    spans = [Span(-1, 0, 11), Span(8, 12, 16), Span(16, 17, 17), *whole(17, 59)]
    log_p = model.logits.log_softmax(-1)
    for batch_size in (1, 2, 3, 10):
        found = {}
        for reading in read_spans(model, ids, spans, start_id=3, batch_size=batch_size):
            for index, value, best in zip(reading.index, reading.log_prob, reading.best, strict=True):
                assert index not in found
                found[int(index)] = (value, best)
        assert sorted(found) == list(range(60))
        for span in spans:
            for i in range(span.counted, span.end + 1):
                current = 3 if i == 0 else int(ids[i - 1])
                previous = 6 if i - 1 == span.begin else (3 if i == 1 else int(ids[i - 2]))
                row = log_p[previous, current]
                assert found[i] == (pytest.approx(float(row[ids[i]]), abs=1e-12), int(row.argmax()) == ids[i])


@pytest.mark.parametrize("name", ["gpt", "lstm"])
def test_memory_does_not_grow_with_the_text_nor_with_the_vocabulary(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The head never makes more logits at once than it may, and the sum is that of one plain call."""
    torch.manual_seed(0)
    model = build(name, vocab_size=50, size="tiny").double()
    n = min(60, model.max_length or 60)
    ids = np.arange(n) * 7 % 50
    plain = logits_of(model, torch.tensor([[0, *ids[:-1]]])).log_softmax(-1)[0, torch.arange(n), torch.tensor(ids)]
    made = []
    model.head.register_forward_hook(lambda *call: made.append(call[-1].numel()))
    monkeypatch.setattr(logits_module, "LOGITS_AT_ONCE", 400)
    monkeypatch.setattr(span_module, "POSITIONS_AT_ONCE", 16)
    found = np.zeros(n)
    for reading in read_spans(model, ids, whole(-1, n - 1), start_id=0):
        found[reading.index] = reading.log_prob
    assert max(made) <= 400
    np.testing.assert_allclose(found, plain.detach().numpy(), atol=1e-11)


def test_a_model_without_a_separate_head_is_read_in_chunks_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logits_module, "LOGITS_AT_ONCE", 40)
    model = random_table(5, seed=0)
    ids = np.arange(30) % 5
    list(read_spans(model, ids, [Span(-1, 0, 29), Span(-1, 0, 20)], start_id=0))
    assert all(rows * length * 5 <= 40 for rows, length in model.calls)
