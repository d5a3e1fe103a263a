// Light or dark: follows the system until the reader chooses. Canvases ask here for colours (the CSS variables of
// styles.css) and for the moment to draw again. Keeps nothing: a file opened from disk may have no storage.

export type Theme = "light" | "dark";

const dark_system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let colours = new Map<string, string>();
let chosen: Theme | null = null;
let is_printing = false;

export function theme(): Theme {
  if (is_printing) return "light";
  return chosen ?? (dark_system.matches ? "dark" : "light");
}

function apply(): void {
  document.documentElement.dataset["theme"] = theme();
  // All that were asked for before, now: asked for one by one among changes of the page, each would lay it out again.
  const style = getComputedStyle(document.documentElement);
  colours = new Map([...colours.keys()].map((variable) => [variable, style.getPropertyValue(`--${variable}`).trim()]));
  for (const listener of listeners) listener();
}

export function toggle_theme(): void {
  chosen = theme() === "dark" ? "light" : "dark";
  apply();
}

/** Paper is light, whatever the screen is. */
export function set_printing(value: boolean): void {
  if (is_printing === value) return;
  is_printing = value;
  document.documentElement.classList.toggle("printing", value);
  apply();
}

export function is_print(): boolean {
  return is_printing;
}

/** Calls back after every change of colours (and before and after printing). Returns what takes the listener away. */
export function on_theme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The value of a CSS variable now: token("text"), token("series-1"). */
export function token(variable: string): string {
  let value = colours.get(variable);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${variable}`).trim();
    colours.set(variable, value);
  }
  return value;
}

export function start_theme(): void {
  apply();
  dark_system.addEventListener("change", apply);
}
