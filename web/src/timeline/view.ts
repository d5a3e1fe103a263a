// The part of the timeline that is in view. Plain numbers: every change comes back inside the timeline.

export interface View {
  start: number; // ns
  span: number; // ns
}

export const kLeastSpan = 20; // ns across the picture: closer than this nothing more can be seen

export function clamp_view(view: View, total: number): View {
  const span = Math.min(Math.max(Number.isFinite(view.span) ? view.span : total, Math.min(kLeastSpan, total)), total);
  const start = Math.min(Math.max(Number.isFinite(view.start) ? view.start : 0, 0), total - span);
  return { start, span };
}

export function fit(total: number): View {
  return { start: 0, span: total };
}

/** Zooms so that the moment at `share` of the width stays where it is; a factor above 1 comes closer. */
export function zoom(view: View, factor: number, share: number, total: number): View {
  const fixed = view.start + share * view.span;
  const { span } = clamp_view({ start: 0, span: view.span / factor }, total);
  return clamp_view({ start: fixed - share * span, span }, total);
}

export function pan(view: View, ns: number, total: number): View {
  return clamp_view({ start: view.start + ns, span: view.span }, total);
}

/** Moves as little as possible to bring [from, to] into view; zooms in where it would be less than a few pixels. */
export function reveal(view: View, from: number, to: number, least_span: number, total: number): View {
  const length = Math.max(to - from, 1);
  let span = view.span;
  if (length > view.span * 0.9) span = length / 0.6;
  else if (length < view.span * least_span) span = length / Math.max(least_span, 0.02);
  const is_inside = span === view.span && from >= view.start && to <= view.start + view.span;
  if (is_inside) return view;
  return clamp_view({ start: from + length / 2 - span / 2, span }, total);
}
