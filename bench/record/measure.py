#!/usr/bin/env python3
"""What `weir profile --` and `weir record --` cost unmodified PyTorch programs, whether their counts are PyTorch's own, and
whether planted hangs are named. Needs a GPU, PyTorch and a built weir.
usage: measure.py PATH_OF_WEIR PATH_OF_PLANTED_HANGS OUTPUT_FOLDER [rounds] [part ...]
parts: counts cost toggle death hangs kills
Processes that are compared take turns. They are forked from one that has imported PyTorch and has not touched the GPU, with
the variables that weir would have set. The floors need libfloor.so (floor.cpp) beside weir."""
import glob, json, os, pathlib, random, shutil, signal, statistics, subprocess, sys, tempfile, time

PYTORCH = str(pathlib.Path(__file__).resolve().parents[1] / "pytorch")
sys.path.insert(0, PYTORCH)
from processes import in_child, run_as_program

WEIR, PLANTED, OUT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3])
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 9
PARTS = sys.argv[5:] or ["counts", "cost", "toggle", "death", "hangs", "kills"]
LIBRARY = WEIR.parent / "libweir_cupti.so"
SECONDS, TURNS = float(os.environ.get("MEASURE_SECONDS", "0.5")), int(os.environ.get("MEASURE_TURNS", "3"))

CONFIGURATIONS = {
    "plain": {},
    "capture": {"WEIR_CAPTURE_FOLDER": None},
    "whole graphs": {"WEIR_CAPTURE_FOLDER": None, "WEIR_CAPTURE_WHOLE_GRAPHS": "1"},
    "record": {"WEIR_RECORD_FOLDER": None},
    "record, hangs": {"WEIR_RECORD_FOLDER": None, "WEIR_RECORD_HANG": "1"},
    "record, callbacks": {"WEIR_RECORD_FOLDER": None},
    "record, off": {"WEIR_RECORD_FOLDER": None, "WEIR_RECORD_OFF": "1"},
    "floor, callbacks": {"FLOOR": "callbacks"},
    "floor, records": {"FLOOR": "records"},
}
PROGRAMS = ["training", "decoding", "pipeline"]
# Whole graphs are a capture of a program that has graphs.
COMPARED = {"plain": PROGRAMS, "capture": PROGRAMS, "whole graphs": ["decoding"], "record": PROGRAMS, "record, hangs": PROGRAMS,
            "record, callbacks": PROGRAMS, "record, off": PROGRAMS, "floor, callbacks": PROGRAMS, "floor, records": PROGRAMS}
HOOKS = {name: str(LIBRARY) for name in ("record", "record, hangs", "record, off")}  # what is preloaded
if "MEASURE_ONLY" in os.environ:
    COMPARED = {name: COMPARED[name] for name in os.environ["MEASURE_ONLY"].split(";")}


def say(*words):
    print(*words, flush=True)


class Folder:
    """Like tempfile.TemporaryDirectory, which would remove itself at the end of a forked child too."""
    def __enter__(self):
        self.path = tempfile.mkdtemp(dir="/dev/shm")
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def set_variables(configuration, folder):
    for name, value in CONFIGURATIONS[configuration].items():
        os.environ[name] = str(folder) if value is None else value
    if "FLOOR" in os.environ:
        import torch
        beside = glob.glob(os.path.dirname(torch.__path__[0]) + "/nvidia/**/libcupti.so*", recursive=True)
        os.environ["FLOOR_CUPTI"] = (beside + glob.glob("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"))[0]
    if configuration != "plain":
        os.environ["CUDA_INJECTION64_PATH"] = str(LIBRARY.with_name("libfloor.so") if "FLOOR" in os.environ else LIBRARY)


def measured(configuration, folder, requests, answers):
    """A process that runs windows of any program when it is told to: a line is a program, an empty one the end."""
    set_variables(configuration, folder)
    import torch
    import programs
    requests, answers = open(requests), open(answers, "w")
    steps = {program: programs.PROGRAMS[program]() for program in COMPARED[configuration]}
    for step in steps.values():
        for _ in range(20):
            step()
    torch.cuda.synchronize()
    print("ready", file=answers, flush=True)
    while program := requests.readline().strip():
        step = steps[program]
        for _ in range(5):
            step()
        torch.cuda.synchronize()
        begun, count = time.perf_counter(), 0
        while time.perf_counter() - begun < SECONDS:
            step()
            count += 1
        torch.cuda.synchronize()
        print(count / (time.perf_counter() - begun), file=answers, flush=True)


def serve():
    """Forks measured processes, as told line by line. PyTorch is imported once."""
    import torch
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    for line in sys.stdin:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            run_as_program(lambda: measured(*json.loads(line)))


class Measured:
    """The other end of measured(): a recorder's hooks must be there from the start, so there is a server for each kind."""
    servers = {}

    def __init__(self, configuration, folder):
        hooks = HOOKS.get(configuration, "")
        if hooks not in self.servers:
            server = subprocess.Popen([sys.executable, __file__, WEIR, PLANTED, OUT, "0", "serve"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, env=dict(os.environ, LD_PRELOAD=hooks))
            server.stdout.readline()
            self.servers[hooks] = server
        names = [f"{folder}/requests", f"{folder}/answers"]
        for name in names:
            os.mkfifo(name)
        print(json.dumps([configuration, folder, *names]), file=self.servers[hooks].stdin, flush=True)
        self.requests, self.answers = open(names[0], "w"), open(names[1])

    def ready(self):
        return self.answers.readline().strip() == "ready"

    def rate(self, program):
        print(program, file=self.requests, flush=True)
        text = self.answers.readline()
        return float(text) if text else None  # it has died

    def end(self):
        self.requests.close()
        self.answers.read()  # until the process has ended
        self.answers.close()


def interval(values):
    """Median and its bootstrap interval of 95 %."""
    random.seed(1)
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(2000))
    return statistics.median(values), medians[49], medians[1949]


def cost():
    """In each round a process of every configuration; these take turns, one at a time, so that all see the same machine."""
    rates = {(p, c): [] for p in PROGRAMS for c in COMPARED if p in COMPARED[c]}
    limit = time.perf_counter() + float(os.environ.get("MEASURE_LIMIT", "1e9"))
    rounds = 0
    while rounds < ROUNDS and time.perf_counter() < limit:
        folders = {name: Folder() for name in COMPARED}
        processes = {name: Measured(name, folder.__enter__()) for name, folder in folders.items()}
        failed = [name for name, one in processes.items() if not one.ready()]
        for name in failed:
            say("FAILED", name)
            processes.pop(name)
        found = {key: [] for key in rates}
        order = list(processes)
        for _ in range(TURNS):
            random.shuffle(order)
            for program in PROGRAMS:
                for name in order:
                    if program in COMPARED[name]:
                        found[program, name].append(processes[name].rate(program))
        for one in processes.values():
            one.end()
        for folder in folders.values():
            folder.__exit__()
        for key, turns in found.items():
            rates[key].append(statistics.median(turns) if turns and all(turns) else None)
        rounds += 1
        (OUT / "cost.json").write_text(json.dumps([[*key, value] for key, value in rates.items()]))
    say(f"{'program':10} {'configuration':18} {'steps/s':>9} {'slower than plain by':>26}   of {rounds} processes")
    for (program, configuration), values in sorted(rates.items(), key=lambda each: PROGRAMS.index(each[0][0])):
        # Of processes of the same round: the machine's speed drifts.
        pairs = [(plain, value) for plain, value in zip(rates[program, "plain"], values) if plain and value]
        if pairs:
            middle, low, high = interval([100 * (plain / value - 1) for plain, value in pairs])
            say(f"{program:10} {configuration:18} {statistics.median(value for _, value in pairs):9.1f} {middle:8.2f} % [{low:6.2f}, {high:6.2f}]")


def kind_of(event):
    category, name = event.get("cat", ""), event.get("name", "")
    if category == "kernel":
        return "kernels"
    if category == "gpu_memcpy":
        return "copies"
    if category == "gpu_memset":
        return "memsets"
    return None


def counts():
    """The same steps under torch.profiler and under weir profile: kernels, copies and memsets must be equal."""
    steps = 10

    def theirs(program, path):
        import torch
        import programs
        step = programs.PROGRAMS[program]()
        for _ in range(5):
            step()
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(steps):
                step()
            torch.cuda.synchronize()
        profile.export_chrome_trace(path)
        return 0

    def ours(program, folder, count):
        set_variables("capture", folder)
        import torch
        import programs
        step = programs.PROGRAMS[program]()
        for _ in range(count):
            step()
        torch.cuda.synchronize()
        return 0

    for program in PROGRAMS:
        with Folder() as folder:
            path = f"{folder}/theirs.json"
            in_child(lambda: theirs(program, path))
            found = {"kernels": 0, "copies": 0, "memsets": 0}
            for event in json.load(open(path))["traceEvents"]:
                if kind := kind_of(event):
                    found[kind] += 1
            counted = []
            for count in (5, 5 + steps):
                captures = pathlib.Path(folder, str(count))
                captures.mkdir()
                in_child(lambda: ours(program, captures, count))
                file = next(captures.glob("*.weircap"))
                shutil.copy(file, OUT / f"counts-{program}-{count}.weircap")
                result = subprocess.run([WEIR, "analyze", file, "--window", "all", "--json"], capture_output=True, text=True)
                counted.append(commands_in(json.loads(result.stdout)))
            ours_found = {kind: counted[1].get(kind, 0) - counted[0].get(kind, 0) for kind in found}
            say(f"counts {program:10} torch.profiler {found}  weir profile {ours_found}  "
                f"{'equal' if found == ours_found else 'DIFFERENT'}")


def commands_in(document):
    """Counts by kind, from the document of weir analyze."""
    found = {"kernels": 0, "copies": 0, "memsets": 0}
    for device in document["devices"]:
        for kind, name in {"kernel": "kernels", "collective": "kernels", "copy": "copies", "memset": "memsets"}.items():
            found[name] += device["kinds"].get(kind, {}).get("commands", 0)
    return found


TRAINING = """
import os, sys, time
sys.path.insert(0, {folder!r})
import programs, torch
step = programs.PROGRAMS[{program!r}]()
print(os.getpid(), flush=True)
end = time.time() + {seconds}
while time.time() < end:
    step()
"""


def launched(program, seconds, *flags):
    code = TRAINING.format(folder=PYTORCH, program=program, seconds=seconds)
    return subprocess.Popen([WEIR, "record", *flags, "--", sys.executable, "-c", code], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def start(program, seconds, *flags):
    process = launched(program, seconds, *flags)
    return process, int(process.stdout.readline())


def toggle():
    process, pid = start("training", 30)
    time.sleep(1)
    took = []
    for i in range(40):
        begun = time.perf_counter()
        result = subprocess.run([WEIR, "record", "off" if i % 2 == 0 else "on", str(pid)], capture_output=True, text=True)
        took.append(1000 * (time.perf_counter() - begun))
        if result.returncode != 0:
            say("toggle FAILED:", result.stderr)
            break
    begun = time.perf_counter()
    dump = subprocess.run([WEIR, "record", "dump", str(pid), "-o", str(OUT / "live.trace.json"), "--force"], capture_output=True, text=True)
    say(f"toggle: {len(took)} times, median {statistics.median(took):.0f} ms, longest {max(took):.0f} ms; last words: {result.stdout.strip()}")
    say(f"dump of the running program: exit {dump.returncode}, {time.perf_counter() - begun:.2f} s: {dump.stdout.strip()} {dump.stderr.strip()}")
    say(subprocess.run([WEIR, "record", "list"], capture_output=True, text=True).stdout)
    process.terminate()
    process.wait()
    say("ended:", process.returncode, process.stderr.read().strip())


def death():
    for program in PROGRAMS:
        process, pid = start(program, 60)
        time.sleep(3)
        os.kill(process.pid, signal.SIGKILL)  # the recorder first
        os.kill(pid, signal.SIGKILL)
        begun = time.perf_counter()
        name = OUT / f"dead-{program}.trace.json"
        dump = subprocess.run([WEIR, "record", "dump", str(pid), "-o", name, "--force"], capture_output=True, text=True)
        took = time.perf_counter() - begun
        say(*(row for row in subprocess.run([WEIR, "record", "list"], capture_output=True, text=True).stdout.splitlines() if str(pid) in row))
        say(f"death {program:10} dump after SIGKILL of both: exit {dump.returncode}, {took:.2f} s, {dump.stdout.strip()} {dump.stderr.strip()[-200:]}")
        if name.exists() and name.stat().st_size > 8 << 20:
            name.unlink()


def hangs():
    rows = [line.split("\t") for line in subprocess.run([PLANTED, "list"], capture_output=True, text=True).stdout.splitlines()]
    loader = """
import os, signal
import torch
class Data(torch.utils.data.Dataset):
    def __len__(self): return 100000
    def __getitem__(self, i):
        if i == 64: os.kill(os.getpid(), signal.SIGSTOP)
        return torch.ones(16)
if __name__ == "__main__":
    x = torch.zeros(16, device="cuda")
    for batch in torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=1):
        x += batch.cuda().sum(0)
        torch.cuda.synchronize()
"""
    timeout, named = 3, 0
    work = []
    for name, words in [*rows, ["dead_data_loader", "data loader"]]:
        shared = f"/weir_planted_{os.getpid()}_{name}"
        environment = dict(os.environ, PLANTED_SHARED=shared)
        if name == "dead_data_loader":
            command = [sys.executable, "-c", loader]
        elif name.startswith("rank"):
            command = ["/bin/sh", "-c", f"RANK=1 WORLD_SIZE=2 {PLANTED} {name} & RANK=0 WORLD_SIZE=2 {PLANTED} {name}; wait"]
        else:
            command = [PLANTED, name]
        work.append((name, words, [WEIR, "record", "--hang-timeout", f"{timeout}s", "--on-hang", "kill", "--", *command], environment))
    running, waiting = [], list(work)
    while running or waiting:
        while waiting and len(running) < 7:
            name, words, command, environment = waiting.pop(0)
            log = open(OUT / f"hang-{name}.txt", "w")
            running.append((name, words, subprocess.Popen(command, env=environment, stdout=log, stderr=log), time.perf_counter()))
        time.sleep(0.05)
        for one in list(running):
            name, words, process, begun = one
            took = time.perf_counter() - begun
            if process.poll() is None and took < 40:
                continue
            running.remove(one)
            if process.poll() is None:
                process.kill()
            text = (OUT / f"hang-{name}.txt").read_text()
            text = text[text.find("has not moved"):]
            sentence = " ".join(line.strip() for line in text.split("\n\n")[0].splitlines()[1:])
            is_named = words in sentence
            named += is_named
            say(f"hang {'named ' if is_named else 'MISSED'} {name:34} {took:5.1f} s  {sentence[:300]}")
            shm = pathlib.Path("/dev/shm") / f"weir_planted_{os.getpid()}_{name}"
            shm.unlink(missing_ok=True)
    say(f"hangs: {named} of {len(work)} named; timeout {timeout} s")


def is_running(pid):
    """Whether the process is there and not a zombie, which waits for its parent."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def kills():
    random.seed(7)
    bad = 0
    for _ in range(int(os.environ.get("MEASURE_KILLS", "3"))):
        program = random.choice(["training", "pipeline"])
        victims = [launched(program, 60, "--quiet") for _ in range(18)]
        victims = [(process, int(process.stdout.readline())) for process in victims]
        time.sleep(random.uniform(0, 1.5))
        for process, pid in victims:
            kill_recorder = random.random() < 0.5
            os.kill(process.pid if kill_recorder else pid, signal.SIGKILL)
            if kill_recorder:
                time.sleep(0.3)
                if not is_running(pid):
                    bad += 1
                    say("program ended with its recorder")
            result = subprocess.run([WEIR, "record", "dump", str(pid), "-o", "/dev/shm/kill.trace.json", "--force"], capture_output=True, text=True)
            if result.returncode != 0:
                bad += 1
                say("dump failed:", result.stderr.strip()[-200:])
            for one in (process.pid, pid):
                try:
                    os.kill(one, signal.SIGKILL)
                except OSError:
                    pass
            process.wait()
    say(f"kills: {bad} bad")


def main():
    if PARTS == ["serve"]:
        return serve()
    OUT.mkdir(parents=True, exist_ok=True)
    import torch
    say(f"PyTorch {torch.__version__}, {WEIR}")
    for part in PARTS:
        begun = time.perf_counter()
        try:
            globals()[part]()
        except Exception as error:
            say(part, "FAILED:", repr(error))
        say(f"-- {part}: {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
