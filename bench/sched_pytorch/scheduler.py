"""A scheduler for as long as a measurement takes."""
import contextlib
import json
import pathlib
import subprocess
import tempfile


class Scheduler:
    def __init__(self, weir, socket):
        self.run = [weir, "sched", "run", *socket]  # flags of `weir sched run`, "--" and the program follow
        self.ask = [weir, "sched", "status", "--json", *socket]

    def clients(self):
        said = subprocess.run(self.ask, stdout=subprocess.PIPE, text=True, check=True).stdout
        return json.loads(said)["clients"]


@contextlib.contextmanager
def scheduler(weir, *flags):
    with tempfile.TemporaryDirectory() as folder:
        socket = ["--socket", str(pathlib.Path(folder) / "sched.sock")]
        subprocess.run([weir, "sched", "start", *flags, *socket], check=True, stdout=subprocess.DEVNULL)
        try:
            yield Scheduler(weir, socket)
        finally:
            subprocess.run([weir, "sched", "stop", *socket], stdout=subprocess.DEVNULL)
