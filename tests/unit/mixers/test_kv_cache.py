"""The state of attention with a fixed number of slots: as a device sees it, whose counts nobody asks for."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from limits import LIMIT
from regard.core import registry
from regard.core.context import Context
from regard.core.state import State
from regard.mixers.attention import AttentionConfig, SelfAttention
from regard.mixers.kv_cache import KeyValueState

EXAMPLES = {
    name: config
    for name, config in registry.mixer_examples().items()
    if (isinstance(config, AttentionConfig) and config.causal) or name in ("senses", "cross-decoder")
}


def attention(**settings: object) -> SelfAttention:
    torch.manual_seed(0)
    return AttentionConfig(8, 2, **settings).build().double().eval()  # pyright: ignore[reportArgumentType]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are on a device that nobody waits for."""
    monkeypatch.setattr(KeyValueState, "_at_hand", False)


def read(mixer: SelfAttention, length: int, state: State | None = None, lengths: Tensor | None = None) -> State:
    state = mixer.init_state(2) if state is None else state
    after = mixer(drawn(2, length, 8, seed=length), state, Context(lengths=lengths))[1]
    assert after is not None
    return after


@torch.no_grad()
@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_state_whose_count_is_never_asked_for_equals_a_grown_one(name: str) -> None:
    torch.manual_seed(0)
    mixer = EXAMPLES[name].build().double().eval()
    width, context = EXAMPLES[name].d_model, Context(memory=drawn(2, 3, EXAMPLES[name].d_model, seed=9))
    _, grown = mixer(drawn(2, 0, width), mixer.init_state(2), context)
    reserved = grown.reserve(12)
    for number, (length, lengths) in enumerate(
        [(3, (3, 1)), (1, None), (4, (2, 4)), (1, (0, 1)), (2, None), (1, None)]
    ):
        x = drawn(2, length, width, seed=number)
        context = Context(lengths=None if lengths is None else torch.tensor(lengths))
        expected, grown = mixer(x, grown, context)
        got, reserved = mixer(x, reserved, context)
        for row, real in enumerate(lengths or (length, length)):
            torch.testing.assert_close(got[row, :real], expected[row, :real], rtol=0, atol=1e-12)
        assert reserved.position.tolist() == grown.position.tolist()


@torch.no_grad()
def test_a_token_beyond_the_room_is_refused_and_padding_needs_none() -> None:
    mixer = attention()
    full = read(mixer, 4, mixer.init_state(2).reserve(5))
    full = read(mixer, 3, full, torch.tensor([1, 0]))
    with pytest.raises(ValueError, match=r"^a state with room for 5 tokens cannot hold 6: reserve more$"):
        read(mixer, 1, full)
    with pytest.raises(ValueError, match="cannot hold 7"):
        read(mixer, 3, full, torch.tensor([0, 3]))
    assert read(mixer, 3, full, torch.tensor([0, 1])).position.tolist() == [5, 5]
    assert read(mixer, 2, full.reserve(7)).position.tolist() == [7, 6]


@torch.no_grad()
@pytest.mark.usefixtures("far")
def test_where_nobody_asks_a_token_beyond_the_room_is_not_kept_and_spoils_no_slot() -> None:
    mixer = attention()
    full = read(mixer, 4, mixer.init_state(2).reserve(4))
    assert isinstance(full, KeyValueState)
    before = full.keys.clone()
    for length in (1, 3):
        after = read(mixer, length, full)
        assert after.position.tolist() == [4 + length] * 2
        torch.testing.assert_close(full.keys, before, rtol=0, atol=0)


@torch.no_grad()
def test_a_selected_state_is_a_branch_of_its_own() -> None:
    mixer = attention()
    state = read(mixer, 3, mixer.init_state(2).reserve(6))
    branch, kept = state.select(torch.arange(2)), [tensor.clone() for tensor in state.tensors()]
    read(mixer, 2, branch.free(torch.tensor([0])))
    for tensor, before in zip(state.tensors(), kept, strict=True):
        torch.testing.assert_close(tensor, before, rtol=0, atol=0)


@torch.no_grad()
def test_rows_without_a_place_are_refused() -> None:
    mixer = attention()
    slots, longer = mixer.init_state(3).reserve(4), read(mixer, 5)
    with pytest.raises(ValueError, match="a row with 5 slots cannot be inserted into 4: reserve more"):
        slots.insert(torch.tensor([0, 1]), longer)


# In a process of its own: the compiler cannot read signatures whose shapes are checked, as they are in tests.
COMPILED = """
import torch
from regard.core import registry
from regard.core.context import Context

graphs = []
def counted(graph, inputs):
    graphs.append(graph)
    return graph.forward

model = registry.build("gpt", vocab_size=11, size="tiny").double().eval()
step = torch.compile(model, backend=counted, dynamic=False)
with torch.no_grad():
    read = model(torch.tensor([[1, 2, 3], [4, 5, 6]]), model.init_state(2), Context(lengths=torch.tensor([3, 1])))[1]
    state, plain = read.reserve(16), read.reserve(16)
    for t in range(6):
        token = torch.tensor([[t], [t + 1]])
        got, state = step(token, state)
        expected, plain = model(token, plain)
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-12)
        if t == 3:
            state, plain = (slots.free(torch.tensor([1])) for slots in (state, plain))
print(len(graphs))
"""


def test_a_compiled_step_is_one_graph_for_all_steps() -> None:
    found = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert found.stdout == "1\n"


@pytest.mark.parametrize("at_hand", [True, False])
def test_reordering_slots_copies_rows_in_place_and_gives_up_the_last(
    at_hand: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeyValueState, "_at_hand", at_hand)
    slots = KeyValueState(drawn(4, 3, 2, 5), drawn(4, 3, 2, 5, seed=1), torch.tensor([3, 1, 2, 3])).reserve(6)
    index, place = torch.tensor([0, 3, 0]), slots.keys.data_ptr()
    expected = slots.select(index)
    found = slots.reorder(index, torch.tensor([1, 2]))
    assert found.keys.data_ptr() == place
    for got, wanted in zip(found.tensors(), expected.tensors(), strict=True):
        assert torch.equal(got, wanted)
    # More rows than there were have no place.
    wide = slots.reorder(torch.tensor([0, 1, 2, 3, 3]), torch.tensor([4]))
    assert wide.keys.shape[0] == 5
