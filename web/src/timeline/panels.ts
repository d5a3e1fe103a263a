// What stands around the picture: legend, the measured range, totals by name, and what could not be drawn. Text and tables;
// everything the picture shows can be read here.

import { el, svg } from "../dom";
import { count, duration, percent, plural } from "../format";
import { table, type Row } from "../table";
import { command_name, name } from "../text";
import { totals_of_group, type Model } from "./model";
import { kBands, kProfiles, kSeries } from "./palette";
import { kKinds } from "./model";
import { busy_between } from "./rows";
import { moment_text } from "./ticks";

const kMostRows = 200;
const kTopNames = 12;

/** Colour and profile of each kind that occurs. */
export function legend(model: Model): HTMLElement {
  return el(
    "ul",
    { class: "timeline-legend", "aria-label": "Kinds of spans" },
    ...model.kinds_present().map((kind) => {
      const k = kKinds.indexOf(kind);
      const mark = svg("svg", { width: 18, height: 12, viewBox: "0 0 18 12", "aria-hidden": "true" });
      kProfiles[k]!.forEach((is_filled, band) => {
        if (is_filled === 0) return;
        mark.append(svg("rect", { x: 0, y: (band * 12) / kBands, width: 18, height: 12 / kBands + 0.05, style: `fill: var(--series-${kSeries[k]!}); fill-opacity: ${is_filled}` }));
      });
      return el("li", {}, mark, kind === "host" ? "host call" : kind);
    }),
  );
}

/** "gemm, starts at 1.203 ms, lasts 12.5 us, stream 3": the words of a span. */
export function span_facts(model: Model, lane: number, span: number): { name: string; kind: string; start: string; length: string; lane: string; place: string } {
  const { spans } = model.read(lane);
  const index = spans.names[span]!;
  return {
    name: model.name(index),
    kind: model.kind(index),
    start: moment_text(spans.starts[span]!),
    length: duration(spans.durations[span]!),
    lane: model.lane_label(lane),
    place: `span ${count(span + 1)} of ${count(spans.count)}`,
  };
}

/** Busy share of each lane between two moments. */
export function measured(model: Model, from: number, to: number): HTMLElement {
  const rows: { row: Row; share: number }[] = [];
  model.lanes.forEach((lane, index) => {
    if (model.is_collapsed[lane.group]) return;
    const busy = busy_between(model.read(index).rows, from, to);
    const share = to > from ? busy / (to - from) : 0;
    const bar = el("span", { class: "timeline-bar", "aria-hidden": "true" }, el("span", { style: `width: ${(100 * share).toFixed(1)}%` }));
    rows.push({ share, row: { cells: [name(model.lane_label(index), 80), duration(busy), el("span", { class: "timeline-busy" }, bar, percent(share))] } });
  });
  const shown = rows.slice(0, kMostRows);
  return el(
    "div",
    {},
    table(
      `Busy between ${moment_text(from)} and ${moment_text(to)}`,
      [{ heading: "lane", is_text: true }, { heading: "busy" }, { heading: "share of the range" }],
      shown.map(({ row }) => row),
      { is_caption_hidden: true },
    ),
    rows.length > kMostRows && el("p", { class: "hint" }, `${plural(rows.length - kMostRows, "more lane")} not listed.`),
  );
}

/** Time by name for each group: the timeline for those who do not look at it. */
export function totals(model: Model): HTMLElement {
  return el(
    "div",
    { class: "timeline-totals" },
    ...model.timeline.groups.map((group, g) => {
      const sums = totals_of_group(model, g);
      const all = sums.reduce((sum, one) => sum + one.ns, 0);
      const rows: Row[] = sums.slice(0, kTopNames).map((one) => ({
        cells: [command_name(model.name(one.name)), model.kind(one.name), count(one.count), duration(one.ns), duration(one.ns / one.count), percent(all > 0 ? one.ns / all : null)],
      }));
      const rest = sums.slice(kTopNames);
      if (rest.length > 0) {
        const ns = rest.reduce((sum, one) => sum + one.ns, 0);
        const number = rest.reduce((sum, one) => sum + one.count, 0);
        rows.push({ cells: [plural(rest.length, "other name"), "", count(number), duration(ns), duration(ns / number), percent(all > 0 ? ns / all : null)] });
      }
      return table(
        `${group.label.slice(0, 96)}: most time by name`,
        [{ heading: "name", is_text: true }, { heading: "kind", is_text: true }, { heading: "spans" }, { heading: "total" }, { heading: "mean" }, { heading: "share of all" }],
        rows,
      );
    }),
  );
}

/** Every lane with its counts: the same numbers as the column beside the picture. */
export function lane_table(model: Model): HTMLElement {
  const rows: Row[] = model.lanes.slice(0, 2000).map((lane, index) => ({
    cells: [name(model.lane_label(index), 80), count(lane.claimed), duration(lane.claimed_busy_ns), percent(lane.claimed_busy_ns / model.total)],
  }));
  return table("Lanes", [{ heading: "lane", is_text: true }, { heading: "spans" }, { heading: "busy" }, { heading: "share of the timeline" }], rows);
}
