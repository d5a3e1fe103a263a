import { expect, test, vi } from "vitest";
import type { ComparedMetric, Usl } from "../../src/document";
import { command_text, from } from "../../src/sections/commands";
import { full_document } from "../fixture";

// These modules reach the plotting library and the page's theme, which ask for a window when loaded.
vi.mock("uplot", () => ({ default: class {} }));
Object.assign(globalThis, { window: { matchMedia: () => ({ matches: false, addEventListener: () => undefined }) } });
const { ecdf } = await import("../../src/sections/distributions");
const { forest_scale, in_order, total_cells } = await import("../../src/sections/comparisons");
const { opened } = await import("../../src/sections/models");
const { places } = await import("../../src/sections/histories");
const { series_of, usl_at, usl_points } = await import("../../src/sections/scaling");
const { title_of } = await import("../../src/sections/verdict");

test("an ECDF of all samples ends at one and steps over ties once", () => {
  expect(ecdf({ values: [1, 2, 2, 5], count: 4 })).toEqual([{ x: 1, y: 0.25 }, { x: 2, y: 0.75 }, { x: 5, y: 1 }]);
});

test("an ECDF of quantiles puts each at its own share", () => {
  expect(ecdf({ values: [10, 20], count: 9000 })).toEqual([{ x: 10, y: 0.25 }, { x: 20, y: 0.75 }]);
});

test("the fitted law is gamma at one stream and peaks where it should", () => {
  const usl: Usl = { gamma: 100, alpha: 0.05, beta: 0.002, r_squared: 1, peak_streams: 21.8 };
  expect(usl_at(usl, 1)).toBe(100);
  const points = usl_points(usl, 1, 64);
  expect(points[0]?.x).toBe(1);
  expect(points[points.length - 1]?.x).toBeCloseTo(64);
  const best = points.reduce((a, b) => ((b.y ?? 0) > (a.y ?? 0) ? b : a));
  expect(Math.abs(best.x - Math.sqrt(0.95 / 0.002))).toBeLessThan(2);
  expect(usl_points(usl, 4, 4)).toEqual([]);
});

test("a failed point keeps its place and its reason", () => {
  const curve = full_document().scaling[0]?.curves[0];
  const [series] = series_of(curve ? [curve] : [], (point) => point.throughput, (point) => point.throughput_interval);
  const failed = series?.points.find((point) => point.failure);
  expect(failed?.x).toBe(32);
  expect(failed?.y).toBeNull();
  expect(failed?.failure).toContain("out of memory");
});

test("the forest's scale is symmetric and holds every interval", () => {
  const metric = { ratio: 2, interval: [1.5, 2.4] } as unknown as ComparedMetric;
  const scale = forest_scale([metric], 0.05);
  expect(scale.x(1)).toBe(0.5);
  expect(scale.x(2) - 0.5).toBeCloseTo(0.5 - scale.x(0.5));
  expect(scale.x(2.4)).toBeLessThan(1);
  expect(scale.x(1e9)).toBe(1);
  expect(scale.x(0)).toBe(0);
});

test("failures come first, then what is slower, then the rest", () => {
  const comparison = full_document().comparisons[0];
  const order = in_order(comparison?.pairs ?? []).map((pair) => (pair.failure !== null ? "failed" : pair.verdict));
  expect(order).toEqual(["failed", "slower", "ambiguous", "faster", "same", "same"]);
});

test("totals of two traces have their units and their change", () => {
  const rows = (full_document().comparisons[0]?.totals ?? []).map((total) => total_cells(total));
  expect(rows[0]).toEqual(["idle", "28.7 ms", "52.2 ms", "+81.8 %"]);
  expect(rows[1]?.[0]).toBe("kernels");
  expect(rows[2]?.slice(0, 1)).toEqual(["bytes copied"]);
  expect(rows[2]?.[2]).toContain("KiB");
});

test("a history without usable times is drawn by run", () => {
  const point = { commit: "c", tag: null, p50: 1, interval: null, count: 1 };
  expect(places([{ ...point, at: "2026-01-01T00:00:00Z" }, { ...point, at: "2026-01-02T00:00:00Z" }]).kind).toBe("time");
  expect(places([{ ...point, at: "2026-01-01T00:00:00Z" }, { ...point, at: "2026-01-01T00:00:00Z" }])).toEqual({ kind: "linear", xs: [1, 2] });
  expect(places([{ ...point, at: "soon" }]).kind).toBe("linear");
});

test("commands carry their variables, and one command is told once", () => {
  expect(command_text(["weir", "run", "a b"], [["CUDA_X", "1 2"], ["not a name", "x"]])).toBe("CUDA_X='1 2' \\\nweir run 'a b'");
  const report = full_document();
  const source = report.sources[0];
  if (source) report.sources.push({ ...source, path: "again.json" });
  const found = from(report);
  expect(found.map((one) => one.paths.length)).toEqual([2, 1, 1, 1]);
  expect(found[found.length - 1]?.text).toBe("weir report results/ --history history.db -o report.html");
});

test("a finding's anchor finds its item's title", () => {
  expect(title_of("waterfalls-1", full_document())).toBe("Kernels: where the time goes");
  expect(title_of("nowhere", full_document())).toBeNull();
});

test("the largest modules are open at first, as long as there is room for their parts", () => {
  const modules = full_document().models[0]?.modules ?? [];
  expect([...opened(modules, 16)]).toEqual([0]); // 20 parts of the blocks are too many
  expect([...opened(modules, 23)]).toEqual([0, 1]);
  expect([...opened(modules, 2)]).toEqual([]);
  expect([...opened([], 16)]).toEqual([]);
});
