#!/usr/bin/env python3
"""Draws the rooms of src/ and which may include which, from the table in docs/architecture.md: one box per room with its
folders, an arrow to each room that it includes and reaches by no other way.
usage: house.py > docs/images/house.svg"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUMMARY = {
    "base": "what everybody needs", "kernel": "the catalogue", "channel": "between host threads", "step": "commands and their order",
    "measure": "statistics, timeline, result", "device": "where a step runs", "submit": "onto streams", "trace": "other people's timelines",
    "amd": "logs, tracer, driver", "run": "runner, check, sweep", "lab": "an experiment each", "report": "for people and programs",
    "cli": "argv to one call"}


def read_table():
    lines = (ROOT / "docs/architecture.md").read_text().splitlines()
    begin = lines.index("| folder | may include |") + 2
    below, includes = {}, {}
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        _, folders, allowed, _ = line.split("|")
        for folder in (f.strip() for f in folders.split(",")):
            room, _, rest = folder.partition("/")
            below.setdefault(room, [])
            if rest and "/" not in rest:
                below[room].append(rest)
            targets = re.sub(r"\([^)]*\)|\*\*never\*\*.*", "", allowed)
            includes.setdefault(room, set()).update(
                t.strip().partition("/")[0] for t in targets.replace(";", ",").split(",") if t.strip())
    everything = set(includes)
    for room, targets in includes.items():
        includes[room] = (everything if "everything" in targets else targets & everything) - {room}
    return below, includes


def reduced(includes):
    def reach(room, seen):
        for target in includes[room]:
            if target not in seen:
                seen.add(target)
                reach(target, seen)
        return seen
    return {room: {t for t in targets if not any(t in reach(other, set()) for other in targets - {t})}
            for room, targets in includes.items()}


def main():
    below, includes = read_table()
    arrows = reduced(includes)
    level = {}
    def level_of(room):
        if room not in level:
            level[room] = 1 + max((level_of(t) for t in arrows[room]), default=-1)
        return level[room]
    for room in includes:
        level_of(room)
    rows = [[r for r in includes if level[r] == i] for i in range(max(level.values()) + 1)]
    wide, high, gap, width = 310, 64, 40, 720
    place = {}
    for i, row in enumerate(rows):
        y = 20 + (len(rows) - 1 - i) * (high + gap)
        for k, room in enumerate(row):
            place[room] = (width / 2 + (k - (len(row) - 1) / 2) * (wide + 30), y)
    height = 40 + len(rows) * (high + gap) - gap
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" role="img">')
    print("<title>The rooms of src/ and which may include which</title>")
    print('<style>rect{fill:#f4f6f8;stroke:#5b6b7b}text{text-anchor:middle;fill:#1c2733}path{fill:none;stroke:#8796a5}'
          '@media(prefers-color-scheme:dark){rect{fill:#222b34}text{fill:#e6edf3}}</style>')
    print('<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
          '<path d="M0,0 L8,4 L0,8" stroke="#8796a5"/></marker></defs>')
    for room, targets in arrows.items():
        for target in sorted(targets):
            (x1, y1), (x2, y2) = place[room], place[target]
            print(f'<path marker-end="url(#tip)" d="M{x1:.0f},{y1 + high} C{x1:.0f},{y1 + high + 30} '
                  f'{x2:.0f},{y2 - 34} {x2:.0f},{y2 - 2}"/>')
    for room, (x, y) in place.items():
        folders = " ".join(dict.fromkeys(below[room]))
        print(f'<rect x="{x - wide / 2:.0f}" y="{y}" width="{wide}" height="{high}" rx="6"/>')
        print(f'<text x="{x:.0f}" y="{y + 20}" font-weight="bold" font-size="15">{room}</text>')
        print(f'<text x="{x:.0f}" y="{y + 38}" font-size="12">{SUMMARY.get(room, "")}</text>')
        print(f'<text x="{x:.0f}" y="{y + 54}" font-size="9.5">{folders}</text>')
    print("</svg>")


main()
