// Keys for readers without a mouse, and the dialog that lists them. Keys typed into a field, or with a modifier, belong to
// the browser.
import { el } from "./dom";
import { toggle_theme } from "./theme";

export interface KeyboardTargets {
  sections: () => HTMLElement[];
  filter: HTMLInputElement;
  jump: (id: string) => boolean;
}

const kKeys: readonly [string[], string][] = [
  [["j", "n"], "next section"],
  [["k", "p"], "previous section"],
  [["g"], "top of the report"],
  [["/"], "filter; Esc clears it"],
  [["t"], "light or dark"],
  [["←", "→"], "in a chart: from point to point (Home, End: first, last)"],
  [["←", "→", "↑", "↓"], "in the map of a fleet: from cell to cell (n, N: to the devices that are named)"],
  [["Esc"], "close, or leave the filter"],
  [["?"], "this list"],
];

export function start_keyboard(targets: KeyboardTargets): { dialog: HTMLDialogElement; button: HTMLElement } {
  const close = el("button", { type: "button", class: "quiet" }, "Close");
  const dialog = el(
    "dialog",
    { class: "help", "aria-labelledby": "help-title" },
    el("h2", { id: "help-title" }, "Keys"),
    el(
      "dl",
      {},
      ...kKeys.flatMap(([keys, meaning]) => [el("dt", {}, ...keys.flatMap((key, i) => [i > 0 && " ", el("kbd", {}, key)])), el("dd", {}, meaning)]),
    ),
    el("p", { class: "hint" }, "Every chart has a table with its numbers below it."),
    close,
  );
  close.addEventListener("click", () => dialog.close());
  const button = el("button", { type: "button", class: "quiet", id: "help-button" }, el("kbd", { "aria-hidden": "true" }, "?"), el("span", {}, "Keys"));
  button.addEventListener("click", () => dialog.showModal());

  function step(by: 1 | -1): void {
    const sections = targets.sections();
    // A section counts as passed once its top is at the top of the view, below what sticks there.
    const tops = sections.map((section) => section.getBoundingClientRect().top - parseFloat(getComputedStyle(section).scrollMarginTop || "0"));
    const focused = sections.findIndex((section) => section === document.activeElement);
    let current = focused;
    if (focused < 0 || Math.abs(tops[focused] ?? 0) > window.innerHeight) {
      current = Math.max(0, tops.findLastIndex((top) => top < 8));
      if (by === -1 && (tops[current] ?? 0) < -8) current += 1;
    }
    const next = sections[Math.min(Math.max(current + by, 0), sections.length - 1)];
    if (next) targets.jump(next.id);
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || dialog.open) return;
    if (event.target === targets.filter && event.key === "Escape") {
      targets.filter.value = "";
      targets.filter.dispatchEvent(new Event("input"));
      targets.filter.blur();
      return;
    }
    if (event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable]")) return;
    if (event.key === "j" || event.key === "n") step(1);
    else if (event.key === "k" || event.key === "p") step(-1);
    else if (event.key === "g") targets.jump("verdict");
    else if (event.key === "t") toggle_theme();
    else if (event.key === "?") dialog.showModal();
    else if (event.key === "/") {
      event.preventDefault();
      targets.filter.focus();
      targets.filter.select();
    }
  });
  return { dialog, button };
}
