// A chart: uPlot for axes, lines and the cursor; markers, intervals and marks from chart_marks.ts; legend, tooltip and keys
// in HTML. It draws in the theme's colours, at the width it is given, when it first has one. Beside every chart a section
// puts the same numbers as a table (table.ts): the canvas is never the only way to them.
import uPlot from "uplot";
import { draw_above, draw_below, series_colour } from "./chart_marks";
import { align, point_at, type ChartOptions, type Point, type Series } from "./chart_types";
import { el, svg, type Child } from "./dom";
import { nearest, place, reach, tick_labels, ticks, time_label, value_at } from "./scales";
import { cut, name } from "./text";
import { is_print, on_theme, token } from "./theme";

export * from "./chart_types";

const kHeight = 340;
const kPrintWidth = 660; // fits A4 and Letter with their margins
const kMostLegend = 24; // entries; more than that is a table's work

export function chart(options: ChartOptions): HTMLElement {
  const height = options.height ?? kHeight;
  const shown = options.series.map(() => true);
  const is_shown = (i: number): boolean => shown[options.series[i]?.with ?? i] ?? true;
  const aligned = align(options, place);
  const x_reach = range_of(options, "x");
  const y_reach = range_of(options, "y");

  const canvas = el("div", { class: "chart-canvas" });
  canvas.style.height = `${height}px`;
  const tooltip = el("div", { class: "tooltip", hidden: true });
  const live = el("p", { class: "unseen", role: "status" });
  const box = el(
    "div",
    { class: "chart-box", role: "group", "aria-roledescription": "chart", "aria-label": `${cut(options.label, 160)}. Left and right arrows read its points; the table below has all numbers.`, tabindex: 0 },
    canvas,
    tooltip,
  );
  const figure = el("figure", { class: "chart" }, box, live, legend(options, shown, () => plot?.redraw()));

  let plot: uPlot | null = null;
  let screen_width = 0; // as last seen: asking for it again and again would lay the page out each time
  let cursor = -1; // index into stops
  const stops = stops_of(options, aligned.xs);

  function build(width: number): void {
    plot?.destroy();
    plot = new uPlot(plot_options(width), [aligned.xs, ...aligned.columns] as uPlot.AlignedData, canvas);
  }

  function update(): void {
    const width = is_print() ? print_width(box) : screen_width;
    if (width <= 0) return;
    if (!plot) build(width);
    else if (plot.width !== width) plot.setSize({ width, height });
    else plot.redraw();
  }

  function plot_options(width: number): uPlot.Options {
    const x = options.x;
    const y = options.y;
    const axis = (side: "x" | "y"): uPlot.Axis => ({
      label: side === "y" ? "" : x.label,
      labelSize: side === "x" && x.label !== "" ? 22 : 0,
      labelFont: `500 12px ${token("font-sans")}`,
      font: `12px ${token("font-sans")}`,
      stroke: () => token("text-quiet"),
      grid: { stroke: () => token("grid"), width: 1, show: side === "y" },
      ticks: { stroke: () => token("grid"), width: 1, size: 5 },
      border: { show: side === "x", stroke: () => token("line"), width: 1 },
      size: side === "y" ? (self, values) => y_size(self, values) : 34,
      gap: 6,
      splits: (self, _, low, high) => splits(options[side], low, high, side === "x" ? self.width / 90 : self.height / 55),
      values: (_, places) => labels(options[side], places),
    });
    return {
      width,
      height,
      padding: [22, 18, 0, 4],
      scales: {
        x: { time: false, range: (_, low, high) => (is_zoomed(low, high, aligned.xs) ? [low, high] : x_reach) },
        y: { range: () => y_reach },
      },
      axes: [axis("x"), axis("y")],
      series: [{}, ...options.series.map((series, i) => line_options(series, () => is_shown(i)))],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false }, move: (self, left, top) => [snapped(self, left), top] },
      hooks: {
        drawAxes: [(self) => draw_below(self, options, is_shown)],
        draw: [(self) => draw_above(self, options, is_shown), (self) => draw_y_label(self, y.label)],
        setCursor: [(self) => show_tooltip(self)],
      },
    };
  }

  // The cursor stands on points only: between them there is nothing to say. Not while a range is dragged.
  function snapped(self: uPlot, left: number): number {
    if (left < 0 || stops.length === 0 || self.select.width > 0) return left;
    cursor = nearest(stops.map((index) => aligned.xs[index] ?? 0), self.posToVal(left, "x"));
    return self.valToPos(aligned.xs[stops[cursor] ?? 0] ?? 0, "x");
  }

  function show_tooltip(self: uPlot): void {
    const index = stops[cursor];
    const x = index === undefined ? undefined : aligned.values[index];
    const left = self.cursor.left ?? -1;
    const rows = left < 0 || x === undefined ? [] : tooltip_rows(options, is_shown, x);
    tooltip.hidden = rows.length === 0;
    if (x === undefined || tooltip.hidden) return;
    tooltip.replaceChildren(el("strong", {}, `${options.x.format(x)}${options.x.label === "streams" ? " streams" : ""}`), ...rows);
    const at = left + self.over.offsetLeft;
    const width = tooltip.offsetWidth;
    tooltip.style.left = `${Math.max(4, at + 14 + width > box.clientWidth ? at - width - 14 : at + 14)}px`;
  }

  box.addEventListener("keydown", (event) => {
    const size = stops.length;
    if (size === 0 || !plot) return;
    const stride = Math.max(1, Math.floor(size / 64)); // hundreds of samples are walked in strides
    const target = { ArrowRight: cursor + stride, ArrowLeft: cursor < 0 ? size - 1 : cursor - stride, Home: 0, End: size - 1 }[event.key];
    if (event.key === "Escape") plot.setCursor({ left: -1, top: -1 });
    if (target === undefined) return;
    event.preventDefault();
    cursor = Math.min(Math.max(target, 0), size - 1);
    plot.setCursor({ left: plot.valToPos(aligned.xs[stops[cursor] ?? 0] ?? 0, "x"), top: plot.over.clientHeight / 2 });
    live.textContent = [...tooltip.children].map((row) => row.textContent).join("; ");
  });
  box.addEventListener("blur", () => {
    cursor = -1;
    plot?.setCursor({ left: -1, top: -1 });
  });

  new ResizeObserver(([entry]) => {
    if (!is_print() && entry) screen_width = Math.floor(entry.contentRect.width);
    update();
  }).observe(canvas);
  on_theme(update);
  return figure;
}

// Charts side by side stay so on paper.
function print_width(box: HTMLElement): number {
  const neighbours = box.closest(".chart-row")?.children.length ?? 1;
  return neighbours > 1 ? kPrintWidth / 2 - 16 : kPrintWidth;
}

/** Indices of the xs that a measured point stands on; those of fitted lines, many and not measured, are left out. */
function stops_of(options: ChartOptions, xs: readonly number[]): number[] {
  const wanted = new Set<number>();
  for (const series of options.series) {
    if (series.with !== undefined) continue;
    for (const point of series.points) wanted.add(place(options.x.kind, point.x) ?? NaN);
  }
  return xs.flatMap((at, i) => (wanted.has(at) ? [i] : []));
}

function is_zoomed(low: number, high: number, xs: readonly number[]): boolean {
  return low !== xs[0] || high !== xs[xs.length - 1];
}

function range_of(options: ChartOptions, side: "x" | "y"): [number, number] {
  const axis = options[side];
  if (axis.limits) {
    const [low, high] = axis.limits;
    return [place(axis.kind, low) ?? 0, place(axis.kind, high) ?? 1];
  }
  const values = function* (): Iterable<number | null | undefined> {
    for (const series of options.series) {
      for (const point of series.points) {
        if (side === "x") yield point.x;
        else yield* [point.y, point.low, point.high];
      }
    }
    if (side === "y") for (const mark of options.marks ?? []) if (mark.kind === "flat") yield mark.y;
  };
  return reach(axis.kind, values(), axis.is_from_zero);
}

function splits(axis: ChartOptions["x"], low: number, high: number, count: number): number[] {
  if (!axis.ticks) return ticks(axis.kind, low, high, count);
  const places = axis.ticks.map((value) => place(axis.kind, value)).filter((at) => at !== null);
  const inside = places.filter((at) => at >= low && at <= high);
  // Ticks that would stand on each other give way: those further from their neighbour on the left stay.
  const least = (high - low) / Math.max(count * 2.2, 1);
  const kept: number[] = [];
  for (const at of inside) if (kept.length === 0 || at - (kept[kept.length - 1] ?? 0) >= least) kept.push(at);
  return kept;
}

function labels(axis: ChartOptions["x"], places: readonly number[]): string[] {
  if (axis.kind === "time") {
    const step = places.length > 1 ? (places[1] ?? 0) - (places[0] ?? 0) : 864e5;
    return places.map((at) => time_label(at, step));
  }
  return tick_labels(places.map((at) => Number(value_at(axis.kind, at).toPrecision(9))), axis.format);
}

function y_size(_: uPlot, values: string[] | null): number {
  const longest = Math.max(3, ...(values ?? []).map((value) => value.length));
  return Math.min(18 + longest * 7, 110);
}

function line_options(series: Series, is_shown: () => boolean): uPlot.Series {
  const paths = series.is_step ? uPlot.paths.stepped?.({ align: 1 }) : uPlot.paths.linear?.();
  return {
    label: cut(series.name),
    stroke: () => (is_shown() ? series_colour(series.colour) : "transparent"),
    width: series.width ?? 2,
    dash: series.dash && series.dash.length > 0 ? [...series.dash] : undefined,
    points: { show: false },
    spanGaps: false,
    paths,
  };
}

// Above the axis, lying: a turned label is hard to read.
function draw_y_label(plot: uPlot, label: string): void {
  const ratio = plot.ctx.canvas.width / plot.width;
  plot.ctx.save();
  plot.ctx.font = `500 ${12 * ratio}px ${token("font-sans")}`;
  plot.ctx.fillStyle = token("text-quiet");
  plot.ctx.textAlign = "left";
  plot.ctx.textBaseline = "top";
  plot.ctx.fillText(cut(label, 60), 4 * ratio, 0);
  plot.ctx.restore();
}

function tooltip_rows(options: ChartOptions, is_shown: (i: number) => boolean, x: number): HTMLElement[] {
  const rows: HTMLElement[] = [];
  options.series.forEach((series, i) => {
    if (series.with !== undefined || !is_shown(i) || rows.length >= kMostLegend) return;
    const point = point_at(series, x);
    if (point) rows.push(el("div", { class: "tooltip-row" }, swatch(series), el("span", { class: "tooltip-name" }, name(series.name, 40)), el("span", { class: "tooltip-value" }, ...point_words(options, point))));
  });
  return rows;
}

function point_words(options: ChartOptions, point: Point): Child[] {
  if (point.failure) return [`failed: ${cut(point.failure, 120)}`];
  const words = point.y === null ? "–" : options.y.format(point.y);
  const has_interval = typeof point.low === "number" && typeof point.high === "number";
  return [
    words,
    has_interval && el("span", { class: "tooltip-interval" }, ` ${options.y.format(point.low ?? 0)} … ${options.y.format(point.high ?? 0)}`),
    point.note !== undefined && el("span", { class: "tooltip-note" }, cut(point.note, 160)),
  ];
}

function swatch(series: Series): SVGElement {
  const colour = `var(--series-${(series.colour % 8) + 1})`;
  const marker = series.marker;
  const shape = { fill: series.is_hollow ? "var(--surface)" : colour, stroke: colour, "stroke-width": 1.5 };
  const outlines: Record<string, SVGElement> = {
    circle: svg("circle", { cx: 13, cy: 6, r: 3.4, ...shape }),
    square: svg("rect", { x: 10, y: 3, width: 6, height: 6, ...shape }),
    triangle: svg("path", { d: "M13 1.8 17 9.4H9z", ...shape }),
    drop: svg("path", { d: "M13 10.2 9 2.6h8z", ...shape }),
    diamond: svg("path", { d: "M13 1.6 17.4 6 13 10.4 8.6 6z", ...shape }),
    cross: svg("path", { d: "M13 2v8M9 6h8", stroke: colour, "stroke-width": 3 }),
  };
  return svg(
    "svg",
    { class: "swatch", viewBox: "0 0 26 12", width: 26, height: 12, "aria-hidden": "true" },
    svg("line", { x1: 0, x2: 26, y1: 6, y2: 6, stroke: colour, "stroke-width": 2, "stroke-dasharray": series.dash?.join(" ") || null }),
    marker ? (outlines[marker] ?? null) : null,
  );
}

function legend(options: ChartOptions, shown: boolean[], redraw: () => void): HTMLElement {
  const entries: HTMLElement[] = [];
  let hidden_entries = 0;
  options.series.forEach((series, i) => {
    if (series.with !== undefined) return;
    if (entries.length >= kMostLegend) {
      ++hidden_entries;
      return;
    }
    const button = el("button", { type: "button", class: "legend-entry", "aria-pressed": "true", title: "Show or hide" }, swatch(series), name(series.name, 48));
    button.addEventListener("click", () => {
      shown[i] = !shown[i];
      button.setAttribute("aria-pressed", String(shown[i]));
      redraw();
    });
    entries.push(el("li", {}, button));
  });
  if (hidden_entries > 0) entries.push(el("li", { class: "legend-key" }, `and ${hidden_entries} more, in the table`));
  const keys = (options.keys ?? []).map(({ glyph, text }) => el("li", { class: "legend-key" }, el("span", { class: "glyph", "aria-hidden": "true" }, glyph), text));
  return el("figcaption", {}, el("ul", { class: "legend" }, ...entries, ...keys));
}
