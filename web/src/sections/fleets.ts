// A fleet: how many nodes are fit, what was found of which kind, the map of all values, how figures are distributed, and
// what is set differently. One device at a time is shown with all its figures and a way to its history.
import type { Fleet, FleetFinding, ReportDocument } from "../document";
import { el } from "../dom";
import { HeatMap } from "../fleet/heat_map";
import { histograms } from "../fleet/histograms";
import { FleetModel } from "../fleet/model";
import { beside, change, count, kNone, measured, percent, plural, probability } from "../format";
import { card } from "../item";
import { numbers, table, type Row } from "../table";
import { cut, name, prose } from "../text";
import { badge } from "../tone";
import "../fleet/fleet.css";

const kShown = 6; // findings of a kind at once; the rest folds away
const kKinds: readonly [string, string][] = [
  ["wrong", "Compute something wrong"],
  ["fault", "Count errors"],
  ["slow", "Slow"],
  ["place", "Slow as a whole place"],
  ["link", "Slow links"],
  ["changed", "Slower than before"],
  ["missing", "Not examined"],
  ["different", "Set differently"],
];

/** Findings by kind, in the order of the list above; what a kind does not know comes last. */
export function by_kind(findings: readonly FleetFinding[]): { kind: string; title: string; findings: FleetFinding[] }[] {
  const known = new Map(kKinds.map(([kind, title]) => [kind, { kind, title, findings: [] as FleetFinding[] }]));
  for (const finding of findings) {
    let group = known.get(finding.kind);
    if (!group) known.set(finding.kind, (group = { kind: finding.kind, title: finding.kind, findings: [] }));
    group.findings.push(finding);
  }
  return [...known.values()].filter((group) => group.findings.length > 0);
}

export function render(container: HTMLElement, items: readonly Fleet[], report: ReportDocument): void {
  for (const item of items) {
    const model = new FleetModel(item);
    const device = el("div", { class: "fleet-device", "aria-live": "off" });
    const map = item.figures.length > 0 && model.size > 0 ? new HeatMap(model, (row) => device.replaceChildren(...of_device(model, row, report))) : null;
    const show = (row: number): void => {
      map?.choose(row);
      map?.element.scrollIntoView({ block: "nearest" });
    };
    container.append(
      card(
        item,
        report,
        tally(item),
        findings_of(item, map ? show : null),
        map && el("h4", { class: "fleet-heading" }, "All devices, one figure at a time"),
        map?.element,
        map && device,
        map && el("h4", { class: "fleet-heading" }, "How each figure is distributed"),
        map && el("p", { class: "hint" }, "Heights grow with the square root of the number of devices, so that one of thousands is seen."),
        map &&
          histograms(model, (figure) => {
            map.show(figure);
            map.element.scrollIntoView({ block: "nearest" });
          }),
        links(item),
        differences(item),
        constants(item),
        unfit_nodes(item),
        item.groups.length > 0 && numbers("Numbers of every figure", () => summaries(item)),
      ),
    );
    map?.start();
    // The device that the map's first figure is shown for.
    const first = item.findings.find((one) => one.row !== null && one.figure !== null)?.row ?? model.named_rows[0];
    if (map && first !== undefined) map.choose(first);
  }
}

function tally(item: Fleet): HTMLElement {
  const entry = (value: number, words: string, is_bad = false): HTMLElement => el("li", { class: is_bad ? "failure" : null }, el("strong", {}, count(value)), words);
  return el(
    "div",
    {},
    el(
      "ul",
      { class: "tally", "aria-label": "Nodes" },
      entry(Math.max(0, item.nodes - item.unfit), item.nodes - item.unfit === 1 ? "node is fit" : "nodes are fit"),
      entry(item.unfit, item.unfit === 1 ? "is unfit" : "are unfit", item.unfit > 0),
      entry(item.devices, item.devices === 1 ? "device" : "devices"),
    ),
    item.significance !== null &&
      el("p", { class: "hint" }, `Each device is compared with those of the same model and settings. A fleet without a slow device has any named with a chance of ${percent(item.significance)}${item.threshold === null ? "" : `; effects below ${percent(item.threshold)} do not count`}.`),
  );
}

function findings_of(item: Fleet, show: ((row: number) => void) | null): HTMLElement {
  const groups = by_kind(item.findings);
  if (groups.length === 0) return el("p", { class: "meaning" }, "Nothing was found: no device stands out, and none computes wrongly.");
  return el(
    "div",
    { class: "fleet-findings" },
    ...groups.map(({ kind, title, findings }) =>
      el(
        "section",
        { class: `fleet-kind is-${/^[a-z]+$/.test(kind) ? kind : "other"}` },
        el("h4", {}, cut(title, 40), " ", badge(findings.some((one) => one.is_unfit) ? "bad" : "warning", count(findings.length))),
        el("ul", {}, ...findings.slice(0, kShown).map((one) => finding_line(one, show))),
        findings.length > kShown && more(findings.slice(kShown), show),
      ),
    ),
    item.findings_left_out > 0 && el("p", { class: "hint" }, `${plural(item.findings_left_out, "more finding")} are in the document.`),
  );
}

// Hundreds of them: made when first opened.
function more(findings: readonly FleetFinding[], show: ((row: number) => void) | null): HTMLElement {
  const details = el("details", { class: "more lazy" }, el("summary", {}, `${count(findings.length)} more`));
  details.addEventListener("toggle", () => details.append(el("ul", {}, ...findings.map((one) => finding_line(one, show)))), { once: true });
  return details;
}

function finding_line(finding: FleetFinding, show: ((row: number) => void) | null): HTMLElement {
  const { row, cause, sentence } = finding;
  const has_cause = cause !== null && !sentence.includes(cause);
  const button = show !== null && row !== null && el("button", { type: "button", class: "fleet-show", "aria-label": `Show ${cut(finding.node, 60)} ${cut(finding.device ?? "", 40)} on the map` }, "show");
  if (button) button.addEventListener("click", () => show?.(row!));
  return el("li", {}, prose(sentence, 400), has_cause && el("span", { class: "advice" }, " ", prose(cause, 300)), button && " ", button);
}

/** All figures of a device, what is said of it, and its history where the report has one. */
function of_device(model: FleetModel, row: number, report: ReportDocument): HTMLElement[] {
  const { fleet } = model;
  const serial = fleet.rows.serials[row] ?? null;
  const group = fleet.groups[fleet.rows.groups[row]!];
  const series = serial === null ? [] : report.histories.filter((one) => one.serial === serial);
  const findings = model.named.get(row) ?? [];
  const named = new Set(findings.map((one) => one.figure));
  const rows: Row[] = fleet.figures.map((figure, i) => {
    const { values, effects, typical, reach, sign } = model.view(i);
    const effect = effects[row]!;
    return {
      class: named.has(figure.name) ? "fleet-named" : undefined,
      cells: [name(figure.words, 40), measured(values[row], figure.unit), measured(typical[fleet.rows.groups[row]!], figure.unit), effect_bar(effect, reach, figure.goal === "none" ? 0 : sign), Number.isNaN(effect) ? kNone : beside(effect)],
    };
  });
  return [
    el("h4", {}, name(model.name_of(row), 80)),
    el("p", { class: "hint" }, [group?.model, serial === null ? "no serial number" : `serial ${serial}`, fleet.rows.unfit.includes(row) ? "unfit" : "fit"].filter((part) => part !== undefined).map((part) => cut(part, 80)).join(" · ")),
    ...findings.slice(0, kShown).map((one) => el("p", { class: "fleet-reason" }, prose(one.sentence, 400))),
    ...(series.length > 0 ? [el("p", {}, "Its history: ", ...series.slice(0, 16).flatMap((one, i) => [i > 0 && ", ", el("a", { href: `#${one.id}` }, name(fleet.figures.find((figure) => one.workload === `fleet/${figure.name}`)?.words ?? one.workload, 40))]).filter((part) => part !== false))] : []),
    table(`All figures of ${model.name_of(row)}`, [{ heading: "figure", is_text: true }, { heading: "value" }, { heading: "median of its peers" }, { heading: "", title: "how far from the median; to the left is worse, of a state less" }, { heading: "difference", is_text: true }], rows, { is_caption_hidden: true }),
  ];
}

// From the middle: to the left is worse. `sign` as in FigureView; 0 for a state, where left is less.
function effect_bar(effect: number, reach: number, sign: number): HTMLElement {
  const share = Math.min(Math.max((Number.isNaN(effect) ? 0 : effect) / reach, -1), 1) * (sign === 0 ? 1 : -sign);
  const bar = el("span", { class: sign === 0 ? "is-state" : share < 0 ? "is-worse" : "is-better" });
  Object.assign(bar.style, { left: `${50 + Math.min(share, 0) * 50}%`, width: `${Math.abs(share) * 50}%` });
  return el("span", { class: "fleet-effect", "aria-hidden": "true" }, bar);
}

function links(item: Fleet): HTMLElement | null {
  const slow = item.findings.filter((one) => one.to !== null && one.value !== null);
  if (slow.length === 0) return null;
  const unit_of = (figure: string | null): string => item.figures.find((one) => one.name === figure)?.unit ?? item.constants.find((one) => one.name === figure)?.unit ?? "B/s";
  return table(
    "Slow links and copies",
    [{ heading: "from", is_text: true }, { heading: "to", is_text: true }, { heading: "rate" }, { heading: "median of its peers" }, { heading: "" }, { heading: "difference" }, { heading: "likely cause", is_text: true }],
    slow.map((one) => ({
      cells: [name(`${one.node} ${one.device ?? ""}`.trim(), 60), name(one.to ?? "", 60), measured(one.value, unit_of(one.figure)), measured(one.typical, unit_of(one.figure)), one.effect === null ? kNone : share_of(1 + one.effect), one.effect === null ? kNone : change(1 + one.effect), one.cause === null ? "not known" : prose(one.cause, 300)],
    })),
  );
}

function share_of(share: number): HTMLElement {
  const bar = el("span", {});
  bar.style.width = `${Math.min(Math.max(100 * share, 0), 100)}%`;
  return el("span", { class: "fleet-share", "aria-hidden": "true" }, bar);
}

function differences(item: Fleet): HTMLElement | null {
  if (item.differences.length === 0) return null;
  const rows = item.differences.flatMap((one) => {
    const all = one.values.reduce((sum, value) => sum + value.count, 0);
    return one.values.map((value, i): Row => {
      const held = value.first.map((each) => cut(each, 60)).join(", ");
      return {
        group: i === 0 ? el("span", {}, name(one.name, 60), el("span", { class: "hint" }, one.left_out > 0 ? ` and ${plural(one.left_out, "more value")}` : "")) : undefined,
        cells: [el("span", { class: "fleet-value" }, name(value.value === "" ? "(empty)" : value.value, 80)), `${count(value.count)} ${one.is_of_device ? (value.count === 1 ? "device" : "devices") : value.count === 1 ? "node" : "nodes"}`, share_of(value.count / Math.max(all, 1)), value.count > value.first.length ? `${held}${held === "" ? "" : ", ..."}` : held],
      };
    });
  });
  return el("div", {}, el("h4", { class: "fleet-heading" }, "Versions and settings that differ"), table("Versions and settings that differ", [{ heading: "value", is_text: true }, { heading: "on" }, { heading: "" }, { heading: "names", is_text: true }], rows, { is_caption_hidden: true }));
}

function constants(item: Fleet): HTMLElement | null {
  const shared = item.constants.filter((one) => one.value !== null);
  const absent = item.constants.filter((one) => one.value === null);
  if (item.constants.length === 0) return null;
  return el(
    "p",
    { class: "hint fleet-constants" },
    shared.length > 0 && `The same wherever it is known: ${shared.map((one) => `${cut(one.words, 60)} ${measured(one.value, one.unit)}`).join(", ")}. `,
    absent.length > 0 && `No device has a value of: ${absent.map((one) => cut(one.words, 60)).join(", ")}.`,
  );
}

function unfit_nodes(item: Fleet): HTMLElement | null {
  if (item.unfit_nodes.length === 0) return null;
  const left = item.unfit - item.unfit_nodes.length;
  return numbers(
    left > 0 ? `The first ${count(item.unfit_nodes.length)} of ${count(item.unfit)} unfit nodes` : "Unfit nodes",
    () => table("Unfit nodes", [{ heading: "node", is_text: true }, { heading: "reason", is_text: true }], item.unfit_nodes.map((one) => ({ cells: [name(one.name, 80), one.reason === null ? kNone : prose(one.reason, 400)] })), { is_caption_hidden: true }),
  );
}

function summaries(item: Fleet): HTMLElement {
  const words = new Map([...item.figures, ...item.constants].map((one) => [one.name, one.words]));
  const named = item.findings.filter((one) => one.figure !== null);
  const rows = item.groups.flatMap((group) =>
    group.figures.map((one, i): Row => {
      const p = named.filter((finding) => finding.figure === one.name && finding.p !== null).map((finding) => finding.p!);
      return {
        group: i === 0 ? el("span", {}, name(group.model, 80), group.settings === null ? "" : `, ${cut(group.settings, 200)}`, `: ${plural(group.devices, "device")}`) : undefined,
        cells: [name(words.get(one.name) ?? one.name, 40), count(one.count), measured(one.p50, one.unit), measured(one.min, one.unit), measured(one.max, one.unit), percent(one.spread), p.length === 0 ? kNone : probability(Math.min(...p))],
      };
    }),
  );
  return table("Figures by group", [{ heading: "figure", is_text: true }, { heading: "devices" }, { heading: "median" }, { heading: "lowest" }, { heading: "highest" }, { heading: "spread" }, { heading: "p", title: "the smallest of any finding of this figure: that a healthy fleet of this size shows as much anywhere" }], rows, { is_caption_hidden: true });
}
