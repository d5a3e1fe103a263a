// A fleet with outliers that tests know by name, as `weir report` makes it of a weir.fleet/1; and one node.
import type { Fleet, FleetFigure, FleetFinding, FleetNode } from "../src/document";

/** Values as `weir report` packs them; null has no value. */
export function pack(values: readonly (number | null)[]): string {
  const view = new DataView(new ArrayBuffer(4 * values.length));
  values.forEach((value, i) => view.setFloat32(4 * i, value ?? NaN, true));
  return btoa(String.fromCharCode(...new Uint8Array(view.buffer)));
}

export const kFleetFigures = [
  { name: "gemm_bf16", unit: "flop/s", words: "GEMM bf16", goal: "higher", typical: 758e12 },
  { name: "launch", unit: "ns", words: "launch, one thread", goal: "lower", typical: 2100 },
  { name: "temperature", unit: "C", words: "temperature under load", goal: "none", typical: 61 },
] as const;

export function finding(kind: string, row: number | null, node: string, device: string | null, more: Partial<FleetFinding> = {}): FleetFinding {
  return { kind, row, node, device, place: null, serial: null, figure: null, to: null, value: null, typical: null, effect: null, p: null, peers: 15, cause: null, sentence: `${node} ${device ?? ""}: ${kind}`, is_unfit: kind !== "different", ...more };
}

/** Row r is device r % devices of node r / devices. Row 3 is 10 % slow at GEMM, row 9 computes wrongly, row 1 has no values. */
export function make_fleet(nodes = 6, devices = 4): Fleet {
  const count = nodes * devices;
  const rows = Array.from({ length: count }, (_, row) => row);
  // Within 1 % of what is typical, another part of it for each row.
  const natural = (row: number): number => 1 + 0.01 * (((row * 7919) % 101) / 50 - 1);
  const figures: FleetFigure[] = kFleetFigures.map(({ typical, ...figure }) => ({ ...figure, packed: pack(rows.map((row) => (row === 1 ? null : typical * (row === 3 && figure.name === "gemm_bf16" ? 0.9 : natural(row))))) }));
  const [gemm] = kFleetFigures;
  return {
    id: "fleets-1",
    title: `${nodes} nodes, ${count} devices`,
    environment: 0,
    source: 0,
    notes: ["node5: no figures of cuda:1, as its probe timed out"],
    nodes,
    devices: count,
    unfit: 2,
    significance: 0.01,
    threshold: 0.03,
    groups: [{ model: "NVIDIA H200", settings: null, devices: count, figures: kFleetFigures.map(({ name, unit, typical }) => ({ name, unit, count: count - 1, p50: typical, min: typical * 0.99, max: typical * 1.01, spread: 0.006 })) }],
    node_names: Array.from({ length: nodes }, (_, node) => `node${node}`),
    device_names: Array.from({ length: devices }, (_, device) => `cuda:${device}`),
    rows: { nodes: rows.map((row) => Math.floor(row / devices)), devices: rows.map((row) => row % devices), groups: rows.map(() => 0), serials: rows.map((row) => (row === 1 ? null : `SN${1000 + row}`)), unfit: [3, 9] },
    figures,
    constants: [{ name: "pcie_width", unit: "lanes", words: "PCIe width", value: 16, count }, { name: "gemm_fp8", unit: "flop/s", words: "GEMM fp8", value: null, count: 0 }],
    findings: [
      finding("wrong", 9, "node2", "cuda:1", { sentence: "node2 cuda:1: GEMM bf16 gives 3 wrong elements of 4,194,304" }),
      finding("slow", 3, "node0", "cuda:3", { serial: "SN1003", figure: gemm.name, value: 0.9 * gemm.typical, typical: gemm.typical, effect: -0.1, p: 1e-9, cause: "clock 1,520 MHz where peers have 1,980", sentence: "node0 cuda:3: GEMM bf16 10.0 % below its 23 peers" }),
      finding("link", null, "node4", null, { to: "node5", value: 11e9, typical: 48e9, effect: -0.771, sentence: "node4 to node5: 77.1 % below other links" }),
      finding("different", null, "node1", null, { sentence: "node1: driver 575.51 where 5 nodes have 580.65" }),
    ],
    findings_left_out: 0,
    differences: [{ name: "driver", is_of_device: false, left_out: 0, values: [{ value: "580.65.06", count: nodes - 1, first: ["node0", "node2", "node3"] }, { value: "575.51.03", count: 1, first: ["node1"] }] }],
    unfit_nodes: [{ name: "node0", reason: "cuda:3: GEMM bf16 10.0 % below its 23 peers" }, { name: "node2", reason: "cuda:1 computes something wrong" }],
  };
}

export function make_fleet_node(): FleetNode {
  const devices = ["cuda:0", "cuda:1", "cuda:2"];
  const of = (typical: number) => devices.map((_, device) => ({ device, to: null, value: typical * (1 + 0.01 * device), range: [typical * (0.99 + 0.01 * device), typical * (1.01 + 0.01 * device)] as [number, number], reason: null }));
  return {
    id: "fleet_nodes-1",
    title: "node7: 3 devices",
    environment: 0,
    source: 0,
    notes: [],
    node: "node7",
    duration_ns: 41.2e9,
    failure: null,
    facts: [["governor", "performance"]],
    place: [["rack", "r12"]],
    devices: devices.map((name, i) => ({ name, model: "NVIDIA H200", serial: `SN${i}`, bus: `0000:0${i}:00.0`, facts: [["driver", "580.65.06"], ["ecc", i === 2 ? "off" : "on"]], throttle: i === 1 ? ["power cap"] : [], wrong: [], failure: null })),
    figures: [
      { name: "gemm_bf16", unit: "flop/s", words: "GEMM bf16", goal: "higher", values: of(758e12) },
      { name: "gemm_fp8", unit: "flop/s", words: "GEMM fp8", goal: "higher", values: devices.map((_, device) => ({ device, to: null, value: null, range: null, reason: "this build has no fp8 kernel" })) },
      { name: "copy_to_peer", unit: "B/s", words: "copy to another device", goal: "higher", values: devices.flatMap((_, device) => devices.flatMap((to, i) => (i === device ? [] : [{ device, to, value: device === 1 && i === 2 ? 11e9 : 380e9, range: null, reason: null }]))) },
      { name: "temperature", unit: "C", words: "temperature under load", goal: "none", values: of(60).map((one) => ({ ...one, range: null })) },
    ],
  };
}
