"""A scheduler for as long as a measurement takes."""
import contextlib
import pathlib
import subprocess
import tempfile


@contextlib.contextmanager
def scheduler(weir, *flags):
    """The words that put a program under it: flags of `weir sched run`, "--" and the program follow."""
    with tempfile.TemporaryDirectory() as folder:
        socket = ["--socket", str(pathlib.Path(folder) / "sched.sock")]
        subprocess.run([weir, "sched", "start", *flags, *socket], check=True, stdout=subprocess.DEVNULL)
        try:
            yield [weir, "sched", "run", *socket]
        finally:
            subprocess.run([weir, "sched", "stop", *socket], stdout=subprocess.DEVNULL)
