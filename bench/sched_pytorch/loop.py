"""A training-like loop: steps of bf16 matrix products, one wait for the GPU per step, or CUDA graphs of them. Knows
nothing of Weir.

Prints "ready" when warm, after each "go" and "stop" line on its standard input the products per second between them, and
at the end of its input a line of JSON with a digest of all results."""
import argparse
import json
import select
import sys
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=4096)
parser.add_argument("--per-step", type=int, default=24)
parser.add_argument("--graph", type=int, default=0, help="this many products as one CUDA graph")
arguments = parser.parse_args()

torch.manual_seed(1)
a = torch.randn(arguments.size, arguments.size, device="cuda", dtype=torch.bfloat16)
b = torch.randn(arguments.size, arguments.size, device="cuda", dtype=torch.bfloat16) / arguments.size**0.5
c = torch.empty_like(a)
expected = torch.matmul(a, b)
wrong = torch.zeros((), device="cuda", dtype=torch.int64)

graph = None
if arguments.graph:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.matmul(a, b, out=c)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(arguments.graph):
            torch.matmul(a, b, out=c)
    arguments.per_step = 2 * arguments.graph


def step():
    if graph is None:
        for _ in range(arguments.per_step):
            torch.matmul(a, b, out=c)
    else:
        graph.replay()
        graph.replay()
    torch.cuda.synchronize()


for _ in range(5):
    step()
began = time.perf_counter()
step()
kernel_ms = (time.perf_counter() - began) / arguments.per_step * 1e3
print("ready", flush=True)

products, since, checks = 0, None, 0
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
            print(json.dumps({"products_per_s": products / (now - since)}), flush=True)
            since = None
        # Between measurements: the last product is what it is alone, to the bit.
        wrong += (c.view(torch.int16) != expected.view(torch.int16)).any()
        checks += 1
        c.zero_()
        if line not in ("go", "stop"):
            break
print(json.dumps({"kernel_ms": kernel_ms, "wrong": int(wrong.item()), "checks": checks}), flush=True)
