// Lays the spans of a lane into rows, so that no two of a row overlap: host threads nest, queues may run two kernels at
// once. Rows keep running sums, which make the busy time between any two moments a matter of two lookups.

import type { Spans } from "./decode";

export const kMaxRows = 6;

export interface Row {
  count: number;
  starts: Float64Array;
  ends: Float64Array; // never falling, as nothing overlaps
  names: Uint32Array;
  spans: Uint32Array | null; // which span of the lane; null: the same number
  busy_before: Float64Array; // count + 1 sums of durations
  kinds: Float64Array | null; // sums before every kBlock-th span, kKindCount side by side; null: only `kind`
  kind: number;
}

export const kBlock = 8;
export const kKindCount = 6;

export interface Rows {
  rows: Row[];
  order: Uint32Array | null; // spans by start, instants and then the longer first of equals; null where that is the file's order
  row_of: Uint8Array; // row of each span of the lane
  clipped: number; // spans of the last row that are drawn shortened or not at all, as there are no more rows
}

/** `kind_of` says the kind of each name, with one more at its end for unknown names. */
export function lay_rows(spans: Spans, kind_of: Uint8Array): Rows {
  const { count, starts, durations } = spans;
  const order = order_of(spans);
  const row_of = new Uint8Array(count);
  const free_at: number[] = [];
  const sizes: number[] = [];
  let clipped = 0;
  for (let i = 0; i < count; ++i) {
    const span = order ? order[i]! : i;
    const start = starts[span]!;
    let row = 0;
    while (row < free_at.length && free_at[row]! > start) ++row;
    if (row === kMaxRows) {
      row = kMaxRows - 1;
      ++clipped;
    }
    if (row === free_at.length) {
      free_at.push(0);
      sizes.push(0);
    }
    free_at[row] = Math.max(free_at[row]!, start + durations[span]!);
    row_of[span] = row;
    sizes[row]!++;
  }

  const rows: Row[] = sizes.map((size) => {
    const is_whole = sizes.length === 1 && order === null && clipped === 0;
    return {
      count: size,
      starts: is_whole ? starts : new Float64Array(size),
      ends: new Float64Array(size),
      names: is_whole ? spans.names : new Uint32Array(size),
      spans: is_whole ? null : new Uint32Array(size),
      busy_before: new Float64Array(size + 1),
      kinds: null,
      kind: 0,
    };
  });
  const [first] = rows;
  if (first && first.spans === null) {
    for (let i = 0; i < count; ++i) {
      first.ends[i] = starts[i]! + durations[i]!;
      first.busy_before[i + 1] = first.busy_before[i]! + durations[i]!;
    }
  } else {
    fill_rows(spans, rows, row_of, order);
  }
  for (const row of rows) sum_kinds(row, kind_of);
  return { rows, order, row_of, clipped };
}

function fill_rows(spans: Spans, rows: readonly Row[], row_of: Uint8Array, order: Uint32Array | null): void {
  const { count, starts, durations } = spans;
  const filled = new Uint32Array(rows.length);
  for (let i = 0; i < count; ++i) {
    const span = order ? order[i]! : i;
    const place = row_of[span]!;
    const row = rows[place]!;
    const at = filled[place]!++;
    // Only in a full last row: what lies below an earlier span gives way to it.
    const floor = at > 0 ? row.ends[at - 1]! : 0;
    const start = Math.max(starts[span]!, floor);
    const end = Math.max(starts[span]! + durations[span]!, start);
    row.starts[at] = start;
    row.ends[at] = end;
    row.names[at] = spans.names[span]!;
    row.spans![at] = span;
    row.busy_before[at + 1] = row.busy_before[at]! + (end - start);
  }
}

// A parent that starts with its first child has to come before it, or it would lie below. Instants come first: they
// need no room.
function rank(duration: number): number {
  return duration === 0 ? Infinity : duration;
}

function order_of(spans: Spans): Uint32Array | null {
  const { count, starts, durations } = spans;
  let is_sorted = true;
  for (let i = 1; i < count; ++i) {
    if (starts[i] === starts[i - 1] && rank(durations[i]!) > rank(durations[i - 1]!)) {
      is_sorted = false;
      break;
    }
  }
  if (is_sorted) return null;
  const order = new Uint32Array(count);
  for (let i = 0; i < count; ++i) order[i] = i;
  for (let from = 0; from < count; ) {
    let to = from + 1;
    while (to < count && starts[to] === starts[from]) ++to;
    if (to - from > 1) order.subarray(from, to).sort((a, b) => (rank(durations[a]!) === rank(durations[b]!) ? a - b : rank(durations[b]!) - rank(durations[a]!)));
    from = to;
  }
  return order;
}

// One block's sums fill a cache line or less, so that a pixel over many spans costs one look.
function sum_kinds(row: Row, kind_of: Uint8Array): void {
  const { count, names, starts, ends } = row;
  if (count === 0) return;
  row.kind = kind_of[names[0]!]!;
  let is_mixed = false;
  for (let i = 1; i < count && !is_mixed; ++i) is_mixed = kind_of[names[i]!] !== row.kind;
  if (!is_mixed) return;
  const blocks = Math.floor(count / kBlock) + 1;
  const sums = new Float64Array(blocks * kKindCount);
  const running = new Float64Array(kKindCount);
  for (let i = 0; i < count; ++i) {
    if (i % kBlock === 0) sums.set(running, (i / kBlock) * kKindCount);
    running[kind_of[names[i]!]!]! += ends[i]! - starts[i]!;
  }
  if (count % kBlock === 0) sums.set(running, (count / kBlock) * kKindCount);
  row.kinds = sums;
}

/** First index in [from, to) whose value is not below `limit`. Gallops: cheap where the answer is near. */
export function first_not_below(values: Float64Array, limit: number, from: number, to: number): number {
  let low = from;
  let stride = 1;
  while (low + stride < to && values[low + stride]! < limit) {
    low += stride;
    stride *= 2;
  }
  let high = Math.min(low + stride, to);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Busy time of a row from its first span up to moment `t`. */
export function busy_until(row: Row, t: number): number {
  const next = first_not_below(row.starts, t, 0, row.count);
  if (next === 0) return 0;
  const over = row.ends[next - 1]! - t;
  return row.busy_before[next]! - (over > 0 ? over : 0);
}

/** Time between two moments in which any row of the lane was busy. */
export function busy_between(rows: readonly Row[], from: number, to: number): number {
  if (!(to > from)) return 0;
  const [only] = rows;
  if (!only) return 0;
  if (rows.length === 1) return busy_until(only, to) - busy_until(only, from);
  // Walks the union: at each moment, the row that stays busy longest from there.
  const at = rows.map((row) => first_not_below(row.ends, from, 0, row.count));
  let busy = 0;
  let now = from;
  for (;;) {
    let start = Infinity;
    let pick = -1;
    for (let r = 0; r < rows.length; ++r) {
      const row = rows[r]!;
      while (at[r]! < row.count && row.ends[at[r]!]! <= now) at[r]!++;
      if (at[r]! < row.count && row.starts[at[r]!]! < start) {
        start = row.starts[at[r]!]!;
        pick = r;
      }
    }
    if (pick < 0 || start >= to) return busy;
    const end = Math.min(rows[pick]!.ends[at[pick]!]!, to);
    busy += end - Math.max(start, now);
    now = end;
    if (now >= to) return busy;
  }
}
