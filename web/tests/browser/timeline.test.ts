import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Page } from "playwright-core";
import type { Timeline } from "../../src/document";
import { decode_spans } from "../../src/timeline/decode";
import { empty_report, kHostile } from "../pictures_fixture";
import { lane, make_timeline } from "../timeline_fixture";
import { Browser, type Opened } from "./browser";

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 }); // for busy machines: nothing here asserts a time
const browser = new Browser();
beforeAll(() => browser.start());
afterAll(() => browser.stop());

async function open(timeline: Timeline): Promise<Opened> {
  const opened = await browser.open({ ...empty_report(), timelines: [timeline] }, { hash: `#${timeline.id}` });
  await opened.page.locator(".timeline[data-read]").waitFor();
  return opened;
}

async function range(page: Page): Promise<[number, number]> {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const { from, to } = await page.locator(".timeline").evaluate((element) => ({ ...(element as HTMLElement).dataset }) as { from: string; to: string });
  return [Number(from), Number(to)];
}

function small(): Timeline {
  const timeline = make_timeline(0, 0, 0);
  timeline.end_ns = 10_000;
  timeline.names = [
    { text: "gemm", kind: "kernel" },
    { text: "all_reduce", kind: "collective" },
    { text: kHostile, kind: "kernel" },
  ];
  timeline.groups = [
    { label: "GPU 0 streams", lanes: [lane("stream 7", [[100, 400, 0], [1_000, 2_500, 1], [4_000, 50, 0]]), lane("stream 8", [[200, 9_800, 2]])] },
    { label: "host threads", lanes: [lane("thread 1", [[0, 9_000, 0], [500, 4_000, 1], [600, 100, 0]])] },
  ];
  return timeline;
}

// How many colours there are in the picture, and how much of it is not background.
async function look(page: Page): Promise<{ colours: number; filled: number }> {
  return page.locator(".timeline-canvas").first().evaluate((element) => {
    const canvas = element as HTMLCanvasElement;
    const { data } = canvas.getContext("2d")!.getImageData(0, 60, canvas.width, canvas.height - 60);
    const words = new Uint32Array(data.buffer);
    const seen = new Map<number, number>();
    for (const word of words) seen.set(word, (seen.get(word) ?? 0) + 1);
    return { colours: seen.size, filled: 1 - Math.max(...seen.values()) / words.length };
  });
}

describe("the timeline", () => {
  it("draws, without a message or a request", async () => {
    const { page, problems, requests } = await open(small());
    const seen = await look(page);
    expect(seen.colours).toBeGreaterThan(4);
    expect(seen.filled).toBeGreaterThan(0.2);
    expect(problems).toEqual([]);
    expect(requests).toEqual([]);
    expect(await page.title()).not.toBe("taken");
    await page.close();
  });

  it("zooms around the pointer once it has the focus, and leaves the page its wheel before", async () => {
    const { page } = await open(small());
    expect(await range(page)).toEqual([0, 10_000]);
    const surface = page.locator(".timeline-over");
    const box = (await surface.boundingBox())!;
    await page.mouse.move(box.x + box.width / 4, box.y + 60);
    await page.mouse.wheel(0, -300);
    expect(await range(page)).toEqual([0, 10_000]);
    expect(await page.locator(".timeline-said").textContent()).toMatch(/Click the picture first/);

    await page.evaluate(() => document.querySelector(".timeline")!.scrollIntoView());
    const now = (await surface.boundingBox())!;
    await page.mouse.click(now.x + now.width / 4, now.y + 60);
    await page.mouse.wheel(0, -300);
    const [from, to] = await range(page);
    expect(to - from).toBeLessThan(9_000);
    expect(from + (to - from) / 4).toBeCloseTo(2_500, -1);
    await page.keyboard.press("0");
    expect(await range(page)).toEqual([0, 10_000]);
    // Ctrl and wheel zooms anywhere; far beyond the least and back it stays inside.
    await page.keyboard.down("Control");
    for (let i = 0; i < 12; ++i) await page.mouse.wheel(0, -120);
    let [low, high] = await range(page);
    expect(high - low).toBeCloseTo(20, 5);
    for (let i = 0; i < 12; ++i) await page.mouse.wheel(0, 120);
    await page.keyboard.up("Control");
    [low, high] = await range(page);
    expect([low, high]).toEqual([0, 10_000]);
    await page.close();
  });

  it("pans by drag and by keys", async () => {
    const { page } = await open(small());
    await page.locator(".timeline-picture").focus();
    for (const key of ["+", "+", "+"]) await page.keyboard.press(key);
    const [from, to] = await range(page);
    expect(to - from).toBeCloseTo(10_000 / 1.5 ** 3, 0);
    await page.keyboard.press("ArrowRight");
    const [right] = await range(page);
    expect(right - from).toBeCloseTo(0.1 * (to - from), 0);
    const box = (await page.locator(".timeline-over").boundingBox())!;
    await page.mouse.move(box.x + 300, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + 400, box.y + 50, { steps: 5 });
    await page.mouse.up();
    const [dragged, end] = await range(page);
    expect(dragged).toBeCloseTo(right - (100 / box.width) * (end - dragged), 0);
    await page.keyboard.press("-");
    await page.keyboard.press("Home");
    expect(await range(page)).toEqual([0, 10_000]);
    await page.close();
  });

  it("steps from span to span by keyboard, and says them", async () => {
    const { page } = await open(small());
    const said = page.locator(".timeline-said");
    await page.locator(".timeline-zoom button").last().focus();
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement?.textContent)).toMatch(/GPU 0 streams/);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    expect(await said.textContent()).toBe("gemm, kernel, starts at 100 ns, lasts 400 ns, GPU 0 streams, stream 7, span 1 of 3");
    await page.keyboard.press("ArrowRight");
    expect(await said.textContent()).toBe("all_reduce, collective, starts at 1 us, lasts 2.50 us, GPU 0 streams, stream 7, span 2 of 3");
    await page.keyboard.press("End");
    expect(await said.textContent()).toMatch(/^gemm, kernel, starts at 4 us, lasts 50.0 ns/);
    await page.keyboard.press("ArrowRight");
    expect(await said.textContent()).toMatch(/span 3 of 3$/);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Enter");
    const [from, to] = await range(page);
    expect(from).toBeLessThanOrEqual(1_000);
    expect(to).toBeGreaterThanOrEqual(3_500);
    expect(to - from).toBeLessThanOrEqual(7_500);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    expect(await said.textContent()).toContain(kHostile.slice(0, 40));
    expect(await page.locator(".timeline script, .timeline img").count()).toBe(0);
    await page.close();
  });

  it("finds by name, steps through what it found, and measures", async () => {
    const { page } = await open(small());
    const before = await look(page);
    await page.locator(".timeline-find").fill("GEMM");
    await page.locator(".timeline-found", { hasText: "4 in 1 name" }).waitFor();
    await range(page);
    expect(await look(page)).not.toEqual(before);
    await page.locator(".timeline-picture").focus();
    const said = page.locator(".timeline-said");
    await page.keyboard.press("n");
    expect(await said.textContent()).toMatch(/^gemm, kernel, starts at 0 ns/);
    await page.keyboard.press("n");
    expect(await said.textContent()).toMatch(/^gemm, kernel, starts at 100 ns/);
    await page.keyboard.press("N");
    expect(await said.textContent()).toMatch(/^gemm, kernel, starts at 0 ns/);
    await page.keyboard.press("0");
    await page.keyboard.press("m");
    const cells = await page.locator(".timeline-range tbody tr").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
    expect(cells).toEqual([
      ["GPU 0 streams, stream 7", "2.95 us", "29.5 %"],
      ["GPU 0 streams, stream 8", "9.80 us", "98.0 %"],
      ["host threads, thread 1", "9.00 us", "90.0 %"],
    ]);
    await page.close();
  });

  it("shows the span below the pointer, and collapses groups", async () => {
    const { page } = await open(small());
    await page.evaluate(() => document.querySelector(".timeline")!.scrollIntoView());
    const box = (await page.locator(".timeline-over").boundingBox())!;
    await page.mouse.move(box.x + 0.2 * box.width, box.y + 26 + 26 + 12);
    await page.locator(".timeline-tip", { hasText: "all_reduce" }).waitFor();
    expect(await page.locator(".timeline-lane").count()).toBe(3);
    await page.locator(".timeline-group").first().click();
    expect(await page.locator(".timeline-lane").count()).toBe(1);
    await page.close();
  });

  it("says what is broken and goes on", async () => {
    const timeline = small();
    timeline.left_out = 1_234_567;
    timeline.left_out_reason = "a report draws 1 000 000 spans at most";
    timeline.groups[0]!.lanes[0]!.spans = "????";
    timeline.groups[0]!.lanes[1]!.count = 1e15;
    timeline.groups[1]!.lanes[0]!.label = kHostile.repeat(2_000);
    const { page, problems } = await open(timeline);
    expect(await page.locator(".timeline-lane").first().getAttribute("title")).toMatch(/not base64 from character 0 on/);
    expect(await page.locator(".timeline-left-out").textContent()).toMatch(/1\u202f234\u202f567 spans are not drawn.*1 000 000 spans at most/);
    expect((await look(page)).colours).toBeGreaterThan(3);
    expect(problems).toEqual([]);
    await page.close();
  });

  it("redraws for the other theme, and for paper", async () => {
    const { page } = await open(small());
    const corner = () => page.locator(".timeline-canvas").first().evaluate((element) => [...(element as HTMLCanvasElement).getContext("2d")!.getImageData(2, 2, 1, 1).data].slice(0, 3));
    const light = await corner();
    await page.keyboard.press("t");
    await range(page);
    const dark = await corner();
    expect(Math.max(...dark)).toBeLessThan(80);
    expect(Math.min(...light)).toBeGreaterThan(200);
    expect((await page.pdf({ format: "A4" })).length).toBeGreaterThan(10_000);
    await page.close();
  });

  it("has tables with the same numbers", async () => {
    const timeline = make_timeline(3_000, 4, 2);
    const { page } = await open(timeline);
    await page.locator(".numbers summary", { hasText: "Time by name" }).click();
    const rows = await page.locator(".timeline-totals table").first().locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
    const sums = new Map<number, number>();
    for (const one of timeline.groups[0]!.lanes) {
      const { names } = decode_spans(one.spans, one.count, timeline.names.length);
      for (const index of names) sums.set(index, (sums.get(index) ?? 0) + 1);
    }
    for (const [index, number] of sums) {
      const row = rows.find(([name]) => name === timeline.names[index]!.text);
      expect(row?.[2]?.replace(/\u202f/g, "")).toBe(String(number));
    }
    expect(rows.length).toBe(sums.size);
    await page.close();
  });
});

describe("a million spans", () => {
  it("are drawn and panned; the figures are printed", async () => {
    const timeline = make_timeline(1_000_000, 32, 7);
    expect(timeline.groups.reduce((sum, group) => sum + group.lanes.length, 0)).toBe(40);
    const { page, problems } = await open(timeline);
    const marks = await page.evaluate(() => performance.getEntriesByType("mark").map(({ name, startTime }) => [name, Math.round(startTime)]));
    console.log("1 M spans, ms since navigation:", JSON.stringify(Object.fromEntries(marks as [string, number][])));
    expect((await look(page)).filled).toBeGreaterThan(0.2);

    await page.locator(".timeline-picture").focus();
    const frames = async (act: () => Promise<void>): Promise<{ frames: number; median: number; p95: number; worst: number }> => {
      await page.evaluate(() => {
        const times: number[] = [];
        Object.assign(window, { frame_times: times });
        const tick = (now: number): void => {
          times.push(now);
          if (times.length < 100_000) requestAnimationFrame(tick);
        };
        requestAnimationFrame(tick);
      });
      await act();
      return page.evaluate(() => {
        const times = (window as unknown as { frame_times: number[] }).frame_times;
        const gaps = times.slice(1).map((time, i) => time - times[i]!).sort((a, b) => a - b);
        times.length = 100_000;
        const at = (share: number) => Math.round(10 * gaps[Math.min(gaps.length - 1, Math.floor(share * gaps.length))]!) / 10;
        return { frames: gaps.length, median: at(0.5), p95: at(0.95), worst: at(1) };
      });
    };
    const box = (await page.locator(".timeline-over").boundingBox())!;
    const drag = async (): Promise<void> => {
      for (let turn = 0; turn < 2; ++turn) {
        const side = turn % 2 === 0 ? 1 : -1;
        await page.mouse.move(box.x + box.width / 2 + side * 300, box.y + 200);
        await page.mouse.down();
        for (let i = 0; i < 60; ++i) await page.mouse.move(box.x + box.width / 2 + side * (300 - i * 10), box.y + 200);
        await page.mouse.up();
      }
    };
    for (const presses of [1, 4, 8, 8]) {
      for (let i = 0; i < presses; ++i) await page.keyboard.press("+");
      const [from, to] = await range(page);
      const figures = await frames(drag);
      console.log(`panning ${((100 * (to - from)) / timeline.end_ns).toPrecision(3)} % of 1 M spans:`, JSON.stringify(figures));
      const [start, end] = await range(page);
      expect(end - start).toBeCloseTo(to - from, -1);
      expect(start).toBeGreaterThanOrEqual(0);
    }
    expect(problems).toEqual([]);
    await page.close();
  }, 600_000);
});
