"""The numbers on their way through a model: each is the model's own, and so is what it was made of."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from look_run import TEXT, class_run, masked_run, pair_run, seen, tag_run, text_run
from regard.core import registry
from regard.core.tap import Tap, taps
from regard.explain.flow import ROWS, WHOLE, Flow, FlowAnswers, across, blocks
from regard.explain.folding import Fold
from regard.explain.following import follow, listened
from regard.explain.inputs import read
from regard.explain.looks.flow import BINS, binned, flow
from regard.explain.packed import packed
from regard.explain.registry import shown
from regard.explain.render.terminal import lines
from regard.run.run import Run
from regard.serving.api import Api
from regard.serving.beginning import example_input
from regard.serving.guard import Refused
from regard.tasks import task_named

WRITERS = ("gpt", "lstm", "gru", "rnn", "mamba", "mamba2", "s4d", "backpack", "fnn", "dan")
PAIRS = ("seq2seq", "bahdanau", "gnmt", "transformer")


def panel_of(run: Run, text: str = TEXT, **options: Any) -> Flow:
    panel = seen(run, flow, text, **options).panels[0]
    assert isinstance(panel, Flow)
    return panel


def sources(panel: Flow, name: str, back: bool = False) -> set[str]:
    return {edge.source for edge in panel.edges if edge.target == name and edge.is_back == back}


@pytest.mark.parametrize("name", WRITERS)
def test_the_answers_at_the_end_are_those_of_the_model(name: str):
    run = text_run(name)
    panel = panel_of(run)
    tokens = read(run, TEXT).inputs[0]
    with torch.no_grad():
        wanted = run.model.head(run.model(tokens)[0])[0].double().softmax(-1)
    assert panel.answers is not None
    for place, names in enumerate(panel.answers.names):
        by_name = {run.tokenizer.token_text(token): float(p) for token, p in enumerate(wanted[place])}
        found = panel.answers.chances(place)
        np.testing.assert_allclose(found.sum(), 1, atol=1e-9)
        known = [(chance, by_name[one]) for one, chance in zip(names, found, strict=True) if one in by_name]
        assert len(known) >= 6
        np.testing.assert_allclose(*zip(*known, strict=True), rtol=1e-6)


def test_the_chance_of_what_came_is_that_of_a_score():
    run = text_run("gpt")
    panel, told = panel_of(run), run.score(TEXT)
    assert panel.answers is not None
    words = panel.sides["text"][1:]
    for place, (word, log_prob) in enumerate(zip(words, told.score.log_probs, strict=False)):
        at = list(panel.answers.names[place]).index(word)
        assert math.log(panel.answers.chances(place)[at]) == pytest.approx(log_prob, abs=1e-6)


@pytest.mark.parametrize("name", WRITERS)
def test_every_tap_is_a_node_with_its_numbers(name: str):
    run = text_run(name)
    panel = panel_of(run)
    trace = run.model.trace(read(run, TEXT).inputs[0])
    checked = 0
    for tap, value in trace.items():
        node = next((node for node in panel.nodes if node.name == tap), None)
        if node is None:  # of a layer that is one part, whose own node has the same numbers
            assert ".streams." in tap or tap.startswith("stack.streams")
            continue
        assert node.values is not None
        axis = run.model.get_submodule(tap).axis or 1
        wanted = value[0].movedim(axis - 1, 0).reshape(len(node.values[0]), -1)
        np.testing.assert_allclose(across(node.values), wanted, atol=1e-6)
        checked += 1
    assert checked >= 2


def test_a_layer_adds_what_its_parts_give_to_the_stream():
    panel = panel_of(text_run("gpt"))
    wanted = sum(across(_values(panel, name)) for name in sources(panel, "stack.streams.1"))
    assert sources(panel, "stack.streams.1") == {"stack.streams.0", "stack.layers.1.mixer", "stack.layers.1.mlp"}
    np.testing.assert_allclose(across(_values(panel, "stack.streams.1")), wanted, atol=1e-5)


def test_attention_is_worked_out_again_from_the_nodes_before_it():
    panel, of = panel_of(text_run("gpt")), "stack.layers.0.mixer"
    q, k, v = (_values(panel, f"{of}.{name}").astype(np.float64) for name in ("queries", "keys", "values"))
    scores = np.einsum("HTK,HSK->HTS", q, k) / math.sqrt(q.shape[-1])
    scores[:, *np.triu_indices(q.shape[1], 1)] = -np.inf
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(_values(panel, f"{of}.weights"), weights, atol=1e-5)
    np.testing.assert_allclose(_values(panel, f"{of}.summary"), weights @ v, atol=1e-5)
    assert sources(panel, f"{of}.summary") == {f"{of}.weights", f"{of}.values"}
    assert sources(panel, f"{of}.queries") == sources(panel, f"{of}.keys") == {"stack.layers.0.mixer_norm"}


def test_a_recurrence_goes_back_to_the_step_before():
    panel, of = panel_of(text_run("lstm")), "stack.layers.0.mixer"
    f, i, g, c, o = (
        _values(panel, f"{of}.{name}")[0]
        for name in ("forget_gate", "input_gate", "candidate", "memory", "output_gate")
    )
    np.testing.assert_allclose(c[1:], f[1:] * c[:-1] + i[1:] * g[1:], atol=1e-5)
    assert sources(panel, f"{of}.memory") == {f"{of}.{name}" for name in ("forget_gate", "input_gate", "candidate")}
    assert sources(panel, f"{of}.memory", back=True) == {f"{of}.memory"}
    # The gates see the state h = o tanh(c) of the step before, and nothing of their own.
    assert sources(panel, f"{of}.forget_gate") == {"stack.layers.0.mixer_norm"}
    assert sources(panel, f"{of}.forget_gate", back=True) == {f"{of}.memory", f"{of}.output_gate"}
    assert o.shape == c.shape


def test_a_decoder_looks_at_its_encoder():
    panel = panel_of(pair_run("transformer"), target="the cat sees")
    across_ = [node for node in panel.nodes if [*node.columns, node.band] == ["side:source", "target"]]
    assert across_
    for node in across_:
        within = node.name.rpartition(".")[0]
        assert sources(panel, f"{within}.keys") == {"encoder.norm"}
        assert sources(panel, f"{within}.queries") <= {one.name for one in panel.nodes if one.band == "target"}
    assert {node.band for node in panel.nodes} == {"source", "target"}


@pytest.mark.parametrize("make", [masked_run, class_run, tag_run])
def test_what_is_answered_comes_from_the_head(make: Any):
    panel = panel_of(make())
    assert sources(panel, "answer")
    assert _reaches(panel, "answer") >= {"input 1"}


@pytest.mark.parametrize("name", [*WRITERS, *PAIRS])
def test_what_is_read_reaches_the_answer(name: str):
    panel = panel_of(pair_run(name) if name in PAIRS else text_run(name))
    inputs = {node.name for node in panel.nodes if node.kind == "input"}
    assert _reaches(panel, "answer") >= inputs


def test_listening_leaves_no_trace_and_changes_no_number():
    run = text_run("lstm")
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    reading = read(run, TEXT)
    quiet = reading.run()
    followed = follow(reading.model, reading.forward, reading.inputs)
    torch.testing.assert_close(followed.outputs, quiet, atol=1e-12, rtol=0)
    assert torch.equal(reading.run(), quiet)
    assert all(not part._forward_hooks and not part._forward_pre_hooks for part in run.model.modules())
    assert all(torch.equal(value, before[name]) for name, value in run.model.state_dict().items())


class Doubled(nn.Module):
    """A stranger's part: two maps that are added in place, and a tap."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other, self.seen = nn.Linear(3, 3), nn.Linear(3, 3), Tap()

    def forward(self, x: Tensor) -> Tensor:
        total = self.one(x)
        total += self.other(x)
        held = torch.zeros_like(total)
        held[:, 1:] = self.seen(total)[:, :-1]
        return held


def test_edges_are_found_where_numbers_are_written_in_place():
    part, x = Doubled(), torch.randn(1, 4, 3)
    followed = follow(part, part, [x])
    assert [one.name for one in listened(part)] == ["one", "other", "seen"]
    assert set(followed.passed["one"].sources) == {"input 1"}
    assert set(followed.passed["seen"].sources) == {"one", "other"}
    assert followed.sources == ("seen",)
    assert set(taps(part)) == {"seen"}


def test_temperature_is_right_for_all_answers_though_few_are_named():
    torch.manual_seed(3)
    log_probs = (torch.randn(5000, dtype=torch.float64) * 2).log_softmax(0)
    top = log_probs.topk(16)
    rest = binned(log_probs.scatter(0, top.indices, -torch.inf))
    assert len(rest) <= BINS
    assert sum(count for count, _, _ in rest) == 5000 - 16
    answers = FlowAnswers("chance", [], [["a"] * 16], [top.values.tolist()], [rest], 5000)
    for temperature in (0.5, 0.8, 1.0, 1.5, 2.0):
        wanted = (log_probs / temperature).softmax(0)[top.indices].numpy()
        np.testing.assert_allclose(answers.chances(0, temperature), wanted, rtol=2e-3)


def test_a_page_gets_small_matrices_whole_and_large_ones_as_maps_of_what_is_largest():
    run = text_run("gpt", d_model=1024, n_heads=2)
    panel = panel_of(run)
    told = panel.to_page(1)
    assert told["asks"]
    in_full = [node for node in told["nodes"] if "parts" in node]
    smaller = [node for node in told["nodes"] if "block" in node]
    assert in_full
    assert smaller
    assert sum(math.prod(node["map"]["shape"]) for node in in_full) <= WHOLE
    assert all(node["map"]["shape"][0] <= ROWS and node["map"]["type"] == "uint8" for node in smaller)
    assert len(json.dumps(told)) < 2_000_000
    node = panel.node(smaller[0]["name"])
    assert node.values is not None
    assert panel.matrix(node.name, 0) is not None
    assert panel.matrix(node.name, len(node.values)) is None
    assert panel.matrix("nothing", 0) is None


def test_a_map_keeps_what_is_farthest_from_zero():
    assert blocks(np.array([[1.0, 2.0, 0.5], [-5.0, 0.0, np.nan]]), 2, 2).tolist() == [[-5.0, 0.5]]
    assert packed(np.ones((2, 2)), exact=4)["type"] == "float32"
    assert packed(np.ones((2, 2)), exact=0)["type"] == "uint8"


def test_too_many_numbers_leave_lengths(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("regard.explain.following.MOST_NUMBERS", 500)
    panel = panel_of(text_run("gpt"))
    without = [node for node in panel.nodes if node.values is None and node.kind not in ("input", "answer")]
    assert without
    assert all(len(node.sizes) for node in without)
    assert f"Of {len(without)} parts only lengths are at hand" in panel.note
    json.dumps(panel.to_page())


def test_closed_layers_are_drawn_as_one():
    panel = panel_of(text_run("gpt", n_layers=4))
    labels = [box.label for box in Fold.of(panel).boxes]
    assert "layers 2 to 4" in labels
    assert "queries" in labels
    assert labels.count("queries") == 1
    assert any("queries" in line for line in lines(seen(text_run("gpt"), flow), 100))


def test_the_position_chooses_what_is_told():
    run = text_run("gpt")
    assert panel_of(run, position=2).place == 2
    view = shown(run, "flow", TEXT, _options(position=1))
    assert view.about["position"] == 1
    assert "the" in view.title


@pytest.mark.sweep(8)
@pytest.mark.parametrize("name", registry.names())
def test_every_registered_model_can_be_followed(name: str, tmp_path: Any):
    import regard

    task = task_named(registry.entry(name).task)
    run = regard.train(name, task.world, budget="1steps", size="tiny", out=tmp_path / name, quiet=True)
    view = run.explain(example_input(run), view="flow")
    panel = view.panels[0]
    assert isinstance(panel, Flow)
    assert panel.answers is not None
    assert sources(panel, "answer")
    # A model that is fitted to the answers alone, such as the most frequent one, looks at nothing.
    assert _reaches(panel, "answer") & {node.name for node in panel.nodes if node.kind == "input"}
    assert lines(view, 80)
    assert view.to_svg().startswith("<svg")
    assert len(json.dumps(view.to_page())) < 3_000_000


def _values(panel: Flow, name: str) -> np.ndarray:
    values = panel.node(name).values
    assert values is not None
    return values


def _reaches(panel: Flow, name: str) -> set[str]:
    """All nodes from which a way leads to one."""
    found, before = set[str](), {name}
    while before:
        found |= before
        before = {edge.source for edge in panel.edges if edge.target in before} - found
    return found


def _options(**values: Any) -> Any:
    from regard.explain.look import options_from

    return options_from(values)


class OneView:
    """A provider of one view."""

    def __init__(self, view: Any) -> None:
        self.given = view

    def view(self, *_: Any) -> Any:
        return self.given


def test_the_lab_sends_the_rows_of_any_node_in_full():
    view = seen(text_run("gpt"), flow)
    api = Api(OneView(view))  # type: ignore[arg-type]
    of = {"run": "gpt", "view": "flow", "text": TEXT, "options": {}}
    asked = {"of": of, "panel": 0, "row": 2, "count": 3, "node": "stack.layers.0.mixer.weights", "part": 1}
    told = api.posts["/api/row"](asked)["weights"]
    found = np.frombuffer(base64.b64decode(told["data"]), "<f4").reshape(told["shape"])
    panel = view.panels[0]
    assert isinstance(panel, Flow)
    np.testing.assert_array_equal(found, _values(panel, "stack.layers.0.mixer.weights")[1, 2:5])
    for wrong in ({"node": "nothing"}, {"part": 9}):
        with pytest.raises(Refused, match="panel 0 is no map"):
            api.posts["/api/row"](asked | wrong)
