// Numbers with units, for people: the same words as the program's own (src/base/units.h), so that a number in the report
// is the number in the terminal. Knows no measurement.

export const kNone = "–"; // where there is no value

// The program rounds ties to even, toFixed rounds them up: medians such as 812.5 ns would differ.
function fixed(value: number, digits: number): string {
  const scale = 10 ** digits;
  const scaled = Math.abs(value) * scale;
  const whole = Math.floor(scaled);
  if (scaled - whole === 0.5 && scaled / scale === Math.abs(value)) {
    const even = whole % 2 === 0 ? whole : whole + 1;
    return ((Math.sign(value) * even) / scale).toFixed(digits);
  }
  return value.toFixed(digits);
}

/** Three significant digits, no exponent: 8.12, 81.2, 812. */
export function three_digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e15) return value.toExponential(2);
  if (size >= 99.95) return fixed(value, 0);
  if (size >= 9.995) return fixed(value, 1);
  return fixed(value, 2);
}

function scaled(value: number, step: number, names: readonly string[]): string {
  let i = 0;
  while (i + 1 < names.length && Math.abs(value) >= step * 0.9995) {
    value /= step;
    ++i;
  }
  return three_digits(value) + (names[i] ?? "");
}

type Maybe = number | null | undefined;

function is_number(value: Maybe): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

/** 812 ns, 4.21 us, 13.4 ms, 2.50 s */
export function duration(ns: Maybe): string {
  if (!is_number(ns)) return kNone;
  if (ns === 0) return "0 ns";
  if (Math.abs(ns) < 999.5) return `${three_digits(ns)} ns`;
  return scaled(ns / 1e3, 1e3, [" us", " ms", " s"]);
}

/** 512 B, 4.00 KiB, 1.50 GiB */
export function bytes(size: Maybe): string {
  if (!is_number(size)) return kNone;
  if (size < 1024) return `${size} B`;
  return scaled(size / 1024, 1024, [" KiB", " MiB", " GiB", " TiB"]);
}

/** 812, 4.21 k, 13.4 M, 2.50 G */
/** flop/s in GFLOP/s, bytes/s in GB/s. */
export function giga(value: number | null): number | null {
  return value === null ? null : value / 1e9;
}

export function quantity(value: Maybe): string {
  if (!is_number(value)) return kNone;
  if (value !== 0 && Math.abs(value) < 0.01) return value.toPrecision(3);
  return scaled(value, 1e3, ["", " k", " M", " G", " T", " P"]);
}

/** A rate in its unit. GFLOP/s are scaled already; rates that count things are scaled here: 3.90 M commands/s. */
export function rate(value: Maybe, unit: string): string {
  if (!is_number(value)) return kNone;
  if (unit === "ns") return duration(value);
  if (unit === "B/s" || unit === "flop/s") return measured(value, unit);
  return `${bare_rate(value, unit)} ${unit}`;
}

export function bare_rate(value: number, unit: string): string {
  if (!/^[GT]FLOP/.test(unit)) return quantity(value);
  return fixed(value, value < 1 ? 4 : value < 100 ? 2 : 0);
}

/** 1.034x */
export function ratio(value: Maybe): string {
  return is_number(value) ? `${fixed(value, 3)}x` : kNone;
}

/** 0.125 is 12.5 % */
export function percent(share: Maybe): string {
  return is_number(share) ? `${fixed(100 * share, 1)} %` : kNone;
}

/** A ratio as a change: +3.4 %, -12.0 % */
export function change(value: Maybe): string {
  if (!is_number(value)) return kNone;
  const points = 100 * (value - 1);
  return `${points > 0 ? "+" : points < 0 ? "−" : "±"}${fixed(Math.abs(points), 1)} %`;
}

/** [1.012, 1.050], with whatever makes one number */
export function interval(bounds: readonly [number, number] | null | undefined, one: (value: number) => string): string {
  return bounds && is_number(bounds[0]) && is_number(bounds[1]) ? `${one(bounds[0])} … ${one(bounds[1])}` : kNone;
}

/** Whole numbers with thin gaps between thousands: 1 048 576 */
export function count(value: Maybe): string {
  return is_number(value) ? String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f") : kNone;
}

/** <0.001, 0.042 */
export function probability(p: Maybe): string {
  if (!is_number(p)) return kNone;
  return p < 0.001 ? "<0.001" : fixed(p, 3);
}

/** 2026-11-16 21:27 UTC; a text that is no time stays as it is. */
export function moment(iso: string | null): string {
  if (iso === null) return kNone;
  const match = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2})(?::\d{2}(?:\.\d+)?)?Z$/.exec(iso);
  return match ? `${match[1]} ${match[2]} UTC` : iso;
}

/** "1 point", "2 points" */
export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** A device's figure in its unit: 812 ns, 52.1 GB/s, 758 TFLOP/s, 1980 MHz, 16 lanes; a count stands alone. */
export function measured(value: Maybe, unit: string): string {
  if (!is_number(value)) return kNone;
  if (unit === "ns") return duration(value);
  if (unit === "B/s" || unit === "flop/s") {
    const [, size, prefix] = /^(.*?)(?: ([kMGTP]))?$/.exec(quantity(value)) ?? [];
    return `${size} ${prefix ?? ""}${unit === "B/s" ? "B/s" : "FLOP/s"}`;
  }
  const number = Math.abs(value) < 1e6 ? String(Number(value.toPrecision(Number.isInteger(value) ? 6 : 4))) : quantity(value);
  return unit === "count" ? number : `${number} ${unit === "C" ? "°C" : unit}`;
}

/** An effect in words: 6.1 % below, 0.3 % above, "at the median". */
export function beside(effect: Maybe): string {
  if (effect === Infinity || effect === -Infinity) return `${effect < 0 ? "below" : "above"} a median of 0`;
  if (!is_number(effect)) return kNone;
  const points = fixed(100 * Math.abs(effect), 1);
  return points === "0.0" ? "at the median" : `${points} % ${effect < 0 ? "below" : "above"}`;
}

/** Values of one figure in one unit, that of the largest: 55.9, 54.1 in GB/s. The unit stands beside them once. */
export function in_one_unit(values: readonly number[], unit: string): { unit: string; text: (value: Maybe) => string } {
  const most = Math.max(0, ...values.filter(is_number).map(Math.abs));
  const [, size, shared] = /^([\d.]+) ?(.*)$/.exec(measured(most, unit)) ?? [];
  if (most === 0 || size === undefined || shared === undefined) return { unit: "", text: (value) => measured(value, unit) };
  const power = 10 ** Math.round(Math.log10(parseFloat(size) / most));
  const is_whole = values.every((value) => Number.isInteger(value * power));
  return { unit: shared, text: (value) => (!is_number(value) ? kNone : is_whole ? String(value * power) : three_digits(value * power)) };
}
