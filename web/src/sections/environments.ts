// The machines, devices and variables that the numbers are from: one card each, since nothing is drawn across two.
import type { Environment, ReportDocument } from "../document";
import { el } from "../dom";
import { plural } from "../format";
import { name, prose } from "../text";
import { facts } from "./texts";

export function render(container: HTMLElement, items: readonly Environment[], report: ReportDocument): void {
  for (const environment of items) {
    const index = report.environments.indexOf(environment);
    const files = report.sources.filter((source) => source.environment === index).length;
    const heading = `environment-${index}-title`;
    container.append(
      el(
        "article",
        { class: "card", id: `environment-${index}`, "aria-labelledby": heading, tabindex: -1 },
        el("header", { class: "card-head" }, el("h3", { id: heading }, name(environment.label)), el("p", { class: "origin" }, el("span", {}, plural(files, "file")), el("span", {}, "fingerprint ", el("code", {}, name(environment.id, 24))))),
        facts(environment.facts),
        environment.variables.length > 0
          ? el("div", {}, el("h4", {}, "Variables"), el("dl", { class: "facts variables" }, ...environment.variables.map(([variable, value]) => el("div", {}, el("dt", {}, name(variable, 60)), el("dd", {}, el("code", {}, prose(value, 300)))))))
          : el("p", { class: "hint" }, "No variable that changes the device's behaviour was set."),
      ),
    );
  }
}
