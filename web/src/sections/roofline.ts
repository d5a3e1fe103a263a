// The roofline: what each kernel reaches over the flop it does per byte, below the roofs of its backend and precision.
// Both axes logarithmic. Points carry the kernel's name, or, where they are many, a number that
// the list below the picture names.

import type { BenchCase, Roofline } from "../document";
import { el, svg } from "../dom";
import { giga, kNone, percent, quantity } from "../format";
import { place, ticks, value_at } from "../scales";
import { cut, name } from "../text";

const kWidth = 860;
const kHeight = 440;
const kLeft = 76;
const kRight = 24;
const kTop = 26;
const kBottom = 46;
const kMostPoints = 400;
const kMostNames = 24; // points that are labelled with names rather than numbers

export interface RoofPoint {
  case: BenchCase;
  group: number; // index into groups
  number: number; // its label, the same for one kernel everywhere
}

/** "cuda fp16": what has a roof of its own. */
export function group_name(one: { backend: string; precision: string }): string {
  return `${one.backend} ${one.precision}`;
}

export function points_of(cases: readonly BenchCase[]): { points: RoofPoint[]; groups: string[]; kernels: string[] } {
  const groups = new Map<string, number>();
  const kernels = new Map<string, number>();
  const points: RoofPoint[] = [];
  const number_in = (map: Map<string, number>, key: string): number => {
    if (!map.has(key)) map.set(key, map.size);
    return map.get(key)!;
  };
  for (const one of cases) {
    if (!(one.flop_per_s !== null && one.flop_per_s > 0 && one.intensity !== null && one.intensity > 0)) continue;
    if (points.length === kMostPoints) continue;
    points.push({ case: one, group: number_in(groups, group_name(one)), number: number_in(kernels, one.kernel) + 1 });
  }
  return { points, groups: [...groups.keys()], kernels: [...kernels.keys()] };
}

/** The roof at an intensity, in flop/s; null where neither side of it is known. */
export function roof_at(roof: Roofline, intensity: number): number | null {
  const slope = roof.bytes_per_s !== null && roof.bytes_per_s > 0 ? roof.bytes_per_s * intensity : Infinity;
  const flat = roof.flop_per_s !== null && roof.flop_per_s > 0 ? roof.flop_per_s : Infinity;
  const least = Math.min(slope, flat);
  return Number.isFinite(least) ? least : null;
}

export function roofline(cases: readonly BenchCase[], roofs: readonly Roofline[]): HTMLElement | null {
  const { points, groups, kernels } = points_of(cases);
  if (points.length === 0) return null;
  const known = roofs.filter((roof) => roof_at(roof, 1) !== null && groups.includes(group_name(roof)));
  const xs = points.map((point) => Math.log10(point.case.intensity!));
  for (const roof of known) if (roof.bytes_per_s && roof.flop_per_s) xs.push(Math.log10(roof.flop_per_s / roof.bytes_per_s));
  const [x_low, x_high] = [Math.min(...xs) - 0.5, Math.max(...xs) + 0.7];
  const ys = points.map((point) => Math.log10(point.case.flop_per_s!));
  for (const roof of known) for (const x of [x_low, x_high]) ys.push(Math.log10(roof_at(roof, 10 ** x)!));
  // Points need room, not the far end of a slope: it may leave the picture.
  const y_low = Math.min(...points.map((point) => Math.log10(point.case.flop_per_s!))) - 0.4;
  const y_high = Math.max(...ys) + 0.25;
  const x_of = (at: number): number => kLeft + ((at - x_low) / (x_high - x_low)) * (kWidth - kLeft - kRight);
  const y_of = (at: number): number => kHeight - kBottom - ((at - y_low) / (y_high - y_low)) * (kHeight - kTop - kBottom);

  const picture = svg("svg", { class: "roofline", viewBox: `0 0 ${kWidth} ${kHeight}`, role: "img", "aria-label": `Roofline: ${points.length} results below ${known.length} roofs. The leaderboard has the numbers.` });
  for (const at of ticks("log", y_low, y_high, 7)) {
    picture.append(svg("line", { x1: kLeft, x2: kWidth - kRight, y1: y_of(at), y2: y_of(at), class: "roofline-grid" }), svg("text", { x: kLeft - 8, y: y_of(at), class: "roofline-tick", "text-anchor": "end", "dominant-baseline": "central" }, quantity(giga(round(value_at("log", at))))));
  }
  for (const at of ticks("log", x_low, x_high, 9)) {
    picture.append(svg("line", { x1: x_of(at), x2: x_of(at), y1: kTop, y2: kHeight - kBottom, class: "roofline-grid" }), svg("text", { x: x_of(at), y: kHeight - kBottom + 18, class: "roofline-tick", "text-anchor": "middle" }, tick_text(round(value_at("log", at)))));
  }
  picture.append(
    svg("text", { x: 8, y: 14, class: "roofline-axis" }, "GFLOP/s"),
    svg("text", { x: kWidth - kRight, y: kHeight - 8, class: "roofline-axis", "text-anchor": "end" }, "flop per byte"),
  );
  const frame = svg("clipPath", { id: `roofline-clip-${++clips}` }, svg("rect", { x: kLeft, y: kTop, width: kWidth - kLeft - kRight, height: kHeight - kTop - kBottom }));
  picture.append(frame);

  known.forEach((roof) => {
    const group = groups.indexOf(group_name(roof));
    const turn = roof.bytes_per_s && roof.flop_per_s ? Math.log10(roof.flop_per_s / roof.bytes_per_s) : x_high;
    const stops = [x_low, ...(turn > x_low && turn < x_high ? [turn] : []), x_high];
    const d = stops.map((x, i) => `${i === 0 ? "M" : "L"}${x_of(x).toFixed(1)} ${y_of(Math.log10(roof_at(roof, 10 ** x)!)).toFixed(1)}`).join("");
    picture.append(
      svg("path", { d, class: "roofline-roof", style: `stroke: ${colour(group)}`, "stroke-dasharray": dash(group), "clip-path": `url(#${frame.id})` }, svg("title", {}, `${group_name(roof)}: ${quantity(giga(roof.flop_per_s))} GFLOP/s, ${quantity(giga(roof.bytes_per_s))} GB/s`)),
      svg("text", { x: kWidth - kRight - 4, y: y_of(Math.log10(roof_at(roof, 10 ** x_high)!)) - 6, class: "roofline-name", "text-anchor": "end" }, cut(group_name(roof), 40)),
    );
  });
  const has_names = points.length <= kMostNames;
  const taken: Box[] = points.map((point) => box(x_of(place("log", point.case.intensity)!) - 6, y_of(place("log", point.case.flop_per_s)!), 12));
  for (const point of points) {
    const x = x_of(place("log", point.case.intensity)!);
    const y = y_of(place("log", point.case.flop_per_s)!);
    const title = `${cut(point.case.kernel, 80)}, ${cut(group_name(point.case), 60)}: ${quantity(giga(point.case.flop_per_s))} GFLOP/s at ${tick_text(point.case.intensity!)} flop per byte, ${point.case.share_of_roof === null ? "share of the roof not known" : `${percent(point.case.share_of_roof)} of the roof`}`;
    const label = has_names ? cut(point.case.kernel, 22) : String(point.number);
    const at = free_place(x, y, label.length * 6.4 + 4, taken);
    picture.append(svg("g", { class: "roofline-point" }, svg("title", {}, title), shape(point.group, x, y), svg("text", { x: at.x, y: at.y + 4, class: "roofline-number" }, label)));
  }
  const unknown = roofs.filter((roof) => roof_at(roof, 1) === null);
  return el(
    "figure",
    { class: "roofline-figure" },
    el("div", { class: "roofline-frame", tabindex: 0, role: "region", "aria-label": "Roofline" }, picture),
    el(
      "figcaption",
      {},
      el("ul", { class: "roofline-key" }, ...groups.map((group, g) => el("li", {}, svg("svg", { width: 40, height: 14, viewBox: "0 0 40 14", "aria-hidden": "true" }, svg("line", { x1: 0, x2: 40, y1: 7, y2: 7, class: "roofline-roof", style: `stroke: ${colour(g)}`, "stroke-dasharray": dash(g) }), shape(g, 20, 7)), name(group, 48)))),
      !has_names && el("ol", { class: "roofline-kernels" }, ...kernels.slice(0, 60).map((kernel) => el("li", {}, name(kernel, 48)))),
      !has_names && kernels.length > 60 && el("p", { class: "hint" }, `and ${kernels.length - 60} more: a point's text names it.`),
      points.length === kMostPoints && el("p", { class: "hint" }, `At most ${kMostPoints} results are drawn; the leaderboard has all.`),
      ...unknown.slice(0, 12).map((roof) => el("p", { class: "hint" }, "No roof for ", name(group_name(roof), 60), ": ", name(roof.reason ?? "the file does not say why", 300))),
    ),
  );
}

let clips = 0;

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

function box(left: number, y: number, width: number): Box {
  return { left, right: left + width, top: y - 7, bottom: y + 7 };
}

// Right of the point, or else where nothing stands yet; right again where everything is full.
function free_place(x: number, y: number, width: number, taken: Box[]): { x: number; y: number } {
  const tries = [[10, 0], [-10 - width, 0], [8, 14], [8, -14], [-8 - width, 14], [-8 - width, -14]] as const;
  for (const [dx, dy] of tries) {
    const one = box(x + dx, y + dy, width);
    if (one.left < kLeft || one.right > kWidth || taken.some((other) => one.left < other.right && one.right > other.left && one.top < other.bottom && one.bottom > other.top)) continue;
    taken.push(one);
    return { x: x + dx, y: y + dy };
  }
  return { x: x + 10, y };
}

function colour(group: number): string {
  return `var(--series-${(group % 8) + 1})`;
}

function dash(group: number): string | null {
  return [null, "8 4", "3 3", "10 3 2 3", "5 2"][group % 5] ?? null;
}

// Circle, square, triangle, diamond by turns: groups differ in shape as well.
function shape(group: number, x: number, y: number): SVGElement {
  const style = `fill: ${colour(group)}`;
  switch (group % 4) {
    case 0:
      return svg("circle", { cx: x, cy: y, r: 5.5, style });
    case 1:
      return svg("rect", { x: x - 5, y: y - 5, width: 10, height: 10, style });
    case 2:
      return svg("path", { d: `M${x} ${y - 6.5}l6 11h-12z`, style });
    default:
      return svg("path", { d: `M${x} ${y - 7}l7 7l-7 7l-7 -7z`, style });
  }
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}

function tick_text(value: number): string {
  if (!Number.isFinite(value)) return kNone;
  return value >= 0.01 && value < 10_000 ? String(round(value)) : value.toExponential(0);
}
