import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Model, totals_of_group } from "../../src/timeline/model";
import { contrast, kSeries, kShades, shades_of, type Rgb } from "../../src/timeline/palette";
import { moment_text, tick_step, ticks_of } from "../../src/timeline/ticks";
import { clamp_view, fit, kLeastSpan, pan, reveal, zoom } from "../../src/timeline/view";
import { lane, make_timeline } from "../timeline_fixture";

describe("ticks", () => {
  it("step by 1, 2 or 5, as far apart as asked", () => {
    for (let exponent = -3; exponent < 12; exponent += 0.13) {
      const scale = 10 ** exponent;
      const step = tick_step(scale, 96);
      const lead = step / 10 ** Math.floor(Math.log10(step) + 1e-9);
      expect([1, 2, 5].some((one) => Math.abs(one - lead) < 1e-6)).toBe(true);
      expect(step / scale).toBeGreaterThanOrEqual(96 * (1 - 1e-6));
      if (step > 1) expect(step / scale).toBeLessThan(96 * 2.51);
    }
  });
  it("say their unit", () => {
    expect(ticks_of(0, 1000, 400).marks.map(({ label }) => label)).toEqual(["0 ns", "500 ns", "1\u202f000 ns"]);
    expect(ticks_of(0, 1e6, 400).marks.map(({ label }) => label)).toEqual(["0 us", "500 us", "1\u202f000 us"]);
    expect(ticks_of(0, 10e9, 400).marks.map(({ label }) => label)).toEqual(["0 s", "5 s", "10 s"]);
  });
  it("count from a base where numbers would grow long", () => {
    const ticks = ticks_of(1_500_000_123, 1_500_000_323, 400);
    expect(ticks.base).toBe(1_500_000_000);
    expect(ticks.marks.map(({ label }) => label)).toEqual(["+150 ns", "+200 ns", "+250 ns", "+300 ns"]);
  });
  it("are few, however odd the range", () => {
    for (const [from, to, width] of [[0, 0, 100], [0, 2 ** 53, 2000], [2 ** 52, 2 ** 52 + 20, 2000], [0, 1e-9, 500]] as const) {
      expect(ticks_of(from, to, width).marks.length).toBeLessThan(40);
    }
  });
  it("moments keep every nanosecond", () => {
    expect(moment_text(0)).toBe("0 ns");
    expect(moment_text(999)).toBe("999 ns");
    expect(moment_text(1_500_000_020)).toBe("1.500\u202f000\u202f020 s");
    expect(moment_text(2_000_000)).toBe("2 ms");
    expect(moment_text(1_203)).toBe("1.203 us");
  });
});

describe("view", () => {
  const total = 1e9;
  it("keeps the moment below the pointer when it zooms", () => {
    const view = zoom({ start: 2e8, span: 4e8 }, 3, 0.25, total);
    expect(view.start + 0.25 * view.span).toBeCloseTo(3e8, 0);
    expect(view.span).toBeCloseTo(4e8 / 3, 0);
  });
  it("stays inside, whatever is asked", () => {
    let view = fit(total);
    for (const [factor, share] of [[1e30, 0.5], [1e-30, 0], [2, 1], [NaN, 0.5], [0, 0.5], [Infinity, 1]] as const) {
      view = zoom(view, factor, share, total);
      for (const by of [-1e30, 1e30, NaN, 5]) {
        view = pan(view, by, total);
        expect(view.start).toBeGreaterThanOrEqual(0);
        expect(view.start + view.span).toBeLessThanOrEqual(total);
        expect(view.span).toBeGreaterThanOrEqual(kLeastSpan);
      }
    }
    expect(clamp_view({ start: 0, span: 5 }, 3)).toEqual({ start: 0, span: 3 });
  });
  it("reveals a span without moving where it is seen", () => {
    const view = { start: 0, span: 1000 };
    expect(reveal(view, 100, 200, 0.01, total)).toBe(view);
    const far = reveal(view, 5000, 5100, 0.01, total);
    expect(far.start).toBeLessThanOrEqual(5000);
    expect(far.start + far.span).toBeGreaterThanOrEqual(5100);
  });
});

describe("model", () => {
  it("finds the next match by time over all lanes, and wraps", () => {
    const timeline = make_timeline(0, 0, 0);
    timeline.names = [{ text: "GEMM", kind: "kernel" }, { text: "copy", kind: "copy" }];
    timeline.groups = [{ label: "streams", lanes: [lane("a", [[0, 5, 0], [20, 5, 0], [30, 1, 1]]), lane("b", [[10, 5, 0], [20, 5, 0]])] }];
    const model = new Model(timeline);
    expect(model.search("gem")).toBe(1);
    expect(model.match_count()).toBe(4);
    const order: string[] = [];
    let at = model.next_match(null, true);
    for (let i = 0; i < 5; ++i, at = model.next_match(at, true)) order.push(`${at!.lane}.${at!.span}`);
    expect(order).toEqual(["0.0", "1.0", "0.1", "1.1", "0.0"]);
    expect(model.next_match({ lane: 0, span: 0 }, false)).toEqual({ lane: 1, span: 1 });
    expect(model.search("nothing of it")).toBe(0);
    expect(model.next_match(null, true)).toBeNull();
    expect(totals_of_group(model, 0)).toEqual([{ name: 0, count: 4, ns: 20 }, { name: 1, count: 1, ns: 1 }]);
  });
  it("takes the length from the spans where the file's is too short", () => {
    const timeline = make_timeline(0, 0, 0);
    timeline.end_ns = NaN;
    timeline.groups = [{ label: "streams", lanes: [lane("a", [[100, 50, 0]])] }];
    const model = new Model(timeline);
    model.read_all();
    expect(model.total).toBe(150);
  });
});

describe("names upon spans", () => {
  it("can be read in both themes", () => {
    const styles = readFileSync(new URL("../../src/styles.css", import.meta.url), "utf8");
    const colours = kSeries.flatMap((series) => [...styles.matchAll(new RegExp(`--series-${series}: #([0-9a-f]{6})`, "g"))].map((match) => match[1]!));
    expect(colours.length).toBeGreaterThanOrEqual(2 * kSeries.length);
    for (const hex of colours) {
      const colour = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)) as Rgb;
      const shades = shades_of(colour);
      expect(shades.length).toBe(kShades);
      for (const { fill, ink } of shades) expect(contrast(fill, ink)).toBeGreaterThanOrEqual(4.5);
    }
  });
});
