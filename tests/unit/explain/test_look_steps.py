"""The numbers of a mechanism, worked out, are those that the layer itself comes to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from look_run import TEXT, class_run, pair_run, seen, text_run
from regard.core.model import logits_of
from regard.errors import UsageError
from regard.explain.inputs import read
from regard.explain.looks.steps import _tokens, steps
from regard.kernels.selective_scan import selective_scan_readable
from regard.kernels.ssd_readable import ssd_recurrent
from regard.tasks.reading import Side


def test_attention_ends_with_the_context_of_the_head() -> None:
    run = text_run("gpt")
    view = seen(run, steps, layer=1, head=2, position=4, reduce=0)
    summary = read(run, TEXT).trace()["stack.layers.0.mixer.summary"][0].numpy()
    np.testing.assert_allclose(view["context"].values[0], summary[4, 1], atol=1e-12)
    q, keys, scores = view["query"].values[0], view["keys"].values, view["scores"].values[0]
    np.testing.assert_allclose(keys @ q / np.sqrt(len(q)), scores, atol=1e-12)
    np.testing.assert_allclose(np.exp(scores) / np.exp(scores).sum(), view["weights"].values[0], atol=1e-12)
    np.testing.assert_allclose(view["weights"].values[0] @ view["values"].values, view["context"].values[0], atol=1e-12)


def test_attention_over_a_source_is_worked_out_for_a_written_token() -> None:
    view = seen(pair_run("bahdanau"), steps, target="the cat", reduce=0, position=1)
    assert view.about["kind"] == "cross"
    np.testing.assert_allclose(view["weights"].values[0] @ view["values"].values, view["context"].values[0], atol=1e-12)
    assert next(iter(view["weights"].columns)) == "the (1)"


def test_the_memory_of_an_lstm_is_what_it_keeps_and_writes() -> None:
    run = text_run("lstm")
    view = seen(run, steps, layer=1, position=3, reduce=0)
    rows = dict(zip(view["step"].rows, view["step"].values, strict=True))
    np.testing.assert_allclose(rows["f * c'"] + rows["i * g"], rows["c (memory)"], atol=1e-12)
    hidden, (_, c) = run.model.stack.layers[0].mixer.cell(read_by_the_first_layer(run, 3))
    np.testing.assert_allclose(rows["c (memory)"], c[0, 0].detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(rows["h = o * tanh(c)"], hidden[0, -1].detach().numpy(), atol=1e-12)


@pytest.mark.parametrize("name", ["rnn", "gru"])
def test_the_step_of_a_recurrence_is_that_of_torch(name: str) -> None:
    run = text_run(name)
    view = seen(run, steps, layer=1, position=3, reduce=0)
    rows = dict(zip(view["step"].rows, view["step"].values, strict=True))
    hidden, _ = run.model.stack.layers[0].mixer.cell(read_by_the_first_layer(run, 3))
    np.testing.assert_allclose(rows["h"], hidden[0, 3].detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(rows["h'"], hidden[0, 2].detach().numpy(), atol=1e-12)
    if name == "rnn":
        np.testing.assert_allclose(np.tanh(rows["sum"]), rows["h"], atol=1e-12)


def test_a_convolution_sums_to_the_output_of_the_channel() -> None:
    run = text_run("s4d")
    view = seen(run, steps, layer=2, head=3, position=5)
    channels = read(run, TEXT).trace()["stack.layers.1.mixer.channels"][0].numpy()
    assert view["output"].values[0, 2] == pytest.approx(channels[5, 2], abs=1e-9)
    np.testing.assert_allclose(view["convolution"].values[:, 2].sum(), view["output"].values[0, 0], atol=1e-9)


def test_a_selective_scan_comes_to_the_output_of_the_equation() -> None:
    run = text_run("mamba")
    view = seen(run, steps, layer=1, head=2, position=6)
    name, trace = "stack.layers.0.mixer", read(run, TEXT).trace()
    u, dt, b, c = (trace[f"{name}.{part}"] for part in ("stream", "steps", "inputs", "readers"))
    a = -run.model.stack.layers[0].mixer.log_decay.detach().exp()
    y, _ = selective_scan_readable(u, dt, a, b, c, torch.zeros(1, *a.shape).double())
    assert view["output"].values[0, 0] == pytest.approx(float(y[0, 6, 1]), abs=1e-12)
    keep, write, h = view["scan"].values[:, 2:5].T
    np.testing.assert_allclose(keep[1:] * h[:-1] + write[1:], h[1:], atol=1e-12)


def test_a_mean_and_a_window_are_those_of_the_layer() -> None:
    view = seen(text_run("dan"), steps, reduce=0, position=3)
    rows = view["mean"].values
    np.testing.assert_allclose(rows[:-1].mean(0), rows[-1], atol=1e-12)
    run = text_run("fnn")
    view = seen(run, steps, reduce=0, position=2)
    layer = run.model.stack.layers[0].mixer
    wanted = layer.window_to_hidden(read_by_the_first_layer(run, 2).flatten(1))[0].detach().numpy()
    np.testing.assert_allclose(view["window"].values[-1], wanted, atol=1e-12)


def test_senses_sum_to_what_the_model_shows() -> None:
    run = text_run("backpack")
    view = seen(run, steps, reduce=0, position=4)
    h = run.model.encode(torch.tensor([[SIZE - 1, *ids()]]))[0, 4].detach().numpy()
    np.testing.assert_allclose(view["output"].values[0], h, atol=1e-12)
    np.testing.assert_allclose(view["weights"].values.sum(0), np.ones(view["weights"].values.shape[1]), atol=1e-12)


def test_the_answer_is_the_models_own_distribution() -> None:
    run = text_run("gpt")
    view = seen(run, steps, position=6)
    chances = logits_of(run.model, torch.tensor([[SIZE - 1, *ids()]]))[0, 6].softmax(-1)
    assert view["answer"].values[0, 1] == pytest.approx(float(chances.detach().max()))


def test_vectors_are_reduced_for_reading_and_it_is_said() -> None:
    view = seen(text_run("gpt"), steps, reduce=4)
    assert view["query"].values.shape == (1, 4)
    assert "the first 4 of 8 numbers" in view["query"].note


def test_heads_and_channels_that_do_not_exist_are_refused() -> None:
    with pytest.raises(UsageError, match="heads 1 to 2"):
        seen(text_run("gpt"), steps, head=7)
    with pytest.raises(UsageError, match="channels of this layer are 1 to"):
        seen(text_run("s4d"), steps, head=700)


def read_by_the_first_layer(run: Any, words: int) -> torch.Tensor:
    """The vectors of the start symbol and of some words, normalised as the first layer reads them."""
    vectors = run.model.embedding(torch.tensor([[SIZE - 1, *ids()[:words]]]), torch.zeros(1, dtype=torch.long))
    return run.model.stack.layers[0].mixer_norm(vectors)


SIZE = text_run("dan").tokenizer.vocab_size


def ids() -> list[int]:
    return text_run("dan").tokenizer.encode(TEXT).tolist()


@pytest.mark.parametrize("encoder", ["lstm", "gru", "rnn", "s4d", "mamba", "mamba2"])
def test_both_directions_of_a_layer_are_worked_out_each_in_its_own_order(encoder: str) -> None:
    run = class_run(encoder=encoder, n_layers=2)
    view = seen(run, steps, layer=2, position=2, reduce=0)
    assert view.about["layer"] == 2
    trace = read(run, TEXT).trace()
    state = "memory" if encoder == "lstm" else "hidden" if encoder in ("gru", "rnn") else None
    for key, part, place in (("step", "past", 1), ("step.backward", "future", len(TEXT.split()) + 1 - 2)):
        name = next(tap for tap in trace if f"layers.1.mixer.{part}." in tap).rpartition(".")[0]
        if state is not None:
            rows = dict(zip(view[key].rows, view[key].values, strict=True))
            wanted = trace[f"{name}.{state}"][0, place].numpy()
            np.testing.assert_allclose(rows["c (memory)" if encoder == "lstm" else "h"], wanted, atol=1e-12)
        elif encoder == "s4d":
            output = view[key.replace("step", "output")].values[0, 2]
            assert output == pytest.approx(float(trace[f"{name}.channels"][0, place, 0]), abs=1e-9)
        else:
            scan = view[key.replace("step", "scan")]
            assert scan.values[-1, 0] == pytest.approx(float(trace[f"{name}.stream"][0, place].flatten()[0]))


def test_mamba_2_comes_to_the_output_of_its_own_equation() -> None:
    run = text_run("mamba2")
    mixer = run.model.stack.layers[0].mixer
    name, trace = "stack.layers.0.mixer", read(run, TEXT).trace()
    x, dt, b, c = (trace[f"{name}.{part}"] for part in ("stream", "steps", "inputs", "readers"))
    decay = dt * -mixer.log_decay.detach().exp()
    state = torch.zeros(1, *x.shape[2:], b.shape[-1]).double()
    y, _ = ssd_recurrent(x * dt[..., None], decay, b, c, state)
    for head in range(1, x.shape[2] + 1):
        view = seen(run, steps, layer=1, head=head, position=6)
        assert view["output"].values[0, 0] == pytest.approx(float(y[0, 6, head - 1, 0]), abs=1e-12)


@pytest.mark.parametrize("position", ["alibi", "rotary"])
def test_scores_are_those_of_the_equation_that_stands_above_them(position: str) -> None:
    run = text_run("gpt", position=position)
    view = seen(run, steps, layer=1, head=2, position=5, reduce=0)
    q, keys = view["query"].values[0], view["keys"].values
    plain = keys @ q / np.sqrt(len(q))
    if position == "alibi":
        assert "- m (t - j)" in view["scores"].equation
        slope = (plain - view["scores"].values[0])[:-1] / np.arange(5, 0, -1)
        np.testing.assert_allclose(slope, slope[0])
    else:
        assert view["query"].equation == "q = rotate norm(W_Q x)"
        np.testing.assert_allclose(plain, view["scores"].values[0], atol=1e-12)


def test_the_text_of_the_steps_shows_its_blanks() -> None:
    assert _tokens(Side("text", ("<s>", "a", " ", "b")), 2).text == "<s> a [␣] b"
