#!/usr/bin/env python3
"""A kernel package in Python: running sums of an array.

`weir bench` starts this file and asks questions, one JSON object per line on stdin; each is answered by one line on
stdout (docs/bench_protocol.md). stderr is free for words. Nothing but the standard library is used.
"""
import itertools
import json
import random
import sys
import time


class RunningSums:
    """One case, between setup and teardown."""

    def __init__(self, question):
        # What cannot be done is refused: an answer in another precision would be a false label.
        if question["backend"] != "cpu" or question["precision"] != "fp64":
            raise ValueError("only cpu and fp64: Python's float is fp64")
        count = question["problem"]["count"]
        if not isinstance(count, int) or not 1 <= count <= 10**7:
            raise ValueError("count must be a whole number, 1 to 10^7")
        generator = random.Random(question["seed"])
        self.values = [generator.random() for _ in range(count)]
        self.sums = []

    def describe_work(self):
        count = len(self.values)
        return {
            "backend": "cpu",
            "precision": "fp64",
            "flop": count - 1,
            "bytes": 2 * 8 * count,  # read once, written once
            "items": count,
            "item_name": "elements",
        }

    def run(self, runs):
        """The time of all runs together, with nothing else in between."""
        start = time.perf_counter_ns()
        for _ in range(runs):
            self.sums = list(itertools.accumulate(self.values))
        return time.perf_counter_ns() - start

    def check(self):
        self.sums = None  # what an earlier run left must not pass for a result
        self.run(1)
        return [{"name": "sums", "actual": self.sums, "expected": self.reference(), "whole": False}]

    def reference(self):
        """Neumaier's sum carries along what each addition loses."""
        total = lost = 0.0
        sums = []
        for value in self.values:
            following = total + value
            lost += (total - following) + value if total >= value else (value - following) + total
            total = following
            sums.append(total + lost)
        return sums


DESCRIPTION = {
    "summary": "running sums of an array, in Python",
    "backends": ["cpu"],
    "precisions": ["fp64"],
    "parameters": {"count": 10000},
    "resolution_ns": time.get_clock_info("perf_counter").resolution * 1e9,
}


def answer(question, case):
    """The fields of an answer, and the case that is set up after it."""
    operation = question["op"]
    if operation == "describe":
        return DESCRIPTION, case
    if operation == "setup":
        case = RunningSums(question)
        return case.describe_work(), case
    if operation == "teardown":
        return {}, None
    if operation == "run" and case is not None:
        return {"elapsed_ns": case.run(question["count"])}, case
    if operation == "check" and case is not None:
        return {"outputs": case.check()}, case
    # Whoever asks can do without it: memory, and what later versions may ask.
    raise ValueError(f"cannot answer '{operation}'")


def main():
    case = None
    for line in sys.stdin:
        question = json.loads(line)
        if question.get("op") == "exit":
            break
        try:
            fields, case = answer(question, case)
            reply = {"ok": True, **fields}
        except (ValueError, MemoryError) as error:
            reply = {"ok": False, "error": str(error) or type(error).__name__}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
