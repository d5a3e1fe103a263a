// Throughput, latency and cost on the host over streams, one card for each workload and environment: measured points with
// their intervals, the fitted law dashed, the floor that no submission can beat, best and knee marked, failures kept.
import { chart, marker_of, type Mark, type Point, type Series } from "../chart";
import type { ReportDocument, Scaling, ScalingCurve, ScalingPoint, Usl } from "../document";
import { el } from "../dom";
import { bare_rate, count, duration, interval, kNone, percent, plural, rate, three_digits } from "../format";
import { card } from "../item";
import { is_wide } from "../scales";
import { numbers, table } from "../table";
import { cut, name, prose } from "../text";

const kFitPoints = 64;

/** throughput(N) of the Universal Scalability Law */
export function usl_at(usl: Usl, streams: number): number {
  return (usl.gamma * streams) / (1 + usl.alpha * (streams - 1) + usl.beta * streams * (streams - 1));
}

/** The law between the first and the last stream count, evenly spaced in their logarithm. */
export function usl_points(usl: Usl, first: number, last: number): Point[] {
  if (!(first > 0) || !(last > first)) return [];
  const points: Point[] = [];
  for (let i = 0; i <= kFitPoints; ++i) {
    const x = first * (last / first) ** (i / kFitPoints);
    const y = usl_at(usl, x);
    points.push({ x, y: Number.isFinite(y) && y >= 0 ? y : null });
  }
  return points;
}

function in_order(points: readonly ScalingPoint[]): ScalingPoint[] {
  return [...points].sort((a, b) => a.streams - b.streams);
}

function is_failed(point: ScalingPoint): boolean {
  return point.failure !== null || (point.throughput === null && point.latency_ns.p50 === null);
}

function failure_of(point: ScalingPoint): string | null {
  return is_failed(point) ? (point.failure ?? point.status) : null;
}

/** Series of one number of the points; failed points stay, with their reason. */
export function series_of(curves: readonly ScalingCurve[], y: (point: ScalingPoint) => number | null, bounds: (point: ScalingPoint) => readonly [number, number] | null): Series[] {
  return curves.map((curve, i) => ({
    name: curve.name,
    colour: i,
    marker: marker_of(i),
    has_band: true,
    points: in_order(curve.points).map((point) => {
      const [low, high] = bounds(point) ?? [null, null];
      return { x: point.streams, y: is_failed(point) ? null : y(point), low, high, failure: failure_of(point) };
    }),
  }));
}

export function render(container: HTMLElement, items: readonly Scaling[], report: ReportDocument): void {
  for (const item of items) container.append(draw(item, report));
}

function draw(item: Scaling, report: ReportDocument): HTMLElement {
  const curves = item.curves;
  const streams = [...new Set(curves.flatMap((curve) => curve.points.map((point) => point.streams)))].sort((a, b) => a - b);
  const has_failures = curves.some((curve) => curve.points.some(is_failed));
  const failed_key = has_failures ? [{ glyph: "×", text: "failed" }] : [];
  const x = { label: "streams", kind: is_wide(streams, 6) ? ("log" as const) : ("linear" as const), format: (value: number) => String(Math.round(value * 100) / 100), ticks: streams };
  const points = curves.flatMap((curve) => curve.points);

  const latencies = points.flatMap((point) => [point.latency_ns.p50, point.latency_ns.p99]);
  const has_latency = latencies.some((value) => value !== null);
  const costs = [...points.map((point) => point.host_ns_per_command), ...curves.flatMap((curve) => curve.floor.map((floor) => floor.ns_per_command))];
  const has_costs = costs.some((value) => value !== null);

  // One point is no curve: its numbers are all there is to see.
  if (streams.length < 2) return card(item, report, ...curves.flatMap((curve) => curve.points.map((point) => single_table(curve, point, item.unit))));

  return card(
    item,
    report,
    el("p", { class: "meaning" }, prose(item.meaning)),
    el("h4", {}, "Throughput"),
    chart({
      label: `Throughput of ${cut(item.workload)} in ${cut(item.unit, 40)} over streams`,
      x,
      y: { label: item.unit, kind: "linear", format: (value) => bare_rate(value, item.unit), is_from_zero: true },
      series: throughput_series(curves),
      marks: throughput_marks(curves),
      keys: [...(curves.some((curve) => curve.usl) ? [{ glyph: "╌", text: "USL fit" }] : []), { glyph: "○", text: "best" }, ...(curves.some((curve) => curve.knee !== null) ? [{ glyph: "◇", text: "knee" }] : []), ...failed_key],
      height: 380,
    }),
    fits(item),
    el(
      "div",
      { class: "chart-row" },
      has_latency &&
        el(
          "div",
          {},
          el("h4", {}, "Latency of a step"),
          chart({
            label: `Latency of a step of ${cut(item.workload)} over streams, median and 99th percentile`,
            x,
            y: { label: "latency", kind: is_wide(latencies) ? "log" : "linear", format: duration, is_from_zero: true },
            series: latency_series(curves),
            keys: failed_key,
            height: 300,
          }),
        ),
      has_costs &&
        el(
          "div",
          {},
          el("h4", {}, "Host time for a command"),
          chart({
            label: `Host time for each command of ${cut(item.workload)} over streams, beside the floor of the null device`,
            x,
            y: { label: "host time", kind: is_wide(costs) ? "log" : "linear", format: duration, is_from_zero: true },
            series: cost_series(curves),
            keys: failed_key,
            height: 300,
          }),
        ),
    ),
    numbers("Numbers of every point", () => point_table(item), { is_open: false }),
  );
}

function throughput_series(curves: readonly ScalingCurve[]): Series[] {
  const measured = series_of(curves, (point) => point.throughput, (point) => point.throughput_interval);
  const fitted = curves.flatMap((curve, i): Series[] => {
    if (!curve.usl) return [];
    const streams = curve.points.map((point) => point.streams);
    return [{ name: `${curve.name}, USL fit`, colour: i, with: i, dash: [6, 5], width: 1.5, points: usl_points(curve.usl, Math.min(...streams), Math.max(...streams)) }];
  });
  return [...measured, ...fitted];
}

function throughput_marks(curves: readonly ScalingCurve[]): Mark[] {
  const has_room = curves.length <= 4;
  return curves.flatMap((curve, i) => {
    const at = (streams: number | null): number | null => curve.points.find((point) => point.streams === streams)?.throughput ?? null;
    const marks: Mark[] = [];
    const best = at(curve.best_streams);
    if (curve.best_streams !== null && best !== null) marks.push({ kind: "ring", x: curve.best_streams, y: best, label: has_room ? `best ${curve.best_streams}` : "", colour: i, with: i });
    // The knee may lie between two stream counts: then it stands on the law.
    const knee = at(curve.knee) ?? (curve.usl && curve.knee !== null ? usl_at(curve.usl, curve.knee) : null);
    if (curve.knee !== null && knee !== null) marks.push({ kind: "diamond", x: curve.knee, y: knee, label: has_room && curve.knee !== curve.best_streams ? `knee ${three(curve.knee)}` : "", colour: i, with: i });
    return marks;
  });
}

function three(value: number): string {
  return Number.isInteger(value) ? String(value) : three_digits(value);
}

function latency_series(curves: readonly ScalingCurve[]): Series[] {
  const median = series_of(curves, (point) => point.latency_ns.p50, (point) => point.latency_ns.p50_interval).map((series) => ({ ...series, name: `${series.name}, p50` }));
  // The tail repeats the colour and the marker, hollow and dashed; a failure is marked once, with the median.
  const tail = series_of(curves, (point) => point.latency_ns.p99, () => null).map((series) => ({ ...series, name: `${series.name.slice(0, 200)}, p99`, is_hollow: true, dash: [3, 3], points: series.points.map((point) => ({ ...point, failure: null })) }));
  return median.flatMap((series, i) => [series, ...(tail[i] ? [tail[i]] : [])]);
}

function cost_series(curves: readonly ScalingCurve[]): Series[] {
  const measured = series_of(curves, (point) => point.host_ns_per_command, () => null).map((series) => ({ ...series, has_band: false }));
  const floors = curves.map((curve, i): Series => ({
    name: `${curve.name}, floor`,
    colour: i,
    marker: marker_of(i),
    is_hollow: true,
    dash: [2, 4],
    points: [...curve.floor].sort((a, b) => a.streams - b.streams).map((floor) => ({ x: floor.streams, y: floor.ns_per_command })),
  }));
  return [...measured, ...floors.filter((series) => series.points.some((point) => point.y !== null))];
}

function fits(item: Scaling): HTMLElement {
  const rows = item.curves.map((curve) => ({
    cells: [
      name(curve.name),
      curve.best_streams === null ? kNone : String(curve.best_streams),
      rate(curve.points.find((point) => point.streams === curve.best_streams)?.throughput, item.unit),
      curve.knee === null ? kNone : three(curve.knee),
      curve.usl ? curve.usl.alpha.toPrecision(3) : kNone,
      curve.usl ? curve.usl.beta.toPrecision(3) : kNone,
      curve.usl?.r_squared != null ? curve.usl.r_squared.toFixed(3) : kNone,
      curve.usl?.peak_streams != null ? three(curve.usl.peak_streams) : curve.usl ? "none" : prose(curve.usl_reason ?? kNone, 160),
    ],
  }));
  return table(
    "Best, knee and the fitted law",
    [
      { heading: "Curve" },
      { heading: "Best streams" },
      { heading: "There" },
      { heading: "Knee", title: "where more streams stop paying" },
      { heading: "α", title: "contention: share of the work that streams wait for each other" },
      { heading: "β", title: "coherence: cost that grows with every pair of streams" },
      { heading: "R²" },
      { heading: "Peak of the law" },
    ],
    rows,
    { is_caption_hidden: true },
  );
}

// The points of a card that has one stream count: one line for each number, so that nothing is cut off.
function single_table(curve: ScalingCurve, point: ScalingPoint, unit: string): HTMLElement {
  const caption = `${cut(curve.name)}, ${plural(point.streams, "stream")}, ${plural(point.count ?? 0, "sample")}`;
  const failure = failure_of(point);
  if (failure !== null) return el("p", { class: "failure" }, `${caption}: failed: `, prose(failure, 200));
  const floor = curve.floor.find((candidate) => candidate.streams === point.streams)?.ns_per_command;
  const rows = [
    ["throughput", rate(point.throughput, unit), interval(point.throughput_interval, (value) => bare_rate(value, unit))],
    ["latency of a step, p50", duration(point.latency_ns.p50), interval(point.latency_ns.p50_interval, duration)],
    ["latency of a step, p99", duration(point.latency_ns.p99), ""],
    ["host time for a command", duration(point.host_ns_per_command), floor == null ? "" : `floor ${duration(floor)}`],
  ].map((cells) => ({ cells }));
  return table(caption, [{ heading: "", is_text: true }, { heading: "value" }, { heading: "interval" }], rows);
}

function point_table(item: Scaling): HTMLElement {
  const rows = item.curves.flatMap((curve) =>
    in_order(curve.points).map((point) => {
      const failure = failure_of(point);
      const floor = curve.floor.find((candidate) => candidate.streams === point.streams)?.ns_per_command;
      if (failure !== null) return { class: "failed", cells: [name(curve.name), String(point.streams), el("span", { class: "failure" }, "failed: ", prose(failure, 200))] };
      return {
        cells: [
          name(curve.name),
          String(point.streams),
          point.throughput === null ? kNone : bare_rate(point.throughput, item.unit),
          interval(point.throughput_interval, (value) => bare_rate(value, item.unit)),
          percent(point.efficiency),
          duration(point.latency_ns.p50),
          interval(point.latency_ns.p50_interval, duration),
          duration(point.latency_ns.p99),
          duration(point.host_ns_per_command),
          duration(floor),
          count(point.count),
        ],
      };
    }),
  );
  return table(
    `${plural(rows.length, "point")} of ${item.workload}`,
    [{ heading: "Curve" }, { heading: "Streams" }, { heading: name(item.unit, 40) }, { heading: "Interval" }, { heading: "Efficiency" }, { heading: "p50" }, { heading: "Interval" }, { heading: "p99" }, { heading: "Host per command" }, { heading: "Floor" }, { heading: "Samples" }],
    rows,
    { is_caption_hidden: true },
  );
}
