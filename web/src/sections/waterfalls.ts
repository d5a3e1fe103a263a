// Where a command's time goes: each hop begins where the one before ended (medians), with whiskers to p95 and p99. Hops
// that were not measured are listed with the reason, never drawn as nothing.

import type { Hop, ReportDocument, Waterfall } from "../document";
import { el } from "../dom";
import { count, duration, percent, plural } from "../format";
import { card } from "../item";
import { numbers, table } from "../table";
import { cut, name, prose } from "../text";
import "./waterfalls.css";

export interface Placed {
  hop: Hop;
  from: number; // ns: the sum of the medians before
  to: number;
  p95: number | null; // where the whiskers end
  p99: number | null;
}

/** Hops one after the other, and how far the scale goes: whiskers that reach far beyond are cut, and say so. */
export function place_hops(hops: readonly Hop[]): { placed: Placed[]; reach: number } {
  let at = 0;
  const placed = hops.map((hop): Placed => {
    const from = at;
    const length = Math.max(0, hop.duration_ns.p50 ?? 0);
    at += length;
    const end = (ns: number | null): number | null => (ns === null ? null : from + ns);
    return { hop, from, to: at, p95: end(hop.duration_ns.p95), p99: end(hop.duration_ns.p99) };
  });
  const farthest = Math.max(at, ...placed.map(({ p99, p95 }) => p99 ?? p95 ?? 0));
  return { placed, reach: Math.max(1, Math.min(farthest, at > 0 ? 1.7 * at : farthest)) };
}

export function render(container: HTMLElement, items: readonly Waterfall[], report: ReportDocument): void {
  for (const item of items) {
    const { placed, reach } = place_hops(item.hops);
    container.append(
      card(
        item,
        report,
        el("p", {}, el("strong", {}, `${plural(item.commands, "command")} of kind ${cut(item.kind, 60)}.`), " ", item.way_ns === null ? "" : `The whole way takes ${duration(item.way_ns)}. `, main_words(item)),
        numbers("Hops", () => el("div", {}, item.hops.length > 0 && picture(placed, reach), missing(item), hop_table(item))),
      ),
    );
  }
}

function main_words(item: Waterfall): string {
  const known = item.hops.filter((hop) => hop.share !== null);
  if (known.length < 2) return "";
  const most = known.reduce((a, b) => ((b.share ?? 0) > (a.share ?? 0) ? b : a));
  return `Most of it, ${percent(most.share)}, is from ${cut(most.from, 40)} to ${cut(most.to, 40)}.`;
}

function picture(placed: readonly Placed[], reach: number): HTMLElement {
  const share = (ns: number): string => `${((100 * Math.min(ns, reach)) / reach).toFixed(3)}%`;
  const lines = placed.map(({ hop, from, to, p95, p99 }, i) => {
    const has_bar = hop.duration_ns.p50 !== null;
    const beyond = p99 !== null && p99 > reach;
    const track = el("div", { class: "waterfall-track", "aria-hidden": "true" });
    if (i > 0) track.append(el("span", { class: "waterfall-drop", style: `left: ${share(from)}` }));
    if (p99 !== null && p99 > to) track.append(el("span", { class: "waterfall-p99", style: `left: ${share(to)}; width: calc(${share(p99)} - ${share(to)})` }));
    if (p95 !== null && p95 > to) track.append(el("span", { class: "waterfall-p95", style: `left: ${share(to)}; width: calc(${share(p95)} - ${share(to)})` }));
    if (has_bar) track.append(el("span", { class: "waterfall-bar", style: `left: ${share(from)}; width: max(2px, calc(${share(to)} - ${share(from)})); background: var(--series-${(i % 8) + 1})` }));
    if (beyond) track.append(el("span", { class: "waterfall-beyond" }, `p99 ${duration(hop.duration_ns.p99)} ▸`));
    const said = `${hop.from} to ${hop.to}: median ${duration(hop.duration_ns.p50)}, p95 ${duration(hop.duration_ns.p95)}, p99 ${duration(hop.duration_ns.p99)}, ${percent(hop.share)} of the way, ${plural(hop.count, "command")}`;
    return el(
      "li",
      { class: "waterfall-line", title: cut(said, 600) },
      el("span", { class: "waterfall-name" }, name(hop.from, 32), el("span", { class: "waterfall-arrow" }, " → "), name(hop.to, 32)),
      track,
      el("span", { class: "waterfall-value" }, has_bar ? duration(hop.duration_ns.p50) : "not measured"),
      el("span", { class: "waterfall-share" }, percent(hop.share)),
    );
  });
  return el(
    "div",
    {},
    el("ol", { class: "waterfall" }, ...lines),
    el(
      "p",
      { class: "hint waterfall-key" },
      el("span", { class: "waterfall-sample is-bar" }),
      "median",
      el("span", { class: "waterfall-sample is-p95" }),
      "to p95",
      el("span", { class: "waterfall-sample is-p99" }),
      `to p99. The scale ends at ${duration(reach)}; shares are of the mean way.`,
    ),
  );
}

function missing(item: Waterfall): HTMLElement | null {
  if (item.missing.length === 0) return null;
  return el(
    "div",
    { class: "waterfall-missing" },
    el("p", {}, el("strong", {}, "Not measured:")),
    el("ul", {}, ...item.missing.map(({ hop, reason }) => el("li", {}, el("strong", {}, name(hop)), ": ", prose(reason)))),
  );
}

function hop_table(item: Waterfall): HTMLElement {
  return table(
    "Hops",
    [{ heading: "hop", is_text: true }, { heading: "commands" }, { heading: "mean" }, { heading: "p50" }, { heading: "p95" }, { heading: "p99" }, { heading: "share" }],
    item.hops.map((hop) => ({ cells: [name(`${hop.from} → ${hop.to}`), count(hop.count), duration(hop.duration_ns.mean), duration(hop.duration_ns.p50), duration(hop.duration_ns.p95), duration(hop.duration_ns.p99), percent(hop.share)] })),
    { is_caption_hidden: true },
  );
}
