import { expect, test, vi } from "vitest";
import type { Fleet } from "../../src/document";
import { cell_at, corner, kBandHead, label_step, layout } from "../../src/fleet/layout";
import { FleetModel, histogram, p50_of, unpack } from "../../src/fleet/model";
import { beside, in_one_unit, measured } from "../../src/format";
import { finding, kFleetFigures, make_fleet, make_fleet_node, pack } from "../fleet_fixture";

vi.mock("uplot", () => ({ default: class {} }));
Object.assign(globalThis, { window: { matchMedia: () => ({ matches: false, addEventListener: () => undefined }) } });
const { outliers } = await import("../../src/fleet/histograms");
const { ramp_step } = await import("../../src/fleet/paint");
const { by_kind } = await import("../../src/sections/fleets");
const { shown_value } = await import("../../src/sections/fleet_nodes");

test("packed values come out as they went in, and no value stays none", () => {
  const values = unpack(pack([1.5, null, -2, 758e12]), 4);
  expect([...values]).toEqual([1.5, NaN, -2, Math.fround(758e12)]);
  expect(() => unpack(pack([1, 2]), 3)).toThrow("damaged");
});

test("effects are relative to the median of a device's own group", () => {
  const fleet = make_fleet(4, 2);
  fleet.groups.push({ ...fleet.groups[0]!, model: "NVIDIA H100", figures: [{ ...fleet.groups[0]!.figures[0]!, p50: 379e12 }] });
  fleet.rows.groups = [0, 0, 0, 0, 0, 0, 1, 1];
  fleet.figures[0]!.packed = pack([758e12, null, 758e12, 682.2e12, 758e12, 758e12, 379e12, 341.1e12]);
  const { effects, typical, sign } = new FleetModel(fleet).view(0);
  expect(typical).toEqual([758e12, 379e12]);
  expect([...effects].map((effect) => Math.round(1000 * effect) / 1000 + 0)).toEqual([0, NaN, 0, -0.1, 0, 0, 0, -0.1]);
  expect(sign).toBe(-1);
});

test("what is typical is computed where the document has no summary, and a median of 0 makes no share", () => {
  const fleet = make_fleet(2, 2);
  fleet.groups[0]!.figures = [];
  fleet.figures[0]!.packed = pack([1, 3, 2, null]);
  fleet.figures[2]!.packed = pack([0, 0, 5, 0]);
  const model = new FleetModel(fleet);
  expect(model.view(0).typical).toEqual([2]);
  expect([...model.view(2).effects]).toEqual([0, 0, Infinity, 0]);
  expect(beside(Infinity)).toBe("above a median of 0");
  expect(p50_of([])).toBeNull();
});

test("colours reach past what most devices show and twice the threshold, to a round share", () => {
  const fleet = make_fleet(100, 8);
  const model = new FleetModel(fleet);
  expect(model.view(0).reach).toBe(0.08); // 2 x 3 %
  expect(model.view(2).reach).toBe(0.01); // a state has no threshold
  expect(ramp_step({ reach: 0.1, sign: 1 }, 0)).toBe(24);
  expect(ramp_step({ reach: 0.1, sign: 1 }, 5)).toBe(48);
  expect(ramp_step({ reach: 0.1, sign: -1 }, Infinity)).toBe(0);
});

test("nodes stand by name as people count, or with the worst first", () => {
  const fleet = make_fleet(12, 4);
  fleet.node_names = fleet.node_names.map((_, i) => `node${12 - i}`);
  const model = new FleetModel(fleet);
  expect(model.order(null).map((node) => fleet.node_names[node])).toEqual(Array.from({ length: 12 }, (_, i) => `node${i + 1}`));
  expect(model.order(model.view(0))[0]).toBe(0); // row 3 is 10 % slow
});

test("the map begins with the figure of the worst finding that has one", () => {
  const fleet = make_fleet();
  expect(fleet.figures[new FleetModel(fleet).first_figure()]?.name).toBe(kFleetFigures[0].name);
  const other: Fleet = { ...fleet, findings: [finding("slow", 2, "node0", "cuda:2", { figure: "launch" })] };
  expect(new FleetModel(other).first_figure()).toBe(1);
  expect(new FleetModel({ ...fleet, findings: [] }).first_figure()).toBe(0);
});

test("histograms count every device once, those beyond the ends too", () => {
  const bins = histogram(new Float32Array([-9, -0.05, 0, 0, 0.05, 9, NaN, Infinity]), 0.1, 5);
  expect(bins).toEqual([1, 1, 2, 1, 2]);
});

test("outliers are what findings name for the figure, the worst first", () => {
  const fleet = make_fleet(6, 4);
  fleet.findings.push(finding("slow", 20, "node5", "cuda:0", { figure: "gemm_bf16" }), finding("slow", 1, "node0", "cuda:1", { figure: "gemm_bf16" }));
  const model = new FleetModel(fleet);
  expect(outliers(model, model.view(0)).map(({ row }) => row)).toEqual([3, 20]); // row 1 has no value
  expect(outliers(model, model.view(1))).toEqual([]);
});

test("every cell of a map is found again at its own place, and nothing between bands", () => {
  for (const [nodes, devices, width] of [[1000, 8, 930], [1, 1, 320], [7, 16, 320], [4096, 8, 930]] as const) {
    const map = layout(nodes, devices, width, 50);
    expect(map.width, `${nodes} nodes`).toBeLessThanOrEqual(Math.max(width, 80));
    expect(map.bands * map.across).toBeGreaterThanOrEqual(nodes);
    for (let place = 0; place < nodes; place += 13)
      for (let device = 0; device < devices; ++device) {
        const [x, y] = corner(map, place, device);
        expect(cell_at(map, nodes, x + 0.5, y + 0.5)).toEqual({ place, device });
      }
    expect(cell_at(map, nodes, map.left + 1, kBandHead - 1)).toBeNull();
    expect(cell_at(map, nodes, map.left - 1, kBandHead + 1)).toBeNull();
    expect(cell_at(map, nodes, map.left + 1, map.height + 1)).toBeNull();
  }
  const thousand = layout(1000, 8, 930, 50);
  expect(thousand.height).toBeLessThan(700); // one look
  expect(label_step(7, 8) * 7).toBeGreaterThan(8 * 6.4);
});

test("findings come in the order of their kinds; a kind of tomorrow comes last", () => {
  const groups = by_kind([finding("new", 0, "a", null), ...make_fleet().findings]);
  expect(groups.map(({ kind }) => kind)).toEqual(["wrong", "slow", "link", "different", "new"]);
});

test("figures have their units, and a row has one", () => {
  expect(measured(55.2e9, "B/s")).toBe("55.2 GB/s");
  expect(measured(1.41e15, "flop/s")).toBe("1.41 PFLOP/s");
  expect(measured(812.5, "ns")).toBe("812 ns");
  expect(measured(1743.6, "MHz")).toBe("1744 MHz");
  expect(measured(16, "lanes")).toBe("16 lanes");
  expect(measured(3, "count")).toBe("3");
  expect(measured(61, "C")).toBe("61 °C");
  expect(measured(NaN, "W")).toBe("–");
  const scale = in_one_unit([55.9e9, 980e6], "B/s");
  expect([scale.unit, scale.text(55.9e9), scale.text(980e6), scale.text(null)]).toEqual(["GB/s", "55.9", "0.98", "–"]);
  expect(in_one_unit([2100, 990], "ns").text(990)).toBe("0.99");
  expect(in_one_unit([0, 0], "count").text(0)).toBe("0");
  expect(in_one_unit([1980, 1743], "MHz").text(1743)).toBe("1743");
});

test("a node's cell shows the worst of several copies", () => {
  const figure = make_fleet_node().figures.find((one) => one.name === "copy_to_peer")!;
  expect(shown_value(figure, 1)?.value).toBe(11e9);
  expect(shown_value(figure, 0)?.value).toBe(380e9);
  expect(shown_value({ ...figure, goal: "lower" }, 1)?.value).toBe(380e9);
  expect(shown_value(figure, 9)).toBeNull();
});
