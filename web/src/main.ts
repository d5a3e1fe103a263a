// Starts the page: reads the document, makes a section for everything that it has, in this order, and draws each when it
// comes near the view. A new section is one file in sections/ and one line in `sections()`.
import "uplot/dist/uPlot.min.css";
import "./styles.css";
import type { Item, ReportDocument } from "./document";
import { el } from "./dom";
import * as benches from "./sections/benches";
import * as commands from "./sections/commands";
import * as comparisons from "./sections/comparisons";
import * as distributions from "./sections/distributions";
import * as environments from "./sections/environments";
import * as fleet_nodes from "./sections/fleet_nodes";
import * as fleets from "./sections/fleets";
import * as histories from "./sections/histories";
import * as models from "./sections/models";
import * as overlaps from "./sections/overlaps";
import * as preemptions from "./sections/preemptions";
import * as queue_maps from "./sections/queue_maps";
import * as refused from "./sections/refused";
import * as scaling from "./sections/scaling";
import * as sources from "./sections/sources";
import * as texts from "./sections/texts";
import * as timelines from "./sections/timelines";
import * as usages from "./sections/usages";
import * as verdict from "./sections/verdict";
import { start_print } from "./print";
import * as waterfalls from "./sections/waterfalls";
import { build_shell, type ShellSection } from "./shell";
import { draw_all, error_box, make_slot } from "./slots";
import { start_theme } from "./theme";

type Lists = { [K in keyof ReportDocument as ReportDocument[K] extends readonly object[] ? K : never]: ReportDocument[K] };
type Render<T> = (container: HTMLElement, items: readonly T[], document: ReportDocument) => void;

// `height` is about what one item takes on a wide screen, in px: kept free until it is drawn.
function each<K extends keyof Lists>(list: K, title: string, hint: string, height: number, render: Render<Lists[K][number]>): (report: ReportDocument) => ShellSection | null {
  return (report) => {
    const items: readonly Lists[K][number][] = report[list];
    if (!Array.isArray(items) || items.length === 0) return null;
    const slots = items.map((item, i) => {
      // An environment's own id is a fingerprint; on the page it goes by its place, which sources name.
      const { id: own_id, title: item_title = "" } = item as Partial<Item>;
      const id = list === "environments" ? `environment-${i}` : own_id;
      return make_slot(`${title}: ${item_title}`, id === undefined ? [] : [id], words_of(item, title, report), height, (container) =>
        render(container, [item], report),
      );
    });
    return { id: list.replace(/_/g, "-"), title, hint, count: items.length, slots };
  };
}

// One slot for the whole list: where the items make one table.
function whole<T extends object>(id: string, title: string, hint: string, height: number, list: (report: ReportDocument) => readonly T[], render: Render<T>): (report: ReportDocument) => ShellSection | null {
  return (report) => {
    const items = list(report);
    if (!Array.isArray(items) || items.length === 0) return null;
    const slot = make_slot(title, [], title, height, (container) => render(container, items, report));
    return { id, title, hint, count: null, slots: [slot] };
  };
}

function words_of(item: object, section: string, report: ReportDocument): string {
  const { title = "", environment = null, source = null, notes = [] } = item as Partial<Item>;
  const own = Object.values(item).filter((value) => typeof value === "string" && value.length < 1000);
  return [
    section,
    title,
    ...own,
    environment === null ? "" : (report.environments[environment]?.label ?? ""),
    source === null ? "" : (report.sources[source]?.path ?? ""),
    ...notes,
  ].join(" ");
}

const kSections = [
  each("fleets", "Fleet", "Which of many devices are slow, wrong or set differently.", 1800, fleets.render),
  each("fleet_nodes", "Nodes", "What a node measured of each of its devices, and what a repetition may show.", 900, fleet_nodes.render),
  each("comparisons", "What changed", "Test over baseline, with the interval of the ratio.", 520, comparisons.render),
  each("usages", "Where the time went", "All of each device's time, and the commands that took most of it.", 620, usages.render),
  each("models", "In the words of the model", "What the device worked for: phases, modules, operators by shape, collectives, memory.", 900, models.render),
  each("scaling", "Scaling", "Throughput and latency over streams.", 1180, scaling.render),
  each("distributions", "Latency distributions", "Share of samples at or below a latency.", 640, distributions.render),
  each("timelines", "Timeline", "A lane for each stream and hardware queue, and for the operators of each stream.", 860, timelines.render),
  each("queue_maps", "Streams and queues", "Which stream ran on which hardware queue.", 480, queue_maps.render),
  each("overlaps", "Overlap", "Compute beside communication, and what stands between.", 760, overlaps.render),
  each("waterfalls", "Hop by hop", "Where a command's time goes on its way to the device.", 160, waterfalls.render),
  each("preemptions", "Preemption", "How long urgent work waits.", 820, preemptions.render),
  each("benches", "Kernels", "Leaderboard and roofline.", 1100, benches.render),
  each("histories", "History", "Medians over time, one machine and device each.", 620, histories.render),
  each("texts", "Other documents", "As the terminal tells them.", 360, texts.render),
  each("environments", "Environments", "Machine, device, driver and variables. Nothing here is drawn together across two of them.", 320, environments.render),
  whole("reproduce", "Reproduce", "The exact commands, with the variables that were set.", 240, commands.from, commands.render),
  whole("refused", "Refused files", "Given, but not in this report.", 160, (report) => report.refused, refused.render),
  whole("sources", "Sources", "Every file that this report was made of.", 240, (report) => report.sources, sources.render),
];

function read_document(): ReportDocument {
  const text = document.getElementById("weir-document")?.textContent ?? "";
  const report = JSON.parse(text) as ReportDocument;
  if (report.schema !== "weir.report/2") throw new Error(`This page draws weir.report/2; its data is ${String(report.schema)}.`);
  return report;
}

function start(): void {
  const page = document.getElementById("page") ?? document.body;
  start_theme();
  start_print(draw_all);
  let report: ReportDocument;
  try {
    report = read_document();
  } catch (problem) {
    page.replaceChildren(el("main", { class: "alone" }, el("h1", {}, "Weir report"), error_box("The document", problem)));
    return;
  }
  const sections = kSections.map((make) => make(report)).filter((section) => section !== null);
  build_shell(page, report, sections, (container) => verdict.render(container, [report.verdict], report));
}

start();
