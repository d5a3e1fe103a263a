// Which stream ran on which hardware queue: queues down, streams across, a mark where they met. Marks of
// queues that carry several streams differ in colour and are split in two; where a stream used several queues, a mark's area is the share of its commands.

import type { QueueCell, QueueMap, ReportDocument } from "../document";
import { el, svg } from "../dom";
import { count, percent, plural } from "../format";
import { card } from "../item";
import { numbers, table, type Row } from "../table";
import { cut, name, prose } from "../text";
import "./queue_maps.css";

const kMostMarks = 20_000; // beyond it, elements would slow the page down
const kListed = 64; // streams that a table row names

interface Grid {
  by_queue: QueueCell[][];
  by_stream: QueueCell[][];
  used: number; // queues with a stream
  shared: number; // queues with several
  moving: number; // streams with several queues
}

export function grid_of(map: QueueMap): Grid {
  const by_queue: QueueCell[][] = map.queues.map(() => []);
  const by_stream: QueueCell[][] = map.streams.map(() => []);
  for (const cell of map.cells) {
    if (!by_queue[cell.queue] || !by_stream[cell.stream]) continue;
    by_queue[cell.queue]!.push(cell);
    by_stream[cell.stream]!.push(cell);
  }
  const more_than = (lists: QueueCell[][], least: number): number => lists.filter((list) => list.length > least).length;
  return { by_queue, by_stream, used: more_than(by_queue, 0), shared: more_than(by_queue, 1), moving: more_than(by_stream, 1) };
}

/** Share of a stream's commands that ran on the cell's queue; null where the commands are not known. */
export function share_of(cell: QueueCell, grid: Grid): number | null {
  const cells = grid.by_stream[cell.stream] ?? [];
  if (cells.length === 1) return 1;
  let sum = 0;
  for (const { commands } of cells) {
    if (commands === null) return null;
    sum += commands;
  }
  return sum > 0 && cell.commands !== null ? cell.commands / sum : null;
}

export function render(container: HTMLElement, items: readonly QueueMap[], report: ReportDocument): void {
  for (const map of items) {
    const grid = grid_of(map);
    container.append(
      card(
        map,
        report,
        el("p", { class: "queue-words" }, el("strong", {}, words(map, grid)), " ", prose(sentence(map.mapping))),
        el("p", { class: "hint" }, basis_words(map.basis)),
        map.cells.length > 0 && picture(map, grid),
        map.cells.length > 0 && key(grid),
        numbers("Streams of each queue, as a table", () => queue_table(map, grid), { is_lazy: map.queues.length > 300 }),
        grid.moving > 0 && numbers("Queues of each stream that changed queues", () => moving_table(map, grid), { is_lazy: grid.moving > 300 }),
      ),
    );
  }
}

function words(map: QueueMap, grid: Grid): string {
  const start = `${plural(map.streams.length, "stream")} on ${plural(grid.used, "hardware queue")}`;
  if (grid.used === 0) return `${plural(map.streams.length, "stream")}; which queue they used is not known.`;
  if (grid.shared === 0) return `${start}: no queue is shared.`;
  const most = Math.max(...grid.by_queue.map((cells) => cells.length));
  return `${start}: ${grid.shared === grid.used ? (grid.used === 1 ? "it is shared" : "all are shared") : `${count(grid.shared)} of them shared`}, by up to ${plural(most, "stream")} each.`;
}

function sentence(text: string): string {
  return text === "" ? "" : `${text[0]!.toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;
}

function basis_words(basis: string): string {
  const known: Record<string, string> = {
    probe: "Found by a probe: streams whose commands hold each other up share a queue.",
    runtime: "Told by the runtime.",
    timeline: "Read from the timeline: what ran on which queue while it was recorded.",
  };
  return known[basis] ?? `Basis: ${cut(basis, 200)}.`;
}

function picture(map: QueueMap, grid: Grid): HTMLElement {
  const across = map.streams.length;
  const down = map.queues.length;
  const left = 16 + 7 * Math.min(16, Math.max(...map.queues.map((queue) => queue.length), 5));
  const right = 86;
  // As wide as a card where that leaves room for marks; else the frame scrolls.
  const wide = Math.max(6, Math.min(28, (960 - left - right) / Math.max(1, across)));
  const tall = Math.max(14, Math.min(26, Math.floor(560 / Math.max(1, down))));
  const top = 40;
  const width = left + across * wide + right;
  const height = top + down * tall + 6;
  const picture = svg("svg", { class: "queue-map", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${words(map, grid)} The table below names them.` });

  const longest = Math.max(...map.streams.map((stream) => Math.min(stream.length, 8)), 1);
  const every = [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128].find((step) => step * wide >= longest * 7 + 4) ?? 256;
  picture.append(svg("text", { x: left - 8, y: 13, class: "queue-axis", "text-anchor": "end" }, "stream →"), svg("text", { x: left - 8, y: 33, class: "queue-axis", "text-anchor": "end" }, "queue ↓"));
  map.streams.forEach((stream, s) => {
    if (s % every !== 0) return;
    const x = left + (s + 0.5) * wide;
    picture.append(svg("text", { x, y: 26, class: "queue-label", "text-anchor": "middle" }, cut(stream, 8)));
    picture.append(svg("line", { x1: x, x2: x, y1: 31, y2: 36, class: "queue-tick" }));
  });
  grid.by_queue.forEach((cells, q) => {
    const y = top + q * tall;
    const is_shared = cells.length > 1;
    const [first, last] = [cells[0]?.stream ?? 0, cells[cells.length - 1]?.stream ?? 0];
    if (q % 2 === 0) picture.append(svg("rect", { x: left, y, width: across * wide, height: tall, class: "queue-stripe" }));
    if (is_shared) picture.append(svg("line", { x1: left + (Math.min(first, last) + 0.5) * wide, x2: left + (Math.max(first, last) + 0.5) * wide, y1: y + tall / 2, y2: y + tall / 2, class: "queue-thread" }));
    picture.append(
      svg("text", { x: left - 8, y: y + tall / 2, class: "queue-label", "text-anchor": "end", "dominant-baseline": "central" }, svg("title", {}, cut(map.queues[q]!, 500)), cut(map.queues[q]!, 16)),
      svg("text", { x: left + across * wide + 10, y: y + tall / 2, class: is_shared ? "queue-label queue-shared-count" : "queue-label", "dominant-baseline": "central" }, cells.length === 0 ? "unused" : plural(cells.length, "stream")),
    );
  });
  for (let s = 0; s <= across; s += Math.max(every, 4)) {
    picture.append(svg("line", { x1: left + s * wide, x2: left + s * wide, y1: top, y2: top + down * tall, class: "queue-grid" }));
  }

  let marks = 0;
  for (const cells of grid.by_queue) {
    for (const cell of cells) {
      if (++marks > kMostMarks) break;
      picture.append(mark(map, grid, cell, left + cell.stream * wide, top + cell.queue * tall, wide, tall, cells.length > 1));
    }
  }
  return el(
    "div",
    {},
    el("div", { class: "queue-frame", tabindex: 0, role: "region", "aria-label": "Map of streams and queues" }, picture),
    marks > kMostMarks && el("p", { class: "hint" }, `${count(map.cells.length)} cells; the first ${count(kMostMarks)} are drawn.`),
  );
}

function mark(map: QueueMap, grid: Grid, cell: QueueCell, x: number, y: number, wide: number, tall: number, is_shared: boolean): SVGElement {
  const share = share_of(cell, grid);
  const others = (grid.by_queue[cell.queue]?.length ?? 1) - 1;
  const text = [
    `stream ${cut(map.streams[cell.stream]!, 60)} on queue ${cut(map.queues[cell.queue]!, 60)}`,
    share === null ? "share not known" : share < 1 ? `${percent(share)} of its commands` : "always",
    cell.commands === null ? "" : `${count(cell.commands)} commands`,
    others > 0 ? `beside ${plural(others, "other stream")}` : "alone",
  ].filter((part) => part !== "");
  const middle = [x + wide / 2, y + tall / 2] as const;
  // Area is the share; a mark is never too small to be seen.
  const size = Math.sqrt(share ?? 0.4);
  const shape = block(middle[0], middle[1], Math.max(3, size * Math.min(wide - 1.5, tall - 3)), Math.max(5, size * (tall - 3)), is_shared);
  if (share === null) shape.classList.add("is-unknown");
  shape.append(svg("title", {}, text.join(", ")));
  return shape;
}

// Whole, or split in two where the queue is shared.
function block(x: number, y: number, wide: number, tall: number, is_shared: boolean): SVGElement {
  const part = (top: number, height: number): string => `M${(x - wide / 2).toFixed(2)} ${top.toFixed(2)}h${wide.toFixed(2)}v${height.toFixed(2)}h${(-wide).toFixed(2)}z`;
  const gap = tall > 8 ? 2 : 1.2;
  const half = (tall - gap) / 2;
  const d = is_shared ? part(y - tall / 2, half) + part(y + gap / 2, half) : part(y - tall / 2, tall);
  return svg("path", { d, class: is_shared ? "queue-mark is-shared" : "queue-mark" });
}

function key(grid: Grid): HTMLElement {
  const entry = (shape: SVGElement, text: string): HTMLElement => el("li", {}, svg("svg", { width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true" }, shape), text);
  return el(
    "ul",
    { class: "queue-key", "aria-label": "Signs" },
    entry(block(7, 7, 12, 13, false), "has the queue alone"),
    entry(block(7, 7, 12, 13, true), "shares the queue"),
    grid.moving > 0 && entry(block(7, 7, 5, 6, false), "smaller: part of the stream's commands"),
  );
}

function queue_table(map: QueueMap, grid: Grid): HTMLElement {
  const rows: Row[] = grid.by_queue.map((cells, q) => {
    const named = cells.slice(0, kListed).map((cell) => cut(map.streams[cell.stream]!, 40)).join(", ");
    const commands = cells.some((cell) => cell.commands === null) ? null : cells.reduce((sum, cell) => sum + (cell.commands ?? 0), 0);
    return {
      cells: [
        name(`queue ${map.queues[q]!}`),
        cells.length === 0 ? "none" : `${cells.length === 1 ? "stream" : "streams"} ${named}${cells.length > kListed ? ` and ${count(cells.length - kListed)} more` : ""}`,
        count(cells.length),
        cells.length > 1 ? "shared" : cells.length === 1 ? "alone" : "unused",
        count(cells.length === 0 ? null : commands),
      ],
    };
  });
  return table("Streams of each queue", [{ heading: "queue", is_text: true }, { heading: "streams", is_text: true }, { heading: "number" }, { heading: "use", is_text: true }, { heading: "commands" }], rows, { is_caption_hidden: true });
}

function moving_table(map: QueueMap, grid: Grid): HTMLElement {
  const rows: Row[] = [];
  grid.by_stream.forEach((cells, s) => {
    if (cells.length < 2) return;
    const parts = cells.slice(0, kListed).map((cell) => `${cut(map.queues[cell.queue]!, 40)} (${percent(share_of(cell, grid))})`);
    rows.push({ cells: [name(`stream ${map.streams[s]!}`), count(cells.length), `${parts.join(", ")}${cells.length > kListed ? " and more" : ""}`] });
  });
  return table("Queues of each stream that changed queues", [{ heading: "stream", is_text: true }, { heading: "queues" }, { heading: "share of its commands on each", is_text: true }], rows, { is_caption_hidden: true });
}
