// How long urgent work waits: how long until it starts (or ends), over the length of the kernel in its way, for each mechanism.
// Published curves are dashed and of other hardware; points where requests came faster than they were served are hollow.

import { chart, dash_of, marker_of, type Mark, type Series } from "../chart";
import type { Preemption, PreemptionCurve, PreemptionPoint, ReportDocument } from "../document";
import { el } from "../dom";
import { duration, interval, kNone, percent } from "../format";
import { card } from "../item";
import { numbers, table, type Row } from "../table";
import { cut, name, prose } from "../text";
import "./preemptions.css";

/** The points that a curve can draw, by the victim's kernel. */
export function drawable(curve: PreemptionCurve): PreemptionPoint[] {
  return curve.points.filter((point) => point.kernel_ns !== null && point.kernel_ns > 0).sort((a, b) => (a.kernel_ns ?? 0) - (b.kernel_ns ?? 0));
}

export function render(container: HTMLElement, items: readonly Preemption[], report: ReportDocument): void {
  for (const item of items) {
    const measured = item.curves.filter((curve) => curve.points.length > 0);
    const absent = item.curves.filter((curve) => curve.points.length === 0);
    container.append(
      card(
        item,
        report,
        el("p", { class: "preemption-verdict" }, prose(item.verdict)),
        measured.length + item.published.length > 0 && picture(item, measured),
        measured.length > 0 && verdicts(measured),
        absent.length > 0 && not_measured(absent),
        published(item),
        numbers("All points, as a table", () => point_table(item)),
        item.published.length > 0 && numbers("Published points, as a table", () => published_table(item)),
      ),
    );
  }
}

function until(item: Preemption): string {
  return item.is_to_start ? "starts" : "ends";
}

function picture(item: Preemption, measured: readonly PreemptionCurve[]): HTMLElement {
  const series: Series[] = [];
  let has_overload = false;
  measured.forEach((curve, colour) => {
    const points = drawable(curve);
    const point_of = (point: PreemptionPoint) => ({
      x: point.kernel_ns ?? 0,
      y: point.failure === null ? point.latency_ns.tail : null,
      low: point.latency_ns.tail_interval?.[0] ?? null,
      high: point.latency_ns.tail_interval?.[1] ?? null,
      failure: point.failure,
      note: `${cut(point.victim, 60)}; median ${duration(point.latency_ns.p50)}${point.is_overloaded ? "; overloaded" : ""}`,
    });
    const line = series.length;
    series.push({ name: curve.level === null ? curve.name : `${curve.name} (${curve.level})`, colour, points: points.filter((point) => !point.is_overloaded || point.failure !== null || point.latency_ns.tail !== null).map(point_of), marker: marker_of(colour) });
    const overloaded = points.filter((point) => point.is_overloaded && point.failure === null);
    if (overloaded.length === 0) return;
    has_overload = true;
    series.push({ name: `${curve.name}, overloaded`, colour, points: overloaded.map(point_of), marker: marker_of(colour), is_hollow: true, width: 0, with: line });
  });
  item.published.forEach((curve, i) => {
    const colour = measured.length + i;
    const points = curve.points.filter((point) => point.kernel_ns > 0).map((point) => ({ x: point.kernel_ns, y: point.latency_ns.tail ?? point.latency_ns.p50, note: point.latency_ns.tail === null ? `median: no ${item.tail} was published` : "published" }));
    series.push({ name: `${curve.name} (published)`, colour, points: points.sort((a, b) => a.x - b.x), dash: dash_of(1), marker: null });
  });
  const marks: Mark[] = item.alone_tail_ns === null ? [] : [{ kind: "flat", x: 0, y: item.alone_tail_ns, label: `alone: ${duration(item.alone_tail_ns)}`, colour: "quiet" }];
  return chart({
    label: `Time until urgent work ${until(item)}, ${item.tail}, over the length of the victim's kernel, both logarithmic`,
    x: { label: "victim's kernel", kind: "log", format: (ns) => duration(ns) },
    y: { label: `${item.tail} until it ${until(item)}`, kind: "log", format: (ns) => duration(ns) },
    series,
    marks,
    keys: [
      ...(has_overload ? [{ glyph: "○", text: "overloaded: requests came faster than they were served, so waiting grows with the run" }] : []),
      ...(measured.some((curve) => curve.points.some((point) => point.failure !== null)) ? [{ glyph: "✕", text: "failed: the table says why" }] : []),
      ...(item.published.length > 0 ? [{ glyph: "╌", text: "published, on other hardware" }] : []),
    ],
    height: 420,
  });
}

function verdicts(measured: readonly PreemptionCurve[]): HTMLElement | null {
  const told = measured.filter((curve) => curve.verdict !== null);
  if (told.length === 0) return null;
  return el("dl", { class: "preemption-list" }, ...told.flatMap((curve) => [el("dt", {}, name(curve.name)), el("dd", {}, prose(without_name(curve)))]));
}

// "none: it waits for whole kernels" stands beside the name already.
function without_name(curve: PreemptionCurve): string {
  const text = curve.verdict ?? "";
  return text.startsWith(`${curve.name}: `) ? text.slice(curve.name.length + 2) : text;
}

function not_measured(absent: readonly PreemptionCurve[]): HTMLElement {
  return el(
    "div",
    { class: "preemption-absent" },
    el("p", {}, el("strong", {}, "Not measured:")),
    el("dl", { class: "preemption-list" }, ...absent.flatMap((curve) => [el("dt", {}, name(curve.name)), el("dd", {}, prose(curve.reason ?? "the file does not say why"))])),
  );
}

function published(item: Preemption): HTMLElement | null {
  const urls = [...new Set(item.published.map((curve) => curve.url))].filter((url) => url !== "");
  if (urls.length === 0) return null;
  return el("p", { class: "hint" }, "Published curves: ", ...urls.flatMap((url, i) => [i > 0 && ", ", source(url)]), ".");
}

// Only what is plainly a page becomes a link: a file's text could as well hold a script.
function source(url: string): HTMLElement {
  return /^https:\/\/[^\s]{1,300}$/.test(url) ? el("a", { href: url, rel: "noreferrer noopener" }, cut(url, 100)) : name(url);
}

function point_table(item: Preemption): HTMLElement {
  // Where the median is the tail, it has one column.
  const median = <T>(cell: T): T[] => (item.tail === "p50" ? [] : [cell]);
  const rows: Row[] = item.curves.flatMap((curve) =>
    curve.points.map((point) => ({
      cells: [
        name(curve.name),
        name(point.victim),
        duration(point.kernel_ns),
        duration(point.block_ns),
        ...median(duration(point.latency_ns.p50)),
        duration(point.latency_ns.tail),
        interval(point.latency_ns.tail_interval, duration),
        percent(point.victim_loss),
        point.failure !== null ? el("span", {}, "failed: ", name(point.failure, 200)) : point.is_overloaded ? "overloaded" : "",
      ],
    })),
  );
  if (item.alone_tail_ns !== null) rows.unshift({ cells: ["alone", kNone, kNone, kNone, ...median(kNone), duration(item.alone_tail_ns), kNone, kNone, ""] });
  return table(
    `Time until urgent work ${until(item)}`,
    [{ heading: "mechanism", is_text: true }, { heading: "victim", is_text: true }, { heading: "kernel" }, { heading: "block" }, ...median({ heading: "p50" }), { heading: item.tail }, { heading: `${item.tail} within` }, { heading: "victim loses" }, { heading: "", is_text: true }],
    rows,
    { is_caption_hidden: true },
  );
}

function published_table(item: Preemption): HTMLElement {
  return table(
    "Published points",
    [{ heading: "curve", is_text: true }, { heading: "kernel" }, { heading: "p50" }, ...(item.tail === "p50" ? [] : [{ heading: item.tail }])],
    item.published.flatMap((curve) => curve.points.map((point) => ({ cells: [name(curve.name), duration(point.kernel_ns), duration(point.latency_ns.p50), ...(item.tail === "p50" ? [] : [duration(point.latency_ns.tail)])] }))),
    { is_caption_hidden: true },
  );
}
