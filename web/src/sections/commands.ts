import type { ReportDocument } from "../document"; export function render(container: HTMLElement, items: readonly object[], report: ReportDocument): void { container.append(String(items.length) + report.title); }
export function from(report: ReportDocument): readonly object[] { return report.sources; }
