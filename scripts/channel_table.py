#!/usr/bin/env python3
"""The fastest of our channels beside the fastest of other people's queues, benchmark by benchmark, as Markdown.

    weir channel --capacity 1024 --processes 8 -o run.json && scripts/channel_table.py run.json

Reads documents of weir channel; several are printed one after another. Ratios are of speed: at least 1 is wanted.
Floors, mutexes and variants that count (_metered) take no part.
"""
import json
import sys


def fastest(benchmarks, less_is_better):
    return (min if less_is_better else max)(benchmarks, key=lambda one: one["value"], default=None)


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        places = {}
        for one in document["benchmarks"]:
            if one["value"] is None or one["contestant"] == "floor" or one["contestant"].startswith("mutex"):
                continue
            if not one["contestant"].endswith("_metered"):
                places.setdefault((one["group"], one["name"], one["unit"]), []).append(one)
        settings = document["settings"]
        print(f"{path}: {document['environment'].get('architecture')}, capacity {settings['capacity']}, "
              f"{settings['processes']} processes\n")
        print("| benchmark | ours | | library | | times as fast |\n| --- | --- | ---: | --- | ---: | ---: |")
        for (group, name, unit), all_of in places.items():
            less = unit != "per_second"
            ours = fastest([one for one in all_of if one["is_ours"]], less)
            other = fastest([one for one in all_of if not one["is_ours"]], less)
            if ours is None or other is None:
                continue
            ratio = other["value"] / ours["value"] if less else ours["value"] / other["value"]
            value = (lambda number: f"{number:.4g} ns") if less else (lambda number: f"{number / 1e6:.4g} M/s")
            print(f"| {group}/{name} | {ours['contestant']} | {value(ours['value'])} | {other['contestant']} | "
                  f"{value(other['value'])} | {ratio:.2f}{'' if ratio >= 1 else ' !'} |")
        print()


main()
