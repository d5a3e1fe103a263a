"""A training-like loop: steps of bf16 matrix products, one wait for the GPU per step. Knows nothing of Weir.

Prints "ready" when warm, and on the end of its standard input a line of JSON with the products per second of the time
between "go" and "stop" lines there."""
import argparse
import json
import select
import sys
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=4096)
parser.add_argument("--per-step", type=int, default=24)
arguments = parser.parse_args()

a = torch.randn(arguments.size, arguments.size, device="cuda", dtype=torch.bfloat16)
b = torch.randn(arguments.size, arguments.size, device="cuda", dtype=torch.bfloat16) / arguments.size**0.5
c = torch.empty_like(a)


def step():
    for _ in range(arguments.per_step):
        torch.matmul(a, b, out=c)
    torch.cuda.synchronize()


for _ in range(5):
    step()
began = time.perf_counter()
step()
kernel_ms = (time.perf_counter() - began) / arguments.per_step * 1e3
print("ready", flush=True)

products, seconds, since = 0, 0.0, None
while True:
    step()
    if since is not None:
        products += arguments.per_step
    if select.select([sys.stdin], [], [], 0)[0]:
        line = sys.stdin.readline().strip()
        now = time.perf_counter()
        if line == "go":
            since, products = now, 0
        elif since is not None:
            seconds, since = now - since, None
        if line not in ("go", "stop"):
            break
print(json.dumps({"products_per_s": products / seconds if seconds else None, "kernel_ms": kernel_ms}), flush=True)
