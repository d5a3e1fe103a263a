// One number over time, of one environment: medians with their intervals, and where the series changed for good.
import { chart, type Mark, type Point } from "../chart";
import type { History, HistoryPoint, ReportDocument } from "../document";
import { el } from "../dom";
import { change, count, interval, kNone, moment, plural, probability, rate } from "../format";
import { card } from "../item";
import { numbers, table } from "../table";
import { cut, name } from "../text";
import { badge } from "../tone";

/** The x of every point: its time in ms, or its number where times are missing or not in order. */
export function places(points: readonly HistoryPoint[]): { kind: "time" | "linear"; xs: number[] } {
  const times = points.map((point) => Date.parse(point.at));
  const is_ordered = times.every((time, i) => Number.isFinite(time) && (i === 0 || time > (times[i - 1] ?? Infinity)));
  return is_ordered ? { kind: "time", xs: times } : { kind: "linear", xs: points.map((_, i) => i + 1) };
}

function short(commit: string): string {
  return commit.slice(0, 10);
}

export function render(container: HTMLElement, items: readonly History[], report: ReportDocument): void {
  for (const item of items) container.append(draw(item, report));
}

function draw(item: History, report: ReportDocument): HTMLElement {
  const { kind, xs } = places(item.points);
  const points = item.points.map((point, i): Point => ({
    x: xs[i] ?? i,
    y: point.p50,
    low: point.interval?.[0] ?? null,
    high: point.interval?.[1] ?? null,
    note: [short(point.commit), point.tag].filter((word) => word !== null && word !== "").join(" · "),
  }));
  const marks = item.changes.flatMap((one, i): Mark[] => {
    const x = xs[one.index];
    return x === undefined ? [] : [{ kind: "line", x, y: i % 2, label: `${one.verdict} ${change(one.ratio)}`, colour: one.verdict === "slower" ? "bad" : "good" }];
  });
  const one = (value: number): string => rate(value, item.unit);
  return card(
    item,
    report,
    el("p", { class: "meaning" }, name(item.metric, 40), " of ", name(item.workload), item.is_less_better ? ": less is better." : ": more is better."),
    chart({
      label: `${cut(item.metric, 40)} of ${cut(item.workload)} over time`,
      x: { label: kind === "time" ? "" : "run", kind, format: (value) => (kind === "time" ? moment(new Date(value).toISOString()) : `run ${value}`) },
      y: { label: item.metric, kind: "linear", format: one },
      series: [{ name: "median", colour: 0, marker: "circle", points, has_band: true }],
      marks,
      keys: [{ glyph: "│", text: "interval" }, ...(marks.length > 0 ? [{ glyph: "┊", text: "change point" }] : [])],
    }),
    item.changes.length > 0 ? changes(item) : el("p", { class: "hint" }, `No change point in ${plural(item.points.length, "run")}.`),
    numbers("Numbers of every run", () => runs(item)),
  );
}

function changes(item: History): HTMLElement {
  return table(
    "Change points",
    [{ heading: "Since" }, { heading: "Commit", is_text: true }, { heading: "Change" }, { heading: "p" }, { heading: "Verdict", is_text: true }],
    item.changes.map((one) => {
      const point = item.points[one.index];
      return { cells: [point ? moment(point.at) : kNone, point ? el("code", {}, name(short(point.commit))) : kNone, change(one.ratio), probability(one.p), badge(one.verdict === "slower" ? "bad" : "good", one.verdict)] };
    }),
    { is_caption_hidden: true },
  );
}

function runs(item: History): HTMLElement {
  const changed = new Map(item.changes.map((one) => [one.index, one]));
  return table(
    `${plural(item.points.length, "run")} of ${item.workload}`,
    [{ heading: "At" }, { heading: "Commit", is_text: true }, { heading: "Tag", is_text: true }, { heading: "Median" }, { heading: "Interval" }, { heading: "Samples" }, { heading: "Changed", is_text: true }],
    item.points.map((point, i) => {
      const one = changed.get(i);
      return {
        cells: [moment(point.at), el("code", {}, name(short(point.commit))), point.tag === null ? kNone : name(point.tag, 40), rate(point.p50, item.unit), interval(point.interval, (value) => rate(value, item.unit)), count(point.count), one ? `${one.verdict} ${change(one.ratio)}` : ""],
      };
    }),
    { is_caption_hidden: true },
  );
}
