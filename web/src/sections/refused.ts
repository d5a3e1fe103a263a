// Files that were given but are not in the report, and why: nothing is left out in silence.
import type { Refused, ReportDocument } from "../document";
import { el } from "../dom";
import { table } from "../table";
import { name, prose } from "../text";

export function render(container: HTMLElement, items: readonly Refused[], _report: ReportDocument): void {
  container.append(
    el(
      "div",
      { class: "card" },
      table("Refused files", [{ heading: "File" }, { heading: "Why, and what to do", is_text: true }], items.map(({ path, reason }) => ({ cells: [name(path), prose(reason)] })), { is_caption_hidden: true }),
    ),
  );
}
