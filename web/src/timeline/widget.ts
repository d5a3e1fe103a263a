// The timeline on the page: canvas, lane names, tools and the words below. Holds what is in view and what is chosen;
// reads lanes a slice at a time, so that the page answers while a million spans are read.

import { el } from "../dom";
import type { Timeline } from "../document";
import { count, duration, plural } from "../format";
import { cut } from "../text";
import { is_print, on_theme } from "../theme";
import { listen_to_pointer, take_key, take_picture_key, type Deeds } from "./input";
import { LaneList } from "./lanes";
import { Model, type SpanRef } from "./model";
import { kAxisHeight, kLanePad, kLaneRow, kThinRow, Painter, type Band } from "./paint";
import { read_palette, type Palette } from "./palette";
import { hit, paint_over, type Hit, type Scene } from "./over";
import { measured, span_facts } from "./panels";
import { moment_text, ticks_of } from "./ticks";
import { clamp_view, fit, pan, reveal, zoom, type View } from "./view";
import "./timeline.css";

const kHeading = 26; // height of a group's heading
const kTallest = 560; // of the picture on screen
const kTallestPrint = 1500;
const kPrintWidth = 680;
const kFirstSlice = 120; // ms of reading before the first frame
const kSlice = 24; // ms of reading between frames after it

export class TimelineWidget {
  readonly element: HTMLElement;
  readonly model: Model;
  private readonly painter_: Painter;
  private readonly lanes_: LaneList;
  private readonly canvas_ = el("canvas", { class: "timeline-canvas", "aria-hidden": "true" });
  private readonly over_ = el("canvas", { class: "timeline-canvas timeline-over", "aria-hidden": "true" });
  private readonly picture_: HTMLElement;
  private readonly scroll_ = el("div", { class: "timeline-scroll" });
  private readonly stage_ = el("div", { class: "timeline-stage" });
  private readonly filler_ = el("div", { class: "timeline-filler" });
  private readonly base_ = el("div", { class: "timeline-base" });
  private readonly tip_ = el("div", { class: "timeline-tip", hidden: true });
  private readonly said_ = el("p", { class: "timeline-said", role: "status", "aria-live": "polite" });
  private readonly range_ = el("div", { class: "timeline-range", hidden: true });
  private readonly find_ = el("input", { type: "search", class: "timeline-find", placeholder: "Find a name", "aria-label": "Find spans by name", autocomplete: "off", spellcheck: "false" });
  private readonly found_ = el("span", { class: "timeline-found", role: "status" });
  private readonly measure_ = el("button", { type: "button", class: "quiet", "aria-pressed": "false", title: "Drag across the picture to measure (or hold Shift)" }, "Measure");
  private palette_: Palette | null = null;
  private bands_: Band[] = [];
  private view_: View;
  private is_fit_ = true;
  private is_laid_ = false;
  private is_due_ = false;
  private has_painted_ = false;
  private chosen_: SpanRef | null = null;
  private hovered_: SpanRef | null = null;
  private marked_: [number, number] | null = null; // ns

  constructor(timeline: Timeline) {
    this.model = new Model(timeline);
    this.view_ = fit(this.model.total);
    this.painter_ = new Painter(this.model);
    const deeds = this.deeds();
    this.picture_ = el(
      "div",
      { class: "timeline-picture", tabindex: 0, role: "application", "aria-roledescription": "timeline", "aria-label": "Timeline. Arrows move, plus and minus zoom, 0 shows all. The lanes before it step through spans. Tables with the numbers follow." },
      this.canvas_,
      this.over_,
      this.tip_,
    );
    this.lanes_ = new LaneList(this.model, {
      toggle: (group) => this.toggle(group),
      reveal: (band) => this.reveal_band(band),
      key: (event, band) => (band.lane !== null && this.step(event, band.lane)) || take_key(event, deeds),
    });
    this.stage_.append(this.base_, this.lanes_.element, this.picture_);
    this.scroll_.append(this.stage_, this.filler_);
    this.element = el("div", { class: "timeline" }, this.tools(deeds), this.scroll_, this.said_, this.range_);
    this.listen(deeds);
    this.read(kFirstSlice);
  }

  /** To be called once the element is on the page. */
  start(): void {
    new ResizeObserver(() => this.request(true)).observe(this.scroll_);
    on_theme(() => {
      this.palette_ = null;
      this.element.style.width = is_print() ? `${kPrintWidth}px` : "";
      this.is_laid_ = false;
      // Paper does not wait for a frame.
      if (is_print()) {
        this.model.read_all();
        this.draw();
      } else this.request();
    });
    this.draw();
  }

  private tools(deeds: Deeds): HTMLElement {
    const button = (text: string, label: string, act: () => void): HTMLElement => {
      const made = el("button", { type: "button", class: "quiet", "aria-label": label, title: label }, text);
      made.addEventListener("click", act);
      return made;
    };
    this.measure_.addEventListener("click", () => {
      const is_on = this.measure_.getAttribute("aria-pressed") !== "true";
      this.measure_.setAttribute("aria-pressed", String(is_on));
      this.element.classList.toggle("is-measuring", is_on);
    });
    return el(
      "div",
      { class: "timeline-tools", role: "toolbar", "aria-label": "Timeline tools" },
      el("span", { class: "timeline-search" }, this.find_, button("‹", "Previous match (N)", () => deeds.step_match(false)), button("›", "Next match (n)", () => deeds.step_match(true)), this.found_),
      el(
        "span",
        { class: "timeline-zoom" },
        this.measure_,
        button("−", "Zoom out (-)", () => deeds.zoom(1 / 1.5, 0.5)),
        button("+", "Zoom in (+)", () => deeds.zoom(1.5, 0.5)),
        button("All", "Show all of it (0)", () => deeds.fit()),
      ),
    );
  }

  private deeds(): Deeds {
    return {
      width: () => this.width(),
      zoom: (factor, share) => this.look(zoom(this.view_, factor, share, this.model.total)),
      pan: (share) => this.look(pan(this.view_, share * this.view_.span, this.model.total)),
      scroll: (pixels) => (this.scroll_.scrollTop += pixels),
      fit: () => this.look(fit(this.model.total)),
      hover: (x, y) => this.hover(x, y),
      choose: (x, y) => this.choose(this.hit(x, y)?.ref ?? null),
      come_close: (x, y) => {
        const found = this.hit(x, y);
        if (found) this.come_close(found.ref);
      },
      measure: (from, to, is_done) => this.mark(this.moment(Math.min(from, to)), this.moment(Math.max(from, to)), is_done),
      is_measuring: () => this.measure_.getAttribute("aria-pressed") === "true",
      clear: () => {
        this.marked_ = null;
        this.range_.hidden = true;
        this.choose(null);
      },
      step_match: (is_forward) => {
        const next = this.model.next_match(this.chosen_, is_forward);
        if (next) this.choose(next, true);
      },
      measure_view: () => this.mark(this.view_.start, this.view_.start + this.view_.span, true),
      search: () => this.find_.focus(),
      remind: () => {
        if (this.said_.textContent === "") this.said_.textContent = "Click the picture first: then the wheel zooms. Ctrl and wheel always do.";
      },
    };
  }

  private listen(deeds: Deeds): void {
    listen_to_pointer(this.over_, this.element, deeds);
    this.over_.addEventListener("pointerdown", () => this.picture_.focus({ preventScroll: true }));
    this.picture_.addEventListener("keydown", (event) => {
      if (!take_picture_key(event, deeds)) return;
      event.preventDefault();
      event.stopPropagation();
    });
    this.scroll_.addEventListener("scroll", () => this.request(), { passive: true });
    let pause = 0;
    this.find_.addEventListener("input", () => {
      clearTimeout(pause);
      pause = window.setTimeout(() => this.search(), 150);
    });
    this.find_.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        clearTimeout(pause);
        this.search();
        deeds.step_match(!event.shiftKey);
      } else if (event.key === "Escape") {
        this.find_.value = "";
        this.search();
        this.picture_.focus({ preventScroll: true });
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  // Reads lanes for about `ms`, those in view first. True where all are read.
  private read(ms: number): boolean {
    const until = performance.now() + ms;
    const order: number[] = [];
    const [top, bottom] = [this.scroll_.scrollTop, this.scroll_.scrollTop + kTallest];
    for (const band of this.bands_) if (band.lane !== null && band.top < bottom && band.top + band.height > top) order.push(band.lane);
    for (const list of [order, this.model.lanes.keys()]) {
      for (const lane of list) {
        if (this.model.lanes[lane]!.content) continue;
        if (performance.now() > until) return false;
        const { total } = this.model;
        const is_as_assumed = this.model.read(lane).rows.length <= 1 && this.model.total === total;
        if (list === order || !is_as_assumed || !this.has_painted_) this.is_laid_ = false;
      }
    }
    return true;
  }

  private lay(): void {
    this.bands_ = [];
    let top = 0;
    this.model.timeline.groups.forEach((_, group) => {
      this.bands_.push({ lane: null, group, top, height: kHeading, is_stripe: true });
      top += kHeading;
      if (this.model.is_collapsed[group]) return;
      const first = this.model.first_lane[group]!;
      for (let lane = first; lane < this.model.first_lane[group + 1]!; ++lane) {
        const rows = this.model.lanes[lane]!.content?.rows.length ?? 1;
        const height = 2 * kLanePad + (rows > 1 ? rows * kThinRow : kLaneRow);
        this.bands_.push({ lane, group, top, height, is_stripe: (lane - first) % 2 === 1 });
        top += height;
      }
    });
    const height = Math.min(kAxisHeight + top + 4, is_print() ? kTallestPrint : kTallest);
    this.scroll_.style.height = `${height}px`;
    this.stage_.style.height = `${height}px`;
    this.filler_.style.height = `${Math.max(0, kAxisHeight + top + 4 - height)}px`;
    if (this.is_fit_) this.view_ = fit(this.model.total);
    this.is_laid_ = true;
  }

  private request(is_resize = false): void {
    if (is_resize) this.is_laid_ = false;
    if (this.is_due_) return;
    this.is_due_ = true;
    requestAnimationFrame(() => {
      this.is_due_ = false;
      this.draw();
    });
  }

  private draw(): void {
    const is_new = !this.is_laid_;
    if (is_new) this.lay();
    const width = this.width();
    const height = this.stage_.clientHeight;
    if (width < 10 || height < 10) return;
    const ratio = is_print() ? 3 : Math.min(3, window.devicePixelRatio || 1);
    for (const canvas of [this.canvas_, this.over_]) {
      const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
      if (canvas.width !== w || canvas.height !== h) {
        canvas.width = w;
        canvas.height = h;
      }
    }
    const context = this.canvas_.getContext("2d", { alpha: false });
    if (!context) return;
    this.palette_ ??= read_palette(this.element);
    this.painter_.paint(context, { width, height, ratio, view: this.view_, scroll: this.scroll_.scrollTop, bands: this.bands_ }, this.palette_);
    this.lanes_.show(this.bands_, this.scroll_.scrollTop, height, is_new);
    this.draw_over();
    const { base } = ticks_of(this.view_.start, this.view_.start + this.view_.span, width);
    this.base_.textContent = base > 0 ? `${moment_text(base)} +` : `${duration(this.view_.span)} in view`;
    this.element.dataset["from"] = String(this.view_.start);
    this.element.dataset["to"] = String(this.view_.start + this.view_.span);
    if (!this.has_painted_) {
      this.has_painted_ = true;
      performance.mark("weir-timeline-painted");
      this.read_on();
    }
  }

  // Between frames, a slice at a time: the picture is drawn again once lanes in it were read.
  private read_on(): void {
    const is_read = this.read(kSlice);
    if (!this.is_laid_) this.request();
    if (!is_read) {
      setTimeout(() => this.read_on());
      return;
    }
    this.element.dataset["read"] = "all";
    performance.mark("weir-timeline-read");
  }

  private draw_over(): void {
    if (!this.palette_) return;
    paint_over(this.over_, this.model, this.scene(), this.palette_, { hovered: this.hovered_, chosen: this.chosen_, marked: this.marked_ });
  }

  private scene(): Scene {
    return { bands: this.bands_, scroll: this.scroll_.scrollTop, view: this.view_, width: this.width(), height: this.stage_.clientHeight };
  }

  private width(): number {
    return this.picture_.clientWidth;
  }

  private moment(share: number): number {
    return Math.max(0, Math.min(this.model.total, this.view_.start + share * this.view_.span));
  }

  private look(view: View): void {
    this.view_ = clamp_view(view, this.model.total);
    this.is_fit_ = this.view_.span >= this.model.total;
    this.request();
  }

  private hit(x: number, y: number): Hit | null {
    return hit(this.model, this.scene(), x, y);
  }

  private hover(x: number | null, y: number): void {
    const found = x === null ? null : this.hit(x, y);
    this.hovered_ = found?.ref ?? null;
    this.tip_.hidden = !found;
    if (found && x !== null) {
      const facts = span_facts(this.model, found.ref.lane, found.ref.span);
      this.tip_.replaceChildren(
        el("strong", {}, cut(facts.name, 160)),
        el("span", {}, `${facts.kind}, ${facts.length}, from ${facts.start}`),
        el("span", {}, cut(facts.lane, 80)),
        ...(found.others > 0 ? [el("span", {}, `and ${plural(found.others, "more span")} here: zoom in`)] : []),
      );
      const room = this.width() - this.tip_.offsetWidth - 8;
      this.tip_.style.left = `${Math.max(4, Math.min(x + 14, room))}px`;
      const is_low = y + this.tip_.offsetHeight + 24 > this.stage_.clientHeight;
      this.tip_.style.top = `${is_low ? Math.max(2, y - this.tip_.offsetHeight - 10) : y + 18}px`;
    }
    this.draw_over();
  }

  private choose(ref: SpanRef | null, is_shown = false): void {
    this.chosen_ = ref;
    if (!ref) {
      this.said_.replaceChildren();
    } else {
      const facts = span_facts(this.model, ref.lane, ref.span);
      this.said_.replaceChildren(
        el("strong", {}, cut(facts.name, 300)),
        `, ${facts.kind}, starts at ${facts.start}, lasts ${facts.length}, ${cut(facts.lane, 120)}, ${facts.place}`,
      );
    }
    if (ref && is_shown) {
      const { spans } = this.model.read(ref.lane);
      const start = spans.starts[ref.span]!;
      this.look(reveal(this.view_, start, start + spans.durations[ref.span]!, 6 / Math.max(60, this.width()), this.model.total));
      if (this.model.is_collapsed[this.model.lanes[ref.lane]!.group]) this.toggle(this.model.lanes[ref.lane]!.group);
      const band = this.bands_.find((one) => one.lane === ref.lane);
      if (band) this.reveal_band(band);
    }
    this.draw_over();
  }

  private come_close(ref: SpanRef): void {
    const { spans } = this.model.read(ref.lane);
    const length = Math.max(1, spans.durations[ref.span]!);
    this.choose(ref);
    this.look({ start: spans.starts[ref.span]! - length, span: 3 * length });
  }

  // Arrow keys in the list of lanes: from span to span. True where the key was taken.
  private step(event: KeyboardEvent, lane: number): boolean {
    if (!["ArrowRight", "ArrowLeft", "Enter", "Home", "End"].includes(event.key)) return false;
    const { spans } = this.model.read(lane);
    if (spans.count === 0) {
      this.said_.textContent = `${cut(this.model.lane_label(lane), 120)} has no spans.`;
      return true;
    }
    const now = this.chosen_?.lane === lane ? this.chosen_.span : null;
    if (event.key === "Enter" && now !== null) {
      this.come_close({ lane, span: now });
      return true;
    }
    let span: number;
    if (event.key === "Home") span = 0;
    else if (event.key === "End") span = spans.count - 1;
    else if (now === null) span = this.model.span_at(lane, this.view_.start) ?? spans.count - 1;
    else span = Math.max(0, Math.min(spans.count - 1, now + (event.key === "ArrowLeft" ? -1 : 1)));
    this.choose({ lane, span }, true);
    return true;
  }

  private toggle(group: number): void {
    this.model.is_collapsed[group] = !this.model.is_collapsed[group];
    this.is_laid_ = false;
    this.draw();
  }

  private reveal_band(band: Band): void {
    const above = band.top - this.scroll_.scrollTop;
    const below = band.top + band.height - (this.scroll_.scrollTop + this.stage_.clientHeight - kAxisHeight);
    if (above < 0) this.scroll_.scrollTop += above;
    else if (below > 0) this.scroll_.scrollTop += below;
  }

  private mark(from: number, to: number, is_done: boolean): void {
    this.marked_ = [from, to];
    const close = el("button", { type: "button", class: "quiet", "aria-label": "Close the measured range" }, "Close");
    close.addEventListener("click", () => {
      this.marked_ = null;
      this.range_.hidden = true;
      this.draw_over();
    });
    this.range_.replaceChildren(
      el("p", {}, el("strong", {}, duration(to - from)), ` from ${moment_text(Math.round(from))} to ${moment_text(Math.round(to))}`, " ", close),
      ...(is_done ? [measured(this.model, from, to)] : []),
    );
    this.range_.hidden = false;
    this.draw_over();
  }

  private search(): void {
    const names = this.model.search(this.find_.value);
    this.is_laid_ = false;
    const spans = this.model.match_count();
    this.found_.textContent = this.find_.value === "" ? "" : names === 0 ? "no such name" : `${count(spans)} in ${plural(names, "name")}`;
    this.request();
  }
}
