import { expect, test } from "vitest";
import { bare_rate, bytes, change, count, duration, interval, moment, percent, plural, probability, quantity, rate, ratio } from "../../src/format";

// The same table as tests/base has for src/base/units.h: the page and the terminal say one number in one way.
test("durations read as in the terminal", () => {
  const cases: [number, string][] = [[0, "0 ns"], [0.5, "0.50 ns"], [812, "812 ns"], [812.5, "812 ns"], [813.5, "814 ns"], [999.4, "999 ns"], [999.6, "1.00 us"], [4210, "4.21 us"], [13.4e6, "13.4 ms"], [2.5e9, "2.50 s"], [7.2e12, "7200 s"], [-4210, "-4.21 us"]];
  for (const [ns, text] of cases) expect(duration(ns)).toBe(text);
});

test("quantities, sizes and ratios read as in the terminal", () => {
  expect(quantity(812)).toBe("812");
  expect(quantity(4210)).toBe("4.21 k");
  expect(quantity(13.4e6)).toBe("13.4 M");
  expect(quantity(0.0004)).toBe("0.000400");
  expect(bytes(512)).toBe("512 B");
  expect(bytes(4096)).toBe("4.00 KiB");
  expect(bytes(1.5 * 2 ** 30)).toBe("1.50 GiB");
  expect(ratio(1.0342)).toBe("1.034x");
});

test("rates that are scaled already are not scaled again", () => {
  expect(rate(13003.02, "GFLOP/s")).toBe("13003 GFLOP/s");
  expect(bare_rate(0.25, "GFLOP/s")).toBe("0.2500");
  expect(rate(3.9e6, "steps/s")).toBe("3.90 M steps/s");
  expect(rate(4210, "ns")).toBe("4.21 us");
});

test("what is not there is a dash, never zero", () => {
  for (const word of [duration(null), quantity(undefined), percent(NaN), ratio(Infinity), count(null), rate(null, "GB/s"), interval(null, String), moment(null), probability(null), change(null)]) expect(word).toBe("–");
});

test("shares, changes, counts and times", () => {
  expect(percent(0.125)).toBe("12.5 %");
  expect(change(1.034)).toBe("+3.4 %");
  expect(change(0.88)).toBe("−12.0 %");
  expect(count(1048576)).toBe("1\u202f048\u202f576");
  expect(probability(0.0002)).toBe("<0.001");
  expect(moment("2026-11-16T21:27:03Z")).toBe("2026-11-16 21:27 UTC");
  expect(moment("yesterday")).toBe("yesterday");
  expect(plural(1, "file")).toBe("1 file");
  expect(plural(2, "file")).toBe("2 files");
});
