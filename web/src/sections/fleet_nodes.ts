// One node: its devices beside each other, a row for each figure, with the range that a repetition may show. Copies between
// devices have a table of their own.
import type { FleetNode, ProbedDevice, ProbedFigure, ProbedValue, ReportDocument } from "../document";
import { el, svg, type Child } from "../dom";
import { duration, in_one_unit, interval, kNone, measured } from "../format";
import { card } from "../item";
import { numbers, table, type Row } from "../table";
import { cut, name, prose } from "../text";
import "../fleet/fleet.css";

const kStrip = 150; // width of a figure's strip

export function render(container: HTMLElement, items: readonly FleetNode[], report: ReportDocument): void {
  for (const item of items) {
    const judged = item.figures.filter((figure) => figure.goal !== "none");
    const states = item.figures.filter((figure) => figure.goal === "none" && !is_shared(figure, item));
    const shared = item.figures.filter((figure) => figure.goal === "none" && is_shared(figure, item));
    container.append(
      card(
        item,
        report,
        item.failure !== null && el("p", { class: "failure" }, prose(item.failure)),
        el("p", { class: "meaning" }, [...new Set(item.devices.map((one) => cut(one.model, 80)))].join(", "), item.duration_ns === null ? "" : ` · probed in ${duration(item.duration_ns)}`),
        troubles(item),
        judged.length > 0 && figure_table("What it measured", item, judged, true),
        copies(item),
        states.length > 0 && figure_table("States under load, and counters", item, states, false),
        shared.length > 0 && el("p", { class: "hint fleet-constants" }, `The same on all devices: ${shared.map((one) => `${cut(one.words, 60)} ${measured(one.values[0]?.value, one.unit)}`).join(", ")}.`),
        item.devices.length > 0 && numbers("Versions, settings and ranges", () => el("div", {}, facts(item), ranges(item))),
      ),
    );
  }
}

function troubles(item: FleetNode): HTMLElement | null {
  const lines = item.devices.flatMap((device) => [
    ...device.wrong.map((text) => ["computes wrongly: ", text] as const),
    ...(device.failure === null ? [] : [["was not examined to the end: ", device.failure] as const]),
    ...(device.throttle.length === 0 ? [] : [["lowered its clock under load: ", device.throttle.join(", ")] as const]),
  ].map(([what, text]) => el("li", {}, name(device.name, 60), ` ${what}`, prose(text, 400))));
  return lines.length === 0 ? null : el("ul", { class: "fleet-findings", "aria-label": "What is wrong" }, ...lines);
}

// A state that every device has, and with one value. A single device has nothing to share.
function is_shared(figure: ProbedFigure, item: FleetNode): boolean {
  const values = new Set(figure.values.map((one) => one.value));
  return item.devices.length > 1 && figure.values.length === item.devices.length && values.size === 1 && !values.has(null);
}

/** The value of a device that its cell shows: of copies to several the worst. */
export function shown_value(figure: ProbedFigure, device: number): ProbedValue | null {
  const own = figure.values.filter((one) => one.device === device);
  const sign = figure.goal === "lower" ? -1 : 1;
  return own.reduce<ProbedValue | null>((worst, one) => (worst === null || worst.value === null || (one.value !== null && one.value * sign < worst.value * sign) ? one : worst), null);
}

function figure_table(caption: string, item: FleetNode, figures: readonly ProbedFigure[], has_strip: boolean): HTMLElement {
  const rows = figures.map((figure): Row => {
    const shown = item.devices.map((_, device) => shown_value(figure, device));
    const reason = shown.find((one) => one !== null && one.value === null && one.reason !== null)?.reason ?? null;
    const present = shown.flatMap((one) => (one === null || one.value === null ? [] : [one.value]));
    if (present.length === 0) return { cells: [name(figure.words, 40), el("span", { class: "hint" }, reason === null ? "no value" : prose(reason, 200))] };
    const scale = in_one_unit(present, figure.unit);
    const cells: Child[] = shown.map((one) => (one === null || one.value === null ? el("span", { title: cut(one?.reason ?? "not measured", 300) }, kNone) : scale.text(one.value)));
    return { cells: [el("span", {}, name(figure.words, 40), scale.unit !== "" && el("span", { class: "reason" }, cut(scale.unit, 20))), ...(has_strip ? [strip(figure, shown, item.devices)] : []), ...cells] };
  });
  const columns = [{ heading: "figure", is_text: true }, ...(has_strip ? [{ heading: "beside each other", is_text: true, title: "each device, and the range that a repetition may show" }] : []), ...item.devices.map((device) => ({ heading: name(device.name, 24) }))];
  return table(caption, columns, rows);
}

// A dot for each device over the range that a repetition may show; the axis holds them all.
function strip(figure: ProbedFigure, shown: readonly (ProbedValue | null)[], devices: readonly ProbedDevice[]): Child {
  const present = shown.flatMap((one, i) => (one !== null && one.value !== null ? [{ value: one.value, range: one.range ?? [one.value, one.value], device: devices[i]?.name ?? "?" }] : []));
  const low = Math.min(...present.map((one) => Math.min(one.value, one.range[0]!)));
  const high = Math.max(...present.map((one) => Math.max(one.value, one.range[1]!)));
  const x = (value: number): string => (6 + (high > low ? (value - low) / (high - low) : 0.5) * (kStrip - 12)).toFixed(1);
  const tall = 6 + 4 * present.length;
  const drawn = svg("svg", { class: "fleet-strip", width: kStrip, height: tall, viewBox: `0 0 ${kStrip} ${tall}`, "aria-hidden": "true" });
  present.forEach((one, i) => {
    const y = 5 + 4 * i;
    const text = svg("title", {}, `${cut(one.device, 40)}: ${measured(one.value, figure.unit)}, a repetition may show ${interval([one.range[0]!, one.range[1]!], (value) => measured(value, figure.unit))}`);
    drawn.append(svg("g", {}, text, svg("line", { x1: x(one.range[0]!), x2: x(one.range[1]!), y1: y, y2: y, class: "fleet-range" }), svg("circle", { cx: x(one.value), cy: y, r: 2, class: "fleet-dot" })));
  });
  return drawn;
}

/** Figures that several devices are the other side of: a row for each device, a column for each that it copies to. */
function copies(item: FleetNode): HTMLElement | null {
  const tables = item.figures.flatMap((figure) => {
    const natural = new Intl.Collator("en", { numeric: true });
    const targets = [...new Set(figure.values.map((one) => one.to).filter((to) => to !== null))].sort(natural.compare);
    if (targets.length < 2) return [];
    const most = Math.max(...figure.values.map((one) => one.value ?? 0));
    const rows = item.devices.map((device, i): Row => {
      const own = new Map(figure.values.filter((one) => one.device === i).map((one) => [one.to, one]));
      return { cells: [name(device.name, 40), ...targets.map((to) => pair_cell(own.get(to), figure, most))] };
    });
    return [table(`${cut(figure.words, 60)}: from the row's device to the column's`, [{ heading: "", is_text: true }, ...targets.map((to) => ({ heading: name(to, 24) }))], rows)];
  });
  return tables.length === 0 ? null : el("div", {}, ...tables);
}

function pair_cell(value: ProbedValue | undefined, figure: ProbedFigure, most: number): Child {
  if (value === undefined) return "";
  if (value.value === null) return el("span", { title: cut(value.reason ?? "not measured", 300) }, kNone);
  const is_low = figure.goal === "higher" && value.value < 0.8 * most;
  return is_low ? el("strong", { class: "fleet-low", title: "more than a fifth below the fastest pair" }, measured(value.value, figure.unit)) : measured(value.value, figure.unit);
}

/** Facts of the node and of its devices; those that all devices share once. */
function facts(item: FleetNode): HTMLElement {
  const names = [...new Set(item.devices.flatMap((device) => device.facts.map(([key]) => key)))];
  const of = (device: ProbedDevice, key: string): string => device.facts.find(([own]) => own === key)?.[1] ?? kNone;
  const shared: [string, string][] = [...item.place, ...item.facts];
  const rows: Row[] = [
    { cells: ["serial", ...item.devices.map((device) => (device.serial === null ? kNone : name(device.serial, 40)))] },
    { cells: ["bus", ...item.devices.map((device) => (device.bus === null ? kNone : name(device.bus, 40)))] },
  ];
  for (const key of names) {
    const values = item.devices.map((device) => of(device, key));
    if (new Set(values).size === 1) shared.push([key, values[0]!]);
    else rows.push({ cells: [name(key, 40), ...values.map((value) => name(value, 40))] });
  }
  return el(
    "div",
    {},
    shared.length > 0 && el("dl", { class: "facts" }, ...shared.map(([key, value]) => el("div", {}, el("dt", {}, name(key, 60)), el("dd", {}, name(value, 120))))),
    table("What differs among the devices", [{ heading: "", is_text: true }, ...item.devices.map((device) => ({ heading: name(device.name, 24), is_text: true }))], rows),
  );
}

function ranges(item: FleetNode): HTMLElement {
  const rows = item.figures.flatMap((figure) =>
    figure.values.map((one, i): Row => {
      const device = item.devices[one.device]?.name ?? "?";
      return {
        group: i === 0 ? el("span", {}, name(figure.words, 60)) : undefined,
        cells: [one.to === null ? name(device, 40) : el("span", {}, name(device, 40), " to ", name(one.to, 40)), measured(one.value, figure.unit), interval(one.range, (value) => measured(value, figure.unit)), one.reason === null ? "" : prose(one.reason, 200)],
      };
    }),
  );
  return table("What a repetition may show", [{ heading: "device", is_text: true }, { heading: "value" }, { heading: "range" }, { heading: "why there is none", is_text: true }], rows);
}
