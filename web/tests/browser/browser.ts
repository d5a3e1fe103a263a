// One Chromium for a test file, and reports opened from disk in it, as a reader would. Counts what no report may do:
// console messages, page errors, requests.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import type { ReportDocument } from "../../src/document";

const kFlags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const kTemplate = new URL("../../dist/report.html", import.meta.url);

/** The template with the document in it, escaped as `weir report` does. */
export function filled(report: unknown): string {
  const json = JSON.stringify(report).replace(/</g, "\\u003c").replace(/\u2028/g, "\\u2028").replace(/\u2029/g, "\\u2029");
  return readFileSync(kTemplate, "utf8").replace("__WEIR_DOCUMENT__", () => json);
}

export interface Opened {
  page: Page;
  problems: string[]; // console messages and errors
  requests: string[]; // besides the file itself
}

export class Browser {
  private readonly folder = mkdtempSync(join(tmpdir(), "weir-report-"));
  private context: BrowserContext | null = null;
  private files = 0;

  async start(options: BrowserContextOptions = {}): Promise<void> {
    this.context = await chromium.launchPersistentContext(join(this.folder, "profile"), {
      executablePath: process.env["WEIR_CHROMIUM"] ?? "/usr/bin/chromium",
      args: kFlags,
      viewport: { width: 1280, height: 900 },
      ...options,
    });
  }

  async open(report: ReportDocument | unknown, options: { hash?: string; width?: number; height?: number; scheme?: "light" | "dark" } = {}): Promise<Opened> {
    if (!this.context) throw new Error("start() first");
    const file = join(this.folder, `report-${++this.files}.html`);
    writeFileSync(file, filled(report));
    const page = await this.context.newPage();
    const opened: Opened = { page, problems: [], requests: [] };
    const address = pathToFileURL(file).href;
    page.on("console", (message) => opened.problems.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => opened.problems.push(`error: ${error.message}`));
    page.on("request", (request) => {
      if (!request.url().startsWith(address)) opened.requests.push(request.url());
    });
    await page.setViewportSize({ width: options.width ?? 1280, height: options.height ?? 900 });
    await page.emulateMedia({ colorScheme: options.scheme ?? "light", reducedMotion: "reduce" });
    await page.goto(address + (options.hash ?? ""));
    return opened;
  }

  async stop(): Promise<void> {
    await this.context?.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Draws everything that waits, as a reader who scrolls through would see it. */
export async function scroll_through(page: Page): Promise<void> {
  await page.evaluate(async () => {
    for (let waiting = document.querySelector(".slot[data-waiting]"), i = 0; waiting && i < 500; waiting = document.querySelector(".slot[data-waiting]"), ++i) {
      waiting.scrollIntoView();
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    }
  });
}
