import { expect, test } from "vitest";
import { align, point_at } from "../../src/chart_types";
import { duration } from "../../src/format";
import { is_wide, linear_ticks, log_ticks, nearest, place, reach, tick_labels, time_label, time_ticks } from "../../src/scales";

test("a log axis has no place for zero, nor for what is not there", () => {
  expect(place("log", 1000)).toBeCloseTo(3);
  expect(place("log", 0)).toBeNull();
  expect(place("log", -1)).toBeNull();
  expect(place("linear", null)).toBeNull();
  expect(place("linear", NaN)).toBeNull();
});

test("axes hold every value, and exist where there is none", () => {
  const [low, high] = reach("linear", [3, null, 9, undefined]);
  expect(low).toBeLessThan(3);
  expect(high).toBeGreaterThan(9);
  expect(reach("linear", [5, 10], true)[0]).toBe(0);
  expect(reach("linear", [])).toEqual([0, 1]);
  const [one_low, one_high] = reach("log", [100]);
  expect(one_low).toBeLessThan(2);
  expect(one_high).toBeGreaterThan(2);
});

test("ticks are round and lie inside", () => {
  expect(linear_ticks(0, 10, 5)).toEqual([0, 2, 4, 6, 8, 10]);
  expect(linear_ticks(0.1, 0.35, 5)).toEqual([0.1, 0.15, 0.2, 0.25, 0.3, 0.35]);
  expect(linear_ticks(1, 1, 5)).toEqual([]);
  expect(log_ticks(0, 3, 4)).toEqual([0, 1, 2, 3]);
  expect(log_ticks(0, 1, 6).map((at) => Math.round(10 ** at))).toEqual([1, 2, 5, 10]);
  // 412 us to 431 us: no decade, no 2, no 5 between
  expect(log_ticks(Math.log10(412), Math.log10(431), 5).length).toBeGreaterThanOrEqual(2);
  const day = 864e5;
  for (const at of time_ticks(1.5 * day, 9 * day, 5)) expect(at % day).toBe(0);
});

test("tick labels drop empty zeros and never read alike", () => {
  expect(tick_labels([0, 5e5, 1e6, 1.5e6], duration)).toEqual(["0", "500 us", "1 ms", "1.5 ms"]);
  expect(tick_labels([412000, 412200, 412400], duration)).toEqual(["412.0 us", "412.2 us", "412.4 us"]);
  expect(tick_labels([100, 200], (value) => `${value} ns`)).toEqual(["100 ns", "200 ns"]);
});

test("times are labelled by what their distance needs", () => {
  const at = Date.UTC(2026, 10, 16, 21, 30);
  expect(time_label(at, 864e5)).toBe("16 Nov");
  expect(time_label(at, 36e5)).toBe("16 Nov 21:30");
});

test("the nearest value is found from both sides", () => {
  expect([-5, 1, 1.4, 1.6, 3, 99].map((wanted) => nearest([1, 2, 4], wanted))).toEqual([0, 0, 0, 1, 2, 2]);
  expect(nearest([], 1)).toBe(0);
});

test("wide ranges are told from narrow ones", () => {
  expect(is_wide([1, 2, null, 100])).toBe(true);
  expect(is_wide([50, 100])).toBe(false);
  expect(is_wide([0, 100])).toBe(false);
  expect(is_wide([])).toBe(false);
});

const axes = { x: { label: "", kind: "linear" as const, format: String }, y: { label: "", kind: "linear" as const, format: String } };

test("series over different x share one list; a failed point is a gap, a missing one is none", () => {
  const { xs, columns } = align({ ...axes, series: [{ name: "a", colour: 0, points: [{ x: 1, y: 10 }, { x: 4, y: null, failure: "out of memory" }] }, { name: "b", colour: 1, points: [{ x: 2, y: 5 }] }] }, place);
  expect(xs).toEqual([1, 2, 4]);
  expect(columns).toEqual([[10, undefined, null], [undefined, 5, undefined]]);
});

test("the cursor speaks of the point right there, or of the last before it in a running curve", () => {
  const points = [{ x: 1, y: 0.1 }, { x: 5, y: 0.9 }];
  expect(point_at({ name: "", colour: 0, points }, 3)).toBeNull();
  expect(point_at({ name: "", colour: 0, points }, 5)?.y).toBe(0.9);
  expect(point_at({ name: "", colour: 0, points, is_running: true }, 3)?.y).toBe(0.1);
  expect(point_at({ name: "", colour: 0, points, is_running: true }, 0.5)).toBeNull();
});
