import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Page } from "playwright-core";
import type { ReportDocument } from "../../src/document";
import { duration, percent } from "../../src/format";
import { bench_case, empty_report, fixed_map, item, kHostile, overlap, pictures_report, preemption, waterfall } from "../pictures_fixture";
import { Browser, scroll_through, type Opened } from "./browser";

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 }); // for busy machines: nothing here asserts a time
const browser = new Browser();
let shown: Opened;
beforeAll(async () => {
  await browser.start();
  shown = await open(pictures_report());
});
afterAll(() => browser.stop());

async function open(report: ReportDocument): Promise<Opened> {
  const opened = await browser.open(report);
  await scroll_through(opened.page);
  return opened;
}

async function texts(page: Page, selector: string): Promise<(string | null)[]> {
  return page.locator(selector).evaluateAll((elements) => elements.map((element) => element.textContent));
}

async function table_of(page: Page, card: string, caption: string): Promise<(string | null)[][]> {
  return page.locator(`#${card} table`, { has: page.locator("caption", { hasText: caption }) }).locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
}

describe("pictures", () => {
  it("open without a message or a request", () => {
    expect(shown.problems).toEqual([]);
    expect(shown.requests).toEqual([]);
  });

  it("each have a table beside them", async () => {
    for (const id of ["queue-map-40", "waterfall-kernel", "overlap-1", "preemption-1", "bench-1", "timeline-1"]) {
      expect(await shown.page.locator(`#${id} details.numbers`).count()).toBeGreaterThan(0);
    }
  });

  it("map every stream to its queue", async () => {
    const { page } = shown;
    expect(await page.locator("#queue-map-40 .queue-frame .queue-mark").count()).toBe(40);
    expect(await page.locator("#queue-map-128 .queue-frame .queue-mark.is-shared").count()).toBe(128);
    expect((await table_of(page, "queue-map-40", "Streams of each queue"))[3]!.slice(0, 4)).toEqual(["queue 3", "streams 3, 11, 19, 27, 35", "5", "shared"]);
    expect((await texts(page, "#queue-map-moving .queue-mark title")).filter((text) => text!.startsWith("stream 0 "))).toEqual(["stream 0 on queue 0, 60.0 % of its commands, 60 commands, beside 3 other streams", "stream 0 on queue 1, 30.0 % of its commands, 30 commands, beside 5 other streams", "stream 0 on queue 3, 10.0 % of its commands, 10 commands, beside 3 other streams"]);
  });

  it("show each hop where the one before ends", async () => {
    const { page } = shown;
    await page.locator("#waterfall-kernel details > summary").first().click();
    const bars = await page.locator("#waterfall-kernel .waterfall-bar").evaluateAll((all) => all.map((bar) => bar.getBoundingClientRect()).map(({ left, right }) => [left, right] as const));
    const { hops } = waterfall();
    expect(bars.length).toBe(hops.length);
    const scale = (bars[3]![1] - bars[3]![0]) / hops[3]!.duration_ns.p50!;
    for (let i = 1; i < bars.length; ++i) expect(Math.abs(bars[i]![0] - bars[i - 1]![1])).toBeLessThan(1);
    expect((bars[2]![1] - bars[2]![0]) / hops[2]!.duration_ns.p50!).toBeCloseTo(scale, 4);
    expect(await texts(page, "#waterfall-kernel .waterfall-value")).toEqual(hops.map((hop) => duration(hop.duration_ns.p50)));
    expect(await page.locator("#waterfall-kernel .waterfall-missing").textContent()).toContain("record it with --host");
  });

  it("divide a step into parts that fill it", async () => {
    const { page } = shown;
    const { bars, causes } = overlap();
    const longest = Math.max(...bars.map((bar) => bar.span_ns));
    const filled = await page.locator("#overlap-1 .overlap-track").evaluateAll((all) => all.map((track) => [...track.children].reduce((sum, part) => sum + part.getBoundingClientRect().width, 0) / track.getBoundingClientRect().width));
    filled.forEach((share, i) => expect(share).toBeCloseTo(bars[i]!.span_ns / longest, 2));
    expect(await texts(page, "#overlap-1 .overlap-cause-head strong")).toEqual(causes.map(({ cause }) => cause));
    expect((await table_of(page, "overlap-1", "Parts"))[3]![4]).toBe(`${duration(22e6)} (${percent(22 / 81)})`);
  });

  it("list every point of a preemption, the failed and the not measured with their reason", async () => {
    const { page } = shown;
    const rows = await table_of(page, "preemption-1", "Time until urgent work starts");
    expect(rows.length).toBe(1 + 3 * 6);
    expect(rows[0]![5]).toBe("5.22 us");
    expect(rows.filter((row) => row[8] === "overloaded").length).toBe(preemption().curves[0]!.points.filter((point) => point.is_overloaded).length);
    expect(rows.filter((row) => row[8]!.startsWith("failed: the victim ended")).length).toBe(1);
    expect(await page.locator("#preemption-1 .preemption-absent").textContent()).toContain("the driver's time slice can only be set by root");
  });

  it("sort the leaderboard by mouse and keyboard", async () => {
    const { page } = shown;
    const column = (index: number) => page.locator("#bench-1 .bench-board tbody tr").evaluateAll((rows, at) => rows.map((row) => row.children[at]?.textContent ?? ""), index);
    const head = (text: string) => page.locator("#bench-1 .bench-board th", { hasText: text });
    expect(await head("of the roof").getAttribute("aria-sort")).toBe("descending");
    await head("GFLOP/s").locator("button").click();
    expect(await head("GFLOP/s").getAttribute("aria-sort")).toBe("descending");
    expect((await column(4)).slice(0, 3)).toEqual(["512 k", "341 k", "41.2 k"]);
    await head("kernel").locator("button").focus();
    await page.keyboard.press("Enter");
    expect(await head("kernel").getAttribute("aria-sort")).toBe("ascending");
    expect(await head("GFLOP/s").getAttribute("aria-sort")).toBeNull();
    expect((await column(0))[0]).toBe("flash_attention");
    await page.keyboard.press("Enter");
    expect((await column(0))[0]).toBe("softmax");
    expect(await page.locator("#bench-1 .bench-failed").textContent()).toContain("its tolerance is 0.005");
    expect(await page.locator("#bench-1 .roofline-roof[d]").count()).toBe(2);
    expect(await page.locator("#bench-1 .roofline-point").count()).toBe(7);
    expect(await page.locator("#bench-1 figcaption").textContent()).toContain("run weir bench --roofline");
  });

  it("show no markup from names, of any length, and nothing where there is nothing", async () => {
    const long = kHostile.repeat(1_500);
    const map = { ...fixed_map("hostile-map", 3, 2), mapping: long, basis: kHostile, queues: [long, kHostile], streams: [long, kHostile, "2"] };
    map.cells.push({ stream: 99, queue: 0, commands: 1 }, { stream: 0, queue: -1, commands: null });
    const fall = { ...waterfall(), id: "hostile-fall", kind: long, hops: [{ from: long, to: kHostile, count: 0, duration_ns: { mean: null, p50: null, p95: null, p99: null }, share: null }], missing: [{ hop: kHostile, reason: long }] };
    const empty_overlap = { ...overlap(), id: "hostile-overlap", bars: [{ label: long, span_ns: 0, compute_only_ns: 0, hidden_ns: 0, exposed_ns: 0, idle_ns: 0, other_ns: 0 }], causes: [{ cause: long, ns_per_step: 0, share: 0, meaning: long, advice: kHostile }], efficiency: null };
    const wait = { ...preemption(), id: "hostile-wait", verdict: long, published: [{ name: long, url: "javascript:alert(1)", points: [] }], curves: [{ name: long, level: null, verdict: kHostile, reason: null, points: [] }] };
    const odd_case = { ...bench_case(long, kHostile, kHostile, 1e300, 1e-300, null), failure: long, status: kHostile };
    const report: ReportDocument = {
      ...empty_report(),
      queue_maps: [map, { ...fixed_map("empty-map", 0, 0) }],
      waterfalls: [fall, { ...waterfall(), id: "empty-fall", hops: [], missing: [] }],
      overlaps: [empty_overlap, { ...overlap(), id: "empty-overlap", bars: [], causes: [], efficiency: null, best_efficiency: null }],
      preemptions: [wait, { ...preemption(), id: "empty-wait", curves: [], published: [], alone_tail_ns: null }],
      benches: [{ ...item("hostile-bench", long), cases: [odd_case, bench_case("a", "b", "c", 1e300, 1e-300, 5)], rooflines: [{ backend: kHostile, precision: long, flop_per_s: null, bytes_per_s: -1, reason: long }] }, { ...item("empty-bench", ""), cases: [], rooflines: [] }],
    };
    const { page, problems, requests } = await open(report);
    expect(problems).toEqual([]);
    expect(requests).toEqual([]);
    expect(await page.locator(".failure-box").count()).toBe(0);
    expect(await page.locator("article script, article img, a[href^='javascript']").count()).toBe(0);
    expect(await page.title()).not.toBe("taken");
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
    await page.close();
  });

  it("fit a narrow screen and paper", async () => {
    const { page } = await open(pictures_report());
    await page.setViewportSize({ width: 390, height: 800 });
    await page.waitForTimeout(200);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
    expect((await page.pdf({ format: "A4" })).length).toBeGreaterThan(10_000);
    await page.close();
  });
});
