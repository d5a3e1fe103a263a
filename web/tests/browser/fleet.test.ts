import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Page } from "playwright-core";
import type { Fleet, History, ReportDocument } from "../../src/document";
import { make_fleet, make_fleet_node } from "../fleet_fixture";
import { empty_report, item, kHostile } from "../pictures_fixture";
import { Browser, scroll_through, type Opened } from "./browser";

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 }); // for busy machines: nothing here asserts a time
const browser = new Browser();
let shown: Opened;
beforeAll(async () => {
  await browser.start();
  shown = await open(report());
});
afterAll(() => browser.stop());

function report(fleet: Fleet = make_fleet()): ReportDocument {
  const history: History = { ...item("histories-1", "GEMM bf16 of SN1003"), workload: "fleet/gemm_bf16", metric: "throughput", unit: "flop/s", is_less_better: false, serial: "SN1003", points: [{ at: "2026-01-01T00:00:00Z", commit: "c", tag: null, p50: 1, interval: null, count: 1 }], changes: [] };
  return { ...empty_report(), fleets: [fleet], fleet_nodes: [make_fleet_node()], histories: [history] };
}

async function open(document: ReportDocument, options: Parameters<Browser["open"]>[1] = {}): Promise<Opened> {
  const opened = await browser.open(document, options);
  await scroll_through(opened.page);
  return opened;
}

const spoken = (page: Page) => page.locator("#fleets-1 .fleet-map > [role=status]").textContent();
const chosen = (page: Page) => page.locator("#fleets-1 .fleet-device h4").textContent();

describe("a fleet", () => {
  it("opens without a message or a request", () => {
    expect(shown.problems).toEqual([]);
    expect(shown.requests).toEqual([]);
  });

  it("groups findings by kind, each with a way to its device", async () => {
    const { page } = shown;
    const heads = await page.locator("#fleets-1 .fleet-kind h4").allTextContents();
    expect(heads.map((head) => head.replace(/[^a-z A-Z]/g, "").trim())).toEqual(["Compute something wrong", "Slow", "Slow links", "Set differently"]);
    expect(await page.locator("#fleets-1 .fleet-kind.is-slow li").textContent()).toContain("clock 1,520 MHz where peers have 1,980");
    await page.locator("#fleets-1 .fleet-kind.is-wrong .fleet-show").click();
    expect(await chosen(page)).toBe("node2 cuda:1");
    expect(await page.locator("#fleets-1 .fleet-kind.is-link .fleet-show").count()).toBe(0); // a link is no cell
  });

  it("colours each cell by its effect", async () => {
    const { page } = shown;
    // Colours of the middles of the cells of node0: one slow, one without a value, two as usual.
    const colours = await page.locator("#fleets-1 .fleet-canvas").evaluate((canvas: HTMLCanvasElement) => {
      const ratio = canvas.width / parseFloat(canvas.style.width);
      const draw = canvas.getContext("2d")!;
      const left = Math.ceil(6 * 6.2) + 12;
      return [0, 1, 2, 3].map((device) => [...draw.getImageData((left + 13) * ratio, (18 + 26 * device + 13) * ratio, 1, 1).data]);
    });
    expect(colours[3]!.slice(0, 3)).toEqual([0xc4, 0x50, 0x0b]); // series-2
    expect(colours[1]![3]).toBe(0);
    expect(colours[0]![3]).toBe(255);
    expect(Math.abs(colours[0]![0]! - 0xe6)).toBeLessThan(30); // near the middle
  });

  it("is read with the keyboard", async () => {
    const { page } = shown;
    const box = page.locator("#fleets-1 .fleet-box");
    await box.focus();
    await page.keyboard.press("Home");
    expect(await spoken(page)).toContain("node0 cuda:0; GEMM bf16: ");
    await page.keyboard.press("ArrowDown");
    expect(await spoken(page)).toBe("node0 cuda:1; GEMM bf16: no value");
    await page.keyboard.press("ArrowRight");
    expect(await spoken(page)).toContain("node1 cuda:1; ");
    await page.keyboard.press("Home");
    for (let i = 0; i < 3; ++i) await page.keyboard.press("ArrowDown");
    expect(await spoken(page)).toBe("node0 cuda:3; GEMM bf16: 682 TFLOP/s, 10.0 % below (758 TFLOP/s); serial SN1003; node0 cuda:3: GEMM bf16 10.0 % below its 23 peers");
    await page.keyboard.press("Enter");
    expect(await chosen(page)).toBe("node0 cuda:3");
    const link = page.locator("#fleets-1 .fleet-device a");
    expect(await link.getAttribute("href")).toBe("#histories-1");
    expect(await link.textContent()).toBe("GEMM bf16");
    await page.keyboard.press("n");
    expect(await chosen(page)).toBe("node2 cuda:1");
    await page.keyboard.press("Escape");
    expect(await page.locator("#fleets-1 .fleet-tip").isHidden()).toBe(true);
  });

  it("says what is under the pointer, in another figure too", async () => {
    const { page } = shown;
    const select = page.locator('#fleets-1 select[aria-label="Figure"]');
    await select.selectOption({ label: "temperature under load" });
    const canvas = page.locator("#fleets-1 .fleet-canvas");
    await canvas.hover({ position: { x: Math.ceil(6 * 6.2) + 12 + 13, y: 18 + 13 } });
    expect(await page.locator("#fleets-1 .fleet-tip").textContent()).toMatch(/^node0 cuda:0temperature under load: [\d.]+ °C, /);
    await page.locator("#fleets-1 .fleet-figure", { hasText: "GEMM bf16" }).click();
    expect(await select.inputValue()).toBe("0");
  });

  it("finds a node and a serial, and puts the worst first", async () => {
    const { page } = shown;
    const find = page.locator("#fleets-1 .fleet-find");
    await find.fill("SN1009");
    await find.press("Enter");
    expect(await chosen(page)).toBe("node2 cuda:1");
    await find.fill("no such");
    expect(await spoken(page)).toBe("No device has that name.");
    await find.fill("");
    const order = page.locator('#fleets-1 select[aria-label="Order of nodes"]');
    await order.selectOption("worst");
    await page.locator("#fleets-1 .fleet-box").focus();
    await page.keyboard.press("Home");
    expect(await spoken(page)).toContain("node0 "); // its cuda:3 is slow
    await order.selectOption("name");
  });

  it("has the numbers as tables", async () => {
    const { page } = shown;
    const rows = (label: string) => page.locator(`#fleets-1 [aria-label="${label}"] tbody tr`).evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
    expect(await rows("Slow links and copies")).toEqual([["node4", "node5", "11.0 GB/s", "48.0 GB/s", "", "−77.1 %", "not known"]]);
    expect(await rows("Versions and settings that differ")).toEqual([["driver"], ["580.65.06", "5 nodes", "", "node0, node2, node3, ..."], ["575.51.03", "1 node", "", "node1"]]);
    expect((await rows("Figures by group")).length).toBe(1 + 3);
    expect(await page.locator("#fleets-1 .fleet-constants").textContent()).toContain("PCIe width 16 lanes");
  });

  it("marks and labels outliers in the distributions", async () => {
    const { page } = shown;
    const gemm = page.locator("#fleets-1 .fleet-histogram").first();
    expect(await gemm.locator(".fleet-outlier").count()).toBe(1);
    expect(await gemm.locator(".fleet-name").textContent()).toBe("node0 cuda:3");
    expect(await page.locator("#fleets-1 .fleet-histogram").count()).toBe(2); // of figures that are judged
  });

  it("draws a thousand nodes, and fits a narrow screen", async () => {
    const { page, problems } = await open(report(make_fleet(1000, 8)), { width: 400 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(400);
    const box = page.locator("#fleets-1 .fleet-box");
    await box.focus();
    await page.keyboard.press("End");
    expect(await spoken(page)).toContain("node999 cuda:0; ");
    expect(problems).toEqual([]);
    await page.close();
  });

  it("says why it could not be drawn where its values are damaged", async () => {
    const fleet = make_fleet();
    fleet.figures[0]!.packed = "AAAA";
    const { page, problems } = await open(report(fleet));
    expect(await page.locator("#fleets .failure-box").textContent()).toContain("the document is damaged");
    expect(await page.locator("#fleet_nodes-1").count()).toBe(1);
    expect(problems).toEqual([]);
    await page.close();
  });

  it("shows names as text, whatever they hold", async () => {
    const fleet = make_fleet();
    fleet.node_names[0] = kHostile;
    fleet.device_names[0] = kHostile;
    fleet.figures[0]!.words = kHostile;
    fleet.findings[0]!.kind = kHostile;
    const { page, problems } = await open(report(fleet));
    expect(await page.title()).not.toContain("taken");
    expect(await page.locator("#fleets img").count()).toBe(0);
    expect(problems).toEqual([]);
    await page.close();
  });
});

describe("a node", () => {
  it("has a row for each figure in one unit, and what differs among copies", async () => {
    const { page } = shown;
    const rows = await page.locator('#fleet_nodes-1 [aria-label="What it measured"] tbody tr').evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
    expect(rows[0]!.filter((_, i) => i !== 1)).toEqual(["GEMM bf16TFLOP/s", "758", "766", "773"]);
    expect(rows[1]).toEqual(["GEMM fp8", "this build has no fp8 kernel"]);
    expect(await page.locator("#fleet_nodes-1 .fleet-low").allTextContents()).toEqual(["11.0 GB/s"]);
    expect(await page.locator("#fleet_nodes-1 .fleet-findings").textContent()).toContain("cuda:1 lowered its clock under load: power cap");
  });
});
