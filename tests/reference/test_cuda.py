"""A CUDA device computes what a CPU does, and the kernels compute what their readable forms do."""

import pytest
import torch

from answers import answered
from regard.core import registry
from regard.core.context import Context
from regard.core.tap import record
from regard.decoding.generate import Limits, generate
from regard.kernels.cross_entropy import linear_cross_entropy, linear_cross_entropy_readable
from regard.kernels.selective_scan import selective_scan, selective_scan_readable

pytestmark = pytest.mark.gpu
TEXT = [name for name in registry.names() if registry.entry(name).task == "text"]


@pytest.fixture(autouse=True)
def exact_products():
    """cuDNN rounds the products of recurrent cells to TF32 unless told otherwise."""
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.set_float32_matmul_precision(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]


@pytest.mark.parametrize("name", TEXT)
def test_a_model_on_cuda_equals_the_same_on_cpu(name):
    model = registry.entry(name).config(31, "tiny").build_example().eval()
    tokens = torch.randint(31, (3, 40), generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([40, 7, 22])
    with torch.no_grad():
        here, _ = answered(model, tokens, model.init_state(3), Context(lengths=lengths))
        model.cuda()
        there, state = answered(model, tokens.cuda(), model.init_state(3), Context(lengths=lengths.cuda()))
        more, _ = answered(model, tokens[:, :5].cuda(), state)
    assert torch.isfinite(more).all()
    for row, count in enumerate(lengths.tolist()):
        assert (here[row, :count] - there[row, :count].cpu()).abs().max() < 2e-4


def test_single_probabilities_on_cuda_equal_those_on_cpu():
    model = registry.entry("ngram").config(31, "tiny").build_example()
    tokens = torch.randint(31, (3, 40), generator=torch.Generator().manual_seed(0))
    here, _ = model.log_probs(tokens, model.init_state(3))
    model.cuda()
    there, _ = model.log_probs(tokens.cuda(), model.init_state(3))
    assert (here - there.cpu()).abs().max() < 1e-12


@pytest.mark.parametrize("name", [name for name in TEXT if name != "ngram"])
def test_training_in_bfloat16_on_cuda_lowers_the_loss(name):
    torch.manual_seed(0)
    model = registry.build(name, vocab_size=31, size="tiny").cuda()
    tokens = torch.randint(31, (4, 33)).cuda()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    losses = []
    for _ in range(30):
        with torch.autocast("cuda", torch.bfloat16):
            vectors, _ = model(tokens[:, :-1])
            loss = model.head(vectors, tokens[:, 1:]) / 128
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("name", TEXT)
def test_generation_on_cuda_in_a_batch_equals_one_by_one(name):
    torch.manual_seed(0)
    model = registry.entry(name).config(31, "tiny").build_example().double().cuda().eval()
    prompts = [torch.randint(31, (n,)) for n in (3, 9, 1)]
    together = generate(model, prompts, limits=Limits(12), seed=1)
    for i, prompt in enumerate(prompts):
        assert generate(model, [prompt], limits=Limits(12), seed=1, first=i)[0].tokens == together[i].tokens


@pytest.mark.parametrize("length", [1, 31, 32, 33, 100])
def test_the_scan_kernel_equals_the_equation(length):
    torch.manual_seed(0)
    shapes = [(2, length, 70), (2, length, 70), (70, 16), (2, length, 16), (2, length, 16), (2, 70, 16)]
    inputs = [torch.randn(shape, device="cuda") for shape in shapes]
    inputs[1], inputs[2] = inputs[1].abs(), -inputs[2].abs()
    results = []
    for scan, dtype in ((selective_scan, torch.float32), (selective_scan_readable, torch.float64)):
        leaves = [x.to(dtype, copy=True).requires_grad_() for x in inputs]
        y, h = scan(*leaves)
        (y.sin().sum() + h.square().sum()).backward()
        results.append([y, h, *(leaf.grad for leaf in leaves)])
    for fast, exact in zip(*results, strict=True):
        assert (fast - exact).abs().max() <= 1e-4 * (1 + exact.abs().max())


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("name", ["mamba", "mamba2"])
def test_a_state_space_trains_compiled_as_it_does_eagerly(name):
    torch.manual_seed(0)
    model = registry.build(name, vocab_size=31, size="tiny").cuda()
    tokens = torch.randint(31, (2, 100), device="cuda")

    def loss():
        vectors, _ = model(tokens[:, :-1])
        return model.head(vectors, tokens[:, 1:])

    found = []
    for function in (loss, torch.compile(loss)):
        value = function()
        found.append((value, *torch.autograd.grad(value, list(model.parameters()))))
    for eager, compiled in zip(*found, strict=True):
        assert (eager - compiled).abs().max() <= 1e-3 * (1 + eager.abs().max())


def test_a_listener_to_the_steps_changes_no_output_on_cuda():
    """Unheard, the kernels never form them."""
    torch.manual_seed(0)
    model = registry.entry("mamba").config(31, "tiny").build_example().cuda().eval()
    tokens, lengths = torch.randint(31, (3, 40), device="cuda"), torch.tensor([40, 7, 22], device="cuda")
    with torch.no_grad():
        plain, _ = answered(model, tokens, model.init_state(3), Context(lengths=lengths))
        with record(model, "*.steps") as seen:
            heard, _ = answered(model, tokens, model.init_state(3), Context(lengths=lengths))
    assert seen
    for row, count in enumerate(lengths.tolist()):
        assert (plain[row, :count] - heard[row, :count]).abs().max() < 1e-4


def test_chunked_cross_entropy_on_cuda_equals_the_plain_one():
    hidden = torch.randn(700, 64, device="cuda", requires_grad=True)
    weight = torch.randn(9000, 64, device="cuda", requires_grad=True)
    targets = torch.randint(9000, (700,), device="cuda")
    found = []
    for function in (linear_cross_entropy, linear_cross_entropy_readable):
        loss = function(hidden, weight, None, targets)
        found.append((loss, *torch.autograd.grad(loss, (hidden, weight))))
    for fast, plain in zip(*found, strict=True):
        assert (fast - plain).abs().max() <= 1e-4 * (1 + plain.abs().max())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("n_classes", [9000, 9024])
def test_chunked_cross_entropy_in_half_precision_is_as_near_as_its_rounding(n_classes, dtype, monkeypatch):
    from regard.kernels import cross_entropy

    monkeypatch.setitem(cross_entropy.LOGITS_AT_A_TIME, "cuda", 200 * 9024)
    hidden = torch.randn(700, 64, device="cuda", dtype=dtype, requires_grad=True)
    weight = torch.randn(n_classes, 64, device="cuda", dtype=dtype, requires_grad=True)
    targets = torch.randint(n_classes, (700,), device="cuda")
    targets[::7] = -100
    wide = [part.detach().double().requires_grad_() for part in (hidden, weight)]
    fast = linear_cross_entropy(hidden, weight, None, targets)
    exact = linear_cross_entropy_readable(*wide, None, targets)
    assert abs(float(fast) / float(exact) - 1) < 0.01
    found, wanted = torch.autograd.grad(fast, (hidden, weight)), torch.autograd.grad(exact, wide)
    for one, other in zip(found, wanted, strict=True):
        assert float((one.double() - other).norm() / other.norm()) < 0.02
