// Draws items when they come near the view, and never lets one that fails take the page down. A slot keeps the place of
// its item from the start, so that what follows does not jump. Knows no section; main.ts gives it what to draw.
import { el } from "./dom";
import { cut, prose } from "./text";

export interface Slot {
  element: HTMLElement;
  words: string; // what the filter looks at, in small letters
  ids: string[]; // of the items inside
  draw: () => void; // once; later calls do nothing
}

const slots = new Map<Element, Slot>();
const slots_by_id = new Map<string, Slot>();
const kAhead = "700px 0px"; // drawn this far before it is seen

const observer = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) if (entry.isIntersecting) slots.get(entry.target)?.draw();
  },
  { rootMargin: kAhead },
);

/** A box that says what could not be drawn, and why, in place of it. */
export function error_box(what: string, problem: unknown): HTMLElement {
  const reason = problem instanceof Error ? problem.message : String(problem);
  return el(
    "div",
    { class: "failure-box", role: "note" },
    el("strong", {}, `“${cut(what)}” could not be drawn.`),
    " The rest of the report is not affected. ",
    prose(reason),
  );
}

/** Makes a slot. `fill` puts the item into the container; `height` is about what it will take, in px. */
export function make_slot(what: string, ids: string[], words: string, height: number, fill: (container: HTMLElement) => void): Slot {
  const element = el("div", { class: "slot", "data-waiting": true });
  element.style.minHeight = `${height}px`;
  const slot: Slot = { element, ids, words: words.toLowerCase(), draw };
  function draw(): void {
    if (!element.hasAttribute("data-waiting")) return;
    element.removeAttribute("data-waiting");
    observer.unobserve(element);
    try {
      fill(element);
    } catch (problem) {
      element.replaceChildren(error_box(what, problem));
    }
    element.style.minHeight = "";
    // Findings link to items by id, so the id must be there even where the item failed.
    const [first] = ids;
    if (first !== undefined && !document.getElementById(first)) element.id = first;
  }
  slots.set(element, slot);
  for (const id of ids) slots_by_id.set(id, slot);
  observer.observe(element);
  return slot;
}

export function draw_all(): void {
  for (const slot of slots.values()) slot.draw();
}

/** Draws what `id` is in, if it waits. */
export function draw_item(id: string): void {
  slots_by_id.get(id)?.draw();
}

/** Hides the items that do not have all words of the query; returns how many are left. */
export function filter_slots(query: string): number {
  const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "");
  let left = 0;
  for (const slot of slots.values()) {
    const is_wanted = words.every((word) => slot.words.includes(word));
    slot.element.hidden = !is_wanted;
    if (is_wanted) ++left;
  }
  return left;
}
