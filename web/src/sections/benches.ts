// Kernels against each other: a leaderboard that sorts by any column, failed cases in their place with the reason, and
// the roofline.

import type { Bench, BenchCase, ReportDocument, Roofline } from "../document";
import { el, type Child } from "../dom";
import { duration, giga, interval, kNone, percent, plural, quantity, rate, ratio } from "../format";
import { card } from "../item";
import { numbers, table } from "../table";
import { name, prose } from "../text";
import { group_name, roof_at, roofline } from "./roofline";
import "./benches.css";

interface Column {
  heading: string;
  is_text?: boolean;
  title?: string;
  key: (one: BenchCase) => number | string | null;
  cell: (one: BenchCase) => Child;
  is_down?: boolean; // the best is the largest
  is_optional?: boolean; // left out where no case has it
}

const kColumns: readonly Column[] = [
  { heading: "kernel", is_text: true, key: (one) => one.kernel, cell: (one) => name(one.kernel) },
  { heading: "backend", is_text: true, key: (one) => one.backend, cell: (one) => name(one.backend, 40) },
  { heading: "precision", is_text: true, key: (one) => one.precision, cell: (one) => name(one.precision, 40) },
  { heading: "median", key: (one) => one.latency_ns.p50, cell: median },
  { heading: "throughput", key: (one) => one.throughput, cell: (one) => (one.throughput === null ? kNone : rate(one.throughput, one.throughput_unit ?? "")), is_down: true, is_optional: true },
  { heading: "GFLOP/s", key: (one) => one.flop_per_s, cell: (one) => quantity(giga(one.flop_per_s)), is_down: true, is_optional: true },
  { heading: "of the roof", title: "Reached, of what bandwidth and peak would allow at this intensity", key: (one) => one.share_of_roof, cell: roof_share, is_down: true, is_optional: true },
  { heading: "energy", key: (one) => one.energy_j, cell: (one) => (one.energy_j === null ? kNone : energy(one.energy_j)), is_optional: true },
  { heading: "error", title: "Largest difference from the reference", key: (one) => one.error, cell: (one) => (one.error === null ? kNone : one.error.toExponential(1)), is_optional: true },
  { heading: "change", title: "Against the baseline", is_text: true, key: (one) => one.change?.ratio ?? null, cell: change, is_optional: true },
];

type Order = "ascending" | "descending";

/** Sorted by a column. Cases without a value come last either way; equals keep their order. */
export function sorted(cases: readonly BenchCase[], key: (one: BenchCase) => number | string | null, order: Order): BenchCase[] {
  const sign = order === "ascending" ? 1 : -1;
  return cases
    .map((one, i) => ({ one, i, value: key(one) }))
    .sort((a, b) => {
      if (a.value === null || b.value === null) return (a.value === null ? 1 : 0) - (b.value === null ? 1 : 0) || a.i - b.i;
      if (typeof a.value === "string" || typeof b.value === "string") return sign * String(a.value).localeCompare(String(b.value), "en", { numeric: true }) || a.i - b.i;
      return sign * (a.value - b.value) || a.i - b.i;
    })
    .map(({ one }) => one);
}

export function render(container: HTMLElement, items: readonly Bench[], report: ReportDocument): void {
  for (const item of items) {
    const failed = item.cases.filter((one) => one.failure !== null);
    container.append(
      card(
        item,
        report,
        failed.length > 0 && el("p", {}, `${plural(failed.length, "of them", "of them")} failed.`),
        item.cases.length > 0 && leaderboard(item.cases),
        roof_part(item),
        item.rooflines.length > 0 && numbers("Roofs and points, as tables", () => el("div", {}, roof_table(item.rooflines), point_table(item))),
      ),
    );
  }
}

function median(one: BenchCase): Child {
  if (one.latency_ns.p50 === null) return kNone;
  return el("span", { title: one.latency_ns.p50_interval ? `within ${interval(one.latency_ns.p50_interval, duration)}` : null }, duration(one.latency_ns.p50));
}

function energy(joule: number): string {
  if (joule >= 1) return `${quantity(joule)} J`;
  return joule >= 1e-3 ? `${quantity(joule * 1e3)} mJ` : `${quantity(joule * 1e6)} uJ`;
}

function roof_share(one: BenchCase): Child {
  if (one.share_of_roof === null) return kNone;
  const width = `${(100 * Math.max(0, Math.min(1, one.share_of_roof))).toFixed(1)}%`;
  return el("span", { class: "bench-share" }, el("span", { class: "bench-bar", "aria-hidden": "true" }, el("span", { style: `width: ${width}` })), percent(one.share_of_roof));
}

function change(one: BenchCase): Child {
  if (!one.change) return kNone;
  const sign = { faster: "▼", slower: "▲", same: "=", ambiguous: "?" }[one.change.verdict] ?? "";
  const tone = { faster: "is-good", slower: "is-bad" }[one.change.verdict] ?? "";
  return el("span", { class: `bench-change ${tone}` }, el("span", { "aria-hidden": "true" }, `${sign} `), name(one.change.verdict, 24), one.change.ratio === null ? "" : ` ${ratio(one.change.ratio)}`);
}

function leaderboard(cases: readonly BenchCase[]): HTMLElement {
  // A rate in GFLOP/s has a column of its own.
  const has_rate = cases.some((one) => one.throughput !== null && one.throughput_unit !== "GFLOP/s");
  const columns = kColumns.filter((column) => !column.is_optional || (cases.some((one) => column.key(one) !== null) && (column.heading !== "throughput" || has_rate))).filter((column) => column.heading !== "backend" || cases.some((one) => one.backend !== cases[0]!.backend));
  const sort_buttons = columns.map((column) => el("button", { type: "button", class: "bench-sort", title: column.title ? `${column.title}. Sorts` : "Sorts" }, column.heading, el("span", { class: "bench-arrow", "aria-hidden": "true" })));
  const rows = cases.map((one) => ({ cells: columns.map((column) => column.cell(one)), class: one.failure === null ? undefined : "bench-failed" }));
  const frame = table("Leaderboard", columns.map((column, i) => ({ heading: sort_buttons[i]!, is_text: column.is_text ?? false })), rows, { is_caption_hidden: true });
  const body = frame.querySelector("tbody")!;
  const lines = new Map(cases.map((one, i) => [one, body.rows[i]!]));

  // A failed case keeps its names; the reason takes the place of the numbers.
  for (const one of cases) {
    if (one.failure === null) continue;
    const line = lines.get(one)!;
    const numbers_from = columns.findIndex((column) => !column.is_text);
    while (line.cells.length > numbers_from) line.deleteCell(-1);
    line.append(el("td", { class: "text", colspan: columns.length - numbers_from }, el("strong", { class: "bench-failure" }, `${one.status === "ok" ? "failed" : one.status}: `), prose(one.failure, 240)));
  }

  const heads = [...frame.querySelectorAll("thead th")];
  const status = el("p", { class: "unseen", role: "status" });
  let current = -1;
  let order: Order = "ascending";
  function sort(i: number): void {
    const column = columns[i];
    if (!column) return;
    order = current === i ? (order === "ascending" ? "descending" : "ascending") : column.is_down ? "descending" : "ascending";
    current = i;
    body.append(...sorted(cases, column.key, order).map((one) => lines.get(one)!));
    heads.forEach((head, h) => (h === i ? head.setAttribute("aria-sort", order) : head.removeAttribute("aria-sort")));
    sort_buttons.forEach((button, b) => (button.lastElementChild!.textContent = b === i ? (order === "ascending" ? " ▲" : " ▼") : ""));
  }
  sort_buttons.forEach((button, i) =>
    button.addEventListener("click", () => {
      sort(i);
      status.textContent = `Sorted by ${columns[i]!.heading}, ${order}.`;
    }),
  );
  const first = columns.findIndex((column) => column.heading === "of the roof");
  sort(first >= 0 ? first : columns.findIndex((column) => column.heading === "median"));
  return el("div", { class: "bench-board" }, frame, status);
}

function roof_part(item: Bench): HTMLElement | null {
  const picture = roofline(item.cases, item.rooflines);
  if (picture) return el("div", {}, el("h4", {}, "Roofline"), picture);
  const reasons = item.rooflines.filter((roof) => roof.reason !== null);
  if (reasons.length === 0) return null;
  return el("div", {}, el("h4", {}, "Roofline"), ...reasons.slice(0, 20).map((roof) => el("p", { class: "hint" }, "No roof for ", name(group_name(roof)), ": ", prose(roof.reason ?? ""))));
}

function roof_table(roofs: readonly Roofline[]): HTMLElement {
  return table(
    "Roofs",
    [{ heading: "backend and precision", is_text: true }, { heading: "peak" }, { heading: "bandwidth" }, { heading: "turns at" }, { heading: "why there is none", is_text: true }],
    roofs.map((roof) => ({
      cells: [
        name(group_name(roof)),
        roof.flop_per_s === null ? kNone : `${quantity(giga(roof.flop_per_s))} GFLOP/s`,
        roof.bytes_per_s === null ? kNone : `${quantity(giga(roof.bytes_per_s))} GB/s`,
        roof.flop_per_s && roof.bytes_per_s ? `${quantity(roof.flop_per_s / roof.bytes_per_s)} flop/B` : kNone,
        roof.reason === null ? "" : name(roof.reason, 200),
      ],
    })),
  );
}

function point_table(item: Bench): HTMLElement {
  const roofs = new Map(item.rooflines.map((roof) => [group_name(roof), roof]));
  return table(
    "Points of the roofline",
    [{ heading: "kernel", is_text: true }, { heading: "backend and precision", is_text: true }, { heading: "flop per byte" }, { heading: "GFLOP/s" }, { heading: "roof there" }, { heading: "of the roof" }],
    item.cases
      .filter((one) => one.intensity !== null)
      .map((one) => {
        const roof = roofs.get(group_name(one));
        const there = roof && one.intensity !== null ? roof_at(roof, one.intensity) : null;
        return { cells: [name(one.kernel), name(group_name(one)), quantity(one.intensity), quantity(giga(one.flop_per_s)), quantity(giga(there)), percent(one.share_of_roof)] };
      }),
  );
}
