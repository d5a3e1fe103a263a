// Level of detail: what each pixel of a row shows. Costs as much as there are pixels, whatever lies below them: where
// spans are narrower than a pixel, their busy time is looked up in running sums, not added up.

import { first_not_below, type Row } from "./rows";

export const kNothing = 255;

export interface Pixels {
  kind: Uint8Array; // of the span or, where there are many, of those with most time; kNothing where there is none
  share: Float32Array; // busy share of the pixel
  first: Int32Array; // first span of the row in this pixel
  count: Uint32Array; // spans in this pixel
}

export function new_pixels(width: number): Pixels {
  return {
    kind: new Uint8Array(width),
    share: new Float32Array(width),
    first: new Int32Array(width),
    count: new Uint32Array(width),
  };
}

/** Fills `out` for `width` pixels from moment `from` on. The shares' sum is the busy time, to rounding. */
export function fill_pixels(
  row: Row,
  kind_of: Uint8Array,
  from: number,
  ns_per_pixel: number,
  width: number,
  out: Pixels,
): void {
  const { starts, ends, names, count } = row;
  out.kind.fill(kNothing, 0, width);
  out.share.fill(0, 0, width);
  out.count.fill(0, 0, width);
  const until = from + width * ns_per_pixel;
  // Not before the view: spans that end at its very first moment belong to the pixel before, unless they are instants.
  let i = first_not_below(ends, from, 0, count);
  while (i < count && ends[i] === from && starts[i]! < from) ++i;
  let x = 0;
  while (i < count && x < width) {
    const start = starts[i]!;
    if (start >= until) break;
    const at = Math.floor((start - from) / ns_per_pixel);
    if (at > x) x = Math.min(at, width - 1);
    const left = from + x * ns_per_pixel;
    const right = from + (x + 1) * ns_per_pixel;
    const end = ends[i]!;

    if (end >= right && start <= left) {
      // One span over whole pixels.
      const stop = Math.min(width, Math.max(x + 1, Math.floor((end - from) / ns_per_pixel)));
      const kind = kind_of[names[i]!]!;
      out.kind.fill(kind, x, stop);
      out.share.fill(1, x, stop);
      out.first.fill(i, x, stop);
      out.count.fill(1, x, stop);
      x = stop;
      while (i < count && ends[i]! <= from + x * ns_per_pixel && starts[i]! < from + x * ns_per_pixel) ++i;
      continue;
    }

    const next = Math.max(first_not_below(starts, right, i, count), i + 1);
    const before = left > start ? left - start : 0;
    const over = ends[next - 1]! - right;
    const after = over > 0 ? over : 0;
    const busy = row.busy_before[next]! - row.busy_before[i]! - before - after;
    out.share[x] = Math.min(1, Math.max(0, busy / ns_per_pixel));
    out.first[x] = i;
    out.count[x] = next - i;
    out.kind[x] = next - i === 1 ? kind_of[names[i]!]! : main_kind(row, kind_of, i, next, before, after);
    ++x;
    i = after > 0 ? next - 1 : next;
  }
}

// The kind with most busy time among spans [from, to); by number where all are instants.
function main_kind(row: Row, kind_of: Uint8Array, from: number, to: number, before: number, after: number): number {
  const [only] = row.kinds;
  if (only && row.kinds.length === 1) return only.kind;
  const first_kind = kind_of[row.names[from]!]!;
  const last_kind = kind_of[row.names[to - 1]!]!;
  let best = first_kind;
  let most = -1;
  for (const { kind, busy_before, count_before } of row.kinds) {
    const number = count_before![to]! - count_before![from]!;
    if (number === 0) continue;
    let busy = busy_before[to]! - busy_before[from]!;
    if (kind === first_kind) busy -= before;
    if (kind === last_kind) busy -= after;
    if (busy > most) {
      most = busy;
      best = kind;
    }
  }
  return best;
}
