// Compute beside communication: what one step of each rank consists of, how much is hidden against what could be, and
// what holds the rest up. Parts differ in pattern as well as colour.

import type { Overlap, OverlapBar, OverlapCause, ReportDocument } from "../document";
import { el } from "../dom";
import { duration, percent, ratio } from "../format";
import { card } from "../item";
import { numbers, table } from "../table";
import { cut, name, prose } from "../text";
import "./overlaps.css";

type PartKey = "compute_only_ns" | "hidden_ns" | "exposed_ns" | "other_ns" | "idle_ns";

const kParts: readonly { key: PartKey; title: string; meaning: string; class: string }[] = [
  { key: "compute_only_ns", title: "compute", meaning: "compute, no communication beside it", class: "is-compute" },
  { key: "hidden_ns", title: "hidden", meaning: "communication while something else ran", class: "is-hidden" },
  { key: "exposed_ns", title: "exposed", meaning: "communication while nothing else ran", class: "is-exposed" },
  { key: "other_ns", title: "other", meaning: "copies and the rest", class: "is-other" },
  { key: "idle_ns", title: "idle", meaning: "nothing runs", class: "is-idle" },
];

/** What the parts do not account for, as a share of the span: 0 where they add up. */
export function unaccounted(bar: OverlapBar): number {
  const sum = kParts.reduce((all, { key }) => all + bar[key], 0);
  return bar.span_ns > 0 ? (bar.span_ns - sum) / bar.span_ns : 0;
}

export function render(container: HTMLElement, items: readonly Overlap[], report: ReportDocument): void {
  for (const item of items) {
    container.append(
      card(
        item,
        report,
        el("p", {}, step_words(item)),
        efficiency(item),
        item.bars.length > 0 && bars(item.bars, "One step of each rank"),
        item.causes.length > 0 && causes(item.causes),
        numbers("Parts of a step, as a table", () => bar_table(item.bars)),
        item.causes.length > 0 && numbers("Causes, as a table", () => cause_table(item.causes)),
      ),
    );
  }
}

function step_words(item: Overlap): string {
  const parts: string[] = [];
  if (item.step_ns.p50 !== null) parts.push(`A step takes ${duration(item.step_ns.p50)} (median).`);
  if (item.serial_step_ns.p50 !== null) {
    const gain = item.step_ns.p50 !== null && item.step_ns.p50 > 0 ? `, ${ratio(item.serial_step_ns.p50 / item.step_ns.p50)} as long` : "";
    parts.push(`With all commands on one stream it takes ${duration(item.serial_step_ns.p50)}${gain}.`);
  }
  if (item.inflation !== null) parts.push(`Compute beside communication takes ${ratio(item.inflation)} its time alone.`);
  return parts.join(" ");
}

function efficiency(item: Overlap): HTMLElement {
  if (item.efficiency === null) return el("p", {}, "How much of the communication is hidden is not known: the notes say why.");
  const clamp = (share: number): string => `${(100 * Math.max(0, Math.min(1, share))).toFixed(2)}%`;
  const best = item.best_efficiency;
  return el(
    "div",
    { class: "overlap-efficiency" },
    el("p", {}, el("strong", { class: "overlap-figure" }, percent(item.efficiency)), " of the communication is hidden; ", best === null ? "what would be possible is not known." : `${percent(best)} could be.`),
    el(
      "div",
      { class: "overlap-gauge", role: "img", "aria-label": `${percent(item.efficiency)} hidden, ${best === null ? "best possible not known" : `${percent(best)} possible`}` },
      el("span", { class: "overlap-gauge-fill", style: `width: ${clamp(item.efficiency)}` }),
      best !== null && el("span", { class: "overlap-gauge-best", style: `left: ${clamp(best)}` }),
      best !== null && el("span", { class: best > 0.8 ? "overlap-gauge-label is-left" : "overlap-gauge-label", style: `left: ${clamp(best)}` }, "possible"),
    ),
  );
}

/** A bar for each device or rank, with its parts and their meanings. */
export function bars(all: readonly OverlapBar[], heading: string | null): HTMLElement {
  const longest = Math.max(1, ...all.map((bar) => bar.span_ns));
  const lines = all.map((bar) => {
    const track = el("div", { class: "overlap-track", "aria-hidden": "true" });
    for (const part of kParts) {
      const ns = bar[part.key];
      if (!(ns > 0)) continue;
      const share = ns / longest;
      track.append(
        el(
          "span",
          { class: `overlap-part ${part.class}`, style: `width: ${(100 * share).toFixed(3)}%`, title: `${part.title}: ${duration(ns)}, ${percent(bar.span_ns > 0 ? ns / bar.span_ns : null)}` },
          el("span", { class: "overlap-part-label" }, el("span", { class: "overlap-part-title" }, `${part.title} `), percent(ns / bar.span_ns)),
        ),
      );
    }
    const said = kParts.map((part) => `${part.title} ${duration(bar[part.key])}`).join(", ");
    return el("li", { class: "overlap-line" }, el("span", { class: "overlap-name" }, name(bar.label, 32)), track, el("span", { class: "overlap-value" }, duration(bar.span_ns)), el("span", { class: "unseen" }, said));
  });
  const odd = all.filter((bar) => Math.abs(unaccounted(bar)) > 0.01);
  return el(
    "div",
    {},
    heading !== null && el("h4", {}, heading),
    el("ul", { class: "overlap-bars" }, ...lines),
    el("ul", { class: "overlap-key", "aria-label": "Parts" }, ...kParts.filter((part) => all.some((bar) => bar[part.key] > 0)).map((part) => el("li", {}, el("span", { class: `overlap-sample ${part.class}` }), el("strong", {}, part.title), `: ${part.meaning}`))),
    odd.length > 0 && el("p", { class: "hint" }, `The parts of ${odd.map((bar) => cut(bar.label, 40)).join(", ")} do not add up to the step: ${percent(Math.max(...odd.map((bar) => Math.abs(unaccounted(bar)))))} is not accounted for.`),
  );
}

function causes(all: readonly OverlapCause[]): HTMLElement {
  const ranked = [...all].sort((a, b) => b.ns_per_step - a.ns_per_step);
  const most = Math.max(1, ...ranked.map((cause) => cause.ns_per_step));
  return el(
    "div",
    {},
    el("h4", {}, "Why the rest is exposed"),
    el(
      "ol",
      { class: "overlap-causes" },
      ...ranked.map((cause) =>
        el(
          "li",
          {},
          el("div", { class: "overlap-cause-head" }, el("strong", {}, name(cause.cause)), el("span", { class: "overlap-value" }, `${duration(cause.ns_per_step)} a step, ${percent(cause.share)}`)),
          el("div", { class: "overlap-cause-track", "aria-hidden": "true" }, el("span", { style: `width: ${((100 * Math.max(0, cause.ns_per_step)) / most).toFixed(2)}%` })),
          el("p", {}, prose(cause.meaning)),
          cause.advice !== "" && el("p", { class: "overlap-advice" }, el("span", { "aria-hidden": "true" }, "→ "), prose(cause.advice)),
        ),
      ),
    ),
  );
}

function bar_table(all: readonly OverlapBar[]): HTMLElement {
  return table(
    "Parts of a step",
    [{ heading: "rank", is_text: true }, { heading: "span" }, ...kParts.map(({ title, meaning }) => ({ heading: title, title: meaning }))],
    all.map((bar) => ({ cells: [name(bar.label), duration(bar.span_ns), ...kParts.map(({ key }) => `${duration(bar[key])} (${percent(bar.span_ns > 0 ? bar[key] / bar.span_ns : null)})`)] })),
    { is_caption_hidden: true },
  );
}

function cause_table(all: readonly OverlapCause[]): HTMLElement {
  return table(
    "Causes",
    [{ heading: "cause", is_text: true }, { heading: "a step" }, { heading: "share of exposed" }],
    all.map((cause) => ({ cells: [name(cause.cause), duration(cause.ns_per_step), percent(cause.share)] })),
    { is_caption_hidden: true },
  );
}
