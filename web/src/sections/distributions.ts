// Latencies as empirical distribution functions: every sample counts, tails are seen. p50, p95 and p99 are marked.
import { chart, dash_of, type Mark, type Point, type Series } from "../chart";
import type { Distribution, DistributionSeries, ReportDocument } from "../document";
import { el } from "../dom";
import { count, duration, kNone, percent, quantity } from "../format";
import { card } from "../item";
import { is_wide } from "../scales";
import { numbers, table } from "../table";
import { name, prose } from "../text";

/** True where the values are the samples themselves, not quantiles of more. */
function has_all(series: Pick<DistributionSeries, "values" | "count">): boolean {
  return series.values.length === series.count;
}

/** Points (value, share at or below it), one for each distinct value. Values are samples or quantiles, in order. */
export function ecdf(series: Pick<DistributionSeries, "values" | "count">): Point[] {
  const size = series.values.length;
  const is_all = has_all(series);
  const points: Point[] = [];
  series.values.forEach((value, i) => {
    const share = is_all ? (i + 1) / size : (i + 0.5) / size;
    const last = points[points.length - 1];
    if (last && last.x === value) last.y = share;
    else points.push({ x: value, y: share });
  });
  return points;
}

function number_of(unit: string): (value: number | null | undefined) => string {
  return unit === "ns" ? duration : (value) => (value === null || value === undefined ? kNone : `${quantity(value)} ${unit}`);
}

export function render(container: HTMLElement, items: readonly Distribution[], report: ReportDocument): void {
  for (const item of items) container.append(draw(item, report));
}

function draw(item: Distribution, report: ReportDocument): HTMLElement {
  const drawn = item.series.filter((series) => series.values.length > 0);
  const values = drawn.flatMap((series) => [series.values[0] ?? null, series.values[series.values.length - 1] ?? null]);
  const can_log = values.every((value) => value !== null && value > 0);
  let is_log = can_log && is_wide(values, 8);
  const holder = el("div", {});
  const redraw = (): void => holder.replaceChildren(picture(item, drawn, is_log));
  redraw();
  const toggle = el("input", { type: "checkbox", checked: is_log });
  toggle.addEventListener("change", () => {
    is_log = toggle.checked;
    redraw();
  });
  return card(
    item,
    report,
    drawn.length > 0 && holder,
    drawn.length > 0 && can_log && el("label", { class: "switch" }, toggle, "logarithmic axis"),
    summary(item),
    drawn.length > 0 && numbers("Numbers of the curve", () => all_values(item, drawn), { is_lazy: true }),
  );
}

function picture(item: Distribution, drawn: readonly DistributionSeries[], is_log: boolean): HTMLElement {
  const series = drawn.map((one, i): Series => ({ name: one.name, colour: i, dash: dash_of(i), points: ecdf(one), is_step: has_all(one), is_running: true }));
  const marks: Mark[] = drawn.length > 3 ? [] : drawn.flatMap((one, i) => quantile_marks(one, i));
  return chart({
    label: `Share of samples at or below a value: ${item.title}`,
    x: { label: item.unit === "ns" ? "latency" : item.unit, kind: is_log ? "log" : "linear", format: number_of(item.unit) },
    y: { label: "share of samples", kind: "linear", format: percent_label, limits: [0, 1.02] },
    series,
    marks,
    keys: marks.length > 0 ? [{ glyph: "◇", text: "p50, p95, p99" }] : [],
  });
}

function percent_label(value: number): string {
  return value > 1 ? "" : Number.isInteger(value * 100) ? `${value * 100} %` : percent(value);
}

function quantile_marks(series: DistributionSeries, index: number): Mark[] {
  const quantiles: [number | null, number, string][] = [[series.p50, 0.5, "p50"], [series.p95, 0.95, "p95"], [series.p99, 0.99, "p99"]];
  return quantiles.flatMap(([value, share, label]) => (value === null ? [] : [{ kind: "diamond", x: value, y: share, label: index === 0 ? label : "", colour: index, with: index } satisfies Mark]));
}

function summary(item: Distribution): HTMLElement {
  const one = number_of(item.unit);
  return table(
    `Quantiles: ${item.title}`,
    [{ heading: "Series" }, { heading: "Samples" }, { heading: "Least" }, { heading: "p50" }, { heading: "p95" }, { heading: "p99" }, { heading: "Most" }],
    item.series.map((series) =>
      series.values.length === 0
        ? { class: "failed", cells: [name(series.name), count(series.count), el("span", { class: "failure" }, prose(series.reason ?? "no values", 200))] }
        : { cells: [name(series.name), count(series.count), one(series.values[0]), one(series.p50), one(series.p95), one(series.p99), one(series.values[series.values.length - 1])] },
    ),
    { is_caption_hidden: true },
  );
}

function all_values(item: Distribution, drawn: readonly DistributionSeries[]): HTMLElement {
  const one = number_of(item.unit);
  const rows = drawn.flatMap((series) => ecdf(series).map((point) => ({ cells: [name(series.name), percent(point.y), one(point.x)] })));
  return table("Every point of the curves", [{ heading: "Series" }, { heading: "At or below" }, { heading: "Value" }], rows, { is_caption_hidden: true });
}
