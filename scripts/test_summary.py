#!/usr/bin/env python3
"""Tells what CTest's JUnit reports hold: failed tests with the end of what they printed, why tests were skipped, and the
slowest ones. usage: test_summary.py REPORT.xml ..."""
import collections
import re
import sys
import xml.etree.ElementTree as tree


def reason_of(output):
    """GoogleTest prints "file.cpp:12: Skipped" and the reason in the next line; scripts print "skipped: reason"."""
    found = re.search(r": Skipped\n(.+)", output) or re.search(r"^skipped: (.+)", output, re.M)
    return found.group(1).strip() if found else "no reason was given"


failed, skipped, times = [], collections.Counter(), []
for path in sys.argv[1:]:
    part = re.search(r"junit-(.*)\.xml$", path).group(1)
    for case in tree.parse(path).iter("testcase"):
        output = (case.findtext("system-out") or "").strip()
        times.append((float(case.get("time") or 0), part, case.get("name")))
        if case.find("failure") is not None:
            failed.append((part, case.get("name"), output.splitlines()[-12:]))
        elif case.find("skipped") is not None or case.get("status") in ("disabled", "notrun"):
            skipped[re.sub(r"/\S*/", "", reason_of(output))] += 1

if skipped:
    print("Skipped, and why:")
    for reason, count in skipped.most_common(12):
        print(f"  {count:4d}  {reason[:150]}")
    if len(skipped) > 12:
        print(f"  {sum(count for _, count in skipped.most_common()[12:]):4d}  for other reasons")
if times:
    print("The ten slowest tests:")
    for seconds, part, name in sorted(times, reverse=True)[:10]:
        print(f"  {seconds:6.1f} s  {part}: {name}")
for part, name, lines in failed:
    print(f"Failed in {part}: {name}", *("    | " + line[:200] for line in lines), sep="\n")
