"""Picture embeddings: what each cell of the grid is made of, what a batch changes, and what is refused."""

from __future__ import annotations

import json

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.config import Config, from_dict
from regard.errors import UsageError
from regard.layers.picture import ConvolutionsConfig, PatchesConfig, as_input

CONFIGS = [
    PatchesConfig(6, size=8, patch=2),
    PatchesConfig(5, size=9, patch=3),
    ConvolutionsConfig(6, size=8, widths=(4,)),
    ConvolutionsConfig(5, size=16, widths=(4, 12)),
    ConvolutionsConfig(7, size=16, widths=(32, 40, 8)),
]
SIDES = [4, 3, 4, 4, 2]
every_config = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.kind}-{config.d_model}")


def made(config: Config) -> nn.Module:
    torch.manual_seed(0)
    return config.build().double()


def drawn(n: int, size: int) -> Tensor:
    return torch.randn(n, 3, size, size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def start(n: int) -> Tensor:
    return torch.zeros(n, dtype=torch.long)


@pytest.mark.parametrize(("config", "side"), list(zip(CONFIGS, SIDES, strict=True)))
def test_one_vector_for_each_cell_of_the_grid(config: PatchesConfig | ConvolutionsConfig, side: int):
    part = made(config)
    assert part(drawn(3, config.size), start(3)).shape == (3, side * side, config.d_model)
    assert part.max_length is None


@torch.no_grad()
def test_patches_are_a_linear_map_of_each_patch_and_its_place():
    part, pictures = made(PatchesConfig(6, size=8, patch=2)), drawn(3, 8)
    weight, bias = part.patch_to_vector.weight, part.patch_to_vector.bias  # pyright: ignore
    got = part(pictures, start(3))
    for r in range(4):
        for c in range(4):
            patch = pictures[:, :, 2 * r : 2 * r + 2, 2 * c : 2 * c + 2].reshape(3, -1)
            place = part.position.row.weight[r] + part.position.column.weight[c]  # pyright: ignore
            torch.testing.assert_close(
                got[:, 4 * r + c], patch @ weight.reshape(6, -1).T + bias + place, rtol=0, atol=1e-14
            )


@torch.no_grad()
def test_a_residual_block_equals_its_equation():
    part = made(ConvolutionsConfig(6, size=16, widths=(4, 12)))
    block = part.blocks[1]  # pyright: ignore
    for norm in (block.input_norm, block.hidden_norm):
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    x = torch.randn(2, 4, 8, 8, dtype=torch.float64)

    def normed(y: Tensor, norm: nn.GroupNorm) -> Tensor:
        flat = y.flatten(1)
        y = ((flat - flat.mean(1, True)) / (flat.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()).view_as(y)
        return y * norm.weight[:, None, None] + norm.bias[:, None, None]

    hidden = F.conv2d(F.silu(normed(x, block.input_norm)), block.input_to_hidden.weight, stride=2, padding=1)
    output = F.conv2d(F.silu(normed(hidden, block.hidden_norm)), block.hidden_to_output.weight, padding=1)
    skipped = torch.einsum("gf,bfrc->bgrc", block.skip.weight[:, :, 0, 0], x[:, :, ::2, ::2])
    torch.testing.assert_close(block(x), skipped + output, rtol=0, atol=1e-13)


@every_config
@torch.no_grad()
def test_a_batch_equals_its_pictures_one_by_one(config: PatchesConfig | ConvolutionsConfig):
    part, pictures = made(config), drawn(3, config.size)
    alone = [part(pictures[i : i + 1], start(1)) for i in range(3)]
    torch.testing.assert_close(part(pictures, start(3)), torch.cat(alone), rtol=0, atol=1e-13)


@every_config
def test_the_gradient_reaches_every_parameter_and_every_pixel(config: PatchesConfig | ConvolutionsConfig):
    part, pictures = made(config), drawn(2, config.size).requires_grad_()
    part(pictures, start(2)).square().sum().backward()
    for name, parameter in part.named_parameters():
        assert parameter.grad is not None, name
        assert (parameter.grad != 0).any(), name
    assert pictures.grad is not None
    assert (pictures.grad != 0).all()


@torch.no_grad()
def test_the_same_patch_at_another_place_differs_by_its_position_alone():
    part = made(PatchesConfig(6, size=8, patch=4))
    cells = part(drawn(1, 4).repeat(1, 1, 2, 2), start(1))[0]
    assert (cells[0] != cells[1]).any()
    assert (cells[0] != cells[2]).any()
    torch.testing.assert_close(cells[0] + cells[3], cells[1] + cells[2], rtol=0, atol=1e-14)


@every_config
def test_a_config_comes_back_from_json(config: PatchesConfig | ConvolutionsConfig):
    assert from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_bytes_become_numbers_around_zero_with_channels_first():
    pictures = torch.tensor([[[[0, 51, 255], [255, 0, 0]]]], dtype=torch.uint8)  # one picture of 1 x 2 pixels
    expected = torch.tensor([[[[-1.0, 1.0]], [[-0.6, -1.0]], [[1.0, -1.0]]]])
    torch.testing.assert_close(as_input(pictures), expected)


@pytest.mark.parametrize(
    ("made_of", "words"),
    [
        (lambda: PatchesConfig(8, size=32, patch=5), "patch must divide"),
        (lambda: PatchesConfig(8, size=32, patch=0), "patch must divide"),
        (lambda: PatchesConfig(0), "d_model must be positive"),
        (lambda: ConvolutionsConfig(8, size=12, widths=(4, 4, 4)), "12 pixels"),
        (lambda: ConvolutionsConfig(8, widths=()), "widths must be positive"),
        (lambda: ConvolutionsConfig(8, widths=(4, 0)), "widths must be positive"),
        (lambda: ConvolutionsConfig(8, dropout=1.0), "dropout must lie"),
        (lambda: made(PatchesConfig(8, size=8))(drawn(1, 12), start(1)), "8 x 8 pixels, found 12 x 12"),
        (lambda: made(ConvolutionsConfig(8, size=8))(drawn(1, 12), start(1)), "8 x 8 pixels, found 12 x 12"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(made_of, words: str):
    with pytest.raises(UsageError, match=words) as caught:
        made_of()
    assert "\n" not in str(caught.value)
