"""What `weir sched run` adds to a launch with nobody else on the device: rounds of many tiny kernels, plain and under a
scheduler in turn, in PyTorch or in another program that begins by printing us per launch. Needs a CUDA GPU.

  python3 bench/sched_pytorch/launch_cost.py --weir build/release/weir
  python3 bench/sched_pytorch/launch_cost.py --weir build/release/weir --program build/release/bench_gpu_launch"""
import argparse
import statistics
import subprocess
import sys

from scheduler import scheduler

PROGRAM = """
import time, torch
x = torch.zeros(1, device="cuda")
best = float("inf")
for _ in range(200):
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(500):
        x.add_(1)
    best = min(best, (time.perf_counter() - began) / 500)
    torch.cuda.synchronize()
print(best * 1e6)
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weir", default="weir")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--start", default="", help="flags of weir sched start")
    parser.add_argument("--program", help="instead of a loop in PyTorch")
    arguments = parser.parse_args()
    program = [arguments.program] if arguments.program else [sys.executable, "-c", PROGRAM]
    with scheduler(arguments.weir, *arguments.start.split()) as sched:
        ways = {"plain": program, "weir sched": sched.run + ["--"] + program}
        taken = {way: [] for way in ways}
        for _ in range(arguments.rounds):
            for way, command in ways.items():
                said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                taken[way].append(float(said.split()[0]))
    for way, times in taken.items():
        print(f"{way:<12} {statistics.median(times):7.3f} us a launch ({min(times):.3f} to {max(times):.3f})")
    added = min(taken["weir sched"]) - min(taken["plain"])
    print(f"added        {added:7.3f} us, least against least")


main()
