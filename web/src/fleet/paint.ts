// Draws the map: a cell for each device in the colour of its effect, a mark where a finding names it, names around it.
// Colours are the theme's; what has no value is an empty frame.
import { cut } from "../text";
import { token } from "../theme";
import { corner, kBandHead, label_step, type Layout } from "./layout";
import type { FigureView, FleetModel } from "./model";

type Rgb = readonly [number, number, number];

const kSteps = 24; // colours from the middle to an end

function rgb_of(colour: string): Rgb {
  const hex = /^#([0-9a-f]{6})$/i.exec(colour)?.[1] ?? "808080";
  return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)) as unknown as Rgb;
}

function mix(a: Rgb, b: Rgb, share: number): string {
  return `rgb(${a.map((part, i) => Math.round(part + (b[i]! - part) * share)).join(" ")})`;
}

/** Colours from better to worse, or from below to above where neither is better: the ends are colours of series, which stay
 *  apart for colour-blind eyes. What is usual is pale, so that what is not is seen. */
export function ramp(view: FigureView): string[] {
  const ends = view.figure.goal === "none" ? ["series-3", "series-4"] : ["series-1", "series-2"];
  const [low, middle, high] = [ends[0]!, "band", ends[1]!].map((name) => rgb_of(token(name))) as [Rgb, Rgb, Rgb];
  return Array.from({ length: 2 * kSteps + 1 }, (_, i) => mix(middle, i < kSteps ? low : high, (Math.abs(i - kSteps) / kSteps) ** 1.7));
}

/** The place in the ramp of an effect. */
export function ramp_step(view: Pick<FigureView, "reach" | "sign">, effect: number): number {
  const share = Math.min(Math.max((effect * view.sign) / view.reach, -1), 1);
  return kSteps + Math.round(share * kSteps);
}

export interface Picture {
  model: FleetModel;
  view: FigureView;
  map: Layout;
  nodes: readonly number[]; // in the order of the map
  places: readonly number[]; // of each node
}

export function paint(canvas: HTMLCanvasElement, { model, view, map, nodes, places }: Picture): void {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(map.width * ratio);
  canvas.height = Math.round(map.height * ratio);
  canvas.style.width = `${map.width}px`;
  canvas.style.height = `${map.height}px`;
  const draw = canvas.getContext("2d");
  if (!draw) return;
  draw.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw.clearRect(0, 0, map.width, map.height);
  const { rows } = model.fleet;
  const colours = ramp(view);
  const side = map.cell - (map.cell >= 5 ? 1 : 0.5);
  const at = (row: number): [number, number] => corner(map, places[rows.nodes[row]!] ?? 0, rows.devices[row]!);
  draw.strokeStyle = token("line-strong");
  for (let row = 0; row < model.size; ++row) {
    const [x, y] = at(row);
    const effect = view.effects[row]!;
    if (Number.isNaN(effect)) {
      draw.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
      continue;
    }
    draw.fillStyle = colours[ramp_step(view, effect)]!;
    draw.fillRect(x, y, side, side);
  }
  for (const row of model.named_rows) {
    const effect = view.effects[row]!;
    const colour = Number.isNaN(effect) ? token("surface") : colours[ramp_step(view, effect)]!;
    mark(draw, at(row), side, colour, model.named.get(row)!.map((finding) => [finding.kind, finding.figure === view.figure.name] as const));
  }
  names(draw, model, map, nodes);
}

// A frame: the shown figure is why it is named. A dot: another one is. A cross: it computes something wrong. All are as large
// as can be seen, however small cells are, and stand out from them by a line of the ground's colour.
function mark(draw: CanvasRenderingContext2D, [x, y]: [number, number], side: number, colour: string, findings: readonly (readonly [string, boolean])[]): void {
  const is_wrong = findings.some(([kind]) => kind === "wrong");
  const is_shown = findings.some(([, shown]) => shown);
  const [middle_x, middle_y] = [x + side / 2, y + side / 2];
  const stroke = (colour: string, width: number, trace: () => void): void => {
    draw.strokeStyle = token(colour);
    draw.lineWidth = width;
    draw.beginPath();
    trace();
    draw.stroke();
  };
  const lined = (width: number, trace: () => void): void => {
    stroke("surface", width + 2.4, trace);
    stroke("text", width, trace);
  };
  const filled = (fill: string, around: number): void => {
    draw.fillStyle = fill;
    draw.fillRect(x - around, y - around, side + 2 * around, side + 2 * around);
  };
  if (is_shown) {
    filled(token("surface"), 3.2);
    filled(token("text"), 2);
    filled(colour, 0);
  }
  if (is_wrong) {
    const arm = Math.max(3.4, side * 0.28);
    lined(Math.max(1.8, side / 10), () => {
      draw.moveTo(middle_x - arm, middle_y - arm);
      draw.lineTo(middle_x + arm, middle_y + arm);
      draw.moveTo(middle_x + arm, middle_y - arm);
      draw.lineTo(middle_x - arm, middle_y + arm);
    });
  } else if (!is_shown) {
    lined(Math.max(2.4, side / 7), () => draw.arc(middle_x, middle_y, Math.max(1.2, side / 14), 0, 2 * Math.PI));
  }
}

function names(draw: CanvasRenderingContext2D, model: FleetModel, map: Layout, nodes: readonly number[]): void {
  const { node_names, device_names } = model.fleet;
  const letters = Math.min(18, Math.max(1, ...node_names.slice(0, 5000).map((name) => name.length)));
  const step = label_step(map.cell, letters);
  draw.font = `11px ${token("font-sans")}`;
  draw.fillStyle = token("text-quiet");
  draw.strokeStyle = token("line-strong");
  draw.lineWidth = 1;
  draw.textBaseline = "alphabetic";
  draw.textAlign = "left";
  for (let place = 0; place < nodes.length; ++place) {
    const column = place % map.across;
    // A name that would leave the picture gives way, unless it is the only one of its band.
    if (column % step !== 0 || (column > 0 && (map.across - column) * map.cell < letters * 6.4)) continue;
    const [x, y] = corner(map, place, 0);
    draw.fillText(cut(node_names[nodes[place]!] ?? "?", 18), x, y - 6);
    if (step > 1) draw.fillRect(x, y - 4, 1, 3);
  }
  draw.textAlign = "right";
  draw.textBaseline = "middle";
  for (let band = 0; band < map.bands; ++band) {
    for (let device = 0; device < map.devices; ++device) {
      if (map.cell < 11 && device !== 0 && device !== map.devices - 1) continue;
      draw.fillText(cut(device_names[device] ?? "?", 10), map.left - 7, band * map.stride + kBandHead + (device + 0.5) * map.cell);
    }
  }
}
