// Every file that the report was made of, in the order given.
import type { ReportDocument, Source } from "../document";
import { el } from "../dom";
import { kNone, moment } from "../format";
import { table } from "../table";
import { name } from "../text";

export function render(container: HTMLElement, items: readonly Source[], report: ReportDocument): void {
  const rows = items.map((source) => {
    const environment = source.environment === null ? undefined : report.environments[source.environment];
    return {
      class: source.status === "failed" ? "failed" : undefined,
      cells: [name(source.path), name(source.schema, 40), source.status === "failed" ? el("span", { class: "failure" }, "failed") : name(source.status, 40), moment(source.created), environment ? el("a", { href: `#environment-${source.environment}` }, name(environment.label)) : kNone],
    };
  });
  container.append(
    el(
      "div",
      { class: "card" },
      table("Files of this report", [{ heading: "File" }, { heading: "Kind", is_text: true }, { heading: "Status", is_text: true }, { heading: "Made", is_text: true }, { heading: "Environment", is_text: true }], rows, { is_caption_hidden: true }),
    ),
  );
}
