#!/usr/bin/env python3
"""What `weir advise` has to predict, and what it predicts: how long steps of PyTorch programs take with 1 to 32 hardware queues,
and in pairs of programs that do the same in two ways; a trace of each with the default. Needs a GPU and PyTorch.
usage: measure.py FOLDER ROUNDS [PATH_OF_WEIR]    ROUNDS 0: only predict, from what the folder has
Processes are forked from one that has imported PyTorch and has not touched the GPU; the settings take turns."""
import json, os, pathlib, random, statistics, subprocess, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pytorch"))
OUT = pathlib.Path(sys.argv[1])
ROUNDS = int(sys.argv[2])
if ROUNDS:
    import torch
    import programs
    from processes import in_child, run_and_leave
COUNTS = [1, 2, 4, 8, 16, 32]
SECONDS = float(os.environ.get("MEASURE_SECONDS", "0.4"))
ONLY = os.environ.get("MEASURE_ONLY", "").split()  # names of programs and pairs; none: all
LIMIT = time.perf_counter() + float(os.environ.get("MEASURE_LIMIT", "1e9"))


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


def median_of(times, name, count):
    values = [value for one, at, values in times if one == name and at == count for value in values if value]
    return statistics.median(values) if values else None


# Which what-if of the first program of a pair is the second one.
KIND_OF_PAIR = {"eager": "graphs", "item": "wait", "turns": "order", "urgent": "priority"}


def predict(weir):
    times = json.loads((OUT / "steps.json").read_text())
    errors = []

    def advice(name, step):
        command = [weir, "advise", str(OUT / f"{name}.json.gz"), "--untraced", f"{step / 1e6:.6f}ms", "--json", "--quiet"]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    print(f"{'program':10} {'queues':>6} {'measured':>9} {'predicted':>9}  {'between':>18}  error")
    for name in dict.fromkeys(name for name, count, _ in times if count is not None):
        usual = median_of(times, name, 8)
        if not usual:
            continue
        document = advice(name, usual)
        measured = {count: median_of(times, name, count) for count in COUNTS}
        asked = {int(one["title"].split()[0]): one for one in document["predictions"] if one["kind"] == "queues"}
        for count in COUNTS:
            if count == 8 or not measured[count]:
                continue
            # With a single stream it asks nothing: no number of queues makes a difference.
            step, low, high = (asked[count][key] if asked else usual for key in ("step_ns", "low_ns", "high_ns"))
            errors.append(abs(step / measured[count] - 1))
            print(f"{name:10} {count:6} {measured[count] / 1e3:9.1f} {step / 1e3:9.1f}  {low / 1e3:8.1f} .. {high / 1e3:8.1f}  "
                  f"{100 * (step / measured[count] - 1):+.1f} %")
        settings = [document["predictions"][i] for i in document["advised"] if document["predictions"][i]["kind"] == "queues"]
        chosen = int(settings[0]["title"].split()[0]) if settings else 8
        best = min((value, count) for count, value in measured.items() if value)
        print(f"{name:10} advised {chosen} ({measured[chosen] / best[0] * 100 - 100:+.1f} % of the best, {best[1]}); replay error "
              f"{100 * document['replay']['error']:+.2f} %, host {document['untraced']['host_factor']:.2f}", flush=True)
    if errors:
        print(f"{len(errors)} points: median error {100 * statistics.median(errors):.1f} %, worst {100 * max(errors):.1f} %")
    for pair, kind in KIND_OF_PAIR.items():
        before, after = (median_of(times, f"{pair}-{which}", None) for which in ("before", "after"))
        if not before or not after:
            continue
        asked = [one for one in advice(f"{pair}-before", before)["predictions"] if one["kind"] == kind]
        if asked:
            best = min(asked, key=lambda one: one["step_ns"])
            print(f"{pair:8} {best['title'][:50]:50} measured {before / 1e3:.1f} -> {after / 1e3:.1f} us, gain "
                  f"{100 - 100 * after / before:.1f} %; predicted {best['step_ns'] / 1e3:.1f} us, {100 * best['gain']:.1f} %")


def measure():
    OUT.mkdir(parents=True, exist_ok=True)
    print("PyTorch", torch.__version__, flush=True)
    singles = {f"{name}-{which}": make for name, pair in programs.PAIRS.items() for which, make in zip(("before", "after"), pair)}
    makers = {name: make for name, make in {**programs.QUEUES, **singles}.items() if not ONLY or name.split("-")[0] in ONLY}
    for name, make in makers.items():
        in_child(lambda: trace(make, OUT / f"{name}.json.gz", False, 10), run_and_leave)
    for name in ("ddp", "item-before"):
        if name in makers:
            in_child(lambda: trace(makers[name], OUT / f"{name}-rich.json.gz", True, 3), run_and_leave)
    points = [(name, count) for name in makers for count in (COUNTS if name in programs.QUEUES else [None])]
    times = {point: [] for point in points}
    done = 0
    for _ in range(ROUNDS):
        random.shuffle(points)
        for name, count in points:
            if time.perf_counter() > LIMIT:
                break
            times[name, count].append(in_child(lambda: step_ns(makers[name], count), run_and_leave))
            done += 1
        (OUT / "steps.json").write_text(json.dumps([[*key, value] for key, value in times.items()]))
    print(done, "processes")
    for name in makers:
        row = [[value for value in times.get((name, count), []) if value] for count in [*COUNTS, None]]
        print(f"{name:14}", *(f"{statistics.median(values) / 1000:9.1f} (+-{(max(values) - min(values)) / statistics.median(values) * 50:4.1f} %)"
                              for values in row if values), flush=True)


if __name__ == "__main__":
    if ROUNDS:
        measure()
    if len(sys.argv) > 3:
        predict(sys.argv[3])
