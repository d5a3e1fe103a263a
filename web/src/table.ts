// Tables: with caption, scopes, and a frame that scrolls by keyboard when the page is narrow. `numbers` folds one away
// beside a picture, so that every chart can be read as numbers.
import { el, type Child } from "./dom";
import { cut } from "./text";

export interface Column {
  heading: Child;
  is_text?: boolean; // numbers stand right, text left
  title?: string; // what the column means
}

export interface Row {
  cells: Child[]; // the first is the row's heading; the last reaches to the end where there are fewer than columns
  class?: string;
  group?: Child; // begins a group of rows with this heading
}

export function table(caption: string, columns: readonly Column[], rows: readonly Row[], options: { is_caption_hidden?: boolean } = {}): HTMLElement {
  const label = cut(caption, 160);
  const head = columns.map((column, i) => el("th", { scope: "col", class: column.is_text || i === 0 ? "text" : "number", title: column.title }, column.heading));
  const bodies: HTMLElement[] = [];
  for (const row of rows) {
    if (row.group !== undefined || bodies.length === 0) bodies.push(el("tbody", {}));
    const body = bodies[bodies.length - 1];
    if (row.group !== undefined) body?.append(el("tr", { class: "group" }, el("th", { scope: "rowgroup", class: "text", colspan: columns.length }, row.group)));
    body?.append(el("tr", { class: row.class }, ...row.cells.map((cell, i) => cell_of(cell, i, row.cells.length, columns))));
  }
  return el(
    "div",
    { class: "table-frame", role: "region", "aria-label": label, tabindex: 0 },
    el("table", {}, el("caption", { class: options.is_caption_hidden ? "unseen" : null }, label), el("thead", {}, el("tr", {}, ...head)), ...bodies),
  );
}

function cell_of(cell: Child, i: number, size: number, columns: readonly Column[]): HTMLElement {
  if (i === 0) return el("th", { scope: "row", class: "text" }, cell);
  const missing = i === size - 1 ? columns.length - size : 0;
  return el("td", { class: columns[i]?.is_text || missing > 0 ? "text" : "number", colspan: missing > 0 ? missing + 1 : null }, cell);
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
