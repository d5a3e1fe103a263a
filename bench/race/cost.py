#!/usr/bin/env python3
"""What following a plan of `weir race` costs inside a PyTorch program: steps per second of a training loop, without the
library, with an empty plan, observed, and with delays as many as `weir race` puts. Processes take turns; medians.

Needs an NVIDIA GPU and PyTorch.    usage: cost.py LIBWEIR_CUPTI [ROUNDS [SECONDS]]"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

LOOP = """
import sys, time, torch
size, batch, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
model = torch.nn.Sequential(*[torch.nn.Linear(size, size) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
side, x = torch.cuda.Stream(), torch.randn(batch, size).pin_memory()
def step():
    with torch.cuda.stream(side):
        data = x.to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(side)
    data.record_stream(torch.cuda.current_stream())
    optimizer.zero_grad()
    model(data).square().mean().backward()
    optimizer.step()
for _ in range(20): step()
torch.cuda.synchronize()
begun, steps = time.perf_counter(), 0
while time.perf_counter() - begun < seconds:
    for _ in range(10): step()
    torch.cuda.synchronize()
    steps += 10
print(steps / (time.perf_counter() - begun))
"""
PLANS = {"alone": None, "empty plan": "", "observed": "observe\n", "delayed": "blind 1 200 400000\nmost 10000\n"}
LOOPS = {"512 wide, batch 16": (512, 16), "4096 wide, batch 512": (4096, 512)}


def rate(library, plan, size, batch, seconds):
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        if plan is not None:
            pathlib.Path(folder, "plan").write_text("weir race plan 1\n" + plan)
            environment.update(WEIR_RACE_FOLDER=folder, CUDA_INJECTION64_PATH=library, LD_PRELOAD=library)
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", LOOP, str(size), str(batch), str(seconds)],
                              env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
        notes = pathlib.Path(folder, "notes")
        said = notes.read_text().strip() if notes.exists() else ""
    return float(done.stdout.split()[-1]), said


def main():
    library, rounds = str(pathlib.Path(sys.argv[1]).resolve()), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 3
    for loop, (size, batch) in LOOPS.items():
        rates = {name: [] for name in PLANS}
        for _ in range(rounds):
            for name, plan in PLANS.items():
                found, said = rate(library, plan, size, batch, seconds)
                rates[name].append(found)
                if said:
                    print(f"  {name}: {said.splitlines()[0]}", flush=True)
        alone = statistics.median(rates["alone"])
        for name, values in rates.items():
            middle = statistics.median(values)
            print(f"{loop:22} {name:11} {middle:8.1f} steps/s ({min(values):.1f} .. {max(values):.1f})  "
                  f"{alone / middle:.2f}x the time alone", flush=True)


if __name__ == "__main__":
    main()
