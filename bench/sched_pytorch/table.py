"""What `weir sched` does for two unmodified PyTorch programs that share a GPU: p99 of a served model alone, together and
scheduled, and what is left of a loop of matrix products. Needs a CUDA GPU and PyTorch.

  python3 bench/sched_pytorch/table.py --weir build/release/weir --json rows.jsonl

A row is one loop and one way; the served model runs several times beside it, and each of its runs has a p99. Rows are
printed, and written to the file, as they come."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

from scheduler import scheduler

HERE = pathlib.Path(__file__).resolve().parent
LOOPS = {"4096": ["--size", "4096"], "8192": ["--size", "8192", "--per-step", "8"],
         "16384": ["--size", "16384", "--per-step", "2"], "graph": ["--size", "4096", "--graph", "28"]}
# Flags of `weir sched start`, and of `weir sched run` for the loop; None: no scheduler.
WAYS = {"together": None, "gate": (["--mechanism", "gate"], []), "auto": (["--mechanism", "auto"], []),
        "priority": (["--mechanism", "mps_priority"], []), "share": (["--mechanism", "mps_share"], ["--share", "80%"]),
        "partition": (["--mechanism", "partition"], [])}


class Loop:
    """The loop as a process; measures what it gets done between go() and stop()."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError("the loop did not start: " + " ".join(command))

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def stop(self):
        self.say("stop")
        return json.loads(self.process.stdout.readline())["products_per_s"]

    def end(self):
        self.process.stdin.close()
        result = json.loads(self.process.stdout.readline())
        self.process.wait(timeout=60)
        return result


def served(command, on_begin=lambda: None):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for word in ("ready", "begins"):
        if process.stdout.readline().strip() != word:
            raise RuntimeError("the served model did not start")
    on_begin()
    result = json.loads(process.stdout.readline())
    process.wait(timeout=60)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weir", default="weir")
    parser.add_argument("--seconds", type=float, default=17, help="of each run of the served model")
    parser.add_argument("--warm-seconds", type=float, default=6, help="before the first of them, while choices are made")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--loops", default=",".join(LOOPS))
    parser.add_argument("--ways", default="together,gate,auto,share")
    parser.add_argument("--fair", type=float, default=0, help="first, two loops with weights 3 and 1 for so many seconds")
    parser.add_argument("--once", action="store_true", help="the served model alone is measured at the begin only")
    parser.add_argument("--json", help="append every row to this file")
    arguments = parser.parse_args()
    python = [sys.executable, "-W", "ignore"]
    base = {}

    def serve(number):
        warm = arguments.warm_seconds if number == 0 else 0.5
        return python + [str(HERE / "serve.py"), "--seconds", str(arguments.seconds), "--warm-seconds", str(warm),
                         "--seed", str(number + 1)]

    def add(loop, way, runs, rates, wrong, said=None):
        row = {"loop": loop, "way": way, "served": runs, "products_per_s": rates, "wrong": wrong, "client": said}
        if arguments.json:
            with open(arguments.json, "a") as file:
                file.write(json.dumps(row) + "\n")
        text = f"{loop:>6} {way:<10}"
        if runs:
            each = [run["p99_ms"] for run in runs]
            text += f" p99 {statistics.median(each):.3f} ms ({min(each):.3f} .. {max(each):.3f})"
            if "served" in base:
                text += f" {statistics.median(each) / base['served']:5.2f}x"
            text += f" of {sum(run['requests'] for run in runs)}"
        if rates:
            text += f"  {statistics.median(rates):8.1f} products/s"
            if loop in base:
                text += f" {100 * statistics.median(rates) / base[loop]:5.1f} %"
        print(text + ("  WRONG OUTPUT" if wrong else ""), flush=True)
        if said:
            print(f"{'':>8}{said['choice_reason']}; {said['confined']} of {said['launches']} launches in a part", flush=True)
            for tried in said["parts_tried"]:
                print(f"{'':>10}{tried['confine']} {tried['part_percent']} %: {tried['launches_per_s']:.0f} launches/s, requests "
                      f"{tried['request_ns']['mean'] / 1e6:.3f} ms", flush=True)

    def alone(name):
        runs = [served(serve(1 + number)) for number in range(arguments.runs)]
        base.setdefault("served", statistics.median(run["p99_ms"] for run in runs))
        add("-", name, runs, [], sum(run["wrong"] for run in runs))

    def together(loop, way):
        start = WAYS[way]
        with scheduler(arguments.weir, *start[0]) if start else open("/dev/null") as sched:
            low = sched.run + ["-q", "--priority", "low", *start[1], "--"] if start else []
            high = sched.run + ["-q", "--priority", "high", "--"] if start else []
            process = Loop(low + python + [str(HERE / "loop.py"), *LOOPS[loop]])
            runs, rates, said = [], [], {}

            def begin():
                process.say("go")
                if start:
                    said.update(next((client for client in sched.clients() if client["priority"] < 0), {}))

            for number in range(arguments.runs):
                runs.append(served(high + serve(number), begin))
                rates.append(process.stop())
            ended = process.end()
            add(loop, way, runs, rates, ended["wrong"] + sum(run["wrong"] for run in runs), said)

    def fair(seconds):
        with scheduler(arguments.weir, "--policy", "weighted_fair") as sched:
            loops = [Loop(sched.run + ["-q", "--weight", weight, "--"] + python + [str(HERE / "loop.py")])
                     for weight in ("3", "1")]
            for loop in loops:
                loop.say("go")
            time.sleep(seconds)
            rates = [loop.stop() for loop in loops]
            wrong = sum(loop.end()["wrong"] for loop in loops)
        print(f"weights 3:1 for {seconds:.0f} s: {100 * rates[0] / sum(rates):.1f} % and {100 * rates[1] / sum(rates):.1f} % "
              f"of {sum(rates):.0f} products/s{'  WRONG OUTPUT' if wrong else ''}", flush=True)

    if arguments.fair:
        fair(arguments.fair)
    if not arguments.loops:
        return
    alone("alone")
    for loop in arguments.loops.split(","):
        process = Loop(python + [str(HERE / "loop.py"), *LOOPS[loop]])
        rates = []
        for _ in range(3):
            process.say("go")
            time.sleep(1.5)
            rates.append(process.stop())
        base[loop] = statistics.median(rates)
        ended = process.end()
        add(loop, f"alone, {ended['kernel_ms']:.2f} ms", [], rates, ended["wrong"])
        for way in arguments.ways.split(","):
            try:
                together(loop, way)
            except (RuntimeError, subprocess.SubprocessError, json.JSONDecodeError, BrokenPipeError) as error:
                print(f"{loop:>6} {way:<10} failed: {error}", flush=True)
    if not arguments.once:
        alone("alone again")


main()
