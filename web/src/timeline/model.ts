// A timeline as the picture uses it: lanes that are read when they are first needed, what is collapsed, what is searched.
// Knows nothing of canvas or elements.

import type { SpanKind, Timeline } from "../document";
import { decode_spans, type Spans } from "./decode";
import { lay_rows, type Row, type Rows } from "./rows";

export const kKinds: readonly SpanKind[] = ["kernel", "collective", "copy", "memset", "host", "step", "operator"];

export interface LaneContent extends Rows {
  spans: Spans;
}

export interface ModelLane {
  group: number;
  label: string;
  claimed: number;
  claimed_busy_ns: number;
  content: LaneContent | null; // null until read
  matches: Uint32Array | null; // spans that match the search, by start; null where nothing is searched or not read
}

export interface SpanRef {
  lane: number;
  span: number;
}

export class Model {
  readonly lanes: ModelLane[] = [];
  readonly kind_of: Uint8Array; // kind of each name, and of the unknown name behind them
  readonly is_collapsed: boolean[];
  total: number; // ns; grows where a lane turns out longer than the file says
  matching: Uint8Array | null = null; // of each name
  readonly first_lane: number[] = []; // of each group, and one behind the last
  private folded_: string[] | null = null; // names in lower case

  constructor(readonly timeline: Timeline) {
    this.kind_of = new Uint8Array(timeline.names.length + 1);
    timeline.names.forEach((name, i) => (this.kind_of[i] = Math.max(0, kKinds.indexOf(name.kind))));
    this.is_collapsed = timeline.groups.map(() => false);
    this.total = Number.isFinite(timeline.end_ns) ? Math.max(1, timeline.end_ns) : 1;
    timeline.groups.forEach((group, g) => {
      this.first_lane.push(this.lanes.length);
      for (const lane of group.lanes) {
        this.lanes.push({
          group: g,
          label: lane.label,
          claimed: lane.count,
          claimed_busy_ns: lane.busy_ns,
          content: null,
          matches: null,
        });
      }
    });
    this.first_lane.push(this.lanes.length);
  }

  /** Reads the lane if it is not read yet. */
  read(index: number): LaneContent {
    const lane = this.lanes[index]!;
    if (lane.content) return lane.content;
    const { spans: text } = this.timeline.groups[lane.group]!.lanes[index - this.first_lane[lane.group]!]!;
    const spans = decode_spans(text, lane.claimed, this.timeline.names.length);
    lane.content = { spans, ...lay_rows(spans, this.kind_of) };
    for (const { ends, count } of lane.content.rows) this.total = Math.max(this.total, ends[count - 1] ?? 0);
    if (this.matching) lane.matches = this.matches_in(lane.content);
    return lane.content;
  }

  read_all(): void {
    for (let i = 0; i < this.lanes.length; ++i) this.read(i);
  }

  name(index: number): string {
    return this.timeline.names[index]?.text ?? "(name is not in the file)";
  }

  kind(index: number): SpanKind {
    return kKinds[this.kind_of[index]!]!;
  }

  kinds_present(): SpanKind[] {
    const seen = new Set(this.timeline.names.map((name) => name.kind));
    return kKinds.filter((kind) => seen.has(kind));
  }

  lane_label(index: number): string {
    const lane = this.lanes[index]!;
    return `${this.timeline.groups[lane.group]!.label}, ${lane.label}`;
  }

  /** Finds names that hold `text`, in any case; "" ends the search. Answers how many names match. */
  search(text: string): number {
    for (const lane of this.lanes) lane.matches = null;
    this.matching = null;
    if (text === "") return 0;
    this.folded_ ??= this.timeline.names.map((name) => name.text.toLowerCase());
    const wanted = text.toLowerCase();
    const matching = new Uint8Array(this.timeline.names.length + 1);
    let names = 0;
    this.folded_.forEach((name, i) => {
      if (!name.includes(wanted)) return;
      matching[i] = 1;
      ++names;
    });
    this.matching = matching;
    for (let i = 0; i < this.lanes.length; ++i) {
      const lane = this.lanes[i]!;
      const content = this.read(i);
      lane.matches ??= this.matches_in(content);
    }
    return names;
  }

  match_count(): number {
    return this.lanes.reduce((sum, lane) => sum + (lane.matches?.length ?? 0), 0);
  }

  /** The match that follows `from` by start, then by lane; wraps around. */
  next_match(from: SpanRef | null, is_forward: boolean): SpanRef | null {
    const sign = is_forward ? 1 : -1;
    const key = (ref: SpanRef) => this.lanes[ref.lane]!.content!.spans.starts[ref.span]!;
    const order = (a: SpanRef, b: SpanRef) => sign * (key(a) - key(b) || a.lane - b.lane || a.span - b.span);
    let after: SpanRef | null = null;
    let first: SpanRef | null = null;
    this.lanes.forEach((lane, index) => {
      const { matches } = lane;
      if (!matches || matches.length === 0) return;
      const at = (i: number): SpanRef => ({ lane: index, span: matches[is_forward ? i : matches.length - 1 - i]! });
      if (!first || order(at(0), first) < 0) first = at(0);
      if (!from) return;
      let low = 0;
      let high = matches.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (order(at(middle), from) <= 0) low = middle + 1;
        else high = middle;
      }
      if (low < matches.length && (!after || order(at(low), after) < 0)) after = at(low);
    });
    return after ?? first;
  }

  /** First span of the lane that ends at `moment` or later, in order of start; null where there is none. */
  span_at(lane: number, moment: number): number | null {
    const { spans } = this.read(lane);
    let low = 0;
    let high = spans.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (spans.starts[middle]! < moment) low = middle + 1;
      else high = middle;
    }
    if (low > 0 && spans.starts[low - 1]! + spans.durations[low - 1]! > moment) --low;
    return low < spans.count ? low : null;
  }

  private matches_in({ spans }: LaneContent): Uint32Array {
    const { names, count } = spans;
    const matching = this.matching!;
    let found = 0;
    for (let i = 0; i < count; ++i) found += matching[names[i]!]!;
    const matches = new Uint32Array(found);
    for (let i = 0, at = 0; at < found; ++i) if (matching[names[i]!]) matches[at++] = i;
    return matches;
  }
}

/** Time by name for the lanes of one group, most first. */
export function totals_of_group(model: Model, group: number): { name: number; count: number; ns: number }[] {
  const sums = new Map<number, { name: number; count: number; ns: number }>();
  for (let lane = model.first_lane[group]!; lane < model.first_lane[group + 1]!; ++lane) {
    const { names, durations, count } = model.read(lane).spans;
    for (let i = 0; i < count; ++i) {
      const name = names[i]!;
      let sum = sums.get(name);
      if (!sum) sums.set(name, (sum = { name, count: 0, ns: 0 }));
      ++sum.count;
      sum.ns += durations[i]!;
    }
  }
  return [...sums.values()].sort((a, b) => b.ns - a.ns || a.name - b.name);
}

export type { Row };
