// Where the time of a trace went: one bar for each device, phases by rank, then the commands that took most of it. The
// first thing below the verdict of a trace.

import type { RankPhases, ReportDocument, Usage } from "../document";
import { el } from "../dom";
import { count, duration, percent, plural } from "../format";
import { card } from "../item";
import { table } from "../table";
import { command_name, cut, name, prose } from "../text";
import { bars } from "./overlaps";
import "./usages.css";

const kSeries = 8; // colours of kinds of work; those that took least share the last
const kShown = 8; // bars and names; the rest folds away
const kShownRanks = 16;

export function render(container: HTMLElement, items: readonly Usage[], report: ReportDocument): void {
  for (const item of items) {
    const rest = item.bars.slice(kShown);
    container.append(
      card(
        item,
        report,
        bars(item.bars.slice(0, kShown), null),
        rest.length > 0 && el("details", { class: "more" }, el("summary", {}, plural(rest.length, "more device")), bars(rest, null)),
        item.rank_phases !== null && rank_phases(item.rank_phases),
        item.work.length > 0 && work_bar(item),
        item.work.length > 0 && work(item),
        item.top.length > 0 && names(item),
      ),
    );
  }
}

/** A bar of this length, where the longest of the column is `most`, and the share in words. */
export function share_bar(share: number, most: number, colour?: string): HTMLElement {
  return el("span", { class: "usage-share" }, el("span", { class: "usage-track", "aria-hidden": "true" }, el("span", { style: `width: ${((100 * share) / most).toFixed(1)}%${colour === undefined ? "" : `; background: ${colour}`}` })), el("span", { class: "usage-percent" }, percent(share)));
}

export function most_of(all: readonly { share: number | null }[]): number {
  return Math.max(...all.map((one) => one.share ?? 0), 1e-9);
}

function colour_of(place: number): string {
  return `var(--series-${Math.min(place + 1, kSeries)})`;
}

/** A row for each rank; the slowest of a phase stands out, and a sentence below says why it is slow. */
function rank_phases(item: RankPhases): HTMLElement {
  const caption = item.are_steps ? "Phases of a step, by rank" : "Phases, by rank";
  const columns = [{ heading: "rank", is_text: true }, ...item.phases.map((one) => ({ heading: name(one.phase, 24) }))];
  const rows = item.ranks.map((rank, i) => ({
    cells: [name(rank.label, 48), ...rank.phases_ns.map((ns, j) => (item.phases[j]?.slowest === i ? el("strong", { class: "usage-slowest", title: "the slowest" }, duration(ns)) : duration(ns)))],
  }));
  const words = item.phases.map((one) => one.words).filter((one) => one !== null);
  const rest = rows.slice(kShownRanks);
  return el(
    "div",
    {},
    table(caption, columns, rows.slice(0, kShownRanks)),
    rest.length > 0 && el("details", { class: "more" }, el("summary", {}, plural(rest.length, "more rank")), table(`${caption}: more`, columns, rest, { is_caption_hidden: true })),
    words.length > 0 && el("ul", { class: "notes", "aria-label": "The slowest ranks" }, ...words.map((one) => el("li", {}, prose(one)))),
  );
}

/** All devices' time by kinds of work, and idle. The table below has the same colours, and the numbers. */
function work_bar(item: Usage): HTMLElement {
  const sum = (of: (bar: Usage["bars"][number]) => number): number => item.bars.reduce((all, bar) => all + of(bar), 0);
  const span = Math.max(sum((bar) => bar.span_ns), 1);
  const idle = sum((bar) => bar.idle_ns) / span;
  const part = (title: string, share: number, style: string): HTMLElement =>
    el(
      "span",
      { class: style === "" ? "overlap-part is-idle" : "overlap-part", style: `width: ${(100 * share).toFixed(3)}%;${style}`, title: `${title}: ${percent(share)}` },
      el("span", { class: "overlap-part-label" }, el("span", { class: "overlap-part-title" }, `${title} `), percent(share)),
    );
  return el(
    "div",
    { class: "usage-kinds", "aria-hidden": "true" },
    el("h4", {}, "Kinds of work, and idle"),
    el("div", { class: "overlap-track" }, ...item.work.map((one, i) => part(cut(one.work, 24), one.share * (1 - idle), `background: ${colour_of(i)}`)), idle > 0 && part("idle", idle, "")),
  );
}

function work(item: Usage): HTMLElement {
  const most = most_of(item.work);
  return table(
    "What the device worked on",
    [{ heading: "work", is_text: true }, { heading: "share of busy" }, { heading: "total" }, { heading: "commands" }],
    item.work.map((one, i) => ({ cells: [name(one.work, 24), share_bar(one.share, most, colour_of(i)), duration(one.total_ns), count(one.count)] })),
  );
}

function names(item: Usage): HTMLElement {
  const most = most_of(item.top);
  const rows = item.top.map((one) => ({
    cells: [
      command_name(one.name, 48),
      share_bar(one.share, most),
      duration(one.total_ns),
      count(one.count),
      duration(one.count > 0 ? one.total_ns / one.count : null),
      one.kind,
    ],
  }));
  const others = item.names - item.top.length;
  return el(
    "div",
    {},
    table(
      "Commands that took most time",
      [{ heading: "name", is_text: true }, { heading: "share of all" }, { heading: "total" }, { heading: "commands" }, { heading: "mean" }, { heading: "kind", is_text: true }],
      rows,
    ),
    others > 0 && el("p", { class: "hint" }, `${plural(item.commands, "command")} have at least ${plural(item.names, "name")}; the others took less.`),
  );
}
