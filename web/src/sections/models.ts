// What a device worked for in the words of a model: phases and steps, the tree of modules, operators by shape with what
// is known of their efficiency, collectives with their bandwidths, and memory. Of a trace's devices the first is open.
import type { ModelUse, ReportDocument, UsedMemory, UsedModule, UsedOperator } from "../document";
import { el, type Child } from "../dom";
import { bytes, count, duration, kNone, percent, plural, three_digits } from "../format";
import { card } from "../item";
import { numbers, table } from "../table";
import { cut, name } from "../text";
import { most_of, share_bar } from "./usages";
import "./models.css";

const kShown = 15; // operators; the rest folds away
const kOpenRows = 16; // rows of the tree that are seen before anybody opens more

export function render(container: HTMLElement, items: readonly ModelUse[], report: ReportDocument): void {
  for (const item of items) {
    const parts = [
      item.phases.length > 0 && phases(item),
      item.steps.length > 0 && numbers(plural(item.steps.length, "step"), () => steps(item)),
      item.modules.length > 0 ? modules(item) : item.commands > 0 && el("p", { class: "hint" }, `Modules are not known: ${cut(item.modules_reason ?? "the trace names none")}.`),
      item.operators.length > 0 && operators(item),
      item.collectives.length > 0 && collectives(item),
      item.memory !== null && memory(item.memory),
    ];
    const is_first = report.models.find((one) => one.source === item.source) === item;
    container.append(card(item, report, ...(is_first ? parts : [el("details", { class: "more" }, el("summary", {}, contents(item)), ...parts)])));
  }
}

/** "4 modules, 12 operators, 3 collectives, memory" */
function contents(item: ModelUse): string {
  const lists: [number, string][] = [[item.steps.length, "step"], [item.modules.length, "module"], [item.operators.length, "operator"]];
  return [...lists.filter(([size]) => size > 0).map(([size, word]) => plural(size, word)), item.collectives.length > 0 && "collectives", item.memory !== null && "memory"].filter((part) => part !== false).join(", ");
}

function phases(item: ModelUse): HTMLElement {
  const most = most_of(item.phases);
  return table(
    "Phases",
    [{ heading: "phase", is_text: true }, { heading: "share of all" }, { heading: "total" }, { heading: "commands" }],
    item.phases.map((one) => ({ cells: [one.phase === "unknown" ? "(none of these)" : name(one.phase, 24), share_bar(one.share ?? 0, most), duration(one.total_ns), count(one.commands)] })),
  );
}

function steps(item: ModelUse): HTMLElement {
  return table(
    "Steps",
    [{ heading: "step", is_text: true }, { heading: "total", title: "of its commands" }, { heading: "forward" }, { heading: "backward" }, { heading: "optimizer" }, { heading: "other" }],
    item.steps.map((one) => ({ cells: [name(one.name, 48), duration(one.total_ns), duration(one.forward_ns), duration(one.backward_ns), duration(one.optimizer_ns), duration(one.other_ns)] })),
    { is_caption_hidden: true },
  );
}

/** The rows whose parts are seen at first: the largest, as long as no more than `most` rows are seen. */
export function opened(all: readonly UsedModule[], most = kOpenRows): Set<number> {
  const open = new Set<number>();
  let seen = all.filter((one) => one.parent === null).length;
  // Parents come before their parts, and parts are in the order of their time.
  const waiting = all.map((_, i) => i).filter((i) => all[i]?.parent === null);
  while (waiting.length > 0) {
    waiting.sort((a, b) => (all[b]?.total_ns ?? 0) - (all[a]?.total_ns ?? 0));
    const next = waiting.shift() ?? 0;
    const parts = all.map((_, i) => i).filter((i) => all[i]?.parent === next);
    if (parts.length === 0 || seen + parts.length > most) continue;
    seen += parts.length;
    open.add(next);
    waiting.push(...parts);
  }
  return open;
}

function modules(item: ModelUse): HTMLElement {
  const all = item.modules;
  const open = opened(all);
  const has_parts = new Set(all.map((one) => one.parent));
  const depths: number[] = [];
  for (const one of all) depths.push(one.parent === null ? 0 : (depths[one.parent] ?? 0) + 1);
  const rows: HTMLTableRowElement[] = [];
  const show = (): void => {
    const seen: boolean[] = [];
    all.forEach((one, i) => {
      seen[i] = one.parent === null || ((seen[one.parent] ?? false) && open.has(one.parent));
      rows[i]?.classList.toggle("is-folded", !seen[i]);
    });
  };
  const toggle = (i: number, text: string): HTMLElement => {
    const button = el("button", { type: "button", class: "model-toggle", "aria-expanded": String(open.has(i)), "aria-label": `Parts of ${text}` });
    button.addEventListener("click", () => {
      if (!open.delete(i)) open.add(i);
      button.setAttribute("aria-expanded", String(open.has(i)));
      show();
    });
    return button;
  };
  const most = most_of([...all, item.without_module]);
  const has_backward = all.some((one) => one.backward_ns > 0);
  const lines = all.map((one, i) => ({
    cells: [
      el("span", { class: "model-module", style: `padding-left: ${depths[i] ?? 0}rem` }, has_parts.has(i) ? toggle(i, cut(one.name, 48)) : el("span", { class: "model-toggle" }), name(one.name, 48)),
      share_bar(one.share ?? 0, most),
      duration(one.total_ns),
      duration(one.own_ns),
      ...(has_backward ? [duration(one.backward_ns)] : []),
      count(one.commands),
    ],
  }));
  const { share, total_ns, commands } = item.without_module;
  const frame = table(
    "Modules",
    [{ heading: "module", is_text: true }, { heading: "share of all" }, { heading: "total" }, { heading: "own", title: "without its parts" }, ...(has_backward ? [{ heading: "backward" }] : []), { heading: "commands" }],
    [...lines, { cells: [el("span", { class: "model-module" }, el("span", { class: "model-toggle" }), "(no module)"), share_bar(share ?? 0, most), duration(total_ns), duration(total_ns), ...(has_backward ? [kNone] : []), count(commands)] }],
  );
  rows.push(...frame.querySelectorAll<HTMLTableRowElement>("tbody tr"));
  show();
  return el("div", {}, frame, item.modules_left_out > 0 && el("p", { class: "hint" }, `${plural(item.modules_left_out, "smaller part")} took ${duration(item.modules_left_out_ns)}; the document of weir analyze has all.`));
}

/** A figure, or a dash; why it is missing, or only an estimate, is in its title. */
function figure(value: number | null, text: (value: number) => string, reason: string | null): Child {
  return el("span", { class: value === null ? "model-unknown" : null, title: reason === null ? null : cut(reason, 400) }, value === null ? kNone : text(value));
}

function rate(value: number): string {
  return value === 0 ? "0" : value < 0.005 ? "<0.01" : three_digits(value);
}

function operator_name(one: UsedOperator, limit: number): HTMLElement {
  return el("span", { class: "model-operator" }, name(one.name ?? `(${one.call ?? "no name"})`, 48), one.shapes !== null && el("span", { class: "model-quiet" }, name(one.shapes, limit)));
}

function operators(item: ModelUse): HTMLElement {
  const most = most_of(item.operators);
  const is_known = item.operators.some((one) => one.flop_per_s !== null || one.bytes_per_s !== null);
  const rows = item.operators.map((one) => {
    const reason = one.reason ?? item.efficiency_reason;
    return {
      cells: [
        operator_name(one, is_known ? 64 : 96),
        share_bar(one.share ?? 0, most),
        duration(one.total_ns),
        count(one.calls),
        ...(is_known
          ? [
              figure(one.flop_per_s, (value) => rate(value / 1e12), reason),
              figure(one.bytes_per_s, (value) => rate(value / 1e9), reason),
              el("span", { class: "model-peak" }, figure(one.share_of_peak, percent, reason), one.bound !== null && el("span", { class: "model-quiet" }, name(one.bound, 16))),
              figure(one.saved_ns, duration, reason),
            ]
          : []),
      ],
    };
  });
  const columns = [
    { heading: "operator", is_text: true },
    { heading: "share of all" },
    { heading: "total" },
    { heading: "calls" },
    ...(is_known ? [{ heading: "TFLOP/s" }, { heading: "GB/s" }, { heading: "of peak", title: "of the peak that binds: compute or memory" }, { heading: "to save", title: "at the peak" }] : []),
  ];
  const rest = rows.slice(kShown);
  return el(
    "div",
    {},
    table("Operators by shape", columns, rows.slice(0, kShown)),
    rest.length > 0 && el("details", { class: "more" }, el("summary", {}, plural(rest.length, "more operator")), table("More operators by shape", columns, rest, { is_caption_hidden: true })),
    el("p", { class: "hint" }, words(item, is_known)),
  );
}

function collectives(item: ModelUse): HTMLElement {
  const reason = item.bandwidth_reason;
  const bandwidth = (value: number | null): Child => figure(value, (bytes_per_s) => rate(bytes_per_s / 1e9), value === null ? reason : null);
  const has_sizes = item.collectives.some((one) => one.from_bytes !== null);
  return el(
    "div",
    {},
    table(
      "Collectives",
      [
        { heading: "collective", is_text: true },
        { heading: "size from", title: "the smallest size in the row; the largest is just below twice that" },
        { heading: "ranks" },
        { heading: "count" },
        { heading: "total", title: "with the wait for other ranks" },
        { heading: "p50" },
        ...(has_sizes ? [{ heading: "algorithm GB/s", title: "bytes over time" }, { heading: "bus GB/s", title: "what the links carried, as NCCL's tests define it" }, { heading: "best bus GB/s", title: "of the one that was fastest" }] : []),
      ],
      item.collectives.map((one) => ({
        cells: [
          name(one.collective, 24),
          bytes(one.from_bytes),
          count(one.ranks),
          count(one.count),
          duration(one.total_ns),
          duration(one.duration_ns.p50),
          ...(has_sizes ? [bandwidth(one.algorithm_bytes_per_s), bandwidth(one.bus_bytes_per_s), bandwidth(one.best_bus_bytes_per_s)] : []),
        ],
      })),
    ),
    el(
      "p",
      { class: "hint" },
      [
        item.collectives_left_out > 0 && `${plural(item.collectives_left_out, "other row")} took less.`,
        reason !== null && `Bandwidth: ${cut(reason, 160)}.`,
        has_sizes && "Times include the wait for other ranks, so bandwidths are what the program achieved, not what the links can do.",
      ]
        .filter((part) => part !== false)
        .join(" "),
    ),
  );
}

function memory(item: UsedMemory): HTMLElement {
  const columns = [{ heading: "memory", is_text: true }, { heading: "at most" }, { heading: "first at" }, { heading: "what ran then", is_text: true }];
  const peak = (title: string, one: UsedMemory["allocated"]): { cells: Child[] } => ({ cells: [title, bytes(one.bytes), duration(one.at_ns), one.words === null ? kNone : name(one.words)] });
  return el(
    "div",
    {},
    table("Memory that the program's allocator had", columns, [peak("allocated", item.allocated), peak("reserved", item.reserved)]),
    item.steps.length > 0 &&
      numbers(`Memory of ${plural(item.steps.length, "step")}`, () =>
        table("Memory of steps", [{ heading: "step", is_text: true }, { heading: "at most" }, { heading: "at its end" }], item.steps.map((one) => ({ cells: [name(one.name, 48), bytes(one.peak_bytes), bytes(one.end_bytes)] })), { is_caption_hidden: true }),
      ),
    el("p", { class: "hint" }, `${plural(item.allocations, "allocation")}, ${bytes(item.allocated_bytes)} together; ${plural(item.frees, "time")} freed.`, item.growth !== null && ` ${cut(item.growth, 400)}`),
  );
}

function words(item: ModelUse, is_known: boolean): string {
  const reasons = [...new Set(item.operators.filter((one) => one.share_of_peak === null).map((one) => one.reason ?? item.efficiency_reason).filter((reason) => reason !== null))];
  return [
    item.operators_left_out > 0 && `${plural(item.operators_left_out, "other")} took ${duration(item.operators_left_out_ns)}.`,
    item.outside_ns > 0 && `Commands of no operator took ${duration(item.outside_ns)}.`,
    item.peaks !== null && `Peaks: ${cut(item.peaks, 160)}${item.saved_ns === null ? "" : `; at them operators would take ${duration(item.saved_ns)} less`}.`,
    reasons.length > 0 && `${is_known ? "Where there is a dash" : "Efficiency is not known"}: ${reasons.slice(0, 3).map((reason) => cut(reason, 160)).join("; ")}.`,
  ]
    .filter((part) => part !== false)
    .join(" ");
}
