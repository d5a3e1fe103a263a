// What stands around the sections: skip link, masthead, navigation, filter, footer. Follows the reader's place on the page
// and jumps to anchors, drawing what waits there first.
import type { ReportDocument } from "./document";
import { el, svg } from "./dom";
import { moment, plural } from "./format";
import { start_keyboard } from "./keyboard";
import { draw_item, error_box, filter_slots, type Slot } from "./slots";
import { cut, name } from "./text";
import { on_theme, theme, toggle_theme } from "./theme";

export interface ShellSection {
  id: string;
  title: string;
  hint: string;
  count: number | null; // of items; null where they make one table
  slots: Slot[];
}

export function build_shell(page: HTMLElement, report: ReportDocument, sections: readonly ShellSection[], draw_verdict: (container: HTMLElement) => void): void {
  document.title = `${cut(report.title)} · Weir`;
  const verdict = el("section", { id: "verdict", class: "section", "aria-labelledby": "verdict-title", tabindex: -1 });
  try {
    draw_verdict(verdict);
  } catch (problem) {
    verdict.replaceChildren(el("h2", { id: "verdict-title" }, "Verdict"), error_box("Verdict", problem));
  }
  const made = sections.map((section) => {
    const heading = `${section.id}-heading`;
    const element = el(
      "section",
      { id: section.id, class: "section", "aria-labelledby": heading, tabindex: -1 },
      el("div", { class: "section-head" }, el("h2", { id: heading }, section.title), el("p", { class: "hint" }, section.hint)),
      ...section.slots.map((slot) => slot.element),
    );
    return { section, element };
  });
  const links = new Map<string, HTMLAnchorElement>();
  const list = el("ul", {});
  for (const { id, title, count } of [{ id: "verdict", title: "Verdict", count: null }, ...sections]) {
    const link = el("a", { href: `#${id}` }, el("span", {}, title), count !== null && count > 1 && el("span", { class: "count" }, String(count)));
    links.set(id, link);
    list.append(el("li", {}, link));
  }
  const status = el("p", { class: "filter-status", role: "status" });
  const filter = make_filter(made, links, status);
  const main = el("main", { id: "content", tabindex: -1 }, verdict, ...made.map(({ element }) => element));
  const keyboard = start_keyboard({ sections: () => visible_sections([verdict, ...made.map(({ element }) => element)]), filter, jump });
  page.replaceChildren(
    el("a", { class: "skip", href: "#content" }, "Skip to the report"),
    masthead(report, keyboard.button),
    el("div", { class: "body" }, el("nav", { "aria-label": "Sections" }, el("div", { class: "nav-inside" }, filter_field(filter), list)), el("div", { class: "column" }, status, main)),
    footer(report),
    keyboard.dialog,
  );
  follow([verdict, ...made.map(({ element }) => element)], links);
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest('a[href^="#"]') : null;
    const id = link?.getAttribute("href")?.slice(1);
    if (!id || event.defaultPrevented || !jump(id)) return;
    event.preventDefault();
    set_hash(id);
  });
  window.addEventListener("hashchange", () => jump(hash_id()));
  if (hash_id() !== "") jump(hash_id());
}

function hash_id(): string {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

// Some browsers refuse history from a file; the jump has happened all the same.
function set_hash(id: string): void {
  try {
    history.replaceState(null, "", `#${id}`);
  } catch {
    return;
  }
}

/** Goes to a section or item, drawn if it was not, and puts the focus there. */
function jump(id: string): boolean {
  if (id === "") return false;
  draw_item(id);
  const target = document.getElementById(id);
  if (!target) return false;
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  target.focus({ preventScroll: true });
  // Things above are drawn as they come by, which moves the target while a smooth scroll is under way: so only near ones.
  const is_near = Math.abs(target.getBoundingClientRect().top) < 1.5 * window.innerHeight;
  target.scrollIntoView({ block: "start", behavior: is_near && !calm ? "smooth" : "instant" });
  return true;
}

function visible_sections(sections: readonly HTMLElement[]): HTMLElement[] {
  return sections.filter((section) => !section.hidden);
}

// Marks the link of the section that is read: the last whose top has passed the upper third.
function follow(sections: readonly HTMLElement[], links: ReadonlyMap<string, HTMLAnchorElement>): void {
  let is_due = false;
  const update = (): void => {
    is_due = false;
    const line = window.innerHeight / 3;
    const shown = visible_sections(sections);
    let current = shown[0];
    for (const section of shown) if (section.getBoundingClientRect().top <= line) current = section;
    const is_end = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 2 && window.scrollY > 0;
    if (is_end) current = shown[shown.length - 1];
    for (const [id, link] of links) {
      if (id !== current?.id) {
        link.removeAttribute("aria-current");
      } else if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        const bar = link.closest<HTMLElement>(".nav-inside ul");
        if (bar && bar.scrollWidth > bar.clientWidth) bar.scrollTo({ left: link.offsetLeft - bar.clientWidth / 3 });
      }
    }
  };
  window.addEventListener("scroll", () => {
    if (!is_due) requestAnimationFrame(update);
    is_due = true;
  }, { passive: true });
  update();
}

function make_filter(made: readonly { section: ShellSection; element: HTMLElement }[], links: ReadonlyMap<string, HTMLAnchorElement>, status: HTMLElement): HTMLInputElement {
  const input = el("input", { type: "search", id: "filter", placeholder: "Filter", autocomplete: "off", spellcheck: "false" });
  input.addEventListener("input", () => {
    const query = input.value.trim();
    const left = filter_slots(query);
    for (const { section, element } of made) {
      const is_empty = section.slots.every((slot) => slot.element.hidden);
      element.hidden = is_empty;
      const entry = links.get(section.id)?.parentElement;
      if (entry) entry.hidden = is_empty;
    }
    status.textContent = query === "" ? "" : left === 0 ? `Nothing has “${cut(query, 40)}”.` : `${plural(left, "item has", "items have")} “${cut(query, 40)}”.`;
  });
  return input;
}

function filter_field(input: HTMLInputElement): HTMLElement {
  return el("div", { class: "filter", role: "search" }, el("label", { for: "filter", class: "unseen" }, "Filter the report's items"), input, el("kbd", { "aria-hidden": "true" }, "/"));
}

function masthead(report: ReportDocument, help: HTMLElement): HTMLElement {
  const button = el("button", { type: "button", class: "quiet", id: "theme-toggle" });
  const update = (): void => {
    const other = theme() === "dark" ? "Light" : "Dark";
    button.replaceChildren(theme_icon(), el("span", {}, other));
    button.setAttribute("aria-label", `${other} theme`);
  };
  button.addEventListener("click", toggle_theme);
  on_theme(update);
  update();
  return el(
    "header",
    { class: "masthead" },
    el("div", { class: "brand", "aria-hidden": "true" }, logo(), el("span", {}, "weir")),
    el(
      "div",
      { class: "masthead-text" },
      el("h1", {}, name(report.title, 140)),
      el("p", {}, el("time", { datetime: report.created }, moment(report.created)), ` · ${plural(report.sources.length, "file")} · ${plural(report.environments.length, "environment")}`),
    ),
    el("div", { class: "tools" }, button, help),
  );
}

// Water over a sill.
function logo(): SVGElement {
  return svg(
    "svg",
    { viewBox: "0 0 32 32", width: 28, height: 28 },
    svg("path", { d: "M3 11h9c5 0 5 3 6 7s2 7 6 7h5", fill: "none", stroke: "currentColor", "stroke-width": 2.6, "stroke-linecap": "round" }),
    svg("path", { d: "M3 17h7c4 0 4 2 5 5s2 3 4 3", fill: "none", stroke: "currentColor", "stroke-width": 2.6, "stroke-linecap": "round", opacity: 0.45 }),
    svg("path", { d: "M20 7v5", stroke: "currentColor", "stroke-width": 2.6, "stroke-linecap": "round", opacity: 0.7 }),
  );
}

function theme_icon(): SVGElement {
  return svg(
    "svg",
    { viewBox: "0 0 16 16", width: 15, height: 15, "aria-hidden": "true" },
    svg("circle", { cx: 8, cy: 8, r: 6.2, fill: "none", stroke: "currentColor", "stroke-width": 1.6 }),
    svg("path", { d: "M8 1.8a6.2 6.2 0 0 1 0 12.4z", fill: "currentColor" }),
  );
}

function footer(report: ReportDocument): HTMLElement {
  return el(
    "footer",
    { class: "foot" },
    el("p", {}, "Made by ", el("strong", {}, `weir ${cut(report.weir.version, 40)}`), " (", name(report.weir.commit, 40), ") ", moment(report.created), ". This file needs no network and sends nothing."),
  );
}
