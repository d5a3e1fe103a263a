// Names from files, made fit to show: of any length, with any character. Everything that comes from a document and is not
// a number goes through here.
import { el } from "./dom";

export const kNameLimit = 96; // letters that a name keeps in a heading, a legend or a cell
export const kProseLimit = 600;
const kTitleLimit = 4000;

// Control and direction characters would act on the text around them; shown as their code, they only stand in it.
// eslint-disable-next-line no-control-regex
const kUnseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** The text with characters that cannot be seen written as their code: U+202E. */
export function visible(text: string): string {
  return text.replace(kUnseen, (letter) => `\u27e8U+${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`);
}

/** The text, cut to `limit` letters with an ellipsis. */
export function cut(text: string, limit = kNameLimit): string {
  // Surrogates are cut between, not within: Array.from walks whole characters, over no more than it may need.
  if (text.length <= limit) return visible(text);
  const letters = Array.from(text.slice(0, limit * 2)).slice(0, limit - 1);
  return `${visible(letters.join(""))}\u2026`;
}

/** An inline element: the text set apart from its surroundings' direction, cut where too long, whole in its title (up to
 *  what a title can be read at). */
export function name(text: string, limit = kNameLimit): HTMLElement {
  const shown = cut(text, limit);
  return el("bdi", { title: text.length > limit ? cut(text, kTitleLimit) : null }, shown);
}

// Without template arguments deeper than `depth`: "f<g<int>, 3>" becomes "f<g<>, 3>" at 1 and "f<>" at 0.
function without_arguments(text: string, depth: number): string {
  let open = 0;
  let kept = "";
  for (const letter of text) {
    if (letter === ">" && !kept.endsWith("-")) open = Math.max(0, open - 1);
    if (open <= depth) kept += letter;
    if (letter === "<") ++open;
  }
  return kept;
}

const kPlain = new Set("void bool char short int long half unsigned signed float double const true false Half lambda operator BFloat16".split(" "));

// The argument that distinguishes a kernel from the others of its template: what it computes (a functor, the function
// around a lambda), otherwise the first that is not a number or a plain type. src/report/text/sections.cpp has the same rule.
function telling_argument(text: string): string | undefined {
  const words = (text.slice(text.indexOf("<") + 1).match(/\b[A-Za-z_]\w*/g) ?? []).filter((word) => !kPlain.has(word));
  return text.includes("<") ? (words.find((word) => /unctor|_kernel/.test(word)) ?? words[0]) : undefined;
}

/** A kernel's name in at most `limit` letters. Return type, parameters and namespaces go first, then template arguments but
 *  for the one that says what the kernel computes; only what is still too long is cut. */
export function short_command(text: string, limit: number): string {
  if (text.length <= limit) return visible(text);
  let short = text.slice(0, kTitleLimit).replace(/^void /, "").replace(/\(anonymous namespace\)::/g, "");
  let open = 0;
  for (let i = 1; i < short.length; ++i) {
    if (short[i] === "<") ++open;
    else if (short[i] === ">") open = Math.max(0, open - 1);
    else if (short[i] === "(" && open === 0) short = short.slice(0, i);
  }
  if (short.length > limit) short = short.replace(/\b[A-Za-z_]\w*::/g, "");
  const argument = telling_argument(short);
  for (let depth = 3; depth >= 1 && short.length > limit; --depth) short = without_arguments(short, depth);
  if (short.length <= limit && short.includes(argument ?? "")) return visible(short);
  const bare = without_arguments(short, 0);
  if (argument === undefined) return cut(bare.length <= limit ? bare : short, limit);
  const told = bare.replace("<>", `<${argument}>`);
  if (told.length <= limit) return visible(told);
  // What it computes says more than the rest of the function's name.
  if (argument.length + 10 <= limit) return `${cut(bare.replace("<>", ""), limit - argument.length - 2)}<${visible(argument)}>`;
  return cut(bare.length <= limit ? bare : told, limit);
}

/** A kernel's name as `short_command`, whole in its title. */
export function command_name(text: string, limit = kNameLimit): HTMLElement {
  return el("bdi", { title: text.length > limit ? cut(text, kTitleLimit) : null }, short_command(text, limit));
}

/** Prose of any length: what is too long folds away, whole, behind "all of it". */
export function prose(text: string, limit = kProseLimit): HTMLElement {
  if (text.length <= limit) return el("span", {}, el("bdi", {}, visible(text)));
  const details = el("details", { class: "whole lazy" }, el("summary", {}, `All ${text.length} characters`));
  details.addEventListener("toggle", () => details.append(el("pre", { tabindex: 0 }, visible(text))), { once: true });
  return el("span", {}, el("bdi", {}, cut(text, limit)), details);
}

/** As a POSIX shell takes it: quoted only where it must be. */
export function shell_word(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}
