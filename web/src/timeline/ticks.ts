// Chooses the marks of the time axis and writes times. Knows nanoseconds; no canvas.

export interface Ticks {
  step: number; // ns
  base: number; // what the labels count from; 0 unless numbers would grow too long
  marks: { at: number; label: string }[];
}

const kUnits: readonly [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "us"],
  [1, "ns"],
];

/** 1, 2 or 5 times a power of ten ns, so that marks stand `gap` pixels apart at least. */
export function tick_step(ns_per_pixel: number, gap: number): number {
  const least = Math.max(1, ns_per_pixel * gap);
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

function unit_of(ns: number): readonly [number, string] {
  return kUnits.find(([size]) => ns >= size) ?? kUnits[3]!;
}

export function ticks_of(from: number, to: number, width: number, gap = 96): Ticks {
  const step = tick_step((to - from) / Math.max(1, width), gap);
  const [size, unit] = unit_of(step);
  const first = Math.ceil(from / step) * step;
  const is_long = to / size >= 100_000;
  const base = is_long ? Math.floor(from / (size * 1000)) * size * 1000 : 0;
  const marks: Ticks["marks"] = [];
  // The bound is for steps that rounding swallows, late in a very long timeline.
  for (let k = 0; k <= width / gap + 2; ++k) {
    const at = first + k * step;
    if (at > to) break;
    const value = Math.round((at - base) / size);
    marks.push({ at, label: `${is_long ? "+" : ""}${grouped(value)} ${unit}` });
  }
  return { step, base, marks };
}

function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** A moment to the nanosecond, in the unit of its size: "1.500 000 020 s". */
export function moment_text(ns: number): string {
  const [size, unit] = unit_of(Math.abs(ns));
  const whole = Math.floor(ns / size);
  const digits = Math.round(Math.log10(size));
  const rest = Math.round(ns - whole * size);
  if (digits === 0 || rest === 0) return `${grouped(whole)} ${unit}`;
  const fraction = String(rest).padStart(digits, "0").replace(/(\d{3})(?=\d)/g, "$1\u202f");
  return `${grouped(whole)}.${fraction} ${unit}`;
}
