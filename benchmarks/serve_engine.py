"""What an engine gives as a server steps it, without HTTP: a GPT of 124M with random weights, clients in a closed loop.

    python benchmarks/serve_engine.py [--device cuda] [--concurrent 64] [--requests 512] [--numbers bfloat16,float32]

Every client sends a prompt of 64 tokens, reads 64 drawn ones and begins anew: so rows come and go between steps. What
is captured at first is not counted.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

VOCABULARY, WINDOW, PROMPT, TOKENS = 50_257, 1024, 64, 64
SIZE = {"d_model": 768, "n_layers": 12, "n_heads": 12, "max_length": WINDOW}


def main() -> None:
    import torch

    from regard.bench.load import COLUMNS, Load
    from regard.bench.serving import in_engine
    from regard.core.registry import build
    from regard.decoding.ending import Limits

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--concurrent", type=int, default=64)
    parser.add_argument("--requests", type=int, default=512)
    parser.add_argument("--numbers", default="bfloat16,float32")
    options = parser.parse_args()
    chance, n, requests = random.Random(0), options.concurrent, options.requests
    varied = [PROMPT - chance.randrange(PROMPT // 2) for _ in range(requests)]
    load = Load(concurrent=n, requests=requests, prompt=PROMPT, tokens=TOKENS)
    for number in options.numbers.split(","):
        torch.manual_seed(0)
        model = build("gpt", vocab_size=VOCABULARY, **SIZE).to(options.device, getattr(torch, number)).eval()
        for name, lengths in (("same lengths", [PROMPT] * requests), ("other lengths", varied)):
            prompts = [[chance.randrange(VOCABULARY) for _ in range(length)] for length in lengths]
            found = in_engine(model, prompts, Limits(TOKENS, window=WINDOW), load, n)
            print(f"| {number}, {name} |", " | ".join(found.cells()), "|", flush=True)
    print(COLUMNS)


if __name__ == "__main__":
    main()
