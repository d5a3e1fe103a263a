// A document with every picture of the report, for tests that look at them.
import type { BenchCase, Item, Overlap, Preemption, PreemptionPoint, QueueMap, ReportDocument, Roofline, Waterfall } from "../src/document";
import { make_timeline } from "./timeline_fixture";

export const kHostile = `<script>document.title = "taken"</script><img src=x onerror=alert(1)>"'&amp;`;

export function item(id: string, title: string, notes: string[] = []): Item {
  return { id, title, environment: 0, source: 0, notes };
}

export function empty_report(): ReportDocument {
  return {
    schema: "weir.report/2",
    title: "Pictures",
    created: "2026-11-16T21:27:04Z",
    weir: { version: "0.1.0", commit: "0123456789ab" },
    command_line: ["weir", "report", "results"],
    sources: [{ path: "results/trace.json", schema: "kineto", created: null, status: "complete", command_line: [], environment: 0 }],
    refused: [],
    verdict: { tone: "neutral", headline: "Pictures for a test", findings: [] },
    fleets: [],
    fleet_nodes: [],
    comparisons: [],
    scaling: [],
    distributions: [],
    queue_maps: [],
    waterfalls: [],
    timelines: [],
    usages: [],
    models: [],
    overlaps: [],
    preemptions: [],
    benches: [],
    histories: [],
    texts: [],
    environments: [{ id: "e0", label: "NVIDIA H200 · cuda:0", facts: [], variables: [] }],
  };
}

const numbered = (count: number): string[] => Array.from({ length: count }, (_, i) => String(i));

/** Stream s on queue s modulo queues. */
export function fixed_map(id: string, streams: number, queues: number): QueueMap {
  return {
    ...item(id, `GPU 0: ${streams} streams on hardware queues`),
    basis: "probe",
    mapping: "fixed: every stream kept its queue",
    queues: numbered(queues),
    streams: numbered(streams),
    cells: Array.from({ length: streams }, (_, stream) => ({ stream, queue: stream % queues, commands: null })),
  };
}

function moving_map(): QueueMap {
  const map = fixed_map("queue-map-moving", 12, 6);
  map.basis = "timeline";
  map.mapping = "dynamic: streams changed queues 31 times";
  map.cells = map.cells.flatMap(({ stream, queue }) =>
    stream % 3 === 0
      ? [
          { stream, queue, commands: 60 },
          { stream, queue: (queue + 1) % 5, commands: 30 },
          { stream, queue: (queue + 3) % 5, commands: 10 },
        ]
      : [{ stream, queue: queue % 5, commands: 100 }],
  );
  return map;
}

export function waterfall(): Waterfall {
  const hop = (from: string, to: string, p50: number, p95: number, p99: number, share: number) => ({ from, to, count: 880, duration_ns: { mean: p50 * 1.1, p50, p95, p99 }, share });
  return {
    ...item("waterfall-kernel", "Kernels of trace.json, hop by hop"),
    kind: "kernel",
    commands: 880,
    way_ns: 262_000,
    hops: [hop("enqueued", "submitted", 4_210, 9_800, 15_200, 0.016), hop("submitted", "launched", 6_100, 21_000, 44_000, 0.031), hop("launched", "started", 88_400, 190_000, 1_400_000, 0.42), hop("started", "ended", 141_000, 152_000, 166_000, 0.52), hop("ended", "finished", 3_300, 4_000, 9_000, 0.013)],
    missing: [{ hop: "called → enqueued", reason: "the trace has no host calls: record it with --host" }],
  };
}

export function overlap(): Overlap {
  const bar = (label: string, compute: number, hidden: number, exposed: number, other: number, idle: number) => ({ label, span_ns: compute + hidden + exposed + other + idle, compute_only_ns: compute, hidden_ns: hidden, exposed_ns: exposed, idle_ns: idle, other_ns: other });
  return {
    ...item("overlap-1", "fsdp on 4 ranks", ["Times of the traced pass; the step's own time is of the untraced one."]),
    step_ns: { p50: 82_444_755 },
    serial_step_ns: { p50: 101_240_000 },
    efficiency: 0.612,
    best_efficiency: 0.934,
    inflation: 1.074,
    bars: [bar("rank 0", 41e6, 18e6, 13e6, 2e6, 8e6), bar("rank 1", 42e6, 17e6, 12e6, 2e6, 9.5e6), bar("rank 2", 40e6, 21e6, 9e6, 2e6, 6e6), bar("rank 3", 38e6, 14e6, 22e6, 2e6, 5e6)],
    causes: [
      { cause: "late_start", ns_per_step: 7.2e6, share: 0.51, meaning: "The collective could have started earlier: its data was ready.", advice: "Raise fsdp.prefetch, or issue collectives from their own stream." },
      { cause: "straggler", ns_per_step: 4.4e6, share: 0.31, meaning: "One rank came later than the others.", advice: "Look at rank 3: it computes longest." },
      { cause: "no_work_left", ns_per_step: 2.5e6, share: 0.18, meaning: "Nothing was left to run beside it.", advice: "" },
    ],
  };
}

export function preemption(): Preemption {
  const kernels = [40e3, 160e3, 640e3, 2.56e6, 10.24e6, 40.96e6];
  const points = (wait: (kernel: number) => number): PreemptionPoint[] =>
    kernels.map((kernel, i) => ({
      victim: `4 waves of ${kernel / 4000} us`,
      kernel_ns: kernel,
      block_ns: kernel / 4,
      latency_ns: { p50: wait(kernel) * 0.5, tail: wait(kernel), tail_interval: [wait(kernel) * 0.94, wait(kernel) * 1.07] },
      victim_loss: 0.001 * i,
      is_overloaded: wait(kernel) > 5e7,
      failure: null,
    }));
  const flag = points((kernel) => 9e3 + kernel * 0.002);
  flag[4] = { ...flag[4]!, latency_ns: { p50: null, tail: null, tail_interval: null }, failure: "the victim ended before the request" };
  return {
    ...item("preemption-1", "NVIDIA H200 (simulated): urgent work behind long kernels"),
    verdict: "Use cooperative_flag here: p99 is 0.012x that of none on average.",
    is_to_start: true,
    tail: "p99",
    alone_tail_ns: 5_221,
    curves: [
      { name: "none", level: null, verdict: "none: it waits for whole kernels", reason: null, points: points((kernel) => 8 * kernel) },
      { name: "priority", level: "Lv1", verdict: "priority: it waits for blocks", reason: null, points: points((kernel) => 6e3 + kernel / 4) },
      { name: "cooperative_flag", level: "Lv2", verdict: "cooperative_flag: it waits for the next look at the flag", reason: null, points: flag },
      { name: "time_slice", level: "Lv3", verdict: null, reason: "the driver's time slice can only be set by root", points: [] },
    ],
    published: [{ name: "XSched Lv1, NVIDIA GV100", url: "https://github.com/XpuOS/xsched", points: kernels.map((kernel_ns) => ({ kernel_ns, latency_ns: { p50: kernel_ns * 0.8, tail: kernel_ns * 1.6 } })) }],
  };
}

export function bench_case(kernel: string, backend: string, precision: string, gflops: number, intensity: number, share: number | null): BenchCase {
  return { kernel, backend, precision, status: "ok", failure: null, latency_ns: { p50: 1e12 / gflops, p50_interval: [0.99e12 / gflops, 1.01e12 / gflops] }, throughput: gflops, throughput_unit: "GFLOP/s", flop_per_s: gflops * 1e9, intensity, share_of_roof: share, energy_j: 0.012, error: 1.2e-6, change: { verdict: gflops > 5000 ? "faster" : "same", ratio: gflops > 5000 ? 0.93 : 1.002 } };
}

function bench(): ReportDocument["benches"][number] {
  const failed: BenchCase = { ...bench_case("flash_attention", "opencl", "fp16", 1, 1, null), status: "failed", failure: "the kernel gives 0.31 where the reference gives 0.29 (row 7, column 3): its tolerance is 0.005", latency_ns: { p50: null, p50_interval: null }, throughput: null, throughput_unit: null, flop_per_s: null, intensity: null, energy_j: null, error: null, change: null };
  const roofs: Roofline[] = [
    { backend: "cuda", precision: "fp16", flop_per_s: 780e12, bytes_per_s: 4.1e12, reason: null },
    { backend: "cuda", precision: "fp32", flop_per_s: 60e12, bytes_per_s: 4.1e12, reason: null },
    { backend: "opencl", precision: "fp32", flop_per_s: null, bytes_per_s: null, reason: "no bandwidth probe ran on opencl: run weir bench --roofline" },
  ];
  return {
    ...item("bench-1", "Kernels of bench/"),
    cases: [bench_case("gemm", "cuda", "fp16", 512_000, 680, 0.656), bench_case("gemm", "cuda", "fp32", 41_200, 340, 0.687), bench_case("softmax", "cuda", "fp32", 1_520, 0.62, 0.598), bench_case("layer_norm", "cuda", "fp32", 3_160, 1.1, 0.7), bench_case("reduction", "cuda", "fp32", 910, 0.25, 0.888), bench_case("reduction", "opencl", "fp32", 402, 0.25, null), bench_case("flash_attention", "cuda", "fp16", 341_000, 210, 0.437), failed],
    rooflines: roofs,
  };
}

export function pictures_report(): ReportDocument {
  return {
    ...empty_report(),
    queue_maps: [fixed_map("queue-map-40", 40, 8), fixed_map("queue-map-128", 128, 32), moving_map()],
    waterfalls: [waterfall()],
    timelines: [make_timeline(20_000, 12, 4)],
    overlaps: [overlap()],
    preemptions: [preemption()],
    benches: [bench()],
  };
}
