// What a chart draws on the canvas besides its lines: markers, intervals, failed points, best and knee. Colours come from
// the theme at the moment of drawing.
import type uPlot from "uplot";
import type { ChartOptions, Mark, Marker, Point, Series } from "./chart_types";
import { place } from "./scales";
import { cut } from "./text";
import { token } from "./theme";

export function series_colour(index: number): string {
  return token(`series-${(index % 8) + 1}`);
}

function trace_marker(draw: CanvasRenderingContext2D, marker: Marker, x: number, y: number, size: number): void {
  draw.beginPath();
  switch (marker) {
    case "circle":
      draw.arc(x, y, size, 0, 2 * Math.PI);
      break;
    case "square":
      draw.rect(x - size * 0.9, y - size * 0.9, size * 1.8, size * 1.8);
      break;
    case "triangle":
      polygon(draw, [[x, y - size * 1.2], [x + size * 1.15, y + size * 0.9], [x - size * 1.15, y + size * 0.9]]);
      break;
    case "drop":
      polygon(draw, [[x, y + size * 1.2], [x + size * 1.15, y - size * 0.9], [x - size * 1.15, y - size * 0.9]]);
      break;
    case "diamond":
      polygon(draw, [[x, y - size * 1.3], [x + size * 1.3, y], [x, y + size * 1.3], [x - size * 1.3, y]]);
      break;
    case "cross": {
      const a = size * 0.45;
      const b = size * 1.15;
      polygon(draw, [[x - a, y - b], [x + a, y - b], [x + a, y - a], [x + b, y - a], [x + b, y + a], [x + a, y + a], [x + a, y + b], [x - a, y + b], [x - a, y + a], [x - b, y + a], [x - b, y - a], [x - a, y - a]]);
      break;
    }
  }
}

function polygon(draw: CanvasRenderingContext2D, corners: readonly (readonly [number, number])[]): void {
  corners.forEach(([x, y], i) => (i === 0 ? draw.moveTo(x, y) : draw.lineTo(x, y)));
  draw.closePath();
}

export function draw_below(plot: uPlot, options: ChartOptions, is_shown: (index: number) => boolean): void {
  const taken: Box[] = [];
  clipped(plot, (draw, ratio) => {
    options.series.forEach((series, i) => {
      if (!is_shown(i)) return;
      draw.globalAlpha = 1;
      if (series.has_band) draw_band(plot, options, series, draw);
      draw_whiskers(plot, options, series, draw, ratio);
    });
    for (const mark of options.marks ?? []) {
      if (mark.kind === "line" || mark.kind === "flat") draw_line(plot, options, mark, draw, ratio, is_shown, taken);
    }
  });
}

export function draw_above(plot: uPlot, options: ChartOptions, is_shown: (index: number) => boolean): void {
  clipped(plot, (draw, ratio) => {
    const taken: Box[] = [];
    const failed_at = new Map<number, number>(); // how many crosses stand on this x already
    options.series.forEach((series, i) => {
      if (!is_shown(i)) return;
      draw.globalAlpha = 1;
      for (const point of series.points) {
        if (point.failure) draw_failure(plot, options, series, point, draw, ratio, failed_at, taken);
        else if (series.marker) draw_marker(plot, options, series, point, draw, ratio);
      }
    });
    for (const mark of options.marks ?? []) {
      if (mark.kind === "ring" || mark.kind === "diamond") draw_point_mark(plot, options, mark, draw, ratio, is_shown, taken);
    }
  });
}

function clipped(plot: uPlot, body: (draw: CanvasRenderingContext2D, ratio: number) => void): void {
  const draw = plot.ctx;
  const ratio = plot.width > 0 ? plot.ctx.canvas.width / plot.width : 1;
  const { left, top, width, height } = plot.bbox;
  const air = 8 * ratio; // markers on the edge stay whole
  draw.save();
  draw.beginPath();
  draw.rect(left - air, top - air, width + 2 * air, height + 2 * air);
  draw.clip();
  body(draw, ratio);
  draw.restore();
}

function pixel(plot: uPlot, options: ChartOptions, axis: "x" | "y", value: number | null | undefined): number | null {
  const at = place(options[axis].kind, value);
  return at === null ? null : plot.valToPos(at, axis, true);
}

function draw_band(plot: uPlot, options: ChartOptions, series: Series, draw: CanvasRenderingContext2D): void {
  const upper: [number, number][] = [];
  const lower: [number, number][] = [];
  const flush = (): void => {
    if (upper.length > 1) {
      draw.beginPath();
      polygon(draw, [...upper, ...lower.reverse()]);
      draw.globalAlpha = 0.14;
      draw.fillStyle = series_colour(series.colour);
      draw.fill();
      draw.globalAlpha = 1;
    }
    upper.length = 0;
    lower.length = 0;
  };
  for (const point of series.points) {
    const x = pixel(plot, options, "x", point.x);
    const high = pixel(plot, options, "y", point.high);
    const low = pixel(plot, options, "y", point.low);
    if (x === null || high === null || low === null) {
      flush();
      continue;
    }
    upper.push([x, high]);
    lower.push([x, low]);
  }
  flush();
}

function draw_whiskers(plot: uPlot, options: ChartOptions, series: Series, draw: CanvasRenderingContext2D, ratio: number): void {
  draw.strokeStyle = series_colour(series.colour);
  draw.lineWidth = 1.4 * ratio;
  draw.setLineDash([]);
  draw.globalAlpha = 0.75;
  const half = 3.5 * ratio;
  for (const point of series.points) {
    const x = pixel(plot, options, "x", point.x);
    const high = pixel(plot, options, "y", point.high);
    const low = pixel(plot, options, "y", point.low);
    if (x === null || high === null || low === null) continue;
    draw.beginPath();
    draw.moveTo(x, low);
    draw.lineTo(x, high);
    for (const y of [low, high]) {
      draw.moveTo(x - half, y);
      draw.lineTo(x + half, y);
    }
    draw.stroke();
  }
  draw.globalAlpha = 1;
}

function draw_marker(plot: uPlot, options: ChartOptions, series: Series, point: Point, draw: CanvasRenderingContext2D, ratio: number): void {
  const x = pixel(plot, options, "x", point.x);
  const y = pixel(plot, options, "y", point.y);
  if (x === null || y === null || !series.marker) return;
  trace_marker(draw, series.marker, x, y, 4.2 * ratio);
  const colour = series_colour(series.colour);
  draw.setLineDash([]);
  draw.fillStyle = series.is_hollow ? token("surface") : colour;
  draw.strokeStyle = series.is_hollow ? colour : token("surface");
  draw.lineWidth = 1.5 * ratio;
  draw.fill();
  draw.stroke();
}

// A point that failed has no height: it stands on the axis as a cross.
function draw_failure(plot: uPlot, options: ChartOptions, series: Series, point: Point, draw: CanvasRenderingContext2D, ratio: number, failed_at: Map<number, number>, taken: Box[]): void {
  const x = pixel(plot, options, "x", point.x);
  if (x === null) return;
  const level = failed_at.get(point.x) ?? 0;
  failed_at.set(point.x, level + 1);
  const y = plot.bbox.top + plot.bbox.height - (10 + 14 * level) * ratio;
  const size = 4.5 * ratio;
  draw.setLineDash([]);
  for (const [colour, width] of [[token("surface"), 5], [token("bad"), 2.2]] as const) {
    draw.strokeStyle = colour;
    draw.lineWidth = width * ratio;
    draw.lineCap = "round";
    draw.beginPath();
    draw.moveTo(x - size, y - size);
    draw.lineTo(x + size, y + size);
    draw.moveTo(x + size, y - size);
    draw.lineTo(x - size, y + size);
    draw.stroke();
  }
  draw.lineCap = "butt";
  const is_right = x > plot.bbox.left + plot.bbox.width * 0.6;
  draw_label(draw, `${cut(series.name, 24)} failed`, [[x + (is_right ? -11 : 11) * ratio, y]], is_right ? "right" : "left", ratio, token("bad"), taken);
}

function mark_colour(mark: Mark): string {
  return typeof mark.colour === "number" ? series_colour(mark.colour) : token(mark.colour === "quiet" ? "text-quiet" : mark.colour);
}

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** Writes the text at the first of the places where it covers no other label; nowhere if there is none. */
function draw_label(draw: CanvasRenderingContext2D, text: string, places: readonly (readonly [number, number])[], align: "left" | "right" | "center", ratio: number, colour: string, taken: Box[]): void {
  if (text === "") return;
  draw.font = `600 ${11 * ratio}px ${token("font-sans")}`;
  const width = draw.measureText(text).width;
  for (const [x, y] of places) {
    const left = align === "left" ? x : align === "right" ? x - width : x - width / 2;
    const box = { left, right: left + width, top: y - 7 * ratio, bottom: y + 7 * ratio };
    if (taken.some((other) => box.left < other.right && box.right > other.left && box.top < other.bottom && box.bottom > other.top)) continue;
    taken.push(box);
    draw.textAlign = "left";
    draw.textBaseline = "middle";
    draw.lineJoin = "round";
    draw.lineWidth = 4 * ratio;
    draw.strokeStyle = token("surface");
    draw.fillStyle = colour;
    draw.setLineDash([]);
    draw.strokeText(text, left, y);
    draw.fillText(text, left, y);
    return;
  }
}

function draw_line(plot: uPlot, options: ChartOptions, mark: Mark, draw: CanvasRenderingContext2D, ratio: number, is_shown: (index: number) => boolean, taken: Box[]): void {
  if (mark.with !== undefined && !is_shown(mark.with)) return;
  const { left, top, width, height } = plot.bbox;
  draw.strokeStyle = mark_colour(mark);
  draw.globalAlpha = 0.9;
  draw.lineWidth = 1.3 * ratio;
  draw.setLineDash([2 * ratio, 3 * ratio]);
  draw.beginPath();
  if (mark.kind === "flat") {
    const y = pixel(plot, options, "y", mark.y);
    if (y === null) return;
    draw.moveTo(left, y);
    draw.lineTo(left + width, y);
    draw.stroke();
    draw_label(draw, mark.label, [[left + 6 * ratio, y - 9 * ratio], [left + 6 * ratio, y + 9 * ratio]], "left", ratio, mark_colour(mark), taken);
  } else {
    const x = pixel(plot, options, "x", mark.x);
    if (x === null) return;
    draw.moveTo(x, top);
    draw.lineTo(x, top + height);
    draw.stroke();
    const is_right = x > left + width * 0.85;
    const label_x = x + (is_right ? -5 : 5) * ratio;
    draw_label(draw, mark.label, [0, 1, 2, 3].map((row) => [label_x, top + (8 + row * 15) * ratio] as const), is_right ? "right" : "left", ratio, mark_colour(mark), taken);
  }
  draw.globalAlpha = 1;
}

function draw_point_mark(plot: uPlot, options: ChartOptions, mark: Mark, draw: CanvasRenderingContext2D, ratio: number, is_shown: (index: number) => boolean, taken: Box[]): void {
  if (mark.with !== undefined && !is_shown(mark.with)) return;
  const x = pixel(plot, options, "x", mark.x);
  const y = pixel(plot, options, "y", mark.y);
  if (x === null || y === null) return;
  trace_marker(draw, mark.kind === "ring" ? "circle" : "diamond", x, y, (mark.kind === "ring" ? 9 : 8) * ratio);
  draw.strokeStyle = mark_colour(mark);
  draw.lineWidth = 1.8 * ratio;
  draw.setLineDash([]);
  draw.stroke();
  const is_right = x > plot.bbox.left + plot.bbox.width * 0.9;
  const label_x = is_right ? x + 8 * ratio : x;
  const above = [label_x, y - 18 * ratio] as const;
  const below = [label_x, y + 18 * ratio] as const;
  draw_label(draw, mark.label, above[1] < plot.bbox.top ? [below] : [above, below], is_right ? "right" : "center", ratio, mark_colour(mark), taken);
}
