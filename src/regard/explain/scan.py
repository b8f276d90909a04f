"""Scans: the states of recurrences and state spaces token by token, and the matrix that a selective scan is equal to.

    S4D      s_t = A~ s_(t-1) + B~ u_t                     K_j = 2 Re(C A~^j B~)
    Mamba    h_t = exp(dt_t A) h_(t-1) + dt_t B_t u_t      M_ij = C_i exp(sum_(j<k<=i) dt_k A) dt_j B_j,  y = M u
    Mamba-2  the same with one decay a head                M = L * (C B^T) * dt

Letters as in the files of the mixers.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from regard.core.device import wide
from regard.core.tap import Trace
from regard.explain.site import Site
from regard.kernels.ssd_readable import decay_matrix
from regard.mixers.s4d import S4d

# Numbers that the matrices of all channels of a layer may have together.
AT_ONCE = 2**24


@torch.no_grad()
def states(site: Site, seen: Trace) -> Tensor:
    """The state after each token, (T, ...), in the order in which the site reads."""
    known = site.mechanism
    if known is not None and known.states is not None:
        return known.states(site, seen)
    return seen[site.tap("state")][0]


def s4d_states(site: Site, seen: Trace) -> Tensor:
    """s of every channel, real and imaginary parts, (T, D, N, 2)."""
    log_decay, drive, _ = site.module.discrete()
    received = seen[f"{site.name}.received"][0]
    decays = log_decay.exp().expand(len(received), -1, -1)  # (T, D, N)
    return torch.view_as_real(_scanned(decays, received[..., None] * drive))


def mamba_states(site: Site, seen: Trace) -> Tensor:
    """h of every channel, (T, E, N)."""
    step, write, stream = (seen[f"{site.name}.{tap}"][0] for tap in ("steps", "inputs", "stream"))
    return _scanned((step[..., None] * rate_of(site)).exp(), (step * stream)[..., None] * write[:, None])


def ssd_states(site: Site, seen: Trace) -> Tensor:
    """h of every head, (T, H, P, N)."""
    step, write, stream = (seen[f"{site.name}.{tap}"][0] for tap in ("steps", "inputs", "stream"))
    write = _by_head(site, write)  # (T, H, N)
    driven = (step[..., None] * stream)[..., None] * write[:, :, None]  # (T, H, P, N)
    return _scanned((step * rate_of(site)).exp()[..., None, None].expand_as(driven), driven)


def moved(site: Site, seen: Trace) -> tuple[np.ndarray, np.ndarray]:
    """|s_t| and |s_t - s_(t-1)| / (|s_t| + |s_(t-1)|) of each position, from a state of zeros on.

    The second is 0 where nothing changes, and 1 where there was nothing before or all turns into its opposite.
    """
    after = wide(states(site, seen).flatten(1))
    before = torch.cat([torch.zeros_like(after[:1]), after[:-1]])
    sizes = after.norm(dim=1)
    total = sizes + before.norm(dim=1)
    change = (after - before).norm(dim=1) / total.clamp(min=torch.finfo(total.dtype).tiny)
    return turned(site, sizes), turned(site, change)


def turned(site: Site, values: Tensor) -> np.ndarray:
    """Values (T, ...) of a site in the order of the text, also where it was read backwards."""
    return (values.flip(0) if site.backward else values).cpu().double().numpy()


def scan_matrix(site: Site, seen: Trace, channels: list[int]) -> Tensor:
    """M (len(channels), T, T) of a selective scan, a channel of Mamba or a head of Mamba-2 each."""
    step, write, read = (wide(seen[f"{site.name}.{tap}"][0]) for tap in ("steps", "inputs", "readers"))
    step, rate = step[:, channels], wide(rate_of(site))[channels]
    if has_channels(site):
        return torch.stack([_channel(step[:, i], rate[i], write, read) for i in range(len(channels))])
    write, read = _by_head(site, write)[:, channels], _by_head(site, read)[:, channels]
    scores = torch.einsum("THN,SHN->HTS", read, write)
    return scores * decay_matrix((step * rate).T) * step.T[:, None]


def kept(site: Site, seen: Trace) -> Tensor:
    """exp(dt A): the share of the state that each token leaves, (T, channels or heads), a mean over their states."""
    step, rate = seen[f"{site.name}.steps"][0], rate_of(site)
    if has_channels(site):
        return (step[..., None] * rate).exp().mean(-1)
    return (step * rate).exp()


@torch.no_grad()
def half_lives(module: S4d) -> Tensor:
    """Tokens after which half is left of the mode of each channel that decays slowest, (D,)."""
    return math.log(2) / (module.log_decay.exp() * module.log_step.exp()[:, None]).amin(-1)


def channels_of(site: Site) -> int:
    """How many channels of Mamba, or heads of Mamba-2, a site has."""
    return len(rate_of(site))


def has_channels(site: Site) -> bool:
    """Whether every channel has a decay of its own for each of its states, as in Mamba, or a head one for all."""
    return rate_of(site).dim() == 2


def rate_of(site: Site) -> Tensor:
    """A, negative: (E, N) of Mamba, (H,) of Mamba-2."""
    return -site.module.log_decay.detach().exp()


def _by_head(site: Site, maps: Tensor) -> Tensor:
    """B or C (T, G, N) of groups as (T, H, N)."""
    return maps.repeat_interleave(channels_of(site) // maps.shape[1], 1)


def _channel(step: Tensor, rate: Tensor, write: Tensor, read: Tensor) -> Tensor:
    """M (T, T) of one channel: step (T,), rate (N,), write and read (T, N)."""
    decays = decay_matrix(step * rate[:, None])  # (N, T, T)
    return torch.einsum("TN,NTS,SN->TS", read, decays, write) * step


def _scanned(decays: Tensor, driven: Tensor) -> Tensor:
    """h_t = decay_t h_(t-1) + driven_t for every t."""
    found, h = [], torch.zeros_like(driven[0])
    for decay, new in zip(decays, driven, strict=True):
        h = decay * h + new
        found.append(h)
    return torch.stack(found)
