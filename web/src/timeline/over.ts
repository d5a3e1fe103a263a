// What lies over the spans: the one below the pointer, the chosen one, the measured range. On a canvas of its own and
// cheap, so that hovering does not draw the spans again. Also answers which span is at a place.

import type { Model, SpanRef } from "./model";
import { kAxisHeight, kLanePad, kLaneRow, kThinRow, type Band } from "./paint";
import type { Palette } from "./palette";
import { first_not_below } from "./rows";
import type { View } from "./view";

/** Where everything lies at this moment, in CSS pixels. */
export interface Scene {
  bands: readonly Band[];
  scroll: number;
  view: View;
  width: number;
  height: number;
}

export interface Hit {
  ref: SpanRef;
  others: number; // spans that share its pixel
}

const kReach = 2; // pixels: single ones are hard to meet

/** The span at a place of the picture. */
export function hit(model: Model, scene: Scene, x: number, y: number): Hit | null {
  const depth = y - kAxisHeight + scene.scroll;
  const band = y < kAxisHeight ? undefined : scene.bands.find((one) => depth >= one.top && depth < one.top + one.height);
  if (!band || band.lane === null) return null;
  const { content } = model.lanes[band.lane]!;
  if (!content) return null;
  const tall = content.rows.length > 1 ? kThinRow : kLaneRow;
  const row = content.rows[Math.max(0, Math.min(content.rows.length - 1, Math.floor((depth - band.top - kLanePad) / tall)))];
  if (!row) return null;
  const reach = (kReach / scene.width) * scene.view.span;
  const at = scene.view.start + (x / scene.width) * scene.view.span;
  const first = first_not_below(row.ends, at - reach, 0, row.count);
  const last = first_not_below(row.starts, at + reach, first, row.count);
  if (last <= first) return null;
  // The one below the pointer, or else the longest of those near it.
  let best = first;
  for (let i = first; i < Math.min(last, first + 256); ++i) {
    if (row.starts[i]! <= at && row.ends[i]! >= at && row.ends[i]! - row.starts[i]! > reach / 2) {
      best = i;
      break;
    }
    if (row.ends[i]! - row.starts[i]! > row.ends[best]! - row.starts[best]!) best = i;
  }
  const is_wide = row.ends[best]! - row.starts[best]! > 4 * reach;
  return { ref: { lane: band.lane, span: row.spans ? row.spans[best]! : best }, others: is_wide ? 0 : last - first - 1 };
}

function place_of(model: Model, scene: Scene, ref: SpanRef): { start: number; end: number; top: number; height: number } | null {
  const band = scene.bands.find((one) => one.lane === ref.lane);
  const { content } = model.lanes[ref.lane]!;
  if (!band || !content) return null;
  const start = content.spans.starts[ref.span]!;
  const tall = content.rows.length > 1 ? kThinRow : kLaneRow;
  const top = kAxisHeight + band.top + kLanePad + content.row_of[ref.span]! * tall - scene.scroll;
  return { start, end: start + content.spans.durations[ref.span]!, top, height: tall };
}

export interface Shown {
  hovered: SpanRef | null;
  chosen: SpanRef | null;
  marked: readonly [number, number] | null; // ns
}

export function paint_over(canvas: HTMLCanvasElement, model: Model, scene: Scene, palette: Palette, shown: Shown): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  const { width, height, view } = scene;
  const ratio = canvas.width / Math.max(1, width);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const x_of = (ns: number): number => Math.max(-10, Math.min(width + 10, ((ns - view.start) / view.span) * width));
  if (shown.marked) {
    const [left, right] = [x_of(shown.marked[0]), x_of(shown.marked[1])];
    context.fillStyle = palette.accent;
    context.globalAlpha = 0.14;
    context.fillRect(left, kAxisHeight, right - left, height);
    context.globalAlpha = 1;
    context.fillRect(left - 0.5, 0, 1.5, height);
    context.fillRect(right - 0.5, 0, 1.5, height);
  }
  context.save();
  context.beginPath();
  context.rect(0, kAxisHeight, width, height);
  context.clip();
  for (const [ref, line] of [[shown.hovered, 1], [shown.chosen, 2]] as const) {
    const place = ref && place_of(model, scene, ref);
    if (!place) continue;
    const [left, right] = [x_of(place.start), x_of(place.end)];
    const wide = Math.max(right - left, 3);
    // Two lines, so that it shows upon every colour.
    context.lineWidth = line + 2;
    context.strokeStyle = palette.background;
    context.strokeRect(left - 1, place.top - 1, wide + 1, place.height + 1);
    context.lineWidth = line;
    context.strokeStyle = palette.text;
    context.strokeRect(left - 1, place.top - 1, wide + 1, place.height + 1);
  }
  context.restore();
}
