// The column of lane names beside the picture: a list that the keyboard walks through, with one tab stop. Makes elements
// only for the lanes in view. Knows bands; not what is drawn beside them.

import { el } from "../dom";
import { count, duration, percent, plural } from "../format";
import { cut, visible } from "../text";
import type { Model } from "./model";
import type { Band } from "./paint";

export interface LaneDeeds {
  toggle(group: number): void;
  key(event: KeyboardEvent, band: Band): boolean; // true where the key was taken
  reveal(band: Band): void;
}

export class LaneList {
  readonly element = el("div", { class: "timeline-lanes", role: "tree", "aria-label": "Lanes" });
  private readonly inside_ = el("div", { class: "timeline-lanes-inside", role: "presentation" });
  private made_ = new Map<string, HTMLElement>();
  private bands_: readonly Band[] = [];
  private active_ = "g0";

  constructor(
    private readonly model_: Model,
    private readonly deeds_: LaneDeeds,
  ) {
    this.element.append(this.inside_);
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("focusin", (event) => {
      const key = (event.target as HTMLElement).dataset["key"];
      if (key === undefined) return;
      this.activate(key);
      const band = this.band(key);
      if (band) this.deeds_.reveal(band);
    });
    this.element.addEventListener("click", (event) => {
      const item = (event.target as HTMLElement).closest<HTMLElement>("[data-key]");
      const band = item && this.band(item.dataset["key"]!);
      if (!item || !band) return;
      item.focus({ preventScroll: true });
      if (band.lane === null) this.deeds_.toggle(band.group);
    });
  }

  /** Shows the bands between two heights. `is_new` after bands have moved or lanes were read. */
  show(bands: readonly Band[], scroll: number, height: number, is_new: boolean): void {
    this.bands_ = bands;
    if (is_new) this.forget();
    this.inside_.style.transform = `translateY(${-scroll}px)`;
    const wanted = new Set<string>();
    for (const band of bands) {
      const key = key_of(band);
      const is_in_view = band.top + band.height >= scroll - 60 && band.top <= scroll + height + 60;
      if (!is_in_view && key !== this.active_) continue;
      wanted.add(key);
      if (this.made_.has(key)) continue;
      const item = this.make(band, key);
      this.made_.set(key, item);
      this.inside_.append(item);
    }
    for (const [key, item] of this.made_) {
      if (wanted.has(key)) continue;
      item.remove();
      this.made_.delete(key);
    }
  }

  focus(band: Band): void {
    const key = key_of(band);
    this.activate(key);
    if (!this.made_.has(key)) {
      const item = this.make(band, key);
      this.made_.set(key, item);
      this.inside_.append(item);
    }
    this.made_.get(key)!.focus({ preventScroll: true });
  }

  private forget(): void {
    // Elements stay where they can, so that the focus does too: what changes is only where and what they say.
    for (const [key, item] of this.made_) {
      const band = this.band(key);
      if (band) this.dress(item, band);
    }
  }

  private band(key: string): Band | undefined {
    return this.bands_.find((band) => key_of(band) === key);
  }

  private activate(key: string): void {
    this.made_.get(this.active_)?.setAttribute("tabindex", "-1");
    this.active_ = key;
    this.made_.get(key)?.setAttribute("tabindex", "0");
  }

  private make(band: Band, key: string): HTMLElement {
    const item = el("div", {
      class: band.lane === null ? "timeline-group" : "timeline-lane",
      role: "treeitem",
      "data-key": key,
      "aria-level": band.lane === null ? 1 : 2,
      tabindex: key === this.active_ ? 0 : -1,
    });
    this.dress(item, band);
    return item;
  }

  private dress(item: HTMLElement, band: Band): void {
    item.style.top = `${band.top}px`;
    item.style.height = `${band.height}px`;
    item.classList.toggle("is-stripe", band.is_stripe);
    const group = this.model_.timeline.groups[band.group]!;
    if (band.lane === null) {
      const is_open = !this.model_.is_collapsed[band.group];
      item.setAttribute("aria-expanded", String(is_open));
      item.title = `${visible(group.label).slice(0, 2000)}, ${plural(group.lanes.length, "lane")}`;
      item.setAttribute("aria-label", item.title);
      item.replaceChildren(
        el("span", { class: "timeline-arrow", "aria-hidden": "true" }, is_open ? "▾" : "▸"),
        el("bdi", {}, cut(group.label)),
        el("span", { class: "timeline-share" }, count(group.lanes.length)),
      );
      return;
    }
    const lane = this.model_.lanes[band.lane]!;
    const share = this.model_.total > 0 ? lane.claimed_busy_ns / this.model_.total : null;
    const problem = lane.content?.spans.problem ?? null;
    const clipped = lane.content?.clipped ?? 0;
    const facts = [
      visible(lane.label).slice(0, 2000),
      `${plural(lane.claimed, "span")}, busy ${duration(lane.claimed_busy_ns)}, ${percent(share)} of the timeline`,
      problem ?? "",
      clipped > 0 ? `${count(clipped)} spans lie too deep to be drawn whole` : "",
    ].filter((fact) => fact !== "");
    item.title = facts.join("\n");
    item.setAttribute("aria-label", facts.join(", "));
    item.replaceChildren(
      el("bdi", {}, cut(lane.label, 60)),
      ...(problem === null ? [] : [el("span", { class: "timeline-problem", "aria-hidden": "true" }, "⚠")]),
      el("span", { class: "timeline-share" }, share === null ? "" : `${Math.round(100 * share)} %`),
    );
  }

  private key(event: KeyboardEvent): void {
    const band = this.band(this.active_);
    if (!band) return;
    const at = this.bands_.indexOf(band);
    const go = (to: number): void => {
      const next = this.bands_[Math.max(0, Math.min(this.bands_.length - 1, to))];
      if (next) this.focus(next);
    };
    let is_taken = true;
    if (event.ctrlKey || event.metaKey || event.altKey) is_taken = false;
    else if (event.key === "ArrowDown") go(at + 1);
    else if (event.key === "ArrowUp") go(at - 1);
    else if (band.lane === null && (event.key === "Enter" || event.key === " ")) this.deeds_.toggle(band.group);
    else if (band.lane === null && event.key === "ArrowRight") {
      if (this.model_.is_collapsed[band.group]) this.deeds_.toggle(band.group);
      else go(at + 1);
    } else if (band.lane === null && event.key === "ArrowLeft") {
      if (!this.model_.is_collapsed[band.group]) this.deeds_.toggle(band.group);
    } else is_taken = this.deeds_.key(event, band);
    if (is_taken) {
      event.preventDefault();
      event.stopPropagation();
    }
  }
}

function key_of(band: Band): string {
  return band.lane === null ? `g${band.group}` : `l${band.lane}`;
}
