// A fleet as numbers: values of each figure by row, what is typical of a row's group, how far each row is from it, and
// which rows are named. No pixels and no words here.
import type { Fleet, FleetFigure, FleetFinding } from "../document";

/** The floats of a figure: base64, 4 bytes each, lowest first. */
export function unpack(packed: string, count: number): Float32Array {
  const bytes = atob(packed);
  if (bytes.length !== 4 * count) throw new Error(`${bytes.length} bytes of values for ${count} devices: the document is damaged. Make the report again.`);
  const view = new DataView(new ArrayBuffer(bytes.length));
  for (let i = 0; i < bytes.length; ++i) view.setUint8(i, bytes.charCodeAt(i));
  return Float32Array.from({ length: count }, (_, i) => view.getFloat32(4 * i, true));
}

export function p50_of(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** What colours reach to: a round share above most effects and the threshold. */
const kReaches = [0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 1];

export interface FigureView {
  figure: FleetFigure;
  values: Float32Array; // by row; NaN: none
  typical: (number | null)[]; // by group
  effects: Float32Array; // by row: value / typical - 1; infinite where what is typical is 0; NaN: none
  reach: number; // effects from -reach to reach have colours of their own
  sign: 1 | -1; // times an effect: above 0 is worse (of a state: above what is typical)
}

export class FleetModel {
  readonly size: number;
  readonly named = new Map<number, FleetFinding[]>(); // by row
  readonly named_rows: number[]; // in order of the findings: the worst first
  private readonly views = new Map<number, FigureView>();

  constructor(readonly fleet: Fleet) {
    this.size = fleet.rows.nodes.length;
    for (const finding of fleet.findings) {
      if (finding.row === null || finding.row >= this.size) continue;
      const those = this.named.get(finding.row);
      if (those) those.push(finding);
      else this.named.set(finding.row, [finding]);
    }
    this.named_rows = [...this.named.keys()];
  }

  /** Unpacked when first asked for: most figures are never looked at. */
  view(index: number): FigureView {
    let view = this.views.get(index);
    if (!view) {
      view = this.read(index);
      this.views.set(index, view);
    }
    return view;
  }

  /** The figure of the first finding that has one on the map, else the first that is judged. */
  first_figure(): number {
    for (const finding of this.fleet.findings) {
      const index = this.fleet.figures.findIndex((figure) => figure.name === finding.figure);
      if (index >= 0 && finding.row !== null) return index;
    }
    return Math.max(0, this.fleet.figures.findIndex((figure) => figure.goal !== "none"));
  }

  /** Nodes in the order of the map: as they are named, or those with the worst value of the figure first. */
  order(view: FigureView | null): number[] {
    const { node_names, rows } = this.fleet;
    const nodes = node_names.map((_, node) => node);
    if (!view) {
      const natural = new Intl.Collator("en", { numeric: true });
      return nodes.sort((a, b) => natural.compare(node_names[a]!, node_names[b]!));
    }
    const worst = new Float64Array(nodes.length).fill(-Infinity);
    for (let row = 0; row < this.size; ++row) {
      const effect = view.effects[row]! * view.sign;
      const node = rows.nodes[row]!;
      if (effect > worst[node]!) worst[node] = effect;
    }
    return nodes.sort((a, b) => (worst[a] === worst[b] ? a - b : worst[b]! - worst[a]!));
  }

  name_of(row: number): string {
    const { node_names, device_names, rows } = this.fleet;
    return `${node_names[rows.nodes[row]!] ?? "?"} ${device_names[rows.devices[row]!] ?? "?"}`;
  }

  private read(index: number): FigureView {
    const figure = this.fleet.figures[index]!;
    const values = unpack(figure.packed, this.size);
    const groups = this.fleet.rows.groups;
    const typical = Array.from({ length: Math.max(1, this.fleet.groups.length) }, (_, group): number | null => {
      const known = this.fleet.groups[group]?.figures.find((one) => one.name === figure.name)?.p50;
      return known ?? p50_of([...values].filter((value, row) => groups[row] === group && Number.isFinite(value)));
    });
    const effects = values.map((value, row) => {
      const middle = typical[groups[row]!] ?? NaN;
      if (middle !== 0) return value / middle - 1;
      return value === 0 ? 0 : value * Infinity;
    });
    const sizes = [...effects].filter(Number.isFinite).map(Math.abs).sort((a, b) => a - b);
    const most = Math.max(sizes[Math.floor(0.995 * (sizes.length - 1))] ?? 0, figure.goal === "none" ? 0 : 2 * (this.fleet.threshold ?? 0));
    const reach = kReaches.find((one) => one >= most * 0.999) ?? 1;
    return { figure, values, typical, effects, reach, sign: figure.goal === "higher" ? -1 : 1 };
  }
}

/** How many rows have their effect in each of `count` equal bins from -reach to reach; the ends hold what is beyond. */
export function histogram(effects: Float32Array, reach: number, count: number): number[] {
  const bins = new Array<number>(count).fill(0);
  for (const effect of effects) {
    if (Number.isNaN(effect)) continue;
    const bin = Math.floor(((Math.min(Math.max(effect, -reach), reach) + reach) / (2 * reach)) * count);
    bins[Math.min(bin, count - 1)]! += 1;
  }
  return bins;
}
