import { describe, expect, it } from "vitest";
import { decode_spans } from "../../src/timeline/decode";
import { fill_pixels, kNothing, new_pixels } from "../../src/timeline/pixels";
import { Pyramid } from "../../src/timeline/pyramid";
import { busy_between, busy_until, first_not_below, kMaxRows, lay_rows, type Rows } from "../../src/timeline/rows";
import { encode_spans, seeded, type Triple } from "../timeline_fixture";

const kKinds = new Uint8Array([0, 1, 2, 0]);

function rows_of(spans: readonly Triple[]): Rows {
  return lay_rows(decode_spans(encode_spans(spans), spans.length, 3), kKinds);
}

function expect_no_overlap({ rows }: Rows): void {
  for (const row of rows) for (let i = 1; i < row.count; ++i) expect(row.starts[i]).toBeGreaterThanOrEqual(row.ends[i - 1]!);
}

// Row by row and nanosecond by nanosecond, as slowly as can be.
function slow_busy(spans: readonly Triple[], from: number, to: number): number {
  let busy = 0;
  for (let t = from; t < to; ++t) if (spans.some(([start, duration]) => start <= t && t < start + duration)) ++busy;
  return busy;
}

function random_spans(seed: number, count: number, most: number, gap: number): Triple[] {
  const random = seeded(seed);
  const spans: Triple[] = [];
  let at = 0;
  for (let i = 0; i < count; ++i) {
    at += Math.floor(random() * gap);
    spans.push([at, Math.floor(random() * most), Math.floor(random() * 3)]);
  }
  return spans;
}

describe("rows", () => {
  it("put what follows on one row", () => {
    const laid = rows_of([[0, 10, 0], [10, 5, 1], [20, 0, 2], [20, 5, 0]]);
    expect(laid.rows.length).toBe(1);
    expect(laid.clipped).toBe(0);
  });
  it("put a child below its parent, also where both start at once and the child is written first", () => {
    const laid = rows_of([[0, 30, 1], [0, 100, 0], [5, 10, 2], [40, 10, 1]]);
    expect([...laid.row_of]).toEqual([1, 0, 2, 1]);
    expect_no_overlap(laid);
  });
  it("hold everything where they suffice", () => {
    const spans = random_spans(3, 400, 40, 30);
    const laid = rows_of(spans);
    expect_no_overlap(laid);
    expect(laid.clipped).toBe(0);
    const sum = laid.rows.reduce((all, row) => all + row.busy_before[row.count]!, 0);
    expect(sum).toBe(spans.reduce((all, [, duration]) => all + duration, 0));
  });
  it("are bounded: what lies deeper is shortened and counted, not lost from sight", () => {
    const spans: Triple[] = Array.from({ length: 40 }, (_, i) => [i, 1000, 0]);
    const laid = rows_of(spans);
    expect(laid.rows.length).toBe(kMaxRows);
    expect(laid.clipped).toBe(40 - kMaxRows);
    expect_no_overlap(laid);
    expect(busy_between(laid.rows, 0, 5000)).toBe(1039);
  });
});

describe("busy time", () => {
  it("between any two moments is that of the union", () => {
    for (const [seed, most, gap] of [[1, 8, 12], [2, 30, 10], [3, 50, 9]] as const) {
      const spans = random_spans(seed, 60, most, gap);
      const { rows } = rows_of(spans);
      for (let from = 0; from < 500; from += 37) {
        for (const to of [from, from + 1, from + 50, from + 333]) expect(busy_between(rows, from, to)).toBe(slow_busy(spans, from, to));
      }
    }
  });
  it("of an empty lane is none", () => {
    expect(busy_between([], 0, 10)).toBe(0);
    expect(busy_between(rows_of([]).rows, 0, 10)).toBe(0);
  });
});

describe("first_not_below", () => {
  it("finds what a walk finds", () => {
    const values = new Float64Array([1, 1, 3, 5, 5, 5, 8]);
    for (let limit = 0; limit < 10; ++limit) {
      for (let from = 0; from <= values.length; ++from) {
        const walk = values.findIndex((value, i) => i >= from && value >= limit);
        expect(first_not_below(values, limit, from, values.length)).toBe(walk < 0 ? values.length : walk);
      }
    }
  });
});

describe("pixels", () => {
  const spans = random_spans(5, 3000, 90, 120).map(([start, duration, name], i, all): Triple => {
    const next = all[i + 1]?.[0] ?? Infinity;
    return [start, Math.min(duration, next - start), name];
  });
  const { rows } = rows_of(spans);
  const row = rows[0]!;
  const end = row.ends[row.count - 1]!;

  it("add up to the busy time at every scale", () => {
    expect(rows.length).toBe(1);
    for (const width of [1, 7, 100, 1300, 5000]) {
      for (const [from, to] of [[0, end], [0, end / 3], [1234.5, 9876.25], [end / 2, end / 2 + 40], [-500, end + 900]] as const) {
        const out = new_pixels(width);
        const scale = (to - from) / width;
        fill_pixels(row, kKinds, from, scale, width, out);
        let sum = 0;
        for (let x = 0; x < width; ++x) sum += out.share[x]! * scale;
        const busy = busy_until(row, to) - busy_until(row, from);
        expect(Math.abs(sum - busy)).toBeLessThan(1e-4 * (to - from));
      }
    }
  });
  it("show every pixel as busy as it is", () => {
    const width = 640;
    const out = new_pixels(width);
    const scale = end / 4 / width;
    fill_pixels(row, kKinds, end / 5, scale, width, out);
    for (let x = 0; x < width; ++x) {
      const from = end / 5 + x * scale;
      const busy = busy_until(row, from + scale) - busy_until(row, from);
      expect(out.share[x]!).toBeCloseTo(busy / scale, 4);
      if (busy > 1e-6 * scale) expect(out.kind[x]).not.toBe(kNothing);
    }
  });
  it("are the same from a pyramid's bins, to half a pixel", () => {
    // Mostly one kind, then mostly another.
    const biased = spans.map(([start, duration, name], i): Triple => [start, duration, i % 5 === 0 ? name : i < 1500 ? 0 : 1]);
    const row = rows_of(biased).rows[0]!;
    const pyramid = new Pyramid(row, kKinds);
    for (const [from, to, width] of [[0, end, 100], [0, end, 300], [end / 3, end / 2, 90], [-end / 2, 2 * end, 200]] as const) {
      const scale = (to - from) / width;
      const [exact, binned] = [new_pixels(width), new_pixels(width)];
      fill_pixels(row, kKinds, from, scale, width, exact);
      pyramid.fill(from, scale, width, binned);
      let [sum, same] = [0, 0];
      for (let x = 0; x < width; ++x) {
        sum += binned.share[x]! - exact.share[x]!;
        expect(Math.abs(binned.share[x]! - exact.share[x]!)).toBeLessThan(0.5);
        if (binned.kind[x] === exact.kind[x]) ++same;
      }
      expect(Math.abs(sum)).toBeLessThan(1);
      expect(same / width).toBeGreaterThan(0.85);
    }
  });
  it("take the kind with most time", () => {
    const mixed = rows_of([[0, 10, 0], [10, 20, 1], [30, 15, 0], [50, 1, 2]]).rows[0]!;
    const out = new_pixels(2);
    fill_pixels(mixed, kKinds, 0, 100, 1, out);
    expect(out.kind[0]).toBe(0);
    expect(out.count[0]).toBe(4);
    fill_pixels(mixed, kKinds, 5, 30, 2, out);
    expect([out.kind[0], out.kind[1]]).toEqual([1, 0]);
  });
  it("show instants, and leave gaps empty", () => {
    const instants = rows_of([[10, 0, 2], [30, 0, 1]]).rows[0]!;
    const out = new_pixels(5);
    fill_pixels(instants, kKinds, 0, 10, 5, out);
    expect([...out.kind]).toEqual([kNothing, 2, kNothing, 1, kNothing]);
  });
});
