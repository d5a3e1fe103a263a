// How the devices of a fleet are distributed, figure by figure: a small histogram around the median of the same model and
// settings, with the devices that findings name marked and labelled.
import { el, svg } from "../dom";
import { beside, count, measured, percent, plural } from "../format";
import { cut, name } from "../text";
import { histogram, type FigureView, type FleetModel } from "./model";

const kWidth = 340;
const kHeight = 114;
const kFloor = 94; // where bars stand
const kTop = 44; // of the highest bar; names of outliers are above
const kBins = 61; // odd: the middle one is the median's
const kNameRows = 3;

export function histograms(model: FleetModel, show: (figure: number) => void): HTMLElement {
  const judged = model.fleet.figures.flatMap((figure, i) => (figure.goal === "none" ? [] : [i]));
  // What has outliers comes first.
  const is_named = (index: number): boolean => outliers(model, model.view(index)).length > 0;
  const order = [...judged.filter(is_named), ...judged.filter((index) => !is_named(index))];
  return el("div", { class: "fleet-histograms" }, ...order.map((index) => one(model, index, show)));
}

interface Named {
  row: number;
  effect: number;
}

/** The rows that findings name for this figure, the worst effect first. */
export function outliers(model: FleetModel, view: FigureView): Named[] {
  const rows = model.named_rows.filter((row) => model.named.get(row)!.some((finding) => finding.figure === view.figure.name));
  return rows.map((row) => ({ row, effect: view.effects[row]! })).filter(({ effect }) => !Number.isNaN(effect)).sort((a, b) => (b.effect - a.effect) * view.sign);
}

function one(model: FleetModel, index: number, show: (figure: number) => void): HTMLElement {
  const view = model.view(index);
  const { figure, typical, effects } = view;
  const named = outliers(model, view);
  // What is named is inside, up to five times of what most devices show.
  const furthest = Math.max(view.reach, ...named.map(({ effect }) => Math.min(Math.abs(effect) * 1.08, 5 * view.reach)));
  const bins = histogram(effects, furthest, kBins);
  const present = bins.reduce((sum, bin) => sum + bin, 0);
  const spreads = model.fleet.groups.flatMap((group) => group.figures.filter((each) => each.name === figure.name && each.spread !== null).map((each) => each.spread!));
  const middles = typical.filter((value) => value !== null);
  const words = [
    middles.length === 1 ? `median ${measured(middles[0], figure.unit)}` : plural(model.fleet.groups.length, "group"),
    ...(spreads.length > 0 ? [`spread ${percent(Math.max(...spreads))}`] : []),
    ...(present < model.size ? [`${count(model.size - present)} missing`] : []),
    ...(named.length > 0 ? [`${count(named.length)} named`] : []),
  ];
  const button = el("button", { type: "button", class: "fleet-figure", title: "Show it on the map" }, name(figure.words, 40));
  button.addEventListener("click", () => show(index));
  return el("div", { class: "fleet-histogram" }, el("h4", {}, button), el("p", { class: "hint" }, words.join(" · ")), picture(model, view, bins, furthest, named, words));
}

function picture(model: FleetModel, view: FigureView, bins: readonly number[], furthest: number, named: readonly Named[], words: readonly string[]): SVGElement {
  const x = (effect: number): number => ((Math.min(Math.max(effect, -furthest), furthest) + furthest) / (2 * furthest)) * (kWidth - 8) + 4;
  const most = Math.max(...bins, 1);
  const wide = (kWidth - 8) / kBins;
  const first = named.slice(0, 3).map(({ row, effect }) => `${cut(model.name_of(row), 60)} ${beside(effect)}`);
  const top = named.length > 0 ? 0 : kTop - 6; // names need room
  const drawn = svg("svg", { class: "fleet-svg", viewBox: `0 ${top} ${kWidth} ${kHeight - top}`, role: "img", "aria-label": `${cut(view.figure.words, 60)}: ${words.join(", ")}${first.length > 0 ? `: ${first.join("; ")}` : ""}.` });
  // Square roots: a single device is still seen beside thousands.
  const bars = bins.map((bin, i) => (bin === 0 ? "" : bar_path(4 + i * wide, Math.max(1.5, Math.sqrt(bin / most) * (kFloor - kTop)), wide)));
  drawn.append(svg("path", { d: bars.join(""), class: "fleet-bar" }), svg("line", { x1: x(0), x2: x(0), y1: kTop - 4, y2: kFloor + 4, class: "fleet-median" }), svg("line", { x1: 4, x2: kWidth - 4, y1: kFloor, y2: kFloor, class: "fleet-axis" }));
  for (const share of [-1, -0.5, 0, 0.5, 1]) {
    const at = share * furthest;
    const text = share === 0 ? "median" : `${share > 0 ? "+" : "−"}${Number((100 * Math.abs(at)).toPrecision(2))} %`;
    drawn.append(svg("text", { x: x(at), y: kFloor + 15, class: "fleet-tick", "text-anchor": share === -1 ? "start" : share === 1 ? "end" : "middle" }, text));
  }
  draw_named(drawn, model, named, x);
  return drawn;
}

function bar_path(left: number, tall: number, wide: number): string {
  return `M${left.toFixed(1)} ${kFloor}v${(-tall).toFixed(1)}h${(wide - 0.8).toFixed(1)}v${tall.toFixed(1)}z`;
}

// Marks stand on the bars' ground, their names in rows above as far as there is room.
function draw_named(drawn: SVGElement, model: FleetModel, named: readonly Named[], x: (effect: number) => number): void {
  const ends = new Array<number>(kNameRows).fill(-Infinity);
  let without = 0;
  const placed = named.map((each) => ({ ...each, at: x(each.effect) }));
  for (const { row, effect, at } of [...placed].sort((a, b) => a.at - b.at)) {
    drawn.append(svg("path", { d: `M${at.toFixed(1)} ${kFloor - 7}l4 -7h-8z`, class: "fleet-outlier" }, svg("title", {}, `${cut(model.name_of(row), 80)}: ${beside(effect)}`)));
    const text = cut(model.name_of(row), 22);
    const wide = text.length * 5.6 + 8;
    const left = Math.min(Math.max(at - 6, 2), kWidth - wide);
    const line = ends.findIndex((end) => end <= left);
    if (line < 0) {
      ++without;
      continue;
    }
    ends[line] = left + wide;
    const y = 10 + line * 12;
    drawn.append(svg("line", { x1: at, x2: at, y1: y + 3, y2: kFloor - 15, class: "fleet-leader" }), svg("text", { x: left, y, class: "fleet-name" }, text));
  }
  if (without > 0) drawn.append(svg("text", { x: kWidth - 2, y: kFloor - 20, class: "fleet-tick", "text-anchor": "end" }, `and ${count(without)} more`));
}
