#!/usr/bin/env python3
"""Runs every program of this folder plainly and says which do not do what they should while nobody disturbs them: the
same digest each time, and that of the corrected variant. PyTorch is imported once; each run is a fork of this process.
usage: trial.py BUILD_FOLDER [TIMES]    BUILD_FOLDER: the programs in CUDA, as trial.sh builds them"""
import os
import pathlib
import re
import runpy
import select
import signal
import subprocess
import sys
import time
import traceback

import known

LIMIT_S = 120
BUILD = pathlib.Path(sys.argv[1]).resolve()
TIMES = int(sys.argv[2]) if len(sys.argv) > 2 else 3


def in_fork(program, fixed):
    """Output and status of a program in a child, which finds PyTorch imported and the GPU untouched."""
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        os.dup2(write, 2)
        sys.argv = [str(program.path)] + (["--fixed"] if fixed else [])
        sys.path.insert(0, str(program.path.parent))
        status = 1
        try:
            runpy.run_path(str(program.path), run_name="__main__")
            status = 0
        except SystemExit as end:
            if isinstance(end.code, str):
                print(end.code)
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    os.close(write)
    output, end = b"", time.monotonic() + LIMIT_S
    while True:
        ready, _, _ = select.select([read], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            output += b"\nkilled after %d s" % LIMIT_S
            break
        part = os.read(read, 65536)
        if not part:
            break
        output += part
    os.close(read)
    return output.decode(errors="replace"), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(program, fixed):
    begun = time.monotonic()
    if program.is_cuda:
        try:
            end = subprocess.run(program.command_line(fixed), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, timeout=LIMIT_S)
            output, status = end.stdout, end.returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            output, status = str(error), -1
    else:
        output, status = in_fork(program, fixed)
    digest = re.search("^digest ([0-9a-f]+)$", output, re.M)
    return digest.group(1) if digest and status == 0 else None, output, time.monotonic() - begun


def main():
    programs = known.racing(BUILD) + known.clean(BUILD)
    import torch  # noqa: F401  once, for all
    wrong = 0
    for program in programs:
        runs = [run(program, False) for _ in range(TIMES)]
        right = run(program, True)[0] if program.first else runs[0][0]
        digests = [digest for digest, _, _ in runs]
        if None in digests or right is None:
            verdict = "FAILED"
        elif len(set(digests)) > 1:
            verdict = "VARIES"
        elif digests[0] != right:
            verdict = "WRONG: not what --fixed gives"
        else:
            verdict = "right"
        wrong += verdict != "right"
        seen = " ".join(sorted(set(map(str, digests))))
        print(f"{program.name:24} {verdict:30} {runs[-1][2]:5.1f} s  {seen}", flush=True)
        for digest, output, _ in runs:
            if digest is None:
                print("    " + "\n    ".join(output.strip().splitlines()[-12:]))
                break
    print(f"{len(programs) - wrong} of {len(programs)} are right when nobody disturbs them")
    return wrong != 0


sys.exit(main())
