"""Generation on a CUDA device: tokens a second after a prompt, beside transformers where it is installed.

    python benchmarks/generation.py [--only TEXT] [--tokens 256] [--plain]

Random weights in bfloat16, 128 tokens of prompt, 256 new ones, prompts read within the time. The engine is kept, as a
server keeps it: the first texts, in which kernels are compiled and the step is captured, are told apart. The floor is
what the bytes of the weights and of the states that a step reads take at the speed of a copy. A line that fails says
why. --plain adds the step without captured graphs.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from regard.core import registry
from regard.decoding.ending import Limits
from regard.decoding.engine import Engine
from regard.decoding.logits_processing import GREEDY, Sampling
from regard.kernels.decode_attention import can_decode

GPT2 = {"tied": True, "norm": "layer", "position": "learned", "activation": "gelu_tanh", "qk_norm": False, "bias": True}
NUCLEUS = Sampling(top_p=0.9)
PROMPT = 128
VOCABULARY = 50257
BYTES = 4.2e12  # a second, of a copy
PEER_TOKENS = 64


@dataclass(frozen=True)
class Work:
    """A model, and how many rows it continues at once."""

    title: str
    name: str
    settings: dict[str, Any]
    batch: int
    drawing: str = "greedy"


def works() -> Iterator[Work]:
    small = {"d_model": 768, "n_layers": 12, "n_heads": 12, "max_length": 1024, **GPT2}
    large = {"d_model": 1600, "n_layers": 48, "n_heads": 25, "max_length": 1024, **GPT2}
    modern = {"d_model": 768, "n_layers": 12, "n_heads": 12, "max_length": 1024}
    for batch in (1, 64):
        for drawing in ("greedy", "top-p"):
            yield Work("gpt 124M", "gpt", small, batch, drawing)
        yield Work("gpt 124M rotary", "gpt", modern, batch)
        yield Work("lstm 2 x 1024", "lstm", {"d_model": 1024, "n_layers": 2}, batch)
        yield Work("mamba 130M", "mamba", {"d_model": 768, "n_layers": 24}, batch)
        yield Work("mamba2 130M", "mamba2", {"d_model": 768, "n_layers": 24}, batch)
    for batch in (1, 64):
        for drawing in ("greedy", "top-p"):
            yield Work("gpt 1.5B", "gpt", large, batch, drawing)


def built(work: Work) -> Any:
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = registry.build(work.name, vocab_size=VOCABULARY, **work.settings)
    return model.to("cuda", torch.bfloat16).eval()


def timed(engine: Engine, work: Work, tokens: int) -> float:
    """Seconds for all rows, prompts and all."""
    settings = GREEDY if work.drawing == "greedy" else NUCLEUS
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(VOCABULARY, (work.batch, PROMPT), generator=generator).tolist()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for row, prompt in enumerate(prompts):
        engine.submit(prompt, Limits(tokens), settings, row=row)
    found = 0
    while engine.busy:
        found += len(engine.step())
    torch.cuda.synchronize()
    if found != work.batch * tokens:
        raise RuntimeError(f"{found} tokens instead of {work.batch * tokens}")
    return time.perf_counter() - start


def line(work: Work, model: Any, graphs: bool, tokens: int) -> str:
    # Without graphs a large model takes seconds: fewer tokens tell as much.
    tokens = tokens if graphs else max(16, tokens // 4)
    with Engine(model, work.batch, together=work.batch, graphs=graphs) as engine:
        first = timed(engine, work, tokens)
        best = min(timed(engine, work, tokens) for _ in range(2))
        told = engine.told
    floor = bytes_of_step(work, model) / BYTES
    speed = work.batch * tokens / best
    return (
        f"| {work.title} | {work.batch} | {work.drawing} | {speed:,.0f} | {best / tokens * 1e6:,.0f} | "
        f"{floor * 1e6:,.0f} | {floor * tokens / best:.0%} | {first:.2f} | {told}, {attention(work)} | "
        f"{peer(work) if graphs else ''} |"
    )


def bytes_of_step(work: Work, model: Any) -> float:
    """What a step reads: the weights once, and for attention the keys and values of a text half written."""
    found = sum(p.numel() * p.element_size() for p in {id(p): p for p in model.parameters()}.values())
    if work.name == "gpt":
        middle = PROMPT + 128
        found += work.batch * middle * 2 * work.settings["n_layers"] * work.settings["d_model"] * 2
    return found


def peer(work: Work) -> str:
    """Tokens a second of transformers with the same model, or nothing."""
    if work.name != "gpt" or "tied" not in work.settings or work.drawing != "greedy":
        return ""
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        return "not installed"
    sizes = {"n_embd": work.settings["d_model"], "n_layer": work.settings["n_layers"]}
    config = GPT2Config(n_head=work.settings["n_heads"], attn_implementation="sdpa", use_cache=True, **sizes)
    with torch.device("cuda"):
        model = GPT2LMHeadModel(config).to(torch.bfloat16).eval()
    prompts = torch.randint(VOCABULARY, (work.batch, PROMPT), device="cuda")
    options = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0, "max_new_tokens": PEER_TOKENS}
    best = float("inf")
    for _ in range(2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        model.generate(prompts, attention_mask=torch.ones_like(prompts), **options)
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return f"{work.batch * PEER_TOKENS / best:,.0f}"


@torch.no_grad()
def attention(work: Work) -> str:
    """Which form of attention a step takes."""
    if work.name != "gpt":
        return "no attention"
    heads, width = work.settings["n_heads"], work.settings["d_model"] // work.settings["n_heads"]
    keys = torch.zeros(1, 1, heads, width, device="cuda", dtype=torch.bfloat16)
    return "Triton attention" if can_decode(keys[:, 0], keys) else "readable attention"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="lines whose title has this in it")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--plain", action="store_true", help="the step without graphs as well")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device: this table is of one")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, bfloat16, after {PROMPT} tokens\n")
    print("| model | batch | drawing | tokens/s | us a step | floor, us | share | first, s | chosen | transformers |")
    print("|" + " --- |" * 10, flush=True)
    model, held = None, ""
    for work in works():
        if options.only not in f"{work.title} {work.batch} {work.drawing}":
            continue
        for graphs in (True, False)[: 1 + options.plain]:
            try:
                if held != work.title:
                    model, held = None, ""
                    gc.collect()
                    torch.cuda.empty_cache()
                    model, held = built(work), work.title
                print(line(work, model, graphs, options.tokens), flush=True)
            except Exception as error:  # one line's failure is not the others'
                reason = (str(error).strip().splitlines() or [""])[0][:200]
                print(
                    f"| {work.title} | {work.batch} | {work.drawing} | {type(error).__name__}: {reason} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
