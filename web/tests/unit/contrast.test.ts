// Reads the colours from styles.css and computes what a reader with weak eyes, or other eyes, can tell apart.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

type Rgb = [number, number, number];

function tokens(theme: "light" | "dark"): Map<string, Rgb> {
  const style = readFileSync(new URL("../../src/styles.css", import.meta.url), "utf8");
  const start = style.indexOf(`:root[data-theme="${theme}"] {`);
  const block = style.slice(start, style.indexOf("}", start));
  return new Map([...block.matchAll(/--([\w-]+): #([0-9a-f]{6});/g)].map(([, name = "", hex = ""]) => [name, [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)) as Rgb]));
}

function linear([r, g, b]: Rgb): Rgb {
  return [r, g, b].map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4)) as Rgb;
}

function luminance(colour: Rgb): number {
  const [r, g, b] = linear(colour);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: Rgb, b: Rgb): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

for (const theme of ["light", "dark"] as const) {
  const of = (name: string): Rgb => {
    const colour = tokens(theme).get(name);
    if (!colour) throw new Error(`${theme}: no colour --${name}`);
    return colour;
  };

  test(`${theme}: text is readable on every surface that it stands on`, () => {
    for (const text of ["text", "text-quiet", "accent", "bad", "warning", "good", "neutral"])
      for (const ground of ["page", "surface", "raised"]) expect(contrast(of(text), of(ground)), `${text} on ${ground}`).toBeGreaterThanOrEqual(4.5);
    for (const tone of ["bad", "warning", "good", "neutral", "accent"]) expect(contrast(of(tone), of(`${tone}-soft`)), `${tone} on its soft`).toBeGreaterThanOrEqual(4.5);
    expect(contrast(of("text"), of("bad-soft"))).toBeGreaterThanOrEqual(4.5);
    expect(contrast(of("surface"), of("accent")), "skip link").toBeGreaterThanOrEqual(4.5);
  });

  test(`${theme}: lines of charts stand out from their ground`, () => {
    for (let i = 1; i <= 8; ++i) expect(contrast(of(`series-${i}`), of("surface")), `series-${i}`).toBeGreaterThanOrEqual(3);
  });

  // Machado, Oliveira and Fernandes 2009, severity 1: what the first four colours, those that most charts need, become.
  test(`${theme}: the first colours stay apart for colour-blind eyes`, () => {
    const kinds: Record<string, number[][]> = {
      protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
      deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
      tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
    };
    for (const [kind, matrix] of Object.entries(kinds)) {
      const seen = [1, 2, 3, 4].map((i) => lab(matrix.map((row) => row.reduce((sum, factor, j) => sum + factor * (linear(of(`series-${i}`))[j] ?? 0), 0)) as Rgb));
      seen.forEach((a, i) => seen.slice(i + 1).forEach((b, j) => expect(Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]), `${kind}: series-${i + 1} and series-${i + 2 + j}`).toBeGreaterThan(8)));
    }
  });
}

function lab([r, g, b]: Rgb): Rgb {
  const clamp = (value: number): number => Math.min(Math.max(value, 0), 1);
  const [R, G, B] = [clamp(r), clamp(g), clamp(b)];
  const f = (t: number): number => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  const x = f((0.4124 * R + 0.3576 * G + 0.1805 * B) / 0.95047);
  const y = f(0.2126 * R + 0.7152 * G + 0.0722 * B);
  const z = f((0.0193 * R + 0.1192 * G + 0.9505 * B) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}
