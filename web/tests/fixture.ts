// A full report as weir makes it, with every kind of item, from seeded noise; and a hostile one. For tests and for looking.
import { make_fleet, make_fleet_node } from "./fleet_fixture";
import { encode_spans, type Triple } from "./timeline_fixture";
import type { Bench, ComparedMetric, Comparison, Distribution, DistributionSeries, DocumentText, History, ModelUse, Overlap, Preemption, QueueMap, ReportDocument, Scaling, ScalingCurve, ScalingPoint, Timeline, Usage, UsedModule, Waterfall } from "../src/document";

/** Numbers between 0 and 1, the same on every run. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function normal(next: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
}

function item(id: string, title: string, environment: number | null = 0, source: number | null = 0, notes: string[] = []) {
  return { id, title, environment, source, notes };
}

const kStreams = [1, 2, 4, 8, 12, 16, 24, 32];

function curve(next: () => number, name: string, gamma: number, alpha: number, beta: number, host_ns: number, fails_at: number | null): ScalingCurve {
  const law = (n: number): number => (gamma * n) / (1 + alpha * (n - 1) + beta * n * (n - 1));
  const points = kStreams.map((streams): ScalingPoint => {
    if (streams === fails_at) {
      return { streams, status: "failed", failure: "cuda:0: out of memory while allocating 96 GiB for 32 streams. Use --scale small.", throughput: null, throughput_interval: null, latency_ns: { p50: null, p50_interval: null, p99: null }, host_ns_per_command: null, efficiency: null, count: 0 };
    }
    const throughput = law(streams) * (1 + 0.02 * normal(next));
    const p50 = (streams / throughput) * 4.1e8;
    const spread = 0.012 + 0.0012 * streams;
    return {
      streams,
      status: "complete",
      failure: null,
      throughput,
      throughput_interval: [throughput * (1 - spread), throughput * (1 + spread)],
      latency_ns: { p50, p50_interval: [p50 * (1 - spread), p50 * (1 + spread * 1.2)], p99: p50 * (1.15 + 0.02 * streams * next()) },
      host_ns_per_command: host_ns * (1 + 0.03 * streams ** 0.8) * (1 + 0.03 * normal(next)),
      efficiency: throughput / (points_gamma(gamma) * streams),
      count: 200,
    };
  });
  const measured = points.filter((point) => point.throughput !== null);
  const best = measured.reduce((a, b) => ((b.throughput ?? 0) > (a.throughput ?? 0) ? b : a));
  return {
    name,
    points,
    floor: kStreams.map((streams) => ({ streams, ns_per_command: 38 + 1.4 * streams })),
    usl: { gamma, alpha, beta, r_squared: 0.994, peak_streams: beta > 0 ? Math.sqrt((1 - alpha) / beta) : null },
    usl_reason: null,
    knee: best.streams >= 16 ? 8 : 4,
    best_streams: best.streams,
  };
}

function points_gamma(gamma: number): number {
  return gamma * 1.01;
}

function scaling(next: () => number): Scaling[] {
  const meaning = "Weak scaling: each stream brings its own work, so a perfect curve is a straight line.";
  return [
    {
      ...item("scaling-1", "hetero_kernels · fp32 · full", 0, 0, ["8 hardware queues: from 9 streams on, streams share them."]),
      workload: "hetero_kernels",
      unit: "GFLOP/s",
      meaning,
      curves: [curve(next, "inline", 1450, 0.06, 0.0022, 2100, 32), curve(next, "graph", 1610, 0.035, 0.0014, 310, null), curve(next, "channel", 1380, 0.09, 0.0009, 980, null)],
    },
    {
      ...item("scaling-2", "all_reduce_overlap · bf16 · full", 1, 2),
      workload: "all_reduce_overlap",
      unit: "steps/s",
      meaning,
      curves: [{ ...curve(next, "threads", 41000, 0.12, 0.004, 1800, null), usl: null, usl_reason: "The law does not fit: R2 = 0.41 is below 0.8.", knee: null }],
    },
  ];
}

function samples(next: () => number, name: string, count: number, centre: number, spread: number, tail: number): DistributionSeries {
  const all = Array.from({ length: count }, () => centre * Math.exp(spread * normal(next)) * (next() < tail ? 1.8 + 2 * next() : 1)).sort((a, b) => a - b);
  const at = (share: number): number => all[Math.min(count - 1, Math.floor(share * count))] ?? 0;
  const values = count <= 512 ? all : Array.from({ length: 512 }, (_, i) => at((i + 0.5) / 512));
  return { name, count, values: values.map((value) => Math.round(value * 10) / 10), p50: at(0.5), p95: at(0.95), p99: at(0.99), reason: null };
}

function distributions(next: () => number): Distribution[] {
  return [
    { ...item("distributions-1", "hetero_kernels: latency of a step at 16 streams"), unit: "ns", series: [samples(next, "inline", 200, 412_000, 0.06, 0.05), samples(next, "graph", 200, 338_000, 0.04, 0.02), samples(next, "channel", 20_000, 455_000, 0.12, 0.03)] },
    { ...item("distributions-2", "all_reduce_overlap: latency of a step", 1, 2), unit: "ns", series: [samples(next, "threads", 90, 1_910_000, 0.02, 0), { name: "graph", count: 0, values: [], p50: null, p95: null, p99: null, reason: "Not measured: a collective of this library cannot be captured." }] },
  ];
}

function metric(name: "latency" | "throughput", base: number, ratio: number, half: number, verdict: ComparedMetric["verdict"], p: number, reason: string | null = null): ComparedMetric {
  return { metric: name, unit: name === "latency" ? "ns" : "GFLOP/s", verdict, reason, baseline: { p50: base }, test: { p50: base * ratio }, ratio, interval: [ratio - half, ratio + half], adjusted_p: p };
}

function comparisons(): Comparison[] {
  const rows: [string, number, number, ComparedMetric["verdict"], number][] = [
    ["hetero_kernels, 2 streams, inline", 1.004, 0.006, "same", 0.71],
    ["hetero_kernels, 16 streams, inline", 1.182, 0.021, "slower", 0.0002],
    ["hetero_kernels, 32 streams, channel", 1.071, 0.06, "ambiguous", 0.038],
    ["hetero_kernels, 16 streams, graph", 0.874, 0.015, "faster", 0.0004],
    ["hetero_kernels, 8 streams, graph", 0.991, 0.012, "same", 0.44],
  ];
  return [
    {
      ...item("comparisons-1", "hetero_kernels: main against the branch", 0, 1),
      baseline: "results/main/sweep.json",
      test: "results/branch/sweep.json",
      threshold: 0.05,
      verdicts: { slower: 1, faster: 1, same: 2, ambiguous: 1 },
      pairs: [
        ...rows.map(([label, ratio, half, verdict, p]) => ({
          label,
          verdict,
          failure: null,
          metrics: [metric("latency", 412_000, ratio, half, verdict, p, verdict === "ambiguous" ? "The interval reaches from inside the threshold to outside it." : null), metric("throughput", 13_003, 1 / ratio, half, verdict, p)],
        })),
        { label: "hetero_kernels, 32 streams, inline", verdict: "ambiguous" as const, failure: "The test's run failed: out of memory.", metrics: [] },
      ],
      only: [{ label: "hetero_kernels, 64 streams, graph", side: "test" }],
      totals: [
        { quantity: "idle", unit: "ns", baseline: 28_700_000, test: 52_200_000, ratio: 1.818 },
        { quantity: "kernels", unit: "", baseline: 3944, test: 3525, ratio: 0.894 },
        { quantity: "copied_bytes", unit: "bytes", baseline: 0, test: 4096, ratio: null },
      ],
    },
  ];
}

function histories(next: () => number): History[] {
  const points = Array.from({ length: 36 }, (_, i) => {
    const level = i < 14 ? 412_000 : i < 25 ? 463_000 : 391_000;
    const median = level * (1 + 0.008 * normal(next));
    return { at: new Date(Date.UTC(2026, 8, 1 + i * 2, 3, 30)).toISOString().replace(".000", ""), commit: Math.floor(next() * 2 ** 40).toString(16).padStart(10, "0") + "c0ffee", tag: i === 14 ? "v0.9.0" : null, p50: median, interval: [median * 0.988, median * 1.013] as [number, number], count: 200 };
  });
  return [
    { ...item("histories-1", "hetero_kernels: latency at 16 streams, inline"), workload: "hetero_kernels", metric: "latency", unit: "ns", is_less_better: true, points, changes: [{ index: 14, ratio: 1.124, p: 0.0003, verdict: "slower" }, { index: 25, ratio: 0.845, p: 0.0001, verdict: "faster" }] },
  ];
}

function timelines(next: () => number): Timeline[] {
  let end = 0;
  const lane = (label: string, names: number[], scale: number) => {
    const spans: Triple[] = [];
    let at = 0;
    let busy = 0;
    for (let i = 0; i < 160; ++i) {
      const start = at + Math.floor(next() * scale * 0.6);
      const length = 400 + Math.floor(next() * scale);
      spans.push([start, length, names[Math.floor(next() * names.length)] ?? 0]);
      at = start + length;
      busy += length;
    }
    end = Math.max(end, at);
    return { label, count: 160, busy_ns: busy, spans: encode_spans(spans) };
  };
  const groups = [
    { label: "GPU 0 streams", lanes: [lane("stream 1", [0, 1, 2], 9000), lane("stream 2", [0, 1], 9000), lane("stream 3", [3, 4], 9000)] },
    { label: "GPU 0 hardware queues", lanes: [lane("queue 0", [0, 1, 2], 9000), lane("queue 1", [3, 4], 9000)] },
  ];
  return [
    {
      ...item("timelines-1", "hetero_kernels, 16 streams: one traced pass"),
      origin_ns: 0,
      end_ns: end,
      source_of_times: "device events",
      names: [{ text: "gemm_fp32_128x128", kind: "kernel" }, { text: "saxpy", kind: "kernel" }, { text: "reduce_rows", kind: "kernel" }, { text: "copy host to device", kind: "copy" }, { text: "all_reduce_ring", kind: "collective" }],
      groups,
      left_out: 0,
      left_out_reason: null,
    },
  ];
}

function pictures(next: () => number): Pick<ReportDocument, "usages" | "models" | "queue_maps" | "waterfalls" | "timelines" | "overlaps" | "preemptions" | "benches"> {
  const queue_maps: QueueMap[] = [
    { ...item("queue_maps-1", "Streams on hardware queues"), basis: "probe", mapping: "fixed, round robin: stream n runs on queue n mod 8", queues: Array.from({ length: 8 }, (_, i) => `queue ${i}`), streams: Array.from({ length: 16 }, (_, i) => `stream ${i}`), cells: Array.from({ length: 16 }, (_, i) => ({ stream: i, queue: i % 8, commands: 400 - 12 * i })) },
  ];
  const waterfalls: Waterfall[] = [
    {
      ...item("waterfalls-1", "Kernels: where the time goes"),
      kind: "kernel",
      commands: 51_200,
      way_ns: 26_400,
      hops: [
        { from: "enqueued", to: "submitted", count: 51_200, duration_ns: { mean: 2300, p50: 2100, p95: 3900, p99: 8800 }, share: 0.087 },
        { from: "submitted", to: "launched", count: 51_200, duration_ns: { mean: 9400, p50: 7100, p95: 21_000, p99: 48_000 }, share: 0.356 },
        { from: "started", to: "ended", count: 51_200, duration_ns: { mean: 14_700, p50: 14_600, p95: 15_900, p99: 17_300 }, share: 0.557 },
      ],
      missing: [{ hop: "launched to started", reason: "This device gives no time of launch." }],
    },
  ];
  const usages: Usage[] = [
    { ...item("usages-1", "trace.json.gz", 1, 2), bars: [0, 1].map((rank) => ({ label: `rank ${rank}, NVIDIA H200`, span_ns: 9_100_000, compute_only_ns: 4_000_000, hidden_ns: 1_000_000, exposed_ns: 600_000, idle_ns: 3_200_000, other_ns: 300_000 })), work: [{ work: "matrix", count: 480, total_ns: 3_900_000, share: 0.66 }, { work: "communication", count: 12, total_ns: 1_600_000, share: 0.27 }, { work: "unrecognised", count: 108, total_ns: 400_000, share: 0.07 }], top: [{ name: "void gemm_kernel<float, 128, 64, Tile<float, 16, 16>, false>(float const*, float const*, float*, int, int, int)", kind: "kernel", count: 480, total_ns: 3_900_000, share: 0.66 }, { name: "ncclDevKernel_AllReduce_Sum_f32_RING_LL", kind: "collective", count: 12, total_ns: 1_600_000, share: 0.27 }], names: 9, commands: 600, rank_phases: { are_steps: true, phases: [{ phase: "forward", slowest: null, words: null }, { phase: "backward", slowest: 1, words: "Backward: rank 1 takes 210 us more than rank 0, the median (12 %); commands take 190 us longer, most of all aten::mm (matrix, 150 us)." }, { phase: "data loading", slowest: null, words: null }], ranks: [{ label: "rank 0", phases_ns: [950_000, 1_740_000, null] }, { label: "rank 1", phases_ns: [951_000, 1_950_000, 12_000] }] } },
  ];
  const model_row = (name: string, parent: number | null, total_ns: number, own_ns: number): UsedModule => ({ name, parent, commands: 120, total_ns, own_ns, backward_ns: total_ns / 2, share: total_ns / 5_900_000 });
  const models: ModelUse[] = [
    {
      ...item("models-1", "trace.json.gz: rank 0, NVIDIA H200", 1, 2),
      commands: 600,
      total_ns: 5_900_000,
      phases: [{ phase: "forward", commands: 200, total_ns: 1_900_000, share: 0.32 }, { phase: "backward", commands: 300, total_ns: 3_900_000, share: 0.66 }, { phase: "unknown", commands: 100, total_ns: 100_000, share: 0.02 }],
      steps: [1, 2].map((step) => ({ name: `ProfilerStep#${step}`, total_ns: 2_950_000, forward_ns: 950_000, backward_ns: 1_950_000, optimizer_ns: 0, other_ns: 50_000 })),
      modules: [model_row("Net_0", null, 5_800_000, 100_000), model_row("Block x12", 0, 5_600_000, 0), ...Array.from({ length: 20 }, (_, i) => model_row(`Part_${i}`, 1, 280_000, 280_000)), model_row("Head_0", 0, 100_000, 100_000)],
      modules_left_out: 3,
      modules_left_out_ns: 40_000,
      without_module: { commands: 9, total_ns: 100_000, share: 0.017 },
      modules_reason: null,
      operators: [
        { name: "aten::mm", call: null, shapes: "bf16 [8192, 4096], bf16 [4096, 4096]", calls: 48, total_ns: 3_900_000, share: 0.66, flop_per_s: 612e12, bytes_per_s: 0.4e12, share_of_peak: 0.619, bound: "compute", saved_ns: 1_480_000, reason: null },
        { name: "mylib::fused", call: null, shapes: null, calls: 12, total_ns: 1_600_000, share: 0.27, flop_per_s: null, bytes_per_s: null, share_of_peak: null, bound: null, saved_ns: null, reason: "what this operator computes is not known" },
        { name: null, call: "cudaGraphLaunch", shapes: null, calls: 1, total_ns: 200_000, share: 0.034, flop_per_s: null, bytes_per_s: null, share_of_peak: null, bound: null, saved_ns: null, reason: null },
      ],
      operators_left_out: 4,
      operators_left_out_ns: 150_000,
      outside_ns: 50_000,
      peaks: "NVIDIA H200 SXM (data sheet)",
      saved_ns: 1_480_000,
      efficiency_reason: null,
      collectives: [
        { collective: "all_gather", from_bytes: 8_388_608, ranks: 4, count: 4, total_ns: 300_000, duration_ns: { p50: 74_000 }, algorithm_bytes_per_s: 118e9, bus_bytes_per_s: 88.5e9, best_bus_bytes_per_s: 96.2e9 },
        { collective: "all_reduce", from_bytes: 33_554_432, ranks: 4, count: 6, total_ns: 1_200_000, duration_ns: { p50: 198_000 }, algorithm_bytes_per_s: 171e9, bus_bytes_per_s: 256e9, best_bus_bytes_per_s: 301e9 },
        { collective: "unknown", from_bytes: null, ranks: null, count: 2, total_ns: 100_000, duration_ns: { p50: 50_000 }, algorithm_bytes_per_s: null, bus_bytes_per_s: null, best_bus_bytes_per_s: null },
      ],
      collectives_left_out: 1,
      bandwidth_reason: "2 collectives have no size in the trace",
      memory: {
        allocations: 1200,
        frees: 1188,
        allocated_bytes: 80 * 2 ** 30,
        allocated: { bytes: 61 * 2 ** 30, at_ns: 4_100_000, words: "aten::mm, in Linear_3, backward, ProfilerStep#2" },
        reserved: { bytes: 72 * 2 ** 30, at_ns: 900_000, words: null },
        steps: [1, 2].map((step) => ({ name: `ProfilerStep#${step}`, peak_bytes: (60 + step) * 2 ** 30, end_bytes: (20 + step) * 2 ** 30 })),
        growth: null,
      },
    },
  ];
  models.push({ ...models[0]!, ...item("models-2", "trace.json.gz: rank 1, NVIDIA H200", 1, 2), memory: null });
  const overlaps: Overlap[] = [
    { ...item("overlaps-1", "all_reduce_overlap: step by rank", 1, 2), step_ns: { p50: 1_910_000 }, serial_step_ns: { p50: 2_840_000 }, efficiency: 0.71, best_efficiency: 0.92, inflation: 1.08, bars: [0, 1, 2, 3].map((rank) => ({ label: `rank ${rank}`, span_ns: 1_910_000, compute_only_ns: 880_000 - 9000 * rank, hidden_ns: 610_000, exposed_ns: 310_000 + 9000 * rank, idle_ns: 80_000, other_ns: 30_000 })), causes: [{ cause: "late start of the collective", ns_per_step: 210_000, share: 0.68, meaning: "The collective waits for the last gradient bucket.", advice: "Use smaller buckets." }, { cause: "slow links", ns_per_step: 100_000, share: 0.32, meaning: "Bandwidth is below the links' rate.", advice: "Check the ring's order." }] },
  ];
  const preemptions: Preemption[] = [
    { ...item("preemptions-1", "How long urgent work waits"), verdict: "Priorities help where kernels are short.", is_to_start: true, tail: "p99", alone_tail_ns: 21_000, curves: [{ name: "priority streams", level: "stream", verdict: "helps", reason: null, points: [0.1, 0.5, 1, 5, 10].map((ms) => ({ victim: `${ms} ms kernels`, kernel_ns: ms * 1e6, block_ns: ms * 1e5, latency_ns: { p50: 24_000 + ms * 2e4, tail: 60_000 + ms * 1e5, tail_interval: [55_000 + ms * 9e4, 66_000 + ms * 1.1e5] }, victim_loss: 0.04, is_overloaded: false, failure: null })) }], published: [] },
  ];
  const benches: Bench[] = [
    { ...item("benches-1", "Kernel packages"), cases: [{ kernel: "gemm", backend: "cuda", precision: "fp32", status: "ok", failure: null, latency_ns: { p50: 310_000, p50_interval: [305_000, 316_000] }, throughput: 3.2e3, throughput_unit: "runs/s", flop_per_s: 42e12, intensity: 85, share_of_roof: 0.71, energy_j: 0.12, error: 2.1e-6, change: { verdict: "same", ratio: 1.01 } }, { kernel: "saxpy", backend: "cuda", precision: "fp32", status: "failed", failure: "wrong result: 3 of 1024 differ", latency_ns: { p50: null, p50_interval: null }, throughput: null, throughput_unit: null, flop_per_s: null, intensity: 0.16, share_of_roof: null, energy_j: null, error: 0.4, change: null }], rooflines: [{ backend: "cuda", precision: "fp32", flop_per_s: 60e12, bytes_per_s: 4e12, reason: null }] },
  ];
  return { usages, models, queue_maps, waterfalls, timelines: timelines(next), overlaps, preemptions, benches };
}

function texts(): DocumentText[] {
  return [
    {
      ...item("texts-1", "results/channel.json: host channels", 0, 3),
      plain: ["channel       items/s     p99", "ring_mpsc      48.1 M  212 ns", "sharded        91.7 M  180 ns"],
      opening: ["Six host channels, 4 producers, 1 consumer, 4-byte payload."],
      sections: [{ title: "Throughput", facts: [["payload", "4 B"], ["producers", "4"], ["pinned", "yes"]], tables: [{ columns: [{ heading: "channel", is_text: true }, { heading: "items/s", is_text: false }, { heading: "p99", is_text: false }], rows: [["ring_mpsc", "48.1 M", "212 ns"], ["sharded", "91.7 M", "180 ns"], ["mutex_deque", "6.20 M", "4.10 us"]], after: "p99 is of one push." }], remarks: ["The mutex was contended 41 % of the time."] }],
    },
  ];
}

export function full_document(): ReportDocument {
  const next = random(12);
  return {
    schema: "weir.report/2",
    title: "Nightly sweep, branch stream-pool",
    created: "2026-11-16T21:27:03Z",
    weir: { version: "0.11.0", commit: "7462077c1d71" },
    command_line: ["weir", "report", "results/", "--history", "history.db", "-o", "report.html"],
    sources: [
      { path: "results/branch/sweep.json", schema: "weir.sweep/1", created: "2026-11-16T20:11:42Z", status: "complete", command_line: ["weir", "sweep", "hetero_kernels", "--device", "cuda:0", "--streams", "1,2,4,8,12,16,24,32", "--submit", "inline,graph,channel", "-o", "results/branch/sweep.json"], environment: 0 },
      { path: "results/comparison.json", schema: "weir.comparison/1", created: null, status: "complete", command_line: ["weir", "compare", "results/main/sweep.json", "results/branch/sweep.json"], environment: 0 },
      { path: "results/ranks 4/overlap.json", schema: "weir.sweep/1", created: "2026-11-16T20:40:00Z", status: "failed", command_line: ["weir", "run", "all_reduce_overlap", "--ranks", "4", "--label", "it's a test"], environment: 1 },
      { path: "results/channel.json", schema: "weir.channel/1", created: "2026-11-16T20:45:00Z", status: "complete", command_line: [], environment: 0 },
    ],
    refused: [{ path: "results/old.json", reason: "weir.result/0 is older than this program reads. Measure again with weir 0.3 or later." }],
    verdict: {
      tone: "bad",
      headline: "hetero_kernels is 18 % slower at 16 streams, inline",
      findings: [
        { tone: "bad", text: "hetero_kernels, 16 streams, inline: latency went from 412 us to 487 us (1.182x, interval 1.161 to 1.203).", advice: "Submit as a graph: at 16 streams it costs 310 ns for a command where inline costs 2.10 us.", anchor: "comparisons-1" },
        { tone: "bad", text: "1 of 24 points failed: inline at 32 streams ran out of memory.", advice: "Use --scale small, or fewer streams.", anchor: "scaling-1" },
        { tone: "warning", text: "From 9 streams on, streams share 8 hardware queues; 44 % of a kernel's way is waiting.", advice: "Set CUDA_DEVICE_MAX_CONNECTIONS=32.", anchor: "waterfalls-1" },
        { tone: "good", text: "graph at 16 streams is 12.6 % faster than the baseline.", advice: null, anchor: "comparisons-1" },
        { tone: "neutral", text: "Two environments are in this report; nothing is drawn across them.", advice: null, anchor: null },
      ],
    },
    fleets: [make_fleet()],
    fleet_nodes: [make_fleet_node()],
    comparisons: comparisons(),
    scaling: scaling(next),
    distributions: distributions(next),
    ...pictures(next),
    histories: histories(next),
    texts: texts(),
    environments: [
      { id: "9f2c1a77e0b34d55", label: "NVIDIA H200 · cuda:0", facts: [["device", "NVIDIA H200"], ["driver", "580.65.06"], ["runtime", "CUDA 13.0"], ["hardware queues", "8"], ["memory", "140 GiB"], ["system", "Debian GNU/Linux 12 (bookworm)"], ["kernel", "Linux 6.1.0-31-amd64"], ["cpus", "2 x Xeon Platinum 8480C"], ["governor", "performance"]], variables: [["CUDA_DEVICE_MAX_CONNECTIONS", "8"], ["CUDA_MODULE_LOADING", "EAGER"]] },
      { id: "11d0c6ab42ef9a01", label: "NVIDIA H200 x 4 · cuda", facts: [["device", "NVIDIA H200"], ["ranks", "4"], ["driver", "580.65.06"]], variables: [] },
    ],
  };
}

/** Everything empty but the verdict: what the report of one small file may come to. */
export function bare_document(): ReportDocument {
  const full = full_document();
  return { ...full, fleets: [], fleet_nodes: [], comparisons: [], usages: [], models: [], scaling: [], distributions: [], queue_maps: [], waterfalls: [], timelines: [], overlaps: [], preemptions: [], benches: [], histories: [], texts: [], environments: [], refused: [], sources: [], command_line: [], verdict: { tone: "neutral", headline: "Nothing stands out.", findings: [] } };
}

export const kHostile = `</script><script>window.pwned=1</script><img src=x onerror="window.pwned=1">\u202Egpj.exe\u2066\u0007 ${"W".repeat(100_000)}`;

/** The full document with every string that a file can choose made hostile. Ids, statuses and units stay. */
export function hostile_document(): ReportDocument {
  const kept = new Set(["schema", "id", "anchor", "tone", "verdict", "created", "at", "spans", "packed", "kind", "side", "url", "unit", "basis"]);
  const visit = (value: unknown, key: string): unknown => {
    if (typeof value === "string") return kept.has(key) ? value : kHostile;
    if (Array.isArray(value)) return value.map((one) => visit(one, key));
    if (value !== null && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, visit(one, name)]));
    return value;
  };
  return visit(full_document(), "") as ReportDocument;
}
