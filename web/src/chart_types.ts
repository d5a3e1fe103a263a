// What a chart is given: series of points in the data's own units, axes, and marks. No drawing here.
import type { Kind } from "./scales";

export interface Axis {
  label: string;
  kind: Kind;
  format: (value: number) => string; // of a tick and of a value
  ticks?: readonly number[]; // values, where only these make sense (stream counts)
  is_from_zero?: boolean;
  limits?: readonly [number, number]; // in place of what the points reach
}

export interface Point {
  x: number;
  y: number | null; // null breaks the line
  low?: number | null;
  high?: number | null;
  failure?: string | null; // marked on the axis, with its reason
  note?: string; // an extra line of the tooltip
}

export type Marker = "circle" | "square" | "triangle" | "diamond" | "drop" | "cross";

export interface Series {
  name: string;
  colour: number; // 0 and up: the palette's
  points: readonly Point[]; // x ascending
  marker?: Marker | null;
  is_hollow?: boolean;
  dash?: readonly number[];
  is_step?: boolean; // a point's y holds until the next
  is_running?: boolean; // the tooltip shows the last point at or before the cursor, not only one right there
  has_band?: boolean; // between low and high; whiskers else
  with?: number; // index of a series: shown and hidden together, in no legend or tooltip of its own
  width?: number;
}

export interface Mark {
  kind: "ring" | "diamond" | "line" | "flat"; // flat: a horizontal line at y
  x: number;
  y?: number;
  label: string;
  colour: number | "bad" | "good" | "quiet";
  with?: number; // index of a series
}

export interface ChartOptions {
  label: string; // for those who do not see it: what is drawn over what
  x: Axis;
  y: Axis;
  series: readonly Series[];
  marks?: readonly Mark[];
  keys?: readonly { glyph: string; text: string }[]; // what signs mean, after the legend
  height?: number;
}

export const kMarkers: readonly Marker[] = ["circle", "square", "triangle", "diamond", "drop", "cross"];
export const kDashes: readonly (readonly number[])[] = [[], [7, 4], [2, 3], [10, 3, 2, 3], [4, 2], [12, 5]];
export const kColours = 8;

/** The marker and dash that go with a colour, so that colour is never the only difference. */
export function marker_of(index: number): Marker {
  return kMarkers[index % kMarkers.length] ?? "circle";
}

export function dash_of(index: number): readonly number[] {
  return kDashes[index % kDashes.length] ?? [];
}

export interface Aligned {
  xs: number[]; // places, ascending, unique
  columns: (number | null | undefined)[][]; // places; null: a gap; undefined: no point of this series
  values: number[]; // the xs as values
}

/** All series over one list of x, as the plotting library wants them. */
export function align(options: Pick<ChartOptions, "x" | "y" | "series">, place: (kind: Kind, value: number | null | undefined) => number | null): Aligned {
  const by_place = new Map<number, number>();
  for (const series of options.series) {
    for (const point of series.points) {
      const at = place(options.x.kind, point.x);
      if (at !== null) by_place.set(at, point.x);
    }
  }
  const xs = [...by_place.keys()].sort((a, b) => a - b);
  const index = new Map(xs.map((at, i) => [at, i]));
  const columns = options.series.map((series) => {
    const column: (number | null | undefined)[] = new Array<undefined>(xs.length).fill(undefined);
    for (const point of series.points) {
      const at = place(options.x.kind, point.x);
      if (at !== null) column[index.get(at) ?? 0] = place(options.y.kind, point.y);
    }
    return column;
  });
  return { xs, columns, values: xs.map((at) => by_place.get(at) ?? at) };
}

/** The point of a series that a cursor at x speaks of; nothing where the series has none there. */
export function point_at(series: Series, x: number): Point | null {
  let low = 0;
  let high = series.points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((series.points[middle]?.x ?? Infinity) <= x) low = middle + 1;
    else high = middle;
  }
  const point = series.points[low - 1];
  if (!point) return null;
  return series.is_running || point.x === x ? point : null;
}
