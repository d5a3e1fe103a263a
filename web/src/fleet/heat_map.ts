// The map of a fleet on the page: tools, canvas, the words of the cell under the pointer or the keyboard, and all figures
// of the device that was chosen. Knows no section; `chosen` is told which row was chosen.
import { el } from "../dom";
import { beside, measured, plural } from "../format";
import { cut, name } from "../text";
import { is_print, on_theme } from "../theme";
import { cell_at, corner, layout, type Layout } from "./layout";
import type { FigureView, FleetModel } from "./model";
import { paint, ramp } from "./paint";

const kPrintWidth = 660;

export class HeatMap {
  readonly element: HTMLElement;
  private readonly canvas_ = el("canvas", { class: "fleet-canvas", "aria-hidden": "true" });
  private readonly cursor_ = el("div", { class: "fleet-cursor", hidden: true });
  private readonly chosen_mark_ = el("div", { class: "fleet-cursor is-chosen", hidden: true });
  private readonly tip_ = el("div", { class: "tooltip fleet-tip", hidden: true });
  private readonly live_ = el("p", { class: "unseen", role: "status" });
  private readonly box_: HTMLElement;
  private readonly select_: HTMLSelectElement;
  private readonly order_ = el("select", { class: "fleet-select", "aria-label": "Order of nodes" }, el("option", { value: "name" }, "by name"), el("option", { value: "worst" }, "worst first"));
  private readonly find_ = el("input", { type: "search", class: "fleet-find", placeholder: "Find a node or serial", "aria-label": "Find a node or a serial number", autocomplete: "off", spellcheck: "false" });
  private readonly key_ = el("p", { class: "fleet-key" });
  private readonly row_at_: Map<number, number>; // node * devices + device -> row
  private map_: Layout | null = null;
  private view_: FigureView;
  private nodes_: number[] = [];
  private places_: number[] = []; // of each node
  private width_ = 0;
  private row_ = -1; // under the pointer or the keyboard
  private chosen_ = -1;

  constructor(
    private readonly model_: FleetModel,
    private readonly chosen_row_: (row: number) => void,
  ) {
    const { fleet } = model_;
    const devices = fleet.device_names.length;
    this.row_at_ = new Map(fleet.rows.nodes.map((node, row) => [node * devices + fleet.rows.devices[row]!, row]));
    this.select_ = el("select", { class: "fleet-select", "aria-label": "Figure" });
    for (const [label, is_state] of [["Judged figures", false], ["States", true]] as const) {
      const options = fleet.figures.flatMap((figure, i) => ((figure.goal === "none") === is_state ? [el("option", { value: i }, cut(figure.words, 60))] : []));
      if (options.length > 0) this.select_.append(el("optgroup", { label }, ...options));
    }
    const first = model_.first_figure();
    this.select_.value = String(first);
    this.view_ = model_.view(first);
    this.box_ = el(
      "div",
      { class: "fleet-box", tabindex: 0, role: "group", "aria-roledescription": "heat map", "aria-label": "Map of nodes and devices. Arrows go from cell to cell, n and N to the next and the last device that is named, Enter chooses; the tables below have the numbers." },
      this.chosen_mark_,
      this.cursor_,
      this.canvas_,
      this.tip_,
    );
    this.element = el("div", { class: "fleet-map" }, this.tools(), this.key_, this.box_, this.live_);
    this.sort();
    this.listen();
  }

  /** To be called once the element is on the page. */
  start(): void {
    new ResizeObserver(([entry]) => {
      if (is_print() || !entry) return;
      this.width_ = Math.floor(entry.contentRect.width);
      this.draw();
    }).observe(this.element);
    on_theme(() => this.draw());
  }

  show(figure: number): void {
    this.select_.value = String(figure);
    this.view_ = this.model_.view(figure);
    this.sort();
    this.draw();
  }

  choose(row: number): void {
    this.chosen_ = row;
    this.place(this.chosen_mark_, row);
    this.chosen_row_(row);
  }

  private tools(): HTMLElement {
    const button = (text: string, label: string, by: 1 | -1): HTMLElement => {
      const made = el("button", { type: "button", class: "quiet", "aria-label": label, title: label }, text);
      made.addEventListener("click", () => this.step_named(by));
      return made;
    };
    const count = this.model_.named_rows.length;
    return el(
      "div",
      { class: "fleet-tools", role: "toolbar", "aria-label": "Tools of the map" },
      el("label", {}, "Figure ", this.select_),
      el("label", {}, "Nodes ", this.order_),
      this.find_,
      count > 0 && el("span", { class: "fleet-steps" }, button("‹", "The device named before (N)", -1), button("›", "The next device that is named (n)", 1), ` ${plural(count, "device")} named`),
    );
  }

  private sort(): void {
    this.nodes_ = this.model_.order(this.order_.value === "worst" ? this.view_ : null);
    this.places_ = [];
    this.nodes_.forEach((node, place) => (this.places_[node] = place));
  }

  private draw(): void {
    const width = is_print() ? kPrintWidth : this.width_;
    if (width <= 0) return;
    const { fleet } = this.model_;
    const letters = Math.min(10, Math.max(1, ...fleet.device_names.map((one) => one.length)));
    this.map_ = layout(this.nodes_.length, fleet.device_names.length, width, Math.ceil(letters * 6.2) + 12);
    paint(this.canvas_, { model: this.model_, view: this.view_, map: this.map_, nodes: this.nodes_, places: this.places_ });
    this.place(this.cursor_, this.row_);
    this.place(this.chosen_mark_, this.chosen_);
    this.key_.replaceChildren(...this.key());
  }

  private key(): (HTMLElement | string)[] {
    const { figure, reach, typical, sign } = this.view_;
    const end = (share: number): string => `${share > 0 ? "+" : "−"}${Number((100 * Math.abs(share)).toFixed(1))} %`;
    const is_state = figure.goal === "none";
    const middles = typical.filter((value) => value !== null);
    const scale = el("span", { class: "fleet-ramp", "aria-hidden": "true" });
    // What is worse stands on the left; of a state, what is less.
    scale.style.background = `linear-gradient(to ${is_state ? "right" : "left"}, ${ramp(this.view_).filter((_, i) => i % 4 === 0).join(", ")})`;
    const sides = is_state ? [end(-reach), end(reach)] : [`${end(reach * sign)}, worse`, `${end(-reach * sign)}, better`];
    return [
      el("span", { class: "fleet-key-part" }, sides[0]!, scale, sides[1]!),
      el("span", { class: "fleet-key-part" }, middles.length === 1 ? `the median is ${measured(middles[0], figure.unit)}` : "from the median of the same model and settings"),
      el("span", { class: "fleet-key-part" }, el("span", { class: "fleet-sign is-frame", "aria-hidden": "true" }), "named for this figure"),
      el("span", { class: "fleet-key-part" }, el("span", { "aria-hidden": "true" }, "●"), "for another"),
      el("span", { class: "fleet-key-part" }, el("span", { "aria-hidden": "true" }, "✕"), "computes wrongly"),
      el("span", { class: "fleet-key-part" }, el("span", { class: "fleet-sign is-empty", "aria-hidden": "true" }), "no value"),
    ];
  }

  private place(element: HTMLElement, row: number): void {
    element.hidden = row < 0 || !this.map_;
    if (row < 0 || !this.map_) return;
    const { rows } = this.model_.fleet;
    const [x, y] = corner(this.map_, this.places_[rows.nodes[row]!] ?? 0, rows.devices[row]!);
    Object.assign(element.style, { left: `${x - 3}px`, top: `${y - 3}px`, width: `${this.map_.cell + 5}px`, height: `${this.map_.cell + 5}px` });
  }

  private look(row: number, is_by_key: boolean): void {
    this.row_ = row;
    this.place(this.cursor_, row);
    this.tip_.hidden = row < 0;
    if (row < 0 || !this.map_) return;
    const { fleet, named } = this.model_;
    const { figure, values, effects, typical } = this.view_;
    const middle = typical[fleet.rows.groups[row]!] ?? null;
    const effect = effects[row]!;
    const serial = fleet.rows.serials[row];
    const lines = [
      Number.isNaN(effect) ? `${cut(figure.words, 60)}: no value` : `${cut(figure.words, 60)}: ${measured(values[row], figure.unit)}, ${beside(effect)}${middle === null || Math.abs(effect) < 0.0005 ? "" : ` (${measured(middle, figure.unit)})`}`,
      ...(serial ? [`serial ${cut(serial, 60)}`] : []),
      ...(named.get(row) ?? []).slice(0, 3).map((finding) => cut(finding.sentence, 200)),
    ];
    this.tip_.replaceChildren(el("strong", {}, name(this.model_.name_of(row), 80)), ...lines.map((line) => el("div", {}, line)));
    const [x, y] = corner(this.map_, this.places_[fleet.rows.nodes[row]!] ?? 0, fleet.rows.devices[row]!);
    const wide = this.tip_.offsetWidth;
    const left = x + this.map_.cell + 10;
    this.tip_.style.left = `${Math.max(2, left + wide > this.box_.clientWidth ? left - wide - this.map_.cell - 20 : left)}px`;
    this.tip_.style.top = `${y + this.map_.cell + 8}px`;
    if (is_by_key) this.live_.textContent = [this.tip_.firstChild?.textContent, ...lines].join("; ");
  }

  private row_of(place: number, device: number): number {
    return this.row_at_.get((this.nodes_[place] ?? -1) * this.model_.fleet.device_names.length + device) ?? -1;
  }

  private row_at(event: MouseEvent): number {
    if (!this.map_) return -1;
    const box = this.canvas_.getBoundingClientRect();
    const found = cell_at(this.map_, this.nodes_.length, event.clientX - box.left, event.clientY - box.top);
    return found ? this.row_of(found.place, found.device) : -1;
  }

  private step_named(by: 1 | -1): void {
    const rows = this.model_.named_rows;
    if (rows.length === 0) return;
    const at = rows.indexOf(this.row_ >= 0 ? this.row_ : this.chosen_);
    const next = rows[(at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by + rows.length) % rows.length]!;
    this.choose(next);
    this.look(next, true);
  }

  // The next cell in a direction that has a device; nothing where there is none.
  private neighbour(across: number, down: number): number {
    const { rows, device_names } = this.model_.fleet;
    const from = this.row_ >= 0 ? this.row_ : Math.max(this.chosen_, 0);
    let place = this.places_[rows.nodes[from]!] ?? 0;
    let device = rows.devices[from]!;
    if (this.row_ < 0) return from;
    for (;;) {
      place += across;
      device += down;
      // Below the last device of a band is the first of the next.
      if (device < 0 || device >= device_names.length) {
        place += down * (this.map_?.across ?? 1);
        device = down > 0 ? 0 : device_names.length - 1;
      }
      if (place < 0 || place >= this.nodes_.length) return -1;
      const row = this.row_of(place, device);
      if (row >= 0) return row;
    }
  }

  private key_down(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.map_) return;
    const steps: Record<string, () => number> = {
      ArrowRight: () => this.neighbour(1, 0),
      ArrowLeft: () => this.neighbour(-1, 0),
      ArrowDown: () => this.neighbour(0, 1),
      ArrowUp: () => this.neighbour(0, -1),
      Home: () => this.row_of(0, 0),
      End: () => this.row_of(this.nodes_.length - 1, 0),
    };
    const step = steps[event.key];
    if (step) {
      const row = step();
      if (row >= 0) this.look(row, true);
    } else if (event.key === "n" || event.key === "N") {
      this.step_named(event.key === "n" ? 1 : -1);
    } else if ((event.key === "Enter" || event.key === " ") && this.row_ >= 0) {
      this.choose(this.row_);
    } else if (event.key === "Escape") {
      this.look(-1, true);
    } else {
      return;
    }
    event.preventDefault();
  }

  private find(): void {
    const wanted = this.find_.value.trim().toLowerCase();
    if (wanted === "") return this.look(-1, false);
    const { rows } = this.model_.fleet;
    let found = -1;
    for (let row = 0; row < this.model_.size && found < 0; ++row)
      if (this.model_.name_of(row).toLowerCase().includes(wanted) || rows.serials[row]?.toLowerCase().includes(wanted)) found = row;
    this.look(found, true);
    if (found < 0) this.live_.textContent = "No device has that name.";
    this.find_.classList.toggle("is-lost", found < 0);
  }

  private listen(): void {
    this.select_.addEventListener("change", () => this.show(Number(this.select_.value)));
    this.order_.addEventListener("change", () => {
      this.sort();
      this.draw();
    });
    this.find_.addEventListener("input", () => this.find());
    this.find_.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.row_ >= 0) this.choose(this.row_);
    });
    this.canvas_.addEventListener("pointermove", (event) => this.look(this.row_at(event), false));
    this.canvas_.addEventListener("pointerleave", () => this.look(-1, false));
    this.canvas_.addEventListener("click", (event) => {
      const row = this.row_at(event);
      if (row < 0) return;
      this.look(row, true);
      this.choose(row);
    });
    this.box_.addEventListener("keydown", (event) => this.key_down(event));
    this.box_.addEventListener("blur", () => this.look(-1, false));
  }
}
