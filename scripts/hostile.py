#!/usr/bin/env python3
"""Gives hostile files to the commands that read them, as somebody who was sent such a file would.

  hostile.py mutate [--runs 10000] [--seed 1] [--only NAME]   damaged copies of the seeds of fuzz/ and tests/
  hostile.py grow [--only NAME] [--commands 1]                shapes that make readers slow, at 1, 2 and 4 MB

A run passes if its exit code is 0 to 4, it says nothing of an internal error, and it takes neither more than 10 s of
processor time nor more than 1 GiB. grow also wants 4 times the input to take less than 8 times as long. Inputs that fail
stay in build/hostile. WEIR names the program (default: build/release/weir).
"""
import argparse
import glob
import gzip
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WEIR = os.environ.get("WEIR", os.path.join(ROOT, "build/release/weir"))
KEPT = os.path.join(ROOT, "build/hostile")
LIMIT_S, LIMIT_KIB = 10, 1 << 20
BUGS = (b"bug in weir", b"internal error", b"terminate called", b"AddressSanitizer", b"runtime error:")


def seeds(*patterns):
    found = [f for p in patterns for f in sorted(glob.glob(os.path.join(ROOT, p))) if os.path.isfile(f)]
    assert found, patterns
    return found


# What a reader is given: seeds, the name that the damaged file gets, and the commands; FILE and DIR stand for it and its
# folder. Commands take turns.
DOCUMENTS = [["report", "FILE", "-o", "DIR/page.html", "-f", "-q"], ["export", "FILE"],
             ["export", "FILE", "--format", "csv", "--samples"], ["history", "add", "FILE", "--db", "DIR/h.db"],
             ["compare", "FILE", "FILE"], ["report", "FILE", "-o", "DIR/page.json", "-f"],
             ["report", "DIR/good.json", "--baseline", "FILE", "-o", "DIR/page.html", "-f", "-q"],
             ["compare", "DIR/good.json", "DIR/good.json", "--calibration", "FILE"]]
TRACES = [["analyze", "FILE"], ["compare", "FILE", "FILE"], ["analyze", "FILE", "--json", "--full"],
          ["report", "FILE", "-o", "DIR/page.html", "-f", "-q"], ["amd", "compare", "FILE", "FILE"],
          ["analyze", "FILE", "FILE", "--ranks"]]
READERS = {
    "kineto": (["fuzz/seeds/kineto/*"], "t.json", TRACES),
    "nsys": (["fuzz/seeds/nsys/*"], "t.sqlite", TRACES),
    "rpd": (["fuzz/seeds/rpd/*"], "t.rpd", TRACES),
    "rocprof_json": (["fuzz/seeds/rocprof_json/*"], "t_results.json", TRACES),
    "rocprof_csv": (["fuzz/seeds/rocprof_csv/*"], "t_kernel_trace.csv", TRACES),
    "cupti_text": (["fuzz/seeds/cupti_text/*"], "t.txt", TRACES),
    "weir_capture": (["fuzz/seeds/weir_capture/*"], "1.weircap", TRACES),
    "weir_recording": (["fuzz/seeds/weir_recording/*"], "1.weirrec", TRACES),
    "perfetto": (["fuzz/seeds/perfetto/*"], "t.pftrace", TRACES),
    "xplane": (["fuzz/seeds/xplane/*"], "t.xplane.pb", TRACES),
    "gzip": (["fuzz/seeds/kineto/*", "fuzz/seeds/rocprof_csv/*"], "t.json.gz", TRACES[:2]),
    "amd_log": (["fuzz/seeds/amd_log/*"], "log", [["amd", "log", "FILE"], ["amd", "log", "FILE", "--json"],
                ["amd", "join", "--log", "FILE", "--no-timeline"], ["amd", "compare", "FILE", "FILE"]]),
    "amd_ftrace": (["fuzz/seeds/amd_ftrace/*"], "ftrace.txt", [["amd", "ftrace", "FILE"],
                   ["amd", "join", "--ftrace", "FILE", "--timeline", "DIR/t.json", "-f"]]),
    "kfd": (["fuzz/seeds/kfd/*"], "hqds", [["amd", "hqd", "FILE"], ["amd", "hqd", "DIR", "--full"],
            ["amd", "join", "--snapshot", "DIR", "--no-timeline"]]),
    "amd_manifest": (["fuzz/seeds/amd_manifest/*"], "manifest.json", [["amd", "join", "DIR", "--no-timeline"],
                     ["amd", "compare", "DIR", "DIR"], ["report", "DIR", "-o", "DIR/page.html", "-f"]]),
    "documents": (["tests/data/v0.1/*.json", "tests/report/page/documents/*.json", "fuzz/seeds/page/*",
                   "fuzz/seeds/results/*", "fuzz/seeds/bench_summary/*", "fuzz/seeds/channel_baseline/*"], "d.json",
                  DOCUMENTS),
    "bench_yaml": (["fuzz/seeds/bench_yaml/*"], "bench.yaml", [["bench", "--path", "DIR", "--list"]]),
    "workload": (["config/*.yaml", "config/cases/*.yaml", "fuzz/seeds/yaml/*"], "w.yaml",
                 [["list", "-v", "--file", "FILE"], ["run", "--file", "FILE", "--dry-run", "--scale", "tiny"]]),
    "sim_profile": (["config/devices/*.yaml"], "device.yaml",
                    [["run", "hetero_kernels", "--device", "sim:FILE", "--dry-run", "--scale", "tiny"]]),
    "history": (["HISTORY"], "h.db", [["history", "list", "--db", "FILE"], ["history", "export", "--db", "FILE"],
                ["history", "show", "1", "--db", "FILE"], ["history", "trend", "--db", "FILE"],
                ["report", "--history", "FILE", "-o", "DIR/page.html", "-f"],
                ["history", "add", "DIR/good.json", "--db", "FILE"]]),
}

NUMBERS = [b"0", b"-1", b"1", b"9223372036854775807", b"-9223372036854775808", b"18446744073709551616", b"1e308", b"-1e308",
           b"1e-320", b"NaN", b"Infinity", b"0.1", b"4294967296", b"2147483648", b"1" * 400, b"1e99999", b"0x7fffffff"]
TEXTS = [b"", b"null", b"[]", b"{}", b"\"\"", b"true", b"\xff\xfe", b"\x00", b"\x1b[2J", b"\r\n", b"A" * 5000, b"[" * 300,
         b"{\"a\":" * 120, b"</script>", b"../../../../etc/passwd", b"=1+1", b"\xe2\x80\xae", b"%s%n", b"&a [*a]", b"- " * 80,
         b"\"", b"'", b"\\", b",", b":", b"\n", b"---\n", b"::set-output name=x::y\n"]
VALUES = [None, True, False, 0, -1, 1, 2**63 - 1, -2**63, 2**64 - 1, 1e308, -1e308, 5e-324, 0.5, "", "x", "\x1b[2J", "A" * 3000,
          [], {}, [[]], [None], {"": None}, [1, "a"], "2026-99-99T99:99:99Z", "NaN"]


def damage_bytes(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        size = max(len(data), 1)
        at = rng.randrange(size)
        length = min(rng.choice((1, 2, 4, 16, 64, 1024)), size)
        kind = rng.randrange(9)
        if kind == 0 and data:
            data[min(at, len(data) - 1)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at:at + length] = bytes(rng.randrange(256) for _ in range(length))
        elif kind == 2:
            del data[at:at + length]
        elif kind == 3:
            data[at:at] = data[at:at + length] * rng.choice((1, 1, 3, 50))
        elif kind == 4:
            data[at:at] = rng.choice(TEXTS)
        elif kind == 5:
            del data[at:]
        elif kind == 6:
            found = list(re.finditer(rb"-?[0-9][0-9.]*", bytes(data[at:at + 4000])))
            if found:
                one = rng.choice(found)
                data[at + one.start():at + one.end()] = rng.choice(NUMBERS)
        elif kind == 7:
            lines = bytes(data).split(b"\n")
            i, k = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[i], lines[k] = lines[k], lines[i]
            if rng.random() < 0.5:
                lines.insert(i, lines[k])
            data = bytearray(b"\n".join(lines))
        else:
            other = rng.randrange(size)
            data[at:at + length] = data[other:other + length]
    return bytes(data)


def damage_json(data, rng):
    try:
        document = json.loads(data)
    except ValueError:
        return damage_bytes(data, rng)
    places = []

    def walk(value):
        for key in (value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()):
            places.append((value, key))
            walk(value[key])
    walk(document)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        if not places:
            break
        holder, key = rng.choice(places)
        try:
            kind = rng.randrange(5)
            if kind == 0:
                del holder[key]
            elif kind == 1:
                other, name = rng.choice(places)
                holder[key] = json.loads(json.dumps(other[name]))
            elif kind == 2 and isinstance(holder, list):
                holder.extend([holder[key]] * rng.choice((1, 10, 1000)))
            elif kind == 3 and isinstance(holder, dict):
                holder[rng.choice(("schema", "samples", "results", "x" * 300, "", "name"))] = holder[key]
            else:
                holder[key] = rng.choice(VALUES)
        except (KeyError, IndexError, RecursionError, ValueError):
            continue
    text = json.dumps(document)[:4 << 20].encode("utf-8", "surrogatepass")
    return damage_bytes(text, rng) if rng.random() < 0.1 else text


class Run:
    """One command: how it ended, what it printed, and what it took."""

    def __init__(self, words, folder):
        environment = dict(os.environ, HOME=folder, TMPDIR=folder, XDG_STATE_HOME=folder, XDG_CACHE_HOME=folder,
                           OPENBLAS_NUM_THREADS="1", GIT_CEILING_DIRECTORIES=os.path.dirname(folder))
        process = subprocess.Popen([WEIR, *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=self.limit)
        self.output = b""
        killer = threading.Timer(12 * LIMIT_S, process.kill)  # for one that waits; processor time has its own limit
        killer.start()
        while part := process.stdout.read(65536):
            self.output = (self.output + part)[-200000:]
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = 0
        killer.cancel()
        self.code = os.waitstatus_to_exitcode(status)
        self.seconds, self.kib = used.ru_utime + used.ru_stime, used.ru_maxrss

    @staticmethod
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S * 3, LIMIT_S * 3))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))

    def wrong(self):
        if self.code not in (0, 1, 2, 3, 4):
            return f"exit code {self.code}" + (f" ({signal.Signals(-self.code).name})" if self.code < 0 else "")
        for word in BUGS:
            if word in self.output:
                return word.decode()
        if self.seconds > LIMIT_S:
            return f"{self.seconds:.1f} s"
        return f"{self.kib >> 10} MiB" if self.kib > LIMIT_KIB else ""


def good_result(folder):
    shutil.copy(os.path.join(ROOT, "tests/data/v0.1/result.json"), os.path.join(folder, "good.json"))


def mutate(options):
    rng = random.Random(options.seed)
    names = [n for n in READERS if not options.only or n == options.only]
    failed, counts, slowest = 0, dict.fromkeys(names, 0), 0.0
    base = tempfile.mkdtemp(prefix="weir_hostile_")
    history = os.path.join(base, "seed.db")
    good_result(base)
    Run(["history", "add", "good.json", "--db", history, "--commit", "a"], base)
    for number in range(options.runs):
        name = names[number % len(names)]
        patterns, file_name, commands = READERS[name]
        seed = history if patterns == ["HISTORY"] else rng.choice(seeds(*patterns))
        with open(seed, "rb") as file:
            data = file.read()
        data = damage_json(data, rng) if data[:1] in b"{[" and rng.random() < 0.7 else damage_bytes(data, rng)
        if name == "gzip":
            data = gzip.compress(data, 1)
            data = damage_bytes(data, rng) if rng.random() < 0.5 else data
        folder = os.path.join(base, "run")
        os.mkdir(folder)
        good_result(folder)
        path = os.path.join(folder, file_name)
        with open(path, "wb") as file:
            file.write(data)
        if name == "bench_yaml":
            open(os.path.join(folder, "kernel.cpp"), "w").close()
        words = [w.replace("FILE", path).replace("DIR", folder) for w in rng.choice(commands)]
        run = Run(words, folder)
        counts[name] += 1
        slowest = max(slowest, run.seconds)
        if why := run.wrong():
            failed += 1
            os.makedirs(KEPT, exist_ok=True)
            kept = os.path.join(KEPT, f"{options.seed}-{number}-{file_name}")
            with open(kept, "wb") as file:
                file.write(data)
            print(f"FAILED {name}: {why}: weir {' '.join(words)}\n  {kept}\n  {run.output[-300:]!r}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        if (number + 1) % 1000 == 0:
            print(f"{number + 1} runs, {failed} failed", flush=True)
    shutil.rmtree(base, ignore_errors=True)
    print("; ".join(f"{n} {c}" for n, c in counts.items()))
    print(f"slowest {slowest:.1f} s of processor time")
    print(f"{options.runs - failed} passed, {failed} failed")
    return failed


def event(i, name="k", ts=None, dur=2, stream=7, category="kernel", extra=""):
    return ('{"ph":"X","cat":"%s","name":"%s","pid":0,"tid":%d,"ts":%d,"dur":%d,"args":{"device":0,"stream":%d,'
            '"correlation":%d%s}}' % (category, name, stream, i if ts is None else ts, dur, stream, i, extra))


def fill(size, piece, begin="", end="", between=","):
    parts, length, i = [], 0, 0
    while length < size:
        parts.append(piece(i))
        length += len(parts[-1]) + len(between)
        i += 1
    return begin + between.join(parts) + end


def calls(i, stream):
    return (event(i, "cudaLaunchKernel", i * 10, 3, 1, "cuda_runtime") + "," +
            event(i, "k%d" % (i % 7), i * 10 + 5, 40, stream))


KINETO = ('{"traceEvents":[', "]}")
LOG = ":3:rocvirtual.cpp           :2967: %d us: [pid:17 tid: 0x7f8edc1c4400] "
CREATED = "Created SWq=0x%x to map on HWq=0x%x with size 16384 with priority 1, cooperative: 0"
DISPATCH = ("SWq=0x%x, HWq=0x%x, id=%d, Dispatch Header = 0xb02 (type=2, barrier=1, acquire=1, release=1), setup=3, "
            "grid=[256, 1, 1], workgroup=[256, 1, 1], private_seg_size=0, group_seg_size=0, kernel_obj=0x7f, "
            "kernarg_address=0x7f, completion_signal=0x%x, correlation_id=0, rptr=1, wptr=2")
RESULT = '{"schema":"weir.result/1","status":"complete","workload":{"name":"w"},"streams":1,"samples":{"unit":"ns","values":'
# Shapes by name: the file, the commands, and the text for a size.
SHAPES = {
    "yaml keys": ("w.yaml", [["list", "--file", "FILE"]], lambda n: fill(n, lambda i: f"k{i}: 1", between="\n")),
    "yaml flow keys": ("w.yaml", [["list", "--file", "FILE"]], lambda n: fill(n, lambda i: f"k{i}: 1", "{", "}")),
    "yaml list": ("w.yaml", [["list", "--file", "FILE"]], lambda n: fill(n, lambda i: "-", "", "", "\n")),
    "yaml nested": ("w.yaml", [["list", "--file", "FILE"]], lambda n: "[" * n),
    "yaml nested block": ("w.yaml", [["list", "--file", "FILE"]], lambda n: "- " * (n // 2)),
    "yaml nested maps": ("w.yaml", [["list", "--file", "FILE"]], lambda n: "{a: " * (n // 4)),
    "yaml question marks": ("w.yaml", [["list", "--file", "FILE"]], lambda n: "? " * (n // 2)),
    "yaml anchors": ("w.yaml", [["list", "--file", "FILE"]], lambda n: fill(n, lambda i: f"- &a{i} x", between="\n")),
    "yaml aliases": ("w.yaml", [["list", "--file", "FILE"]], lambda n: fill(n, lambda i: "*a", "a: &a x\nb: [", "]")),
    "yaml quoted": ("w.yaml", [["list", "--file", "FILE"]], lambda n: 'a: "' + "\\x41" * (n // 4) + '"'),
    "yaml long word": ("w.yaml", [["list", "--file", "FILE"]], lambda n: "a: " + "x" * n),
    "yaml blank lines": ("w.yaml", [["list", "--file", "FILE"]], lambda n: "a: x\n" + " \n" * (n // 2) + " y"),
    "yaml comments": ("w.yaml", [["list", "--file", "FILE"]], lambda n: "# x\n" * (n // 4) + "a: 1"),
    "yaml documents": ("w.yaml", [["list", "--file", "FILE"]], lambda n: "---\n" * (n // 4)),
    "yaml buffers": ("w.yaml", [["list", "--file", "FILE"]], lambda n: "name: x\nstreams: 1\nbuffers:\n" + fill(
        n, lambda i: f"  b{i}: {{count: 8}}", between="\n") + "\ncommands:\n  - {kernel: chain, ops: [mul 1], reads: b0, writes: b1}\n"),
    "yaml commands": ("w.yaml", [["run", "--file", "FILE", "--dry-run"]], lambda n: "name: x\nstreams: 1\nbuffers: {a: {count: 8, init: uniform}, "
                      "b: {count: 8}}\ncommands:\n" + fill(n, lambda i: f"  - {{name: c{i}, kernel: chain, ops: [mul 1], reads: a, writes: b}}", between="\n")),
    "yaml expression": ("w.yaml", [["list", "--file", "FILE"]], lambda n: "name: x\nstreams: 1\nparams: {p: 1}\nwork: " + "p + " * (n // 4) + "1\nbuffers: {a: 8}\ncommands: []\n"),
    "bench.yaml keys": ("bench.yaml", [["bench", "--path", "DIR", "--list"]], lambda n: fill(n, lambda i: f"k{i}: 1", between="\n")),
    "sim profile keys": ("p.yaml", [["run", "hetero_kernels", "--device", "sim:FILE", "--dry-run"]],
                         lambda n: fill(n, lambda i: f"k{i}: 1", between="\n")),
    "json keys": ("d.json", DOCUMENTS, lambda n: fill(n, lambda i: f'"k{i}":1', RESULT + '[1,2,3]},', "}")),
    "json variables": ("d.json", DOCUMENTS, lambda n: fill(n, lambda i: f'"TOKEN{i}":"TOKENIZ{i}"', RESULT + '[1,2,3]},"environment":{"variables":{', "}}}")),
    "json samples": ("d.json", DOCUMENTS, lambda n: fill(n, lambda i: str(i * 7919 % 100003), RESULT + "[", "]}}")),
    "json nested": ("d.json", DOCUMENTS, lambda n: "[" * n),
    "json results": ("d.json", DOCUMENTS, lambda n: fill(n, lambda i: RESULT.replace('"w"', f'"w{i}"') + "[1,2]}}", '{"schema":"weir.sweep/1","workload":"w","results":[', "]}")),
    "json command": ("d.json", DOCUMENTS, lambda n: RESULT + '[1,2,3]},"command_line":["' + "--key=--token " * (n // 14) + '"]}'),
    "json one word": ("d.json", DOCUMENTS, lambda n: RESULT + '[1,2,3]},"command_line":["' + "TOKENIZ" * (n // 7) + '"]}'),
    "kineto streams": ("t.json", TRACES, lambda n: fill(n, lambda i: event(i, stream=i), *KINETO)),
    "kineto names": ("t.json", TRACES, lambda n: fill(n, lambda i: event(i, f"k{i}"), *KINETO)),
    "kineto equal times": ("t.json", TRACES, lambda n: fill(n, lambda i: event(i, ts=5, stream=i % 8), *KINETO)),
    "kineto backwards": ("t.json", TRACES, lambda n: fill(n, lambda i: event(i, ts=10**9 - i * 3), *KINETO)),
    "kineto overlapping": ("t.json", TRACES, lambda n: fill(n, lambda i: event(i, ts=i, dur=10**7, stream=i % 16), *KINETO)),
    "kineto nested": ("t.json", TRACES, lambda n: fill(n, lambda i: event(i, ts=i, dur=10**8 - 2 * i, stream=1, category="cpu_op"), *KINETO)),
    "kineto calls": ("t.json", TRACES, lambda n: fill(n, lambda i: calls(i, 7 + i % 8), *KINETO)),
    "kineto calls, many streams": ("t.json", TRACES, lambda n: fill(n, lambda i: calls(i, i), *KINETO)),
    "kineto one correlation": ("t.json", TRACES, lambda n: fill(n, lambda i: event(3, ts=i * 5, stream=i % 8, category="kernel" if i % 2 else "cuda_runtime"), *KINETO)),
    "kineto collectives": ("t.json", TRACES, lambda n: fill(n, lambda i: event(i, "ncclDevKernel_AllReduce", (i * 7919) % 100003 * 10, 1 + (i * 31) % 977, 20 + i % 3), *KINETO)),
    "kineto collectives, one end": ("t.json", TRACES, lambda n: fill(n, lambda i: event(i, "ncclDevKernel_AllReduce", i, 10**7 - i, 20), *KINETO)),
    "kineto waits": ("t.json", TRACES, lambda n: fill(n, lambda i: calls(i, 7 + i % 8) + "," + event(
        i, "cudaStreamSynchronize", i * 10 + 4, 5, 1, "cuda_runtime"), *KINETO)),
    "kineto steps": ("t.json", TRACES, lambda n: fill(n, lambda i: event(i, f"ProfilerStep#{i}", i * 10, 9, 1, "user_annotation") + "," + event(i, ts=i * 10), *KINETO)),
    "kineto annotations nested": ("t.json", TRACES, lambda n: fill(n, lambda i: event(i, f"ProfilerStep#{i}", i, 10**8 - 2 * i, 1, "user_annotation") + "," + event(i, ts=i * 10), *KINETO)),
    "kineto unread": ("t.json", TRACES, lambda n: fill(n, lambda i: '{"ph":"X","cat":"kernel","name":"a', *KINETO, between=",\n")),
    "kineto long name": ("t.json", TRACES, lambda n: KINETO[0] + event(1, "x<" * (n // 2)) + KINETO[1]),
    "rocprof_csv": ("t.csv", TRACES, lambda n: fill(n, lambda i: f'{i},"k{i}",1,{i},{i * 3 % 1009},{i * 3 % 1009 + 9}',
                                                     '"Index","KernelName","gpu-id","queue-id","BeginNs","EndNs"\n', "\n", "\n")),
    "rocprof_csv quotes": ("t.csv", TRACES, lambda n: '"Index","KernelName","gpu-id","queue-id","BeginNs","EndNs"\n' + '0,"' + '""' * (n // 2)),
    "cupti_text": ("t.txt", TRACES, lambda n: fill(n, lambda i: f'CONCURRENT KERNEL "k{i}" [ {10**9 - i * 3} - {10**9 - i} ] device 0, context 1, stream {i}, correlation {i}', "", "\n", "\n")),
    "amd_log queues": ("log", [["amd", "log", "FILE"], ["amd", "join", "--log", "FILE", "--no-timeline"], ["amd", "compare", "FILE", "FILE"]],
                       lambda n: fill(n, lambda i: LOG % (10**9 + i) + CREATED % (4096 + i, 8192 + i), "", "\n", "\n")),
    "amd_log dispatches": ("log", [["amd", "log", "FILE"], ["amd", "join", "--log", "FILE", "--no-timeline"], ["amd", "compare", "FILE", "FILE"]],
                           lambda n: fill(n, lambda i: LOG % (10**9 + i) + DISPATCH % (4096 + i, 8192 + i, i, i), "", "\n", "\n")),
    "amd_log one queue": ("log", [["amd", "log", "FILE"], ["amd", "compare", "FILE", "FILE"]],
                          lambda n: fill(n, lambda i: LOG % (10**9 - i) + DISPATCH % (4096, 8192, i, i), "", "\n", "\n")),
    "amd_log processes": ("log", [["amd", "log", "FILE"]], lambda n: fill(n, lambda i: ":3:rocdevice.cpp           :1: %d us: [pid:%d tid: 0x%x] x" % (10**9 + i, i, i), "", "\n", "\n")),
    "amd_log long line": ("log", [["amd", "log", "FILE"]], lambda n: LOG % 5 + "x" * n),
    "amd_ftrace": ("f.txt", [["amd", "ftrace", "FILE"], ["amd", "join", "--ftrace", "FILE", "--no-timeline"]], lambda n: fill(
        n, lambda i: f"          python3-{i}  [000] {i}.993653: funcgraph_entry:                   |  kfd_ioctl_create_queue() {{", "cpus=8\n", "\n", "\n")),
    "amd_ftrace one task": ("f.txt", [["amd", "ftrace", "FILE"]], lambda n: fill(
        n, lambda i: f"          python3-40  [000] {i}.993653: funcgraph_entry:                   |  kfd_ioctl_create_queue() {{", "cpus=8\n", "\n", "\n")),
    "kfd nodes": ("hqds", [["amd", "hqd", "FILE"], ["amd", "hqd", "FILE", "--full"]], lambda n: fill(
        n, lambda i: f"Node {i}, gpu_id {i:x}:\n   Inst 0, HIQ on MEC 2 Pipe 0 Queue 0\n    0000c824: 005f2000 00000000 00000001 00000000", "", "\n", "\n")),
    "kfd queues": ("hqds", [["amd", "hqd", "FILE"], ["amd", "hqd", "FILE", "--full"]], lambda n: fill(
        n, lambda i: f"   Inst 0, CP Pipe {i % 4} Queue {i}\n    0000c824: 005f2000 00000000 00000001 00000000 00005300", "Node 2, gpu_id f7bc:\n", "\n", "\n")),
    "manifest parts": ("manifest.json", [["amd", "join", "DIR", "--no-timeline"]], lambda n: fill(
        n, lambda i: '{"name":"n%d","value":"x"}' % i, '{"schema":"weir.amd_capture/1","weir":"","command":["a"],"started_at":"","started_ns":1,"ended_ns":2,"exit_code":0,'
        '"kernel_release":"","trace_clock":null,"parts":[],"snapshots":[],"processes":[],"environment":[', "]}")),
    "manifest processes": ("manifest.json", [["amd", "join", "DIR", "--no-timeline"]], lambda n: fill(
        n, lambda i: '{"pids":[%d],"name":"p"}' % (i + 1), '{"schema":"weir.amd_capture/1","weir":"","command":["a"],"started_at":"","started_ns":1,"ended_ns":2,"exit_code":0,'
        '"kernel_release":"","trace_clock":null,"parts":[],"snapshots":[],"environment":[],"processes":[', "]}")),
}


def grow(options):
    failed = 0
    base = tempfile.mkdtemp(prefix="weir_hostile_")
    for name, (file_name, commands, make) in SHAPES.items():
        if options.only and options.only not in name:
            continue
        for command in commands[:options.commands]:
            times, why = [], ""
            for size in options.sizes:
                folder = os.path.join(base, "run")
                os.mkdir(folder)
                good_result(folder)
                path = os.path.join(folder, file_name)
                with open(path, "w") as file:
                    file.write(make(size // 5 if file_name.endswith(".yaml") else size))  # YAML is read up to 1 MiB
                if file_name == "bench.yaml":
                    open(os.path.join(folder, "kernel.cpp"), "w").close()
                run = Run([w.replace("FILE", path).replace("DIR", folder) for w in command], folder)
                times.append(run.seconds)
                why = why or run.wrong()
                shutil.rmtree(folder, ignore_errors=True)
            ratio = times[-1] / max(times[0], 0.05)
            if not why and ratio > 2 * options.sizes[-1] / options.sizes[0] and times[-1] > 0.5:
                why = "grows too fast"
            failed += bool(why)
            print(f"{'FAILED' if why else 'ok    '} {name:28} {' '.join(command)[:44]:44} " +
                  " ".join(f"{t:6.2f}" for t in times) + f" s, x{ratio:.1f} {why}", flush=True)
    shutil.rmtree(base, ignore_errors=True)
    print(f"{failed} failed")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("mutate", "grow"))
    parser.add_argument("--runs", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--commands", type=int, default=99, help="most commands for each shape")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1 << 20, 2 << 20, 4 << 20])
    options = parser.parse_args()
    sys.exit(1 if (mutate if options.what == "mutate" else grow)(options) else 0)


if __name__ == "__main__":
    main()
