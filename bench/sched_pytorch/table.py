"""What `weir sched` does for two unmodified PyTorch programs that share a GPU: p99 of a served model alone, together and
scheduled, and what is left of a loop of matrix products. Needs a CUDA GPU and PyTorch.

  python3 bench/sched_pytorch/table.py --weir build/release/weir"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

from scheduler import scheduler

HERE = pathlib.Path(__file__).resolve().parent


class Loop:
    """The loop as a process; measures what it gets done between go() and stop()."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline().strip() != "ready":
            raise SystemExit("the loop did not start: " + " ".join(command))

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        result = json.loads(self.process.stdout.readline())
        self.process.wait(timeout=60)
        return result


def together(loop_command, serve_command):
    loop = Loop(loop_command)
    serve = subprocess.Popen(serve_command, stdout=subprocess.PIPE, text=True)
    serve.stdout.readline()  # ready: what it took to start is nobody's loss
    loop.say("go")
    served = json.loads(serve.stdout.readline())
    loop.say("stop")
    serve.wait(timeout=60)
    return served, loop.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weir", default="weir")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--sizes", default="4096,8192")
    parser.add_argument("--in-flight", default="1,2,4")
    parser.add_argument("--json", help="write everything to this file")
    arguments = parser.parse_args()
    python = [sys.executable]
    rows = []

    def add(size, how, served, loop, alone_served, alone_loop):
        row = {"size": size, "how": how, "served": served, "loop": loop}
        rows.append(row)
        p99 = f"{served['p99_ms']:.3f} ms" if served else "-"
        ratio = f"{served['p99_ms'] / alone_served['p99_ms']:.2f}" if served and alone_served else "-"
        left = f"{100 * loop['products_per_s'] / alone_loop['products_per_s']:.1f} %" if loop and alone_loop else "-"
        wrong = served["wrong"] if served else 0
        print(f"{size:>6} {how:<28} {p99:>11} {ratio:>8} {left:>9}{'   WRONG OUTPUT' if wrong else ''}", flush=True)

    def measure(loop_command, seconds):
        loop = Loop(loop_command)
        loop.say("go")
        time.sleep(seconds)
        loop.say("stop")
        return loop.end()

    print(f"{'GEMM':>6} {'':<28} {'served p99':>11} {'/ alone':>8} {'loop left':>9}")
    serve = python + [str(HERE / "serve.py"), "--seconds", str(arguments.seconds)]
    for size in (int(text) for text in arguments.sizes.split(",")):
        loop = python + [str(HERE / "loop.py"), "--size", str(size)]
        alone_served = json.loads(
            subprocess.run(serve, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1])
        alone_loop = measure(loop, arguments.seconds)
        add(size, "served alone", alone_served, None, alone_served, alone_loop)
        add(size, f"loop alone ({alone_loop['kernel_ms']:.2f} ms kernels)", None, alone_loop, alone_served, alone_loop)
        served, left = together(loop, serve)
        add(size, "native", served, left, alone_served, alone_loop)
        for in_flight in arguments.in_flight.split(","):
            with scheduler(arguments.weir, "--policy", "priority", "--in-flight", in_flight) as run:
                if in_flight == arguments.in_flight.split(",")[0]:
                    injected = measure(run + ["--priority", "low", "--"] + loop, arguments.seconds)
                    add(size, "loop alone, injected", None, injected, alone_served, alone_loop)
                served, left = together(run + ["--priority", "low", "--"] + loop,
                                        run + ["--priority", "high", "--"] + serve)
                add(size, f"weir sched, {in_flight} in flight", served, left, alone_served, alone_loop)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1))


main()
