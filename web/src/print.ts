// Makes the page fit for paper just before it goes there: everything drawn, in light colours, folded tables open. Puts the
// screen back as it was afterwards.
import { set_printing } from "./theme";

export function start_print(draw_all: () => void): void {
  let opened: HTMLDetailsElement[] = [];
  const begin = (): void => {
    draw_all();
    // Tables of thousands of rows (lazy) stay closed: the picture and its summary go to paper.
    for (const details of document.querySelectorAll<HTMLDetailsElement>("details:not(.lazy):not([open])")) {
      details.open = true;
      opened.push(details);
    }
    set_printing(true);
  };
  const end = (): void => {
    for (const details of opened) details.open = false;
    opened = [];
    set_printing(false);
  };
  window.addEventListener("beforeprint", begin);
  window.addEventListener("afterprint", end);
  window.matchMedia("print").addEventListener("change", (event) => (event.matches ? begin() : end()));
}
