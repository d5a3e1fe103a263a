// What every item of every section looks like: a card with its title, whose environment it is, the file it came from,
// and its notes. Sections put their pictures and tables into it. Owns the element's id, which findings link to.
import { el, type Child } from "./dom";
import type { Item, ReportDocument } from "./document";
import { name, prose } from "./text";

/** The environment's label and the file's name, as far as the item has them. */
export function origin_of(item: Item, report: ReportDocument): HTMLElement {
  const environment = item.environment === null ? undefined : report.environments[item.environment];
  const source = item.source === null ? undefined : report.sources[item.source];
  return el(
    "p",
    { class: "origin" },
    environment && el("span", { class: "origin-environment" }, name(environment.label)),
    source && el("span", { class: "origin-source" }, name(source.path)),
  );
}

/** <article id> with heading, origin, what is given, and the item's notes. */
export function card(item: Item, report: ReportDocument, ...children: Child[]): HTMLElement {
  const heading = `${item.id}-title`;
  return el(
    "article",
    { class: "card", id: item.id, "aria-labelledby": heading, tabindex: -1 },
    el("header", { class: "card-head" }, el("h3", { id: heading }, name(item.title)), origin_of(item, report)),
    ...children,
    notes(item.notes),
  );
}

export function notes(lines: readonly string[]): HTMLElement | null {
  if (lines.length === 0) return null;
  return el("ul", { class: "notes", "aria-label": "Notes" }, ...lines.map((line) => el("li", {}, prose(line))));
}
