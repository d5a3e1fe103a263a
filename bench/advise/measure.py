#!/usr/bin/env python3
"""What `weir advise` has to predict: how long steps of PyTorch programs take with 1 to 32 hardware queues, and a trace of each
with the default. Needs a GPU and PyTorch. usage: measure.py OUTPUT_FOLDER [rounds]
Processes are forked from one that has imported PyTorch and has not touched the GPU; the settings take turns."""
import json, os, pathlib, random, statistics, sys, time

import torch
import programs

OUT = pathlib.Path(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
COUNTS = [1, 2, 4, 8, 16, 32]
SECONDS = float(os.environ.get("MEASURE_SECONDS", "0.4"))
LIMIT = time.perf_counter() + float(os.environ.get("MEASURE_LIMIT", "1e9"))


def in_child(body):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            os.write(writer, json.dumps(body()).encode())
        except BaseException as error:
            print("child:", repr(error), file=sys.stderr, flush=True)
        os._exit(0)
    os.close(writer)
    text = b""
    while part := os.read(reader, 65536):
        text += part
    os.close(reader)
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def set_queues(count):
    if count is not None:
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = str(count)


def step_ns(make, count):
    """The median over windows of the mean step."""
    set_queues(count)
    step = make()
    for _ in range(10):
        step()
    torch.cuda.synchronize()
    windows = []
    for _ in range(3):
        begun, steps = time.perf_counter(), 0
        while time.perf_counter() - begun < SECONDS / 3 or steps < 5:
            step()
            steps += 1
        torch.cuda.synchronize()
        windows.append((time.perf_counter() - begun) / steps)
    return 1e9 * statistics.median(windows)


def trace(make, path, is_rich, steps):
    step = make()
    for _ in range(10):
        step()
    torch.cuda.synchronize()
    settings = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    with torch.profiler.profile(record_shapes=is_rich, with_stack=is_rich, with_modules=is_rich, experimental_config=settings,
                                schedule=torch.profiler.schedule(wait=0, warmup=2, active=steps),
                                on_trace_ready=lambda done: done.export_chrome_trace(str(path))) as profile:
        for _ in range(steps + 2):
            step()
            profile.step()
        torch.cuda.synchronize()
    return 0


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    print("PyTorch", torch.__version__, flush=True)
    singles = {f"{name}-{which}": make for name, pair in programs.PAIRS.items() for which, make in zip(("before", "after"), pair)}
    for name, make in {**programs.QUEUES, **singles}.items():
        in_child(lambda: trace(make, OUT / f"{name}.json.gz", False, 10))
    for name in ("ddp", "item-before"):
        make = {**programs.QUEUES, **singles}[name]
        in_child(lambda: trace(make, OUT / f"{name}-rich.json.gz", True, 3))
    points = [(name, count) for name in programs.QUEUES for count in COUNTS] + [(name, None) for name in singles]
    makers = {**programs.QUEUES, **singles}
    times = {point: [] for point in points}
    done = 0
    for _ in range(ROUNDS):
        random.shuffle(points)
        for name, count in points:
            if time.perf_counter() > LIMIT:
                break
            times[name, count].append(in_child(lambda: step_ns(makers[name], count)))
            done += 1
        (OUT / "steps.json").write_text(json.dumps([[*key, value] for key, value in times.items()]))
    print(done, "processes")
    for name in programs.QUEUES:
        row = [[value for value in times[name, count] if value] for count in COUNTS]
        print(f"{name:10}", *(f"{statistics.median(values) / 1000:9.1f} (+-{(max(values) - min(values)) / statistics.median(values) * 50:4.1f} %)"
                              if values else "        -" for values in row), flush=True)
    for name in singles:
        values = [value for value in times[name, None] if value]
        print(f"{name:14}", *(f"{value / 1000:.1f}" for value in values), flush=True)


if __name__ == "__main__":
    main()
