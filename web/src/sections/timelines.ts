// Timelines: a lane for each stream and hardware queue, with the tables that say the same. The picture is timeline/.

import type { ReportDocument, Timeline } from "../document";
import { el } from "../dom";
import { count, duration, plural } from "../format";
import { card } from "../item";
import { numbers } from "../table";
import { cut, prose } from "../text";
import { lane_table, legend, totals } from "../timeline/panels";
import { TimelineWidget } from "../timeline/widget";

const kMostPrinted = 200_000; // spans that are added up before anybody asks

export function render(container: HTMLElement, items: readonly Timeline[], report: ReportDocument): void {
  for (const item of items) {
    const spans = item.groups.reduce((sum, group) => sum + group.lanes.reduce((all, lane) => all + lane.count, 0), 0);
    const lanes = item.groups.reduce((sum, group) => sum + group.lanes.length, 0);
    if (lanes === 0) {
      container.append(card(item, report, el("p", {}, "This timeline has no lanes."), left_out(item)));
      continue;
    }
    const widget = new TimelineWidget(item);
    container.append(
      card(
        item,
        report,
        el("p", { class: "timeline-summary" }, `${plural(spans, "span")} in ${plural(lanes, "lane")} over ${duration(item.end_ns)}. Times: ${cut(item.source_of_times, 200)}.`),
        left_out(item),
        legend(widget.model),
        widget.element,
        el("p", { class: "hint timeline-hint" }, "Drag moves, Shift and drag measures, a double click comes close. Wheel zooms once the picture has the focus. Keys: arrows, + and −, 0 for all, / to find, n and N from match to match, m to measure what is in view; in the lanes, ← and → go from span to span."),
        numbers("Time by name, and lanes, as tables", () => el("div", {}, totals(widget.model), lane_table(widget.model)), { is_lazy: spans > kMostPrinted }),
      ),
    );
    widget.start();
  }
}

function left_out(item: Timeline): HTMLElement | null {
  if (!(item.left_out > 0)) return null;
  return el("p", { class: "timeline-left-out" }, el("strong", {}, `${count(item.left_out)} spans are not drawn.`), " ", item.left_out_reason === null ? null : prose(item.left_out_reason));
}
