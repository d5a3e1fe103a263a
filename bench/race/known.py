"""The programs of this folder: where they are, how they are started, and which race each is known to have. Knows
nothing of what weir says about them."""
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# `# edge: KERNEL@side -> KERNEL@main, missing: wait_stream`; parts of names, or copy, set, graph, host_function, host
EDGE = re.compile(r"^(?:#|//) edge: (?P<first>[^@\n]+)@\w+ -> (?P<second>[^@,\n]+)(?:@\w+)?, "
                  r"missing: (?P<missing>\w+)$", re.M)


class Program:
    def __init__(self, path, build):
        self.path, self.name = path, path.stem
        self.is_cuda = path.suffix == ".cu"
        self.command = [str(build / self.name)] if self.is_cuda else [sys.executable, str(path)]
        edge = EDGE.search(path.read_text())
        self.first, self.second, self.missing = edge.group("first", "second", "missing") if edge else (None, None, None)

    flags = ()  # of weir race

    def command_line(self, fixed=False):
        return self.command + (["--fixed"] if fixed else [])


def racing(build):
    """Those in CUDA first: they start at once, and the time that they leave is for the others."""
    found = [Program(path, build) for path in sorted((HERE / "programs").iterdir()) if path.suffix in (".py", ".cu")]
    return sorted((program for program in found if program.first), key=lambda program: not program.is_cuda)


def clean(build):
    return [Program(path, build) for path in sorted((HERE / "clean").glob("*.py"))]


class Workload:
    """Checks its outputs itself, and says by its exit status whether they are right."""
    is_cuda, first, second, missing = False, None, None, None
    flags = ("--judge", "status")

    def __init__(self, weir, name):
        self.name = name
        self.command = [weir, "run", name, "--device", "cuda", "--scale", "small", "--iterations", "20", "--no-trace",
                        "-q"]

    def command_line(self, fixed=False):
        return self.command


def workloads(weir):
    listed = json.loads(subprocess.run([weir, "list", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    return [Workload(weir, each["name"]) for each in listed["workloads"]]
