// Level of detail: what each pixel of a row shows. Costs as much as there are pixels, whatever lies below them: where
// spans are narrower than a pixel, their busy time is looked up in running sums, not added up.

import { first_not_below, kBlock, kKindCount, type Row } from "./rows";

export const kNothing = 255;

const kWalk = 32;

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
  const per_ns = 1 / ns_per_pixel;
  // Not before the view: spans that end at its very first moment belong to the pixel before, unless they are instants.
  let i = first_not_below(ends, from, 0, count);
  while (i < count && ends[i] === from && starts[i]! < from) ++i;
  let x = 0;
  while (i < count && x < width) {
    const start = starts[i]!;
    if (start >= until) break;
    const at = Math.floor((start - from) * per_ns);
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

    // Most pixels have few spans, and walking past them is faster than any search.
    let next = i + 1;
    const far = Math.min(count, i + kWalk);
    while (next < far && starts[next]! < right) ++next;
    if (next === far && next < count) next = first_not_below(starts, right, next, count);
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

const most_of = new Float64Array(kKindCount);

// The kind with most busy time among spans [from, to). Exact where they are few; where they are many, by whole blocks.
function main_kind(row: Row, kind_of: Uint8Array, from: number, to: number, before: number, after: number): number {
  const { kinds } = row;
  if (!kinds) return row.kind;
  most_of.fill(0);
  if (to - from < 2 * kBlock) {
    for (let i = from; i < to; ++i) most_of[kind_of[row.names[i]!]!]! += row.ends[i]! - row.starts[i]!;
    most_of[kind_of[row.names[from]!]!]! -= before;
    most_of[kind_of[row.names[to - 1]!]!]! -= after;
  } else {
    const first = Math.ceil(from / kBlock) * kKindCount;
    const last = Math.floor(to / kBlock) * kKindCount;
    for (let kind = 0; kind < kKindCount; ++kind) most_of[kind] = kinds[last + kind]! - kinds[first + kind]!;
  }
  let best = kind_of[row.names[from]!]!; // all may be instants
  for (let kind = 0; kind < kKindCount; ++kind) if (most_of[kind]! > most_of[best]!) best = kind;
  return best;
}
