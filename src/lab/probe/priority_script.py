"""Does stream priority do anything in this PyTorch, on this GPU?

Fills the GPU with long kernels on a stream of the lowest priority, and times one short kernel on a stream of the
highest priority and on one of the lowest, in random order, again and again. Prints one line of JSON, which
`weir probe priority --samples FILE` judges. Needs nothing but PyTorch with a GPU of NVIDIA (CUDA) or AMD (ROCm).
"""
import json
import random
import sys
import time

TARGET_NS = 2_000_000  # of one long kernel: many times what a launch takes
QUEUED_NS = 16_000_000  # of long kernels in line when the short one comes
LARGEST = 4096  # rows of a matrix: three of them are 192 MiB


def requested():
    wanted = {"iterations": 60, "seed": 1}
    if len(sys.argv) == 2 and sys.argv[1].endswith("request.json"):
        with open(sys.argv[1], encoding="utf-8") as file:
            wanted.update(json.load(file))
    return wanted


def long_kernel(torch):
    """A product of matrices that takes about TARGET_NS, and how long it takes."""
    size = 512
    while True:
        left = torch.ones(size, size, device="cuda")
        right, product = torch.ones_like(left), torch.empty_like(left)
        torch.mm(left, right, out=product)  # loads the library
        torch.cuda.synchronize()
        times = []
        for _ in range(3):
            began = time.perf_counter_ns()
            torch.mm(left, right, out=product)
            torch.cuda.synchronize()
            times.append(time.perf_counter_ns() - began)
        if min(times) >= TARGET_NS or size >= LARGEST:
            return (lambda: torch.mm(left, right, out=product)), min(times)
        size *= 2


def measure(torch, wanted, least, greatest):
    random_source = random.Random(wanted["seed"])
    busy, kernel_ns = long_kernel(torch)
    queued = max(4, min(256, round(QUEUED_NS / kernel_ns)))
    low = torch.cuda.Stream(priority=least)
    streams = {"equal": torch.cuda.Stream(priority=least), "high": torch.cuda.Stream(priority=greatest)}
    small = {name: torch.ones(1024, device="cuda") for name in streams}
    torch.cuda.synchronize()

    def waited(name):
        ended = torch.cuda.Event()
        began = time.perf_counter_ns()
        with torch.cuda.stream(streams[name]):
            small[name].add_(1)
            ended.record(streams[name])
        ended.synchronize()
        return time.perf_counter_ns() - began

    for name in streams:  # kernels are loaded, and libraries have their memory for each stream
        for _ in range(3):
            waited(name)
    with torch.cuda.stream(low):
        busy()
    torch.cuda.synchronize()

    times = {"equal": [], "high": [], "alone": []}
    idle = 0
    for _ in range(wanted["iterations"]):
        order = list(streams)
        random_source.shuffle(order)
        for name in order:
            last = torch.cuda.Event()
            with torch.cuda.stream(low):
                for _ in range(queued):
                    busy()
                last.record(low)
            time.sleep(random_source.uniform(0.5, 1.5) * kernel_ns / 1e9)  # to some point of a long kernel
            is_busy = not last.query()
            time_ns = waited(name)
            low.synchronize()
            if is_busy:
                times[name].append(time_ns)
            else:
                idle += 1
        times["alone"].append(waited(random_source.choice(order)))
    return {
        "kernel_ns": kernel_ns,
        "queued": queued,
        "idle": idle,
        "equal_ns": times["equal"],
        "high_ns": times["high"],
        "alone_ns": times["alone"],
    }


def main():
    line = {"probe": "priority", "version": 1, "python": sys.version.split()[0]}
    try:
        import torch

        line["torch"] = str(torch.__version__)
        line["runtime"] = "hip" if getattr(torch.version, "hip", None) else "cuda"
        line["runtime_version"] = getattr(torch.version, line["runtime"], None)
        if not torch.cuda.is_available():
            line["error"] = "torch finds no GPU (torch.cuda.is_available() is False)"
        else:
            line["device"] = torch.cuda.get_device_name()
            least, greatest = torch.cuda.Stream.priority_range()
            line["least_priority"], line["greatest_priority"] = least, greatest
            if least != greatest:
                line.update(measure(torch, requested(), least, greatest))
    except ImportError as error:
        line["error"] = f"{sys.executable} cannot import torch: {error}"
    except Exception as error:  # whatever a driver says is the answer
        line["error"] = f"{type(error).__name__}: {error}"
    print(json.dumps(line), flush=True)


main()
