"""A small model served open loop: 8 linear layers of 512, batch 16, requests at moments drawn beforehand. Latency counts
from the moment a request was due. Knows nothing of Weir. Prints "ready" when its model is, "begins" when what it measures
begins, and at the end a line of JSON."""
import argparse
import json
import random
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=200, help="requests per second")
parser.add_argument("--seconds", type=float, default=10)
parser.add_argument("--warm-seconds", type=float, default=0.1, help="of the same load before that")
parser.add_argument("--seed", type=int, default=1)
arguments = parser.parse_args()

model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)]).cuda().eval()
host = torch.randn(16, 512).pin_memory()
device = torch.empty(16, 512, device="cuda")


def request():
    device.copy_(host, non_blocking=True)
    return model(device).cpu()


with torch.no_grad():
    expected = request()
    for _ in range(50):
        request()
    print("ready", flush=True)
    source = random.Random(arguments.seed)
    due, latencies, wrong = time.perf_counter() + 0.1, [], 0
    begin = due + arguments.warm_seconds
    end = begin + arguments.seconds
    is_warm = False
    while due < end:
        while (left := due - time.perf_counter()) > 0:
            if left > 0.0005:
                time.sleep(left - 0.0004)
        if due >= begin and not is_warm:
            is_warm = True
            print("begins", flush=True)
        if not torch.equal(request(), expected):
            wrong += 1
        if is_warm:
            latencies.append((time.perf_counter() - due) * 1e3)
        due += source.expovariate(arguments.rate)

latencies.sort()


def quantile(q):
    return latencies[min(len(latencies) - 1, int(q * len(latencies)))]


print(json.dumps({"requests": len(latencies), "wrong": wrong, "p50_ms": quantile(0.5), "p90_ms": quantile(0.9),
                  "p99_ms": quantile(0.99), "p999_ms": quantile(0.999), "worst_ms": latencies[-1]}), flush=True)
