// The commands that made the files, ready to paste: quoted for a shell, with the variables that were set. Copying works
// from a file on disk too.
import type { ReportDocument } from "../document";
import { el } from "../dom";
import { plural } from "../format";
import { cut, name, shell_word, visible } from "../text";

const kMostLetters = 4000;

export interface Reproduction {
  text: string; // what to paste
  environment: string | null;
  paths: string[];
}

/** One for each different command; the files that it made with it. Then the report's own. */
export function from(report: ReportDocument): Reproduction[] {
  const by_text = new Map<string, Reproduction>();
  const add = (words: readonly string[], environment: number | null, path: string): void => {
    if (words.length === 0) return;
    const machine = environment === null ? undefined : report.environments[environment];
    const text = command_text(words, machine?.variables ?? []);
    const key = `${environment ?? ""}\n${text}`;
    const known = by_text.get(key);
    if (known) known.paths.push(path);
    else by_text.set(key, { text, environment: machine?.label ?? null, paths: [path] });
  };
  for (const source of report.sources) add(source.command_line, source.environment, source.path);
  add(report.command_line, null, "this report");
  return [...by_text.values()];
}

export function command_text(words: readonly string[], variables: readonly (readonly [string, string])[]): string {
  const settings = variables.filter(([variable]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(variable)).map(([variable, value]) => `${variable}=${shell_word(value)}`);
  return [...settings.map((setting) => `${setting} \\\n`), words.map(shell_word).join(" ")].join("");
}

/** Puts text on the clipboard; false where the browser allows no way to. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Files on disk have no clipboard in some browsers; a selection can still be copied there.
    const field = el("textarea", { class: "unseen", "aria-hidden": "true", tabindex: -1 });
    field.value = text;
    document.body.append(field);
    field.select();
    const is_done = document.execCommand("copy");
    field.remove();
    return is_done;
  }
}

// What is copied is always whole; what is shown ends somewhere.
function shown(text: string): HTMLElement {
  const is_cut = text.length > kMostLetters;
  return el("pre", { tabindex: 0, "aria-label": "Command" }, el("code", {}, visible(text.slice(0, kMostLetters))), is_cut && `\u2026 ${text.length} characters in all; Copy takes them all`);
}

export function render(container: HTMLElement, items: readonly Reproduction[], _report: ReportDocument): void {
  const said = el("p", { class: "unseen", role: "status" });
  container.append(
    said,
    el(
      "ol",
      { class: "commands card" },
      ...items.map((item) => {
        const button = el("button", { type: "button", class: "copy" }, "Copy");
        button.addEventListener("click", () => {
          void copy(item.text).then((is_done) => {
            button.textContent = is_done ? "Copied" : "Select it and press Ctrl+C";
            said.textContent = button.textContent;
            button.focus();
            window.setTimeout(() => (button.textContent = "Copy"), 2000);
          });
        });
        const made = item.paths.length === 1 ? name(item.paths[0] ?? "") : el("span", { title: item.paths.slice(0, 20).map((path) => cut(path)).join("\n") }, plural(item.paths.length, "file"));
        return el("li", {}, el("div", { class: "command-head" }, el("span", { class: "origin" }, el("span", {}, made), item.environment !== null && el("span", {}, name(item.environment))), button), shown(item.text));
      }),
    ),
  );
}
