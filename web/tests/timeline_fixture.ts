// Makes timelines for tests: the encoder that src/page has in C++, and lanes of any size from a fixed seed.
import type { Lane, SpanKind, Timeline } from "../src/document";

export type Triple = [start: number, duration: number, name: number];

export function leb128(value: number): number[] {
  const bytes: number[] = [];
  do {
    const low = value % 128;
    value = Math.floor(value / 128);
    bytes.push(value > 0 ? low + 128 : low);
  } while (value > 0);
  return bytes;
}

export function encode_spans(spans: readonly Triple[]): string {
  const bytes: number[] = [];
  let before = 0;
  for (const [start, duration, name] of spans) {
    bytes.push(...leb128(start - before), ...leb128(duration), ...leb128(name));
    before = start;
  }
  return Buffer.from(bytes).toString("base64");
}

export function lane(label: string, spans: readonly Triple[]): Lane {
  return { label, count: spans.length, busy_ns: spans.reduce((sum, [, duration]) => sum + duration, 0), spans: encode_spans(spans) };
}

/** Numbers in [0, 1) that are the same in every run. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}

const kNames: [string, SpanKind][] = [
  ["ampere_bf16_s16816gemm_128x128_ldg8_stages_32x5_nn", "kernel"],
  ["flash_fwd_splitkv_kernel", "kernel"],
  ["layer_norm_forward", "kernel"],
  ["gelu_backward", "kernel"],
  ["ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "collective"],
  ["Memcpy HtoD (Pinned -> Device)", "copy"],
  ["Memset (Device)", "memset"],
  ["cudaLaunchKernel", "host"],
  ["ProfilerStep", "step"],
];

/** Streams, queues and a host thread; `count` spans in all. */
export function make_timeline(count: number, streams: number, queues: number): Timeline {
  const random = seeded(12);
  const lanes = streams + queues;
  const each = Math.floor(count / (lanes + 1));
  let end = 0;
  const device_lane = (label: string, number: number): Lane => {
    const spans: Triple[] = [];
    let at = Math.floor(random() * 50_000);
    for (let i = 0; i < each; ++i) {
      const pick = random();
      const name = pick < 0.8 ? (number + Math.floor(pick * 40)) % 4 : pick < 0.9 ? 4 : pick < 0.97 ? 5 : 6;
      const duration = Math.floor(1_500 + random() * random() * 60_000 * (name === 4 ? 3 : 1));
      spans.push([at, duration, name]);
      at += duration + Math.floor(random() < 0.02 ? random() * 900_000 : random() * 9_000);
    }
    end = Math.max(end, at);
    return lane(label, spans);
  };
  const stream_lanes = Array.from({ length: streams }, (_, i) => device_lane(`stream ${i + 7}`, i));
  const queue_lanes = Array.from({ length: queues }, (_, i) => device_lane(`queue ${i}`, i));
  const host: Triple[] = [];
  const left = count - each * lanes;
  for (let at = 0; host.length < left; ) {
    const length = Math.floor(40_000 + random() * 200_000);
    host.push([at, length, 8]);
    for (let inner = at + 500; inner < at + length - 9_000 && host.length < left; inner += 9_000) host.push([inner, Math.floor(2_000 + random() * 5_000), 7]);
    at += length + 1_000;
    end = Math.max(end, at);
  }
  return {
    id: "timeline-1",
    title: "Timeline of trace.json",
    environment: null,
    source: null,
    notes: [],
    origin_ns: 0,
    end_ns: end,
    source_of_times: "device timestamps",
    names: kNames.map(([text, kind]) => ({ text, kind })),
    groups: [
      { label: "GPU 0 streams", lanes: stream_lanes },
      { label: "GPU 0 hardware queues", lanes: queue_lanes },
      { label: "host threads", lanes: [lane("thread 4711", host)] },
    ],
    left_out: 0,
    left_out_reason: null,
  };
}
