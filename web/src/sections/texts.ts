// Documents without a picture of their own: the words, facts and tables that the terminal shows for them.
import type { DocumentText, ReportDocument } from "../document";
import { el } from "../dom";
import { card } from "../item";
import { table } from "../table";
import { name, prose, visible } from "../text";

const kFirst = 200; // rows of a table; a page is not the place for more
const kMostLines = 2000;
const kMostLetters = 400_000;

export function render(container: HTMLElement, items: readonly DocumentText[], report: ReportDocument): void {
  for (const item of items) {
    container.append(card(item, report, ...item.opening.map((line) => el("p", {}, prose(line))), item.plain.length > 0 && plain(item.plain), ...item.sections.map(draw_section)));
  }
}

export function facts(list: readonly (readonly [string, string])[]): HTMLElement {
  return el("dl", { class: "facts" }, ...list.map(([label, value]) => el("div", {}, el("dt", {}, name(label, 60)), el("dd", {}, prose(value, 300)))));
}

// Columns align in a font of fixed width; long ones scroll, they do not wrap.
function plain(lines: readonly string[]): HTMLElement {
  const text = visible(lines.slice(0, kMostLines).join("\n").slice(0, kMostLetters));
  const is_cut = lines.length > kMostLines || text.length >= kMostLetters;
  return el("div", {}, el("pre", { class: "plain", tabindex: 0, "aria-label": "Text" }, text), is_cut && el("p", { class: "hint" }, `The beginning of ${lines.length} lines.`));
}

function draw_section(section: DocumentText["sections"][number]): HTMLElement {
  return el(
    "div",
    { class: "text-section" },
    section.title !== "" && el("h4", {}, name(section.title)),
    section.facts.length > 0 && facts(section.facts),
    ...section.tables.flatMap((one) => [
      table(
        section.title || "Table",
        one.columns.map((column) => ({ heading: name(column.heading, 60), is_text: column.is_text })),
        one.rows.slice(0, kFirst).map((row) => ({ cells: row.map((cell) => name(cell, 160)) })),
        { is_caption_hidden: true },
      ),
      one.rows.length > kFirst && el("p", { class: "hint" }, `The first ${kFirst} of ${one.rows.length} rows.`),
      one.after !== "" && el("p", { class: "hint" }, prose(one.after)),
    ]),
    ...section.remarks.map((remark) => el("p", { class: "remark" }, prose(remark))),
  );
}
