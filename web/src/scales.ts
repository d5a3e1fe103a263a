// Axes as arithmetic: where values stand, which of them get a tick, how far the axis reaches. No canvas here.

export type Kind = "linear" | "log" | "time";

/** Where a value stands on the axis, before it is stretched to pixels. Null where a log axis has no place for it. */
export function place(kind: Kind, value: number | null | undefined): number | null {
  if (value === null || value === undefined || !Number.isFinite(value)) return null;
  if (kind !== "log") return value;
  return value > 0 ? Math.log10(value) : null;
}

export function value_at(kind: Kind, position: number): number {
  return kind === "log" ? 10 ** position : position;
}

/** What the axis spans so that everything is inside, with some air; in places, not values. */
export function reach(kind: Kind, values: Iterable<number | null | undefined>, is_from_zero = false): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    const at = place(kind, value);
    if (at === null) continue;
    low = Math.min(low, at);
    high = Math.max(high, at);
  }
  if (low > high) return kind === "time" ? [0, 864e5] : [0, 1];
  if (kind === "linear" && is_from_zero) {
    low = Math.min(low, 0);
    high = Math.max(high, 0);
    if (low === 0 && high === 0) return [0, 1];
    return [low === 0 ? 0 : low - 0.06 * (high - low), high + 0.08 * (high - low)];
  }
  if (low === high) {
    const air = kind === "log" ? 0.2 : kind === "time" ? 432e5 : Math.abs(low) * 0.1 || 1;
    return [low - air, high + air];
  }
  const air = 0.06 * (high - low);
  return [low - air, high + air];
}

/** Round values between two: 1, 2 or 5 times a power of ten apart; at most about `count` of them. */
export function linear_ticks(low: number, high: number, count: number): number[] {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [];
  const rough = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough * 0.999) ?? 10 * power;
  const ticks: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && ticks.length < 100; ++i) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

/** Places of round values on a log axis: decades, with 2 and 5 between where few decades leave room for them. */
export function log_ticks(low: number, high: number, count: number): number[] {
  const decades = high - low;
  if (!(decades > 0)) return [];
  const factors = decades * 3 <= count ? [1, 2, 5] : decades * 2 <= count ? [1, 3] : [1];
  const every = factors.length > 1 ? 1 : Math.max(1, Math.ceil(decades / Math.max(count, 1)));
  const ticks: number[] = [];
  for (let decade = Math.floor(low); decade <= Math.ceil(high); ++decade) {
    if (every > 1 && decade % every !== 0) continue;
    for (const factor of factors) {
      const at = decade + Math.log10(factor);
      if (at >= low - 1e-9 && at <= high + 1e-9) ticks.push(at);
    }
  }
  // Less than a decade may hold no round power: then ticks as on a linear axis, put where they stand here.
  if (ticks.length >= 2) return ticks;
  return linear_ticks(10 ** low, 10 ** high, count).filter((value) => value > 0).map(Math.log10);
}

const kMinute = 6e4;
const kTimeSteps = [1, 5, 15, 30, 60, 180, 360, 720, 1440, 2880, 10080, 20160, 43200, 129600, 259200, 525600].map((minutes) => minutes * kMinute);

/** Times between two, in ms: whole minutes, hours, days. */
export function time_ticks(low: number, high: number, count: number): number[] {
  const span = high - low;
  if (!(span > 0)) return [];
  const step = kTimeSteps.find((candidate) => span / candidate <= count) ?? span / Math.max(count, 1);
  const ticks: number[] = [];
  for (let at = Math.ceil(low / step) * step; at <= high && ticks.length < 100; at += step) ticks.push(at);
  return ticks;
}

export function ticks(kind: Kind, low: number, high: number, count: number): number[] {
  if (kind === "log") return log_ticks(low, high, count);
  if (kind === "time") return time_ticks(low, high, count);
  return linear_ticks(low, high, count);
}

/** "16 Nov", or "16 Nov 21:30" where ticks are closer than a day. */
export function time_label(at: number, step: number): string {
  const date = new Date(at);
  const month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][date.getUTCMonth()] ?? "";
  const day = `${date.getUTCDate()} ${month}`;
  if (step >= 200 * 1440 * kMinute) return `${month} ${date.getUTCFullYear()}`;
  if (step >= 1440 * kMinute) return day;
  const two = (number: number): string => String(number).padStart(2, "0");
  return `${day} ${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
}

/** Labels in the axis's own words, without zeros that say nothing; with more digits where two would read alike. */
export function tick_labels(values: readonly number[], format: (value: number) => string): string[] {
  const plain = values.map((value) => (value === 0 ? "0" : format(value).replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "")));
  if (new Set(plain).size === plain.length) return plain;
  const most = Math.max(...values.map(Math.abs));
  const match = /^[\d.]+(.*)$/.exec(format(most));
  if (!match || values.length < 2 || !(most > 0)) return plain;
  // The label of the largest tells the factor between a value and what is written: 412 us for 412300 is 1e-3.
  const power = Math.round(Math.log10(parseFloat(match[0]) / most));
  const step = Math.abs((values[1] ?? 0) - (values[0] ?? 0)) * 10 ** power;
  const digits = Math.min(Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)), 9);
  return values.map((value) => `${(value * 10 ** power).toFixed(digits)}${match[1] ?? ""}`);
}

/** The index of the value nearest to `wanted`; values ascend. */
export function nearest(values: readonly number[], wanted: number): number {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] ?? 0) < wanted) low = middle + 1;
    else high = middle;
  }
  const before = values[low - 1];
  return before !== undefined && wanted - before < (values[low] ?? 0) - wanted ? low - 1 : Math.max(low, 0);
}

/** True where values reach so far that small ones would vanish on a linear axis. */
export function is_wide(values: Iterable<number | null | undefined>, factor = 30): boolean {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || value === undefined) continue;
    if (!(value > 0)) return false;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return high / low > factor;
}
