// Paints lanes into a canvas: one buffer of pixels for all spans, then names upon those that are wide enough. The cost
// of a frame depends on the pixels of the picture, not on the spans below them.

import type { Model } from "./model";
import { colour_index, kBands, kLevels, kProfiles, kShades, type Palette } from "./palette";
import { kNothing, new_pixels, type Pixels } from "./pixels";
import { Pyramid } from "./pyramid";
import type { Row } from "./rows";
import { short_command } from "../text";
import { ticks_of } from "./ticks";
import type { View } from "./view";

export const kAxisHeight = 26;
export const kLaneRow = 18; // height of a lane's only row
export const kThinRow = 12; // of each of several
export const kLanePad = 3;

/** Where a lane or a group's heading lies, in CSS pixels from the top of all lanes. */
export interface Band {
  lane: number | null; // null: the heading of `group`
  group: number;
  top: number;
  height: number;
  is_stripe: boolean;
}

export interface Frame {
  width: number; // CSS pixels
  height: number;
  ratio: number; // device pixels for each
  view: View;
  scroll: number; // CSS pixels of lanes above the picture
  bands: readonly Band[];
}

export class Painter {
  private image_: ImageData | null = null;
  private pixels_: Pixels = new_pixels(0);
  private line_: Uint32Array[] = [];
  private readonly shorts_ = new Map<string, string>();

  private readonly pyramids_ = new WeakMap<Row, Pyramid>();

  constructor(private readonly model_: Model) {}

  private pyramid(row: Row): Pyramid {
    let pyramid = this.pyramids_.get(row);
    if (!pyramid) this.pyramids_.set(row, (pyramid = new Pyramid(row, this.model_.kind_of)));
    return pyramid;
  }

  paint(context: CanvasRenderingContext2D, frame: Frame, palette: Palette): void {
    const width = Math.max(1, Math.round(frame.width * frame.ratio));
    const height = Math.max(1, Math.round(frame.height * frame.ratio));
    if (!this.image_ || this.image_.width !== width || this.image_.height !== height) {
      this.image_ = new ImageData(width, height);
      this.pixels_ = new_pixels(width);
      this.line_ = Array.from({ length: kBands }, () => new Uint32Array(width));
    }
    const buffer = new Uint32Array(this.image_.data.buffer);
    buffer.fill(palette.grounds[0]);
    const axis = Math.round(kAxisHeight * frame.ratio);
    const labels: Label[] = [];

    for (const band of frame.bands) {
      const top = Math.round((kAxisHeight + band.top - frame.scroll) * frame.ratio);
      const bottom = Math.round((kAxisHeight + band.top + band.height - frame.scroll) * frame.ratio);
      if (bottom <= axis || top >= height) continue;
      const is_stripe = band.is_stripe ? 1 : 0;
      if (is_stripe) buffer.fill(palette.grounds[1], Math.max(top, axis) * width, Math.min(bottom, height) * width);
      if (band.lane === null) continue;
      const { content } = this.model_.lanes[band.lane]!;
      if (!content) continue;
      const tall = content.rows.length > 1 ? kThinRow : kLaneRow;
      content.rows.forEach((row, r) => {
        const from = Math.round((kAxisHeight + band.top + kLanePad + r * tall - frame.scroll) * frame.ratio);
        const to = Math.round((kAxisHeight + band.top + kLanePad + (r + 1) * tall - frame.scroll) * frame.ratio) - 1;
        if (to <= axis || from >= height) return;
        this.pyramid(row).fill(frame.view.start, frame.view.span / width, width, this.pixels_);
        this.colour(row, palette, is_stripe, width, from, to, frame, labels);
        for (let y = Math.max(from, axis); y < Math.min(to, height); ++y) {
          buffer.set(this.line_[Math.floor(((y - from) * kBands) / (to - from))]!, y * width);
        }
      });
    }

    context.setTransform(1, 0, 0, 1, 0, 0);
    context.putImageData(this.image_, 0, 0);
    context.setTransform(frame.ratio, 0, 0, frame.ratio, 0, 0);
    this.axis(context, frame, palette);
    this.names(context, labels, palette);
  }

  // One line of pixels for each band of the row's height, as kinds differ in profile.
  private colour(
    row: { names: Uint32Array },
    palette: Palette,
    is_stripe: number,
    width: number,
    from: number,
    to: number,
    frame: Frame,
    labels: Label[],
  ): void {
    const { kind, share, first, count } = this.pixels_;
    const { matching } = this.model_;
    const { colours } = palette;
    const ground = palette.grounds[is_stripe]!;
    const lines = this.line_;
    const wide = 34 * frame.ratio;
    let run = 0;
    for (let x = 0; x < width; ++x) {
      const k = kind[x]!;
      if (k === kNothing) {
        for (let b = 0; b < kBands; ++b) lines[b]![x] = ground;
        run = 0;
        continue;
      }
      const is_one = count[x] === 1;
      const name = row.names[first[x]!]!;
      let is_dim = 0;
      if (matching) {
        is_dim = 1;
        for (let i = 0; i < Math.min(count[x]!, 64); ++i) {
          if (matching[row.names[first[x]! + i]!]) {
            is_dim = 0;
            break;
          }
        }
      }
      const shade = is_one ? name % kShades : 0;
      let level = Math.round(share[x]! * (kLevels - 1));
      const is_continued = run > 0 && is_one && count[x - 1] === 1 && first[x - 1] === first[x];
      run = is_continued ? run + 1 : 1;
      // A hairline at the end of a span sets it off from its neighbour.
      const is_last = x + 1 < width && !(count[x + 1] === 1 && first[x + 1] === first[x] && kind[x + 1] !== kNothing);
      if (is_last && is_one && run > 3) level = Math.min(level, 1);
      const pixel = colours[colour_index(is_dim, is_stripe, k, shade, level)]!;
      const profile = kProfiles[k]!;
      for (let b = 0; b < kBands; ++b) {
        const fill = profile[b]!;
        lines[b]![x] = fill === 1 ? pixel : fill === 0 ? ground : colours[colour_index(is_dim, is_stripe, k, shade, Math.floor(level * fill))]!;
      }
      if ((is_last || x + 1 === width) && run >= wide && is_one && !is_dim) {
        const left = (x + 1 - run) / frame.ratio;
        labels.push({ left, width: run / frame.ratio, top: from / frame.ratio, height: (to - from) / frame.ratio, name, kind: k });
      }
    }
  }

  private axis(context: CanvasRenderingContext2D, frame: Frame, palette: Palette): void {
    const { view, width, height } = frame;
    const ticks = ticks_of(view.start, view.start + view.span, width);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillStyle = palette.text;
    context.globalAlpha = 0.1;
    for (const { at } of ticks.marks) {
      context.fillRect(Math.round(((at - view.start) / view.span) * width), kAxisHeight, 1, height - kAxisHeight);
    }
    context.globalAlpha = 1;
    context.fillStyle = palette.border;
    context.fillRect(0, kAxisHeight - 1, width, 1);
    context.fillStyle = palette.muted;
    for (const { at, label } of ticks.marks) {
      const x = Math.round(((at - view.start) / view.span) * width);
      context.fillRect(x, kAxisHeight - 7, 1, 6);
      // A mark at the very edge would lose half its text; it stands right of the mark.
      if (x + 8 + context.measureText(label).width < width) context.fillText(label, x + 4, kAxisHeight / 2 - 2);
    }
    // Where in the whole the view lies.
    const left = (view.start / this.model_.total) * width;
    const length = Math.max(3, (view.span / this.model_.total) * width);
    if (length < width - 0.5) {
      context.fillStyle = palette.accent;
      context.fillRect(Math.min(left, width - length), kAxisHeight - 4, length, 4);
    }
  }

  private names(context: CanvasRenderingContext2D, labels: Label[], palette: Palette): void {
    context.textBaseline = "middle";
    for (const small of [true, false]) {
      context.font = small ? "9px system-ui, sans-serif" : "11px system-ui, sans-serif";
      for (const { left, width, top, height, name, kind } of labels) {
        // Low and hollow profiles have no room for text.
        if (height < 14 !== small || kind === 3 || kind === 5 || top < kAxisHeight - 4) continue;
        const text = this.shorten(name, Math.floor((width - 6) / (small ? 5.2 : 6.2)));
        if (text === "") continue;
        context.fillStyle = palette.ink[kind * kShades + (name % kShades)]!;
        const drop = kind === 2 ? height / 6 : 0;
        context.fillText(text, left + 3, top + height / 2 + 0.5 + drop, width - 5);
      }
    }
  }

  private shorten(name: number, room: number): string {
    if (room < 4) return "";
    const text = this.model_.name(name);
    if (text.length <= room) return text;
    const key = `${name}/${room}`;
    let short = this.shorts_.get(key);
    if (short === undefined) {
      if (this.shorts_.size > 20_000) this.shorts_.clear();
      this.shorts_.set(key, (short = short_command(text, room)));
    }
    return short;
  }
}

interface Label {
  left: number;
  width: number;
  top: number;
  height: number;
  name: number;
  kind: number;
}
