// The report's document, weir.report/2, as the page receives it: `weir report` fills it (src/page), the page only draws it.
// Every number is in the unit of its name (ns, bytes, share of 1); null where there is none, with a reason beside it.
// docs/schema/weir.report.2.json says the same to a validator; a test keeps the two alike.

export interface ReportDocument {
  schema: "weir.report/2";
  title: string;
  created: string; // ISO 8601, UTC
  weir: { version: string; commit: string };
  command_line: string[];
  sources: Source[];
  refused: Refused[];
  verdict: Verdict;
  fleets: Fleet[];
  fleet_nodes: FleetNode[];
  comparisons: Comparison[];
  usages: Usage[];
  models: ModelUse[];
  scaling: Scaling[];
  distributions: Distribution[];
  queue_maps: QueueMap[];
  waterfalls: Waterfall[];
  timelines: Timeline[];
  overlaps: Overlap[];
  preemptions: Preemption[];
  benches: Bench[];
  histories: History[];
  texts: DocumentText[];
  environments: Environment[];
}

// What was read, in order. `subjects` index ReportDocument.environments.
export interface Source {
  path: string;
  schema: string; // "weir.sweep/1", or the importer's format of a trace
  created: string | null;
  status: string; // "complete", "failed", "interrupted", ...
  command_line: string[]; // as it was run; empty where the file does not say
  environment: number | null;
}

export interface Refused {
  path: string;
  reason: string; // what it is, and what to do
}

// One machine, device and set of variables. Nothing from two environments is ever drawn as one curve.
export interface Environment {
  id: string; // fingerprint: same id, same machine, device, driver and variables
  label: string; // "NVIDIA H200 · cuda:0", unique in the document
  facts: [string, string][]; // what the result files say of it, in their order
  variables: [string, string][];
}

export type Tone = "bad" | "warning" | "good" | "neutral";

// Verdict first: what is slow, what changed, what to do. Sorted, the worst first.
export interface Verdict {
  tone: Tone;
  headline: string;
  findings: Finding[];
}

export interface Finding {
  tone: Tone;
  text: string;
  advice: string | null;
  anchor: string | null; // id of an item below
}

// What every item below begins with.
export interface Item {
  id: string; // unique in the document; the element's id on the page
  title: string;
  environment: number | null; // index into environments
  source: number | null; // index into sources
  notes: string[];
}

export type Interval = [number, number];

// Many nodes: which devices are slow, wrong or set differently, and the map of all their values.
export interface Fleet extends Item {
  nodes: number;
  devices: number;
  unfit: number; // nodes
  significance: number | null; // chance that a fleet without a slow device has any named
  threshold: number | null; // smaller effects do not matter
  groups: FleetGroup[];
  node_names: string[];
  device_names: string[];
  rows: FleetRows;
  figures: FleetFigure[];
  constants: FleetConstant[];
  findings: FleetFinding[]; // the worst first
  findings_left_out: number;
  differences: FleetDifference[];
  unfit_nodes: UnfitNode[]; // not all where there are many
}

// Devices that are compared with each other.
export interface FleetGroup {
  model: string;
  settings: string | null; // null: all devices of the model have the same
  devices: number;
  figures: FleetSummary[];
}

export interface FleetSummary {
  name: string;
  unit: string;
  count: number;
  p50: number | null;
  min: number | null;
  max: number | null;
  spread: number | null; // robust standard deviation between devices, relative to p50
}

// The devices of the map, in columns: lists of the same length, besides `unfit`.
export interface FleetRows {
  nodes: number[]; // indices into node_names
  devices: number[]; // indices into device_names
  groups: number[]; // indices into groups
  serials: (string | null)[];
  unfit: number[]; // indices of rows
}

export interface FleetFigure {
  name: string;
  unit: string;
  words: string; // "GEMM bf16"
  goal: string; // lower, higher, none
  packed: string; // base64 of 32-bit floats, lowest byte first, one for each row; NaN: no value
}

// A state that all devices share, or a figure that none has.
export interface FleetConstant {
  name: string;
  unit: string;
  words: string;
  value: number | null;
  count: number; // devices that have it
}

export interface FleetFinding {
  kind: string; // wrong, fault, slow, place, link, changed, missing, different
  row: number | null; // index into rows; null: of a node, or not on the map
  node: string; // empty where it is of several
  device: string | null;
  place: string | null; // where all nodes are slow: "switch leaf3"
  serial: string | null;
  figure: string | null;
  to: string | null; // the other node of a link, or the other device of a copy
  value: number | null;
  typical: number | null; // the median of its peers
  effect: number | null; // value / typical - 1
  p: number | null; // that a healthy fleet of this size shows as much anywhere
  peers: number;
  cause: string | null; // the likely one
  sentence: string;
  is_unfit: boolean;
}

// A version or a setting that is not the same everywhere.
export interface FleetDifference {
  name: string;
  is_of_device: boolean;
  left_out: number; // values beyond the list
  values: FleetHolders[]; // the most frequent first
}

export interface FleetHolders {
  value: string;
  count: number;
  first: string[]; // a few of their names
}

export interface UnfitNode {
  name: string;
  reason: string | null;
}

// What one node measured of its own devices.
export interface FleetNode extends Item {
  node: string;
  duration_ns: number | null;
  failure: string | null;
  facts: [string, string][];
  place: [string, string][]; // rack, switch, ...
  devices: ProbedDevice[];
  figures: ProbedFigure[];
}

export interface ProbedDevice {
  name: string;
  model: string;
  serial: string | null;
  bus: string | null;
  facts: [string, string][];
  throttle: string[]; // reasons for a lower clock under load
  wrong: string[]; // outputs that were not right
  failure: string | null;
}

export interface ProbedFigure {
  name: string;
  unit: string;
  words: string;
  goal: string; // lower, higher, none
  values: ProbedValue[]; // several of one device: copies to others
}

export interface ProbedValue {
  device: number; // index into devices
  to: string | null;
  value: number | null;
  range: Interval | null; // what a repetition may show
  reason: string | null; // why there is no value
}

export interface Comparison extends Item {
  baseline: string;
  test: string;
  threshold: number;
  verdicts: Record<string, number>; // slower, faster, same, ambiguous, not_comparable
  pairs: ComparedPair[];
  only: { label: string; side: "baseline" | "test" }[]; // points without a partner
  totals?: ComparedTotal[]; // of two traces: busy, idle and work done
}

export interface ComparedTotal {
  quantity: string;
  unit: string; // "ns", "bytes", or empty for counts
  baseline: number | null;
  test: number | null;
  ratio: number | null;
}

export interface ComparedPair {
  label: string;
  verdict: "slower" | "faster" | "same" | "ambiguous" | "not_comparable";
  failure: string | null;
  metrics: ComparedMetric[];
}

export interface ComparedMetric {
  metric: string; // latency, throughput
  unit: string;
  verdict: "slower" | "faster" | "same" | "ambiguous" | "not_comparable";
  reason: string | null;
  baseline: { p50: number | null };
  test: { p50: number | null };
  ratio: number | null;
  interval: Interval | null;
  adjusted_p: number | null;
}

// Throughput and latency of one workload over streams: one curve for each way of submitting.
export interface Scaling extends Item {
  workload: string;
  unit: string; // of throughput
  meaning: string; // weak or strong scaling, in words
  curves: ScalingCurve[];
}

export interface ScalingCurve {
  name: string; // "inline", "graph", "inline, 16 compute units"
  points: ScalingPoint[];
  floor: { streams: number; ns_per_command: number | null }[]; // the null device's
  usl: Usl | null;
  usl_reason: string | null;
  knee: number | null;
  best_streams: number | null;
}

// A failed point keeps its place: numbers null, `failure` says why.
export interface ScalingPoint {
  streams: number;
  status: string;
  failure: string | null;
  throughput: number | null;
  throughput_interval: Interval | null;
  latency_ns: { p50: number | null; p50_interval: Interval | null; p99: number | null };
  host_ns_per_command: number | null;
  efficiency: number | null;
  count: number;
}

// throughput(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1))
export interface Usl {
  gamma: number;
  alpha: number;
  beta: number;
  r_squared: number | null;
  peak_streams: number | null;
}

// Latencies as an ECDF: `values` are all samples in order where there are as many as `count`, else quantiles at
// (i + 0.5) / values.length: 512, fewer in a report of more than 200 points.
export interface Distribution extends Item {
  unit: string; // "ns"
  series: DistributionSeries[];
}

export interface DistributionSeries {
  name: string;
  count: number;
  values: number[];
  p50: number | null;
  p95: number | null;
  p99: number | null;
  reason: string | null; // why there are no values
}

// Which stream ran on which hardware queue.
export interface QueueMap extends Item {
  basis: string; // "probe", "runtime", "timeline": what it rests on
  mapping: string; // in words: fixed, dynamic, ...
  queues: string[];
  streams: string[];
  cells: QueueCell[];
}

export interface QueueCell {
  stream: number; // index
  queue: number; // index
  commands: number | null;
}

// Where the time of a trace's devices went, and which commands took most of it.
export interface Usage extends Item {
  bars: OverlapBar[]; // one for each device, of its whole span
  work: UsedWork[]; // most time first
  top: UsedName[]; // most time first
  names: number; // different names of commands, at least
  commands: number;
  rank_phases: RankPhases | null; // of several ranks
}

// How long each rank took for each phase of a step, or of the trace.
export interface RankPhases {
  are_steps: boolean; // times are of a step
  phases: RankPhase[];
  ranks: RankOfPhases[];
}

export interface RankPhase {
  phase: string; // forward, backward, optimizer, other, communication, data loading
  slowest: number | null; // index into ranks; null where they are alike
  words: string | null; // which rank is slowest, by how much, and why
}

export interface RankOfPhases {
  label: string;
  phases_ns: (number | null)[]; // in the order of phases
}

// What kind of work kernels do, by their names.
export interface UsedWork {
  work: string;
  count: number;
  total_ns: number;
  share: number; // of the time in which the devices were busy
}

export interface UsedName {
  name: string;
  kind: string;
  count: number;
  total_ns: number;
  share: number; // of the time of all commands
}

// What a device worked for in the words of a model, its collectives and its memory. Of several ranks the one that idled most
// comes first; others follow, up to 8 in all.
export interface ModelUse extends Item {
  commands: number;
  total_ns: number; // of all commands
  phases: UsedPhase[];
  steps: UsedStep[]; // by start; empty where the trace marks none
  modules: UsedModule[]; // parents before their parts, else most time first
  modules_left_out: number; // rows that are too small
  modules_left_out_ns: number; // what these and modules beyond the document's list took
  without_module: UsedWhole;
  modules_reason: string | null; // why there are none
  operators: UsedOperator[]; // by shapes, most time first
  operators_left_out: number;
  operators_left_out_ns: number;
  outside_ns: number; // of commands of no operator
  peaks: string | null; // those that operators are compared with, and their source
  saved_ns: number | null; // if all operators that are known ran at the peaks
  efficiency_reason: string | null; // why there are no peaks
  collectives: UsedCollective[]; // by kind and size; those with most time
  collectives_left_out: number;
  bandwidth_reason: string | null; // why some of their bandwidths are not known
  memory: UsedMemory | null; // where the trace has allocations
}

export interface UsedWhole {
  commands: number;
  total_ns: number;
  share: number | null; // of the time of all commands
}

export interface UsedPhase {
  phase: string; // forward, backward, optimizer, unknown
  commands: number;
  total_ns: number;
  share: number | null;
}

export interface UsedStep {
  name: string;
  total_ns: number; // of its commands
  forward_ns: number;
  backward_ns: number;
  optimizer_ns: number;
  other_ns: number;
}

// A module, or all modules of one class below the same parent.
export interface UsedModule {
  name: string; // "DecoderLayer x28"
  parent: number | null; // index into modules
  commands: number;
  total_ns: number; // with its parts
  own_ns: number; // without them
  backward_ns: number;
  share: number | null;
}

export interface UsedOperator {
  name: string | null; // "aten::mm"; null: `call` was made by a module or a phase
  call: string | null;
  shapes: string | null;
  calls: number | null;
  total_ns: number;
  share: number | null;
  flop_per_s: number | null;
  bytes_per_s: number | null;
  share_of_peak: number | null; // of the one that binds
  bound: string | null; // compute, memory
  saved_ns: number | null; // at that peak
  reason: string | null; // why some of these are not known, or in which respect they are estimates
}

// Collectives of one kind, of sizes from `from_bytes` to just below twice that. Bandwidths are as NCCL's tests define them.
export interface UsedCollective {
  collective: string; // all_reduce, all_gather, ...
  from_bytes: number | null;
  ranks: number | null;
  count: number;
  total_ns: number; // with the wait for other ranks
  duration_ns: { p50: number | null };
  algorithm_bytes_per_s: number | null;
  bus_bytes_per_s: number | null;
  best_bus_bytes_per_s: number | null; // of the one that was fastest
}

// What the program's allocator had on the device.
export interface UsedMemory {
  allocations: number;
  frees: number;
  allocated_bytes: number | null; // of all allocations together
  allocated: MemoryPeak;
  reserved: MemoryPeak;
  steps: MemoryStep[]; // by start; empty where the trace marks none
  growth: string | null; // that each step ends with more, in words; null where that is not so
}

export interface MemoryPeak {
  bytes: number | null;
  at_ns: number | null; // when it was reached first
  words: string | null; // what ran then: "aten::mm, in Linear_3, forward"
}

export interface MemoryStep {
  name: string;
  peak_bytes: number | null;
  end_bytes: number | null;
}

// Where a command's time goes, hop by hop.
export interface Waterfall extends Item {
  kind: string; // kernel, copy, ...
  commands: number;
  way_ns: number | null;
  hops: Hop[];
  missing: { hop: string; reason: string }[];
}

export interface Hop {
  from: string;
  to: string;
  count: number;
  duration_ns: { mean: number | null; p50: number | null; p95: number | null; p99: number | null };
  share: number | null;
}

// A lane per stream and per hardware queue, and of the operators of each stream. `spans` is base64 of LEB128 (unsigned)
// triples, one for each span, in order of start: start minus the start before (ns; of the first: minus zero), duration (ns),
// index into `names`. Times count from `origin_ns`. Names' kinds decide the colour.
export interface Timeline extends Item {
  origin_ns: number;
  end_ns: number; // of the last span, from origin
  source_of_times: string;
  names: { text: string; kind: SpanKind }[];
  groups: LaneGroup[];
  left_out: number; // spans beyond the limit
  left_out_reason: string | null;
}

export type SpanKind = "kernel" | "collective" | "copy" | "memset" | "host" | "step" | "operator";

export interface LaneGroup {
  label: string; // "Streams of GPU 0", "Hardware queues of GPU 0", "host threads"
  lanes: Lane[];
}

export interface Lane {
  label: string;
  count: number;
  busy_ns: number;
  spans: string;
}

export interface Overlap extends Item {
  step_ns: { p50: number | null };
  serial_step_ns: { p50: number | null };
  efficiency: number | null;
  best_efficiency: number | null;
  inflation: number | null;
  bars: OverlapBar[]; // one for each rank
  causes: OverlapCause[];
}

// The parts of one step: add up to span_ns.
export interface OverlapBar {
  label: string;
  span_ns: number;
  compute_only_ns: number;
  hidden_ns: number;
  exposed_ns: number;
  idle_ns: number;
  other_ns: number;
}

export interface OverlapCause {
  cause: string;
  ns_per_step: number;
  share: number;
  meaning: string;
  advice: string;
}

export interface Preemption extends Item {
  verdict: string;
  is_to_start: boolean; // latencies end at the first block; false: at the end of the request
  tail: string; // of latency_ns.tail and alone_tail_ns: "p99", "p90" or "p50", the lowest that its points have requests for
  alone_tail_ns: number | null;
  curves: PreemptionCurve[];
  published: PublishedCurve[];
}

export interface PreemptionCurve {
  name: string;
  level: string | null;
  verdict: string | null;
  reason: string | null; // why it was not measured
  points: PreemptionPoint[];
}

export interface PreemptionPoint {
  victim: string;
  kernel_ns: number | null; // the victim's kernel: x
  block_ns: number | null;
  latency_ns: { p50: number | null; tail: number | null; tail_interval: Interval | null };
  victim_loss: number | null;
  is_overloaded: boolean;
  failure: string | null;
}

export interface PublishedCurve {
  name: string; // "XSched Lv1, NVIDIA GV100"
  url: string;
  points: { kernel_ns: number; latency_ns: { p50: number | null; tail: number | null } }[];
}

// Leaderboard and roofline of a bench folder.
export interface Bench extends Item {
  cases: BenchCase[];
  rooflines: Roofline[];
}

export interface BenchCase {
  kernel: string;
  backend: string;
  precision: string;
  status: string; // ok, failed, ...
  failure: string | null;
  latency_ns: { p50: number | null; p50_interval: Interval | null };
  throughput: number | null;
  throughput_unit: string | null;
  flop_per_s: number | null;
  intensity: number | null; // flop per byte
  share_of_roof: number | null;
  energy_j: number | null;
  error: number | null; // against the reference
  change: { verdict: string; ratio: number | null } | null; // against the baseline
}

export interface Roofline {
  backend: string;
  precision: string;
  flop_per_s: number | null; // peak
  bytes_per_s: number | null;
  reason: string | null;
}

// A series from the history, all of one environment.
export interface History extends Item {
  workload: string;
  metric: string;
  unit: string;
  is_less_better: boolean;
  points: HistoryPoint[];
  changes: HistoryChange[];
  serial?: string | null; // of the device: what a fleet says of it links here
}

export interface HistoryPoint {
  at: string; // ISO 8601
  commit: string;
  tag: string | null;
  p50: number;
  interval: Interval | null;
  count: number;
}

export interface HistoryChange {
  index: number; // first point after the change
  ratio: number; // median after / median before
  p: number | null;
  verdict: "slower" | "faster";
}

// Documents without a picture of their own, as `weir` tells them in the terminal: in sections, or (`plain`) as lines
// whose columns align in a font of fixed width.
export interface DocumentText extends Item {
  plain: string[];
  opening: string[];
  sections: {
    title: string;
    facts: [string, string][];
    tables: { columns: { heading: string; is_text: boolean }[]; rows: string[][]; after: string }[];
    remarks: string[];
  }[];
}
