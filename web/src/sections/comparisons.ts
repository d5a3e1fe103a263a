// What changed between two results: every ratio with its interval, drawn in its row against the threshold (a forest plot
// that is a table), the worst first.
import type { ComparedMetric, ComparedPair, ComparedTotal, Comparison, ReportDocument, Tone } from "../document";
import { el, svg } from "../dom";
import { bytes, change, count, duration, interval, plural, probability, rate, ratio } from "../format";
import { card } from "../item";
import { numbers, table, type Row } from "../table";
import { cut, name, prose } from "../text";
import { badge } from "../tone";

export const kTones: Record<string, Tone> = { slower: "bad", faster: "good", same: "neutral", ambiguous: "warning", not_comparable: "warning" };
const kOrder = ["slower", "ambiguous", "not_comparable", "faster", "same"];
const kWidth = 230;
const kHeight = 26;
const kFirst = 60; // rows shown at once

export interface ForestScale {
  reach: number; // in log2 of the ratio, to both sides
  x: (ratio: number) => number; // 0 to 1, clamped
}

/** One scale for all rows, in the log of the ratio, so that 2x and 0.5x are equally far from 1. */
export function forest_scale(metrics: readonly ComparedMetric[], threshold: number): ForestScale {
  let reach = Math.log2(1 + Math.max(threshold, 0.01)) * 2;
  for (const metric of metrics) {
    for (const value of [metric.ratio, ...(metric.interval ?? [])]) {
      if (value !== null && value > 0 && Number.isFinite(value)) reach = Math.max(reach, Math.abs(Math.log2(value)) * 1.08);
    }
  }
  reach = Math.min(reach, 5);
  return { reach, x: (value) => Math.min(Math.max(0.5 + Math.log2(Math.max(value, 1e-9)) / (2 * reach), 0), 1) };
}

/** Slower first, the largest change first among equals. */
export function in_order(pairs: readonly ComparedPair[]): ComparedPair[] {
  const rank = (pair: ComparedPair): number => (pair.failure !== null ? -1 : kOrder.indexOf(pair.verdict));
  const size = (pair: ComparedPair): number => Math.max(0, ...pair.metrics.map((metric) => (metric.ratio !== null && metric.ratio > 0 ? Math.abs(Math.log(metric.ratio)) : 0)));
  return [...pairs].sort((a, b) => rank(a) - rank(b) || size(b) - size(a));
}

export function render(container: HTMLElement, items: readonly Comparison[], report: ReportDocument): void {
  for (const comparison of items) container.append(draw(comparison, report));
}

function draw(comparison: Comparison, report: ReportDocument): HTMLElement {
  const pairs = in_order(comparison.pairs);
  const scale = forest_scale(pairs.flatMap((pair) => pair.metrics), comparison.threshold);
  const rows = pairs.flatMap((pair) => pair_rows(pair, scale, comparison.threshold));
  const picture = (some: readonly Row[], caption: string): HTMLElement =>
    table(
      caption,
      [{ heading: "Metric" }, { heading: "Verdict", is_text: true }, { heading: "Ratio, interval", title: "test / baseline" }, { heading: forest_axis(scale), is_text: true }, { heading: "Baseline" }, { heading: "Test" }, { heading: "p", title: "adjusted for the number of comparisons" }],
      some,
      { is_caption_hidden: true },
    );
  const caption = `Ratios of ${cut(comparison.test, 60)} over ${cut(comparison.baseline, 60)}`;
  return card(
    comparison,
    report,
    el("p", { class: "versus" }, el("span", {}, "baseline "), name(comparison.baseline), el("span", {}, " against test "), name(comparison.test)),
    comparison.totals !== undefined && comparison.totals.length > 0 && totals(comparison.totals),
    tally(comparison),
    rows.length > 0 && picture(rows.slice(0, kFirst), caption),
    rows.length > kFirst && numbers(`${rows.length - kFirst} more rows`, () => picture(rows.slice(kFirst), `${caption}, continued`)),
    el("p", { class: "hint" }, `The band is the threshold, ±${(100 * comparison.threshold).toFixed(1)} %: a change counts when its whole interval leaves it. Latency: above 1 is slower; throughput: below 1 is slower.`),
    comparison.only.length > 0 && without_partner(comparison),
  );
}

const kQuantities: Record<string, string> = { span: "time", copied_bytes: "bytes copied" };

/** A quantity of two traces in words: name, baseline, test, change. */
export function total_cells({ quantity, unit, baseline, test, ratio }: ComparedTotal): string[] {
  const amount = (value: number | null): string => (unit === "ns" ? duration(value) : unit === "bytes" ? bytes(value) : count(value));
  return [cut(kQuantities[quantity] ?? quantity, 40), amount(baseline), amount(test), change(ratio)];
}

/** Busy, idle and work done of two traces: what is certain, before what had to be judged. */
function totals(list: readonly ComparedTotal[]): HTMLElement {
  return table(
    "Whole traces",
    [{ heading: "Whole traces" }, { heading: "Baseline" }, { heading: "Test" }, { heading: "Change" }],
    list.map((total) => ({ cells: total_cells(total) })),
    { is_caption_hidden: true },
  );
}

function tally(comparison: Comparison): HTMLElement {
  const words = [...kOrder.filter((word) => word in comparison.verdicts), ...Object.keys(comparison.verdicts).filter((word) => !kOrder.includes(word))];
  return el("ul", { class: "tally" }, ...words.map((word) => el("li", { "data-verdict": word }, el("strong", {}, String(comparison.verdicts[word] ?? 0)), badge(kTones[word] ?? "neutral", word))));
}

function pair_rows(pair: ComparedPair, scale: ForestScale, threshold: number): Row[] {
  const reasons = [...new Set(pair.metrics.filter((metric) => metric.ratio !== null && metric.reason !== null).map((metric) => metric.reason ?? ""))];
  const group = el("span", {}, name(pair.label), ...reasons.map((reason) => el("small", { class: "reason" }, prose(reason, 200))));
  if (pair.failure !== null) return [{ group, class: "failed", cells: [badge("bad", "failed"), el("span", { class: "failure" }, prose(pair.failure, 200))] }];
  return pair.metrics.map((metric, i) => ({
    group: i === 0 ? group : undefined,
    cells: [
      name(metric.metric, 40),
      badge(kTones[metric.verdict] ?? "neutral", metric.verdict),
      el("span", { title: change(metric.ratio) }, ratio(metric.ratio), metric.interval !== null && el("small", { class: "below" }, interval(metric.interval, (value) => value.toFixed(3)))),
      metric.ratio === null ? prose(metric.reason ?? "no ratio", 200) : forest(metric, scale, threshold),
      rate(metric.baseline.p50, metric.unit),
      rate(metric.test.p50, metric.unit),
      probability(metric.adjusted_p),
    ],
  }));
}

function forest(metric: ComparedMetric, scale: ForestScale, threshold: number): SVGElement {
  const x = (value: number): number => 6 + scale.x(value) * (kWidth - 12);
  const middle = kHeight / 2;
  const colour = `var(--${kTones[metric.verdict] ?? "neutral"})`;
  const [low, high] = metric.interval ?? [null, null];
  return svg(
    "svg",
    { class: "forest", viewBox: `0 0 ${kWidth} ${kHeight}`, width: kWidth, height: kHeight, "aria-hidden": "true" },
    svg("rect", { x: x(1 / (1 + threshold)), width: x(1 + threshold) - x(1 / (1 + threshold)), y: 0, height: kHeight, fill: "var(--band)" }),
    svg("line", { x1: x(1), x2: x(1), y1: 0, y2: kHeight, stroke: "var(--line-strong)", "stroke-width": 1 }),
    low !== null && high !== null && svg("line", { x1: x(low), x2: x(high), y1: middle, y2: middle, stroke: colour, "stroke-width": 3, "stroke-linecap": "round" }),
    metric.ratio !== null && svg("rect", { x: x(metric.ratio) - 4.5, y: middle - 4.5, width: 9, height: 9, transform: `rotate(45 ${x(metric.ratio)} ${middle})`, fill: colour, stroke: "var(--surface)", "stroke-width": 1.5 }),
  );
}

function forest_axis(scale: ForestScale): HTMLElement {
  const candidates = [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1 / 1.5, 1 / 1.2, 1 / 1.1, 1 / 1.05, 1 / 1.02, 1, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 4, 8, 16];
  // From the middle outwards, as many as have room.
  const kept: number[] = [1];
  for (const side of [candidates.filter((value) => value > 1).reverse(), candidates.filter((value) => value < 1)]) {
    for (const value of side) {
      const at = scale.x(value);
      if (Math.abs(Math.log2(value)) <= scale.reach && kept.every((other) => Math.abs(scale.x(other) - at) > 0.14)) kept.push(value);
    }
  }
  return el(
    "span",
    { class: "forest-axis" },
    el("span", { class: "unseen" }, "Ratio and interval, drawn"),
    svg(
      "svg",
      { viewBox: `0 0 ${kWidth} 14`, width: kWidth, height: 14, "aria-hidden": "true" },
      ...kept.map((value) => svg("text", { x: 6 + scale.x(value) * (kWidth - 12), y: 11, "text-anchor": "middle", class: "axis-text" }, `${Number(value.toFixed(2))}`)),
    ),
  );
}

function without_partner(comparison: Comparison): HTMLElement {
  return numbers(`${plural(comparison.only.length, "point")} on one side only`, () =>
    table("Points without a partner", [{ heading: "Point" }, { heading: "Only in", is_text: true }], comparison.only.map(({ label, side }) => ({ cells: [name(label), side] })), { is_caption_hidden: true }),
  );
}
