// Tables: with caption, scopes, and a frame that scrolls by keyboard when the page is narrow. `numbers` folds one away
// beside a picture, so that every chart can be read as numbers.
import { el, type Child } from "./dom";

export interface Column {
  heading: Child;
  is_text?: boolean; // numbers stand right, text left
  title?: string; // what the column means
}

export interface Row {
  cells: Child[]; // the first is the row's heading
  class?: string;
}

export function table(caption: string, columns: readonly Column[], rows: readonly Row[], options: { is_caption_hidden?: boolean } = {}): HTMLElement {
  const head = columns.map((column, i) =>
    el("th", { scope: "col", class: column.is_text || i === 0 ? "text" : "number", title: column.title }, column.heading),
  );
  const body = rows.map((row) =>
    el(
      "tr",
      { class: row.class },
      ...row.cells.map((cell, i) =>
        i === 0
          ? el("th", { scope: "row", class: "text" }, cell)
          : el("td", { class: columns[i]?.is_text ? "text" : "number" }, cell),
      ),
    ),
  );
  return el(
    "div",
    { class: "table-frame", role: "region", "aria-label": caption, tabindex: 0 },
    el(
      "table",
      {},
      el("caption", { class: options.is_caption_hidden ? "unseen" : null }, caption),
      el("thead", {}, el("tr", {}, ...head)),
      el("tbody", {}, ...body),
    ),
  );
}

/** A folded table. Where `build` is dear (thousands of rows), it runs when first opened, and not for paper. */
export function numbers(summary: string, build: () => HTMLElement, options: { is_lazy?: boolean; is_open?: boolean } = {}): HTMLElement {
  const details = el("details", { class: options.is_lazy ? "numbers lazy" : "numbers", open: options.is_open }, el("summary", {}, summary));
  if (options.is_lazy) {
    details.addEventListener("toggle", () => details.append(build()), { once: true });
  } else {
    details.append(build());
  }
  return details;
}
