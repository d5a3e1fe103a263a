// The first thing on the page: what is slow, what changed, what to do. Says it in words and signs, and links to the
// pictures that it rests on.
import type { Finding, ReportDocument, Verdict } from "../document";
import { el } from "../dom";
import { name, prose } from "../text";
import { tone_icon, tone_word } from "../tone";

const kFirst = 8; // findings shown at once; the rest folds away

export function render(container: HTMLElement, items: readonly Verdict[], report: ReportDocument): void {
  for (const verdict of items) {
    const first = verdict.findings.slice(0, kFirst);
    const rest = verdict.findings.slice(kFirst);
    container.append(
      el(
        "div",
        { class: `verdict tone-${verdict.tone}` },
        el("div", { class: "verdict-head" }, tone_icon(verdict.tone, 36), el("div", {}, el("p", { class: "overline" }, `Verdict: ${tone_word(verdict.tone).toLowerCase()}`), el("h2", { id: "verdict-title" }, prose(verdict.headline, 200)))),
        first.length > 0 && list(first, report, verdict.headline),
        rest.length > 0 && el("details", { class: "more" }, el("summary", {}, `${rest.length} more`), list(rest, report, "")),
      ),
    );
  }
}

function list(findings: readonly Finding[], report: ReportDocument, headline: string): HTMLElement {
  const rows = findings.map((finding) => row(finding, report, headline)).filter((one) => one !== null);
  return el("ol", { class: "findings" }, ...rows);
}

// What the headline says already is not said again.
function row(finding: Finding, report: ReportDocument, headline: string): HTMLElement | null {
  const first = finding.text.indexOf(". ") < 0 ? finding.text.length : finding.text.indexOf(". ") + 1;
  const text = headline.startsWith(finding.text.slice(0, first)) ? finding.text.slice(first).trim() : finding.text;
  if (text === "" && finding.advice === null) return null;
  const target = finding.anchor === null ? null : title_of(finding.anchor, report);
  return el(
    "li",
    { class: "finding" },
    tone_icon(finding.tone),
    el(
      "div",
      {},
      text !== "" && el("p", { class: "finding-text" }, el("span", { class: `finding-tone tone-${finding.tone}` }, tone_word(finding.tone)), " ", prose(text)),
      finding.advice !== null && el("p", { class: "advice" }, prose(finding.advice)),
      finding.anchor !== null && target !== null && el("p", { class: "finding-link" }, el("a", { href: `#${finding.anchor}` }, "See ", name(target))),
    ),
  );
}

/** The title of the item with this id, whichever list it is in. */
export function title_of(id: string, report: ReportDocument): string | null {
  for (const list of Object.values(report) as unknown[]) {
    if (!Array.isArray(list)) continue;
    for (const item of list as unknown[]) {
      const candidate = item as { id?: unknown; title?: unknown; label?: unknown } | null;
      if (candidate?.id === id) return typeof candidate.title === "string" ? candidate.title : typeof candidate.label === "string" ? candidate.label : id;
    }
  }
  return null;
}
