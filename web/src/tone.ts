// Good, bad and between: as a sign and a word, so that colour is never the only carrier.
import type { Tone } from "./document";
import { el, svg } from "./dom";

const kWords: Record<Tone, string> = { bad: "Problem", warning: "Warning", good: "Good", neutral: "Note" };
const kPaths: Record<Tone, string> = {
  bad: "M6 6l8 8M14 6l-8 8",
  warning: "M10 5v6M10 14.4v.2",
  good: "M5.5 10.5l3 3 6-7",
  neutral: "M10 9.4V15M10 5.6v.2",
};

function known(tone: string): Tone {
  return tone === "bad" || tone === "warning" || tone === "good" ? tone : "neutral";
}

export function tone_icon(tone: Tone, size = 20): SVGElement {
  const sign = known(tone);
  return svg(
    "svg",
    { class: `tone-icon tone-${sign}`, viewBox: "0 0 20 20", width: size, height: size, "aria-hidden": "true" },
    svg("circle", { cx: 10, cy: 10, r: 9.2, fill: "currentColor" }),
    svg("path", { d: kPaths[sign], fill: "none", stroke: "var(--surface)", "stroke-width": 2.2, "stroke-linecap": "round", "stroke-linejoin": "round" }),
  );
}

export function tone_word(tone: Tone): string {
  return kWords[known(tone)];
}

/** A small label: badge("bad", "slower") */
export function badge(tone: Tone, word: string): HTMLElement {
  const signs: Record<Tone, string> = { bad: "▲", warning: "◆", good: "▼", neutral: "●" };
  return el("span", { class: `badge tone-${known(tone)}` }, el("span", { "aria-hidden": "true", class: "badge-sign" }, signs[known(tone)]), word);
}
