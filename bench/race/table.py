#!/usr/bin/env python3
"""Lets `weir race` look for the known races, within a time, and says of each whether it was found, whether the two
commands that it names are the right ones, how often its replay changes the output, and what it cost. With --clean: the
corrected variants, the clean programs and the workloads of weir, where every race that is reported is a false alarm.

Needs an NVIDIA GPU, PyTorch, and the programs in CUDA that trial.sh has built. Reads documents weir.race/1.
usage: table.py [--weir PATH] [--programs A,B] [--build FOLDER] [--budget SECONDS] [--clean] [--seeds N]
                [--flags WORDS] [--json PATH] [--keep FOLDER]"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import known

KINDS = {"copy": "copy|copies|memcpy", "set": "set|memset", "graph": "graph", "host_function": "host.?function"}
DISTURBED = ("blind", "aimed", "shrink", "confirm")


def run(command, limit_s, log):
    """Seconds and exit status (None: ended at the limit)."""
    begun = time.monotonic()
    with open(log, "ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   start_new_session=True)
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
    return time.monotonic() - begun, status


def document(path):
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if found.get("schema", "").startswith("weir.race/") else None


def is_end(known_end, end, is_host):
    """Whether a command that weir names is the known one: its kind, or a part of its kernel's name."""
    if known_end == "host":
        return is_host and end is None
    if end is None:
        return False
    for one in known_end.split("|"):
        if one in KINDS:
            if re.search(rf"(^|\W|_)({KINDS[one]})(\W|_|$)", f"{end.get('kind') or ''} {end.get('label') or ''}", re.I):
                return True
        elif one in (end.get("label") or ""):
            return True
    return False


def is_right(program, race):
    return (is_end(program.first, race.get("first"), False) and
            is_end(program.second, race.get("second"), bool(race.get("is_host"))))


def end_text(end, is_host=False):
    if end is None:
        return "host" if is_host else "?"
    label = end.get("label") or end.get("kind") or "?"
    return f"{label if len(label) < 48 else label[:22] + '...' + label[-22:]} ({end.get('stream') or '?'})"


def seconds(runs, purposes):
    times = [each["duration_ns"] / 1e9 for each in runs if each.get("purpose") in purposes and each.get("duration_ns")]
    return statistics.median(times) if times else None


def ratio(a, b):
    return a / b if a is not None and b else None


def shown(value, form="{:.2f}"):
    return "-" if value is None else form.format(value)


class Bench:
    def __init__(self, options):
        self.options = options
        self.flags = shlex.split(options.flags)
        self.folder = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="race_table_"))
        self.folder.mkdir(parents=True, exist_ok=True)

    def search(self, program, fixed, budget_s, more=()):
        path, log = self.folder / f"{program.name}{'.fixed' * fixed}.json", self.folder / f"{program.name}.log"
        path.unlink(missing_ok=True)
        budget_s = max(budget_s, 10)
        took, status = run([self.options.weir, "race", "--budget", f"{budget_s:.0f}s", *self.flags, *more, "-o",
                            str(path), "--", *program.command_line(fixed)], 3 * budget_s + 120, log)
        return path, document(path), took, status, log

    def replay(self, program, path):
        """Of how many runs with the delays the output changed, and of how many."""
        again = self.folder / f"{program.name}.replay.json"
        again.unlink(missing_ok=True)
        run([self.options.weir, "race", "--replay", str(path), "-o", str(again), "--", *program.command_line()], 300,
            self.folder / f"{program.name}.log")
        races = (document(again) or {}).get("races") or [{}]
        counts = races[0].get("with_delay") or {}
        return counts.get("changes"), counts.get("runs")

    def together(self, programs, search):
        """Searches of `jobs` programs at a time, each with its share of the budget that is left; rows as they end."""
        begun, left, lock = time.monotonic(), len(programs), threading.Lock()

        def one(program):
            nonlocal left
            with lock:
                share = (begun + self.options.budget - time.monotonic()) * min(self.options.jobs, left) / left
                left -= 1
            return search(program, share)

        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            rows = [future.result() for future in
                    concurrent.futures.as_completed([pool.submit(one, program) for program in programs])]
        return rows, time.monotonic() - begun

    def found(self, program, share):
        path, said, took, status, log = self.search(program, False, share)
        races = (said or {}).get("races") or []
        right = [race for race in races if is_right(program, race)]
        race = (right or races or [None])[0]
        runs = (said or {}).get("runs") or []
        edge = "right" if right else "-" if not race else "WRONG" if race.get("waits") else "unnamed"
        row = dict(program=program.name, answer=(said or {}).get("answer"), status=status, is_found=bool(races),
                   edge=edge, runs=len(runs), seconds=took, plain_s=seconds(runs, ("plain",)),
                   observed_s=seconds(runs, ("observe",)), delayed_s=seconds(runs, DISTURBED))
        row["observing"] = ratio(row["observed_s"], row["plain_s"])
        row["delaying"] = ratio(row["delayed_s"], row["plain_s"])
        pair = (f"{end_text(race.get('first'))} -> {end_text(race.get('second'), race.get('is_host'))}" if race else
                f"{row['answer'] or f'no document, exit status {status}: {log}'}")
        print(f"{program.name:22} {'yes' if races else 'NO':6} {edge:7} {len(runs):5} {took:8.1f} "
              f"{shown(row['plain_s']):>6} {shown(row['observing'], '{:.2f}x'):>8} "
              f"{shown(row['delaying'], '{:.2f}x'):>8}  {pair}", flush=True)
        return row, program, path

    def racing(self, programs):
        print(f"{'program':22} {'found':6} {'edge':7} {'runs':>5} {'seconds':>8} {'plain':>6} {'observed':>8} "
              f"{'delayed':>8}  first -> second", flush=True)
        found, took = self.together(programs, self.found)
        rows = [row for row, _, _ in found]
        print(f"\nfound {sum(row['is_found'] for row in rows)} of {len(rows)}, the right edge "
              f"{sum(row['edge'] == 'right' for row in rows)}; {sum(row['runs'] for row in rows)} runs in "
              f"{took:.0f} s, {self.options.jobs} programs at a time", flush=True)
        for key in ("observing", "delaying"):
            values = [row[key] for row in rows if row[key] is not None]
            if values:
                print(f"{key}: {statistics.median(values):.2f}x of a plain run, at worst {max(values):.2f}x "
                      "(whole processes)", flush=True)
        if not self.options.replays:
            return rows
        again = [each for each in found if each[0]["is_found"]]
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for (row, _, _), counts in zip(again, pool.map(lambda each: self.replay(each[1], each[2]), again)):
                row["changes"], row["replays"] = counts
        good = sum(bool(row.get("replays")) and row["changes"] * 10 >= 9 * row["replays"] for row in rows)
        print("replays: " + ", ".join(f"{row['program']} {row['changes']}/{row['replays']}" for row, _, _ in again))
        print(f"{good} of {len(again)} change the output in 9 of 10 replays or more")
        return rows

    def accused(self, program, share):
        _, said, took, status, log = self.search(program, program.first is not None, share,
                                                 ("--seeds", str(self.options.seeds), *program.flags))
        runs = (said or {}).get("runs") or []
        disturbed = [each for each in runs if each.get("purpose") in DISTURBED]
        row = dict(program=program.name, answer=(said or {}).get("answer"), status=status,
                   is_alarm=bool((said or {}).get("races")), disturbed=len(disturbed), seconds=took,
                   timed_out=sum(bool(each.get("is_timed_out")) for each in runs))
        trouble = "" if said else f"  no document, exit status {status}: {log}"
        print(f"{program.name:22} {'ALARM' if row['is_alarm'] else '-':6} {str(row['answer']):10} "
              f"{len(disturbed):9} {took:8.1f}{trouble}", flush=True)
        return row

    def clean(self, programs):
        print(f"{'program':22} {'alarm':6} {'answer':10} {'disturbed':>9} {'seconds':>8}", flush=True)
        rows, took = self.together(programs, self.accused)
        print(f"\n{sum(row['is_alarm'] for row in rows)} alarms of {len(rows)} programs in "
              f"{sum(row['disturbed'] for row in rows)} disturbed runs; {sum(row['timed_out'] for row in rows)} runs "
              f"did not end; {sum(row['answer'] is None for row in rows)} programs without an answer; {took:.0f} s")
        return rows


def main():
    usage = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    usage.add_argument("--weir", default="build/release/weir")
    usage.add_argument("--programs", default="", help="names, separated by commas; all")
    usage.add_argument("--build", default="build/race", help="the folder of trial.sh")
    usage.add_argument("--budget", type=float, default=600, help="seconds for all searches together")
    usage.add_argument("--clean", action="store_true", help="look for false alarms")
    usage.add_argument("--jobs", type=int, default=1, help="programs at a time")
    usage.add_argument("--no-replays", dest="replays", action="store_false", help="find only")
    usage.add_argument("--seeds", type=int, default=20, help="blind runs of each program with --clean")
    usage.add_argument("--flags", default="--races 1", help="further flags of weir race, as one word")
    usage.add_argument("--json", type=pathlib.Path, help="write the rows to this file, too")
    usage.add_argument("--keep", help="a folder for the documents and what the runs printed; a new one below /tmp")
    options = usage.parse_args()
    build = pathlib.Path(options.build).resolve()
    programs = known.racing(build) + (known.clean(build) + known.workloads(options.weir) if options.clean else [])
    names = [name for name in options.programs.split(",") if name]
    unknown = set(names) - {program.name for program in programs}
    if unknown:
        there = ", ".join(program.name for program in programs)
        usage.error(f"unknown: {', '.join(sorted(unknown))}; there are {there}")
    programs = [program for program in programs if not names or program.name in names]
    unbuilt = [each.name for each in programs if each.is_cuda and not pathlib.Path(each.command[0]).exists()]
    if unbuilt:
        usage.error(f"not built: {', '.join(unbuilt)}; run {known.HERE / 'trial.sh'} {options.build}")
    bench = Bench(options)
    print(f"documents and output: {bench.folder}")
    rows = bench.clean(programs) if options.clean else bench.racing(programs)
    if options.json:
        options.json.write_text(json.dumps({"is_clean": options.clean, "programs": rows}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
