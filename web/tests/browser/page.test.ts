// The page as a reader has it: a file opened from disk in Chromium.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bare_rate, duration, ratio } from "../../src/format";
import { bare_document, full_document, hostile_document } from "../fixture";
import { Browser, filled, scroll_through, type Opened } from "./browser";

const browser = new Browser();
beforeAll(() => browser.start());
afterAll(() => browser.stop());

const report = full_document();

// Opened and scrolled through once, for the tests that only look.
let whole: Promise<Opened> | null = null;
function whole_page(): Promise<Opened> {
  whole ??= browser.open(report).then(async (opened) => {
    await scroll_through(opened.page);
    return opened;
  });
  return whole;
}

describe("the full report", () => {
  test("opens from disk without a message, an error or a request, and shows every section", async () => {
    const { page, problems, requests } = await whole_page();
    const navigation = await page.locator("nav li a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
    expect(navigation.slice(0, 6)).toEqual(["#verdict", "#fleets", "#fleet-nodes", "#comparisons", "#usages", "#models"]);
    expect(navigation.slice(-6)).toEqual(["#histories", "#texts", "#environments", "#reproduce", "#refused", "#sources"]);
    expect(await page.locator(".slot[data-waiting]").count()).toBe(0);
    expect(await page.locator(".failure-box").allTextContents()).toEqual([]);
    expect(problems).toEqual([]);
    expect(requests).toEqual([]);
  });

  test("shows where a trace's time went, whole names in titles, and folds the hops away", async () => {
    const { page } = await whole_page();
    const { bars, work, top } = report.usages[0]!;
    expect(await page.locator("#usages-1 .overlap-line").count()).toBe(bars.length);
    const widths = await page.locator("#usages-1 .usage-kinds .overlap-part").evaluateAll((all) => all.map((one) => parseFloat((one as HTMLElement).style.width)));
    expect(widths.length).toBe(work.length + 1); // and idle
    expect(widths.reduce((all, one) => all + one, 0)).toBeCloseTo(100, 1);
    const names = await page.locator('#usages-1 .table-frame:not([aria-label$="by rank"]) tbody th bdi').evaluateAll((all) => all.map((one) => [one.textContent, one.getAttribute("title")]));
    expect(names.slice(0, work.length).map(([shown]) => shown)).toEqual(work.map((one) => one.work));
    expect(names[work.length]).toEqual(["gemm_kernel<float, 128, 64, Tile<>, false>", top[0]!.name]);
    expect(names[work.length + 1]).toEqual([top[1]!.name, null]);
    expect(await page.locator("#waterfalls-1 .waterfall-bar").first().isVisible()).toBe(false);
    expect(await page.locator("#verdict .finding-text").first().textContent()).not.toContain(report.verdict.headline.split(". ")[0]);
  });

  test("shows a trace in the words of the model: a tree that opens, and a dash with its reason", async () => {
    const { page } = await whole_page();
    const model = report.models[0]!;
    const rows = page.locator('#models-1 [aria-label="Modules"] tbody tr');
    expect(await rows.count()).toBe(model.modules.length + 1);
    expect(await rows.last().textContent()).toContain("(no module)");
    const parts = rows.filter({ hasText: "Part_" });
    expect(await parts.count()).toBe(20);
    expect(await parts.first().isVisible()).toBe(false); // twenty parts are too many to begin with
    await page.locator('#models-1 button[aria-label="Parts of Block x12"]').click();
    expect(await parts.first().isVisible()).toBe(true);
    await page.locator('#models-1 button[aria-label="Parts of Net_0"]').click();
    expect(await parts.first().isVisible()).toBe(false); // closed with what it is a part of
    await page.locator('#models-1 button[aria-label="Parts of Net_0"]').click();
    await page.locator('#models-1 button[aria-label="Parts of Block x12"]').click();

    const cells = await page.locator('#models-1 [aria-label="Operators by shape"] tbody tr').evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent ?? "")));
    expect(cells[0]?.slice(1)).toEqual(["66.0 %", duration(3_900_000), "48", "612", "400", "61.9 %compute", duration(1_480_000)]);
    expect(cells[1]?.slice(4)).toEqual(["–", "–", "–", "–"]);
    expect(cells[2]?.[0]).toBe("(cudaGraphLaunch)");
    const titles = await page.locator("#models-1 .model-unknown").evaluateAll((all) => all.map((one) => one.getAttribute("title")));
    expect(titles.slice(0, 4)).toEqual(Array(4).fill(model.operators[1]!.reason));

    const collectives = await page.locator('#models-1 [aria-label="Collectives"] tbody tr').evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent ?? "")));
    expect(collectives[1]).toEqual(["all_reduce", "32.0 MiB", "4", "6", duration(1_200_000), duration(198_000), "171", "256", "301"]);
    expect(collectives[2]?.slice(6)).toEqual(["–", "–", "–"]);
    expect(titles.slice(-3)).toEqual(Array(3).fill(model.bandwidth_reason));
  });

  test("shows phases by rank with the slowest marked, memory, and the models of other ranks folded", async () => {
    const { page } = await whole_page();
    const { phases } = report.usages[0]!.rank_phases!;
    const cells = await page.locator('#usages-1 [aria-label="Phases of a step, by rank"] tbody tr').evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent ?? "")));
    expect(cells).toEqual([["rank 0", duration(950_000), duration(1_740_000), "–"], ["rank 1", duration(951_000), duration(1_950_000), duration(12_000)]]);
    expect(await page.locator("#usages-1 .usage-slowest").allTextContents()).toEqual([duration(1_950_000)]);
    expect(await page.locator('#usages-1 [aria-label="The slowest ranks"] li').allTextContents()).toEqual([phases[1]!.words]);

    const memory = await page.locator('#models-1 [aria-label="Memory that the program\'s allocator had"] tbody tr').allTextContents();
    expect(memory).toEqual([`allocated61.0 GiB${duration(4_100_000)}${report.models[0]!.memory!.allocated.words}`, `reserved72.0 GiB${duration(900_000)}–`]);
    const modules = page.locator('#models-2 [aria-label="Modules"]');
    expect(await modules.isVisible()).toBe(false);
    await page.locator("#models-2 details.more > summary").first().click();
    expect(await modules.isVisible()).toBe(true);
  });

  test("shows the document's numbers", async () => {
    const { page } = await whole_page();
    expect(await page.locator("h1").textContent()).toBe(report.title);
    expect(await page.locator("#verdict-title").textContent()).toBe(report.verdict.headline);
    expect(await page.locator(".finding").count()).toBe(report.verdict.findings.length);

    for (const item of report.scaling) {
      const rows = await page.locator(`[id="${item.id}"] details.numbers tbody tr`).evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent ?? "")));
      const points = item.curves.flatMap((curve) => curve.points.map((point) => ({ curve, point })));
      expect(rows.length).toBe(points.length);
      points.forEach(({ curve, point }, i) => {
        const row = rows[i] ?? [];
        expect(row[0]).toBe(curve.name);
        expect(row[1]).toBe(String(point.streams));
        if (point.failure !== null) {
          expect(row[2]).toBe(`failed: ${point.failure}`);
          return;
        }
        expect(row[2]).toBe(bare_rate(point.throughput ?? NaN, item.unit));
        expect(row[5]).toBe(duration(point.latency_ns.p50));
        expect(row[7]).toBe(duration(point.latency_ns.p99));
        expect(row[8]).toBe(duration(point.host_ns_per_command));
        expect(row[9]).toBe(duration(curve.floor.find((floor) => floor.streams === point.streams)?.ns_per_command));
      });
    }
    for (const item of report.comparisons) {
      const text = (await page.locator(`[id="${item.id}"]`).textContent()) ?? "";
      for (const pair of item.pairs) {
        expect(text).toContain(pair.failure ?? ratio(pair.metrics[0]?.ratio));
        expect(text).toContain(pair.label);
      }
    }
    for (const item of report.distributions) {
      const rows = await page.locator(`[id="${item.id}"] > .table-frame tbody tr`).allTextContents();
      item.series.forEach((series, i) => {
        expect(rows[i]).toContain(series.name);
        expect(rows[i]).toContain(series.values.length > 0 ? duration(series.p99) : (series.reason ?? ""));
      });
    }
    for (const item of report.histories) {
      const rows = await page.locator(`[id="${item.id}"] details.numbers tbody tr`).allTextContents();
      item.points.forEach((point, i) => {
        expect(rows[i]).toContain(duration(point.p50));
        expect(rows[i]).toContain(point.commit.slice(0, 10));
      });
    }
    expect(await page.locator("#refused").textContent()).toContain(report.refused[0]?.reason ?? "?");
  });

  test("draws near sections only, and one further down when its anchor is asked for", async () => {
    const { page } = await browser.open(report);
    const waiting = await page.locator("#histories .slot[data-waiting]").count();
    expect(waiting).toBe(1);
    await page.locator('nav a[href="#histories"]').click();
    await page.locator("#histories canvas").waitFor();
    await page.close();

    const jumped = await browser.open(report, { hash: "#histories-1" });
    await jumped.page.locator("#histories-1 canvas").waitFor();
    await expect.poll(() => jumped.page.evaluate(() => Math.abs(document.getElementById("histories-1")?.getBoundingClientRect().top ?? 1e9))).toBeLessThan(60);
    await jumped.page.close();
  });

  test("does not shift what is in view while it draws", async () => {
    const { page } = await browser.open(report);
    const shift = await page.evaluate(
      () =>
        new Promise<number>((done) => {
          let sum = 0;
          new PerformanceObserver((list) => {
            for (const entry of list.getEntries()) sum += (entry as PerformanceEntry & { value: number }).value;
          }).observe({ type: "layout-shift", buffered: true });
          let steps = 0;
          const step = (): void => {
            window.scrollBy(0, 400);
            if (++steps < 40) setTimeout(step, 16);
            else setTimeout(() => done(sum), 100);
          };
          step();
        }),
    );
    expect(shift).toBeLessThan(0.1);
    await page.close();
  });

  test("nothing is wider than the page, down to 360 px", async () => {
    for (const width of [360, 768]) {
      const { page } = await browser.open(report, { width, height: 780 });
      await scroll_through(page);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
      await page.close();
    }
  });
});

describe("themes", () => {
  // Canvas pixels cannot be asked for a colour by name, so the ground of the page stands for the theme.
  const ground = "getComputedStyle(document.body).backgroundColor";

  test("follow the system, and the reader's choice by button and key", async () => {
    const { page, problems } = await browser.open(report, { scheme: "dark" });
    expect(await page.evaluate(ground)).toBe("rgb(14, 20, 21)");
    await page.locator("#theme-toggle").click();
    expect(await page.evaluate(ground)).toBe("rgb(246, 247, 247)");
    await page.keyboard.press("t");
    expect(await page.evaluate(ground)).toBe("rgb(14, 20, 21)");
    expect(problems).toEqual([]);
    await page.close();
  });

  test("charts are drawn again in the other theme's colours", async () => {
    const { page } = await browser.open(report, { hash: "#scaling-1" });
    await page.locator("#scaling-1 canvas").first().waitFor();
    const picture = (): Promise<string> => page.evaluate(() => document.querySelector<HTMLCanvasElement>("#scaling-1 canvas")?.toDataURL() ?? "");
    const light = await picture();
    await page.keyboard.press("t");
    await expect.poll(picture).not.toBe(light);
    await page.keyboard.press("t");
    await expect.poll(picture).toBe(light);
    await page.close();
  });

  test("every text has a contrast of 4.5:1 or more, in both", async () => {
    const { page } = await whole_page();
    expect(await page.evaluate(weak_texts)).toEqual([]);
    await page.emulateMedia({ colorScheme: "dark" });
    await expect.poll(() => page.evaluate(ground)).toBe("rgb(14, 20, 21)");
    expect(await page.evaluate(weak_texts)).toEqual([]);
    await page.emulateMedia({ colorScheme: "light" });
  });
});

describe("without a mouse", () => {
  test("keys walk the sections, open the help and filter", async () => {
    const { page } = await browser.open(report);
    const focused = "document.activeElement?.id";
    await page.keyboard.press("j");
    expect(await page.evaluate(focused)).toBe("fleets");
    await page.keyboard.press("n");
    expect(await page.evaluate(focused)).toBe("fleet-nodes");
    await page.keyboard.press("k");
    expect(await page.evaluate(focused)).toBe("fleets");
    await page.keyboard.press("?");
    expect(await page.locator("dialog[open] h2").textContent()).toBe("Keys");
    await page.keyboard.press("Escape");
    expect(await page.locator("dialog[open]").count()).toBe(0);
    await page.keyboard.press("/");
    expect(await page.evaluate(focused)).toBe("filter");
    await page.keyboard.type("all_reduce");
    expect(await page.locator("#scaling .slot:not([hidden])").count()).toBe(1);
    expect(await page.locator("#histories").isHidden()).toBe(true);
    expect(await page.locator(".filter-status").textContent()).toContain("all_reduce");
    await page.keyboard.press("Escape");
    expect(await page.locator("#scaling .slot:not([hidden])").count()).toBe(2);
    await page.close();
  });

  test("the first Tab reaches the skip link, and arrows read a chart aloud", async () => {
    const { page } = await browser.open(report, { hash: "#scaling-1" });
    await page.locator("#scaling-1 canvas").first().waitFor();
    await page.locator("#scaling-1 .chart-box").first().focus();
    await page.keyboard.press("Home");
    const said = page.locator("#scaling-1 .chart [role=status]").first();
    const first = report.scaling[0]?.curves[0]?.points[0];
    await expect.poll(() => said.textContent()).toContain(bare_rate(first?.throughput ?? NaN, "GFLOP/s"));
    await page.keyboard.press("End");
    await expect.poll(() => said.textContent()).toContain("failed: cuda:0: out of memory");
    await page.close();

    const other = await browser.open(report);
    await other.page.keyboard.press("Tab");
    expect(await other.page.evaluate("document.activeElement?.className")).toBe("skip");
    await other.page.close();
  });

  test("headings are in order, charts and regions are named, tables have captions", async () => {
    const { page } = await whole_page();
    const found = await page.evaluate(() => {
      const levels = [...document.querySelectorAll("h1, h2, h3, h4")].filter((heading) => !heading.closest("dialog")).map((heading) => Number(heading.tagName[1]));
      const named = (element: Element): boolean => (element.getAttribute("aria-label") ?? element.getAttribute("aria-labelledby") ?? element.textContent ?? "").trim() !== "";
      return {
        h1: levels.filter((level) => level === 1).length,
        jumps: levels.filter((level, i) => i > 0 && level > (levels[i - 1] ?? 0) + 1).length,
        unnamed: [...document.querySelectorAll("button, a, [role=group], [role=region], nav, section, article")].filter((element) => !named(element)).map((element) => element.outerHTML.slice(0, 80)),
        bare_tables: [...document.querySelectorAll("table")].filter((table) => !table.caption || !table.querySelector("th[scope]")).length,
        twice: [...document.querySelectorAll("[id]")].map((element) => element.id).filter((id, i, all) => all.indexOf(id) !== i),
        charts_without_numbers: [...document.querySelectorAll("figure.chart")].filter((figure) => !figure.closest("article")?.querySelector("table, details")).length,
      };
    });
    expect(found).toEqual({ h1: 1, jumps: 0, unnamed: [], bare_tables: 0, twice: [], charts_without_numbers: 0 });
  });
});

test("the pointer reads the nearest measured point of every curve", async () => {
  const { page } = await browser.open(report, { hash: "#scaling-1" });
  const plot = page.locator("#scaling-1 .u-over").first();
  await plot.waitFor();
  const box = await plot.boundingBox();
  // 4 of 1 to 32 streams is at 0.4 of the axis; 0.44 is nearer to it than to 8.
  await page.mouse.move((box?.x ?? 0) + (box?.width ?? 0) * 0.44, (box?.y ?? 0) + 80);
  const tooltip = page.locator("#scaling-1 .tooltip").first();
  await expect.poll(() => tooltip.isVisible()).toBe(true);
  expect(await tooltip.locator("strong").textContent()).toBe("4 streams");
  const curves = report.scaling[0]?.curves ?? [];
  const values = await tooltip.locator(".tooltip-value").allTextContents();
  curves.forEach((curve, i) => expect(values[i]).toContain(bare_rate(curve.points.find((point) => point.streams === 4)?.throughput ?? NaN, "GFLOP/s")));
  await page.close();
});

test("a logarithmic axis can be chosen for a distribution, a series hidden", async () => {
  const { page, problems } = await browser.open(report, { hash: "#distributions-1" });
  await page.locator("#distributions-1 canvas").waitFor();
  const picture = (): Promise<string> => page.evaluate(() => document.querySelector<HTMLCanvasElement>("#distributions-1 canvas")?.toDataURL() ?? "");
  const before = await picture();
  await page.locator("#distributions-1 .switch input").check();
  await expect.poll(picture).not.toBe(before);
  const with_all = await picture();
  await page.locator("#distributions-1 .legend-entry").first().click();
  await expect.poll(picture).not.toBe(with_all);
  expect(problems).toEqual([]);
  await page.close();
});

test("commands are copied whole", async () => {
  const { page } = await browser.open(report, { hash: "#reproduce" });
  await page.locator("#reproduce .copy").nth(2).click();
  await expect.poll(() => page.locator("#reproduce .copy").nth(2).textContent()).toBe("Copied");
  await page.locator("#filter").focus();
  await page.keyboard.press("Control+V");
  expect(await page.locator("#filter").inputValue()).toBe("weir run all_reduce_overlap --ranks 4 --label 'it'\\''s a test'");
  await page.close();
});

test("paper is light, without navigation, with everything drawn and every table open", async () => {
  const { page, problems } = await browser.open(report, { scheme: "dark" });
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await expect.poll(() => page.locator(".slot[data-waiting]").count()).toBe(0);
  expect(await page.locator("nav").isVisible()).toBe(false);
  expect(await page.evaluate(() => document.documentElement.dataset["theme"])).toBe("light");
  expect(await page.locator("#scaling-1 details.numbers").evaluate((details) => (details as HTMLDetailsElement).open)).toBe(true);
  expect(await page.locator("#scaling-1 canvas").first().evaluate((canvas) => canvas.getBoundingClientRect().width)).toBeLessThanOrEqual(680);
  await page.emulateMedia({ media: "screen", colorScheme: "dark" });
  await expect.poll(() => page.evaluate(() => document.documentElement.dataset["theme"])).toBe("dark");
  expect(await page.locator("#scaling-1 details.numbers").evaluate((details) => (details as HTMLDetailsElement).open)).toBe(false);
  expect(problems).toEqual([]);
  await page.close();
});

describe("bad documents", () => {
  test("a hostile one is text: no script, no request, no sideways scrolling, in reasonable height", async () => {
    for (const width of [360, 1280]) {
      const { page, problems, requests } = await browser.open(hostile_document(), { width });
      await scroll_through(page);
      expect(await page.evaluate("window.pwned")).toBeUndefined();
      expect(await page.locator("main img, main script").count()).toBe(0);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
      expect(await page.locator("h1").textContent()).toContain("</script><script>window.pwned=1</script>");
      expect(await page.locator("h1").textContent()).toContain("⟨U+202E⟩");
      const heights = await page.locator("section").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().height));
      expect(Math.max(...heights)).toBeLessThan(width === 360 ? 20_000 : 6_000);
      expect(await page.locator(".failure-box").allTextContents()).toEqual([]);
      expect(problems).toEqual([]);
      expect(requests).toEqual([]);
      await page.close();
    }
  });

  test("a section that cannot be drawn says so, and the others are there", async () => {
    const broken = full_document();
    Object.assign(broken.scaling[0] ?? {}, { curves: null });
    const { page, problems } = await browser.open(broken);
    await scroll_through(page);
    expect(await page.locator("#scaling .failure-box").textContent()).toContain("Scaling: hetero_kernels");
    expect(await page.locator("#scaling-1.slot").count()).toBe(1);
    expect(await page.locator("#scaling-2 canvas").count()).toBeGreaterThan(0);
    expect(await page.locator(".failure-box").count()).toBe(1);
    expect(problems).toEqual([]);
    await page.close();
  });

  test("an empty one has a verdict and nothing else", async () => {
    const { page, problems } = await browser.open(bare_document());
    expect(await page.locator("nav li").count()).toBe(1);
    expect(await page.locator("section").count()).toBe(1);
    expect(problems).toEqual([]);
    await page.close();
  });

  test("another schema, or no JSON, is a message", async () => {
    const other = await browser.open({ schema: "weir.report/9" });
    expect(await other.page.locator(".failure-box").textContent()).toContain("weir.report/9");
    await other.page.close();
  });
});

test("the template is one file with a policy that allows no request", () => {
  const page = filled(bare_document());
  expect(page).toMatch(/<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-[^']+'; /);
  expect(page).not.toMatch(/<(script|link|img|iframe)[^>]*\s(src|href)=/);
  expect(page).not.toContain("__WEIR_DOCUMENT__");
});

// Runs in the page: every text whose colour is too near to what is behind it.
function weak_texts(): string[] {
  const parse = (colour: string): number[] => {
    const numbers = [...colour.matchAll(/[\d.]+/g)].map(([number]) => Number(number));
    return colour.startsWith("color(") ? numbers.slice(0, 3).map((value) => value * 255).concat(numbers[3] ?? 1) : [...numbers.slice(0, 3), numbers[3] ?? 1];
  };
  const luminance = (rgb: number[]): number => {
    const [r, g, b] = rgb.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * (r ?? 0) + 0.7152 * (g ?? 0) + 0.0722 * (b ?? 0);
  };
  const weak = new Set<string>();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!element || (node.textContent ?? "").trim() === "" || element.closest("script, style, noscript, .unseen, dialog, svg") || !element.checkVisibility()) continue;
    let ground = [255, 255, 255, 1];
    for (let at: Element | null = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if ((colour[3] ?? 0) > 0.99) {
        ground = colour;
        break;
      }
    }
    const [low, high] = [luminance(parse(getComputedStyle(element).color)), luminance(ground)].sort((a, b) => a - b);
    const contrast = ((high ?? 0) + 0.05) / ((low ?? 0) + 0.05);
    if (contrast < 4.5) weak.add(`${element.tagName}.${element.className} in #${element.closest("section")?.id}: ${contrast.toFixed(2)}`);
  }
  return [...weak];
}
