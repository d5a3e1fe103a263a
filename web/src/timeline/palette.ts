// The picture's colours, read from the page's CSS variables so that it follows the theme. Kinds differ in shape too:
// each has its own profile across the height of a row, as colour must not be the only sign.

import { kKinds } from "./model";

export const kLevels = 16; // of occupancy
export const kShades = 3; // names of one kind take turns
export const kBands = 6; // of a row's height

/** How full each band of a row is, by kind (kKinds): whole, lined, low, lower, inset, hollow, capped. */
export const kProfiles: readonly (readonly number[])[] = [
  [1, 1, 1, 1, 1, 1],
  [1, 1, 1, 1, 0.4, 1],
  [0, 0, 1, 1, 1, 1],
  [0, 0, 0, 0, 1, 1],
  [0, 1, 1, 1, 1, 0],
  [1, 0, 0, 0, 0, 1],
  [1, 0.4, 1, 1, 1, 1],
];

/** Which of the page's series colours a kind has. */
export const kSeries: readonly number[] = [1, 2, 3, 4, 7, 8, 5];

export type Rgb = [number, number, number];

export interface Palette {
  background: string;
  stripe: string;
  text: string;
  muted: string;
  border: string;
  accent: string;
  kinds: Rgb[];
  ink: string[]; // text upon a span, by kind and shade
  colours: Uint32Array; // [is_dim][is_stripe][kind][shade][level], as a pixel
  grounds: [number, number]; // pixels of background and stripe
}

const kFallback: Record<string, string> = {
  "--surface": "#ffffff",
  "--text": "#1b1f24",
  "--text-quiet": "#59636e",
  "--line": "#d0d7de",
  "--accent": "#0b62c4",
  "--series-1": "#2f6fde",
  "--series-2": "#d9620f",
  "--series-3": "#1a8a5c",
  "--series-4": "#a44bc4",
  "--series-5": "#8a5a44",
  "--series-7": "#6b7684",
  "--series-8": "#b8860b",
};

let probe: CanvasRenderingContext2D | null = null;

/** Red, green, blue of any colour that CSS can write. */
export function rgb_of(colour: string): Rgb {
  probe ??= document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  if (!probe) return [128, 128, 128];
  probe.clearRect(0, 0, 1, 1);
  probe.fillStyle = "#808080";
  probe.fillStyle = colour;
  probe.fillRect(0, 0, 1, 1);
  const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
  return [r!, g!, b!];
}

export function mix(a: Rgb, b: Rgb, share: number): Rgb {
  return [0, 1, 2].map((i) => Math.round(a[i]! * (1 - share) + b[i]! * share)) as Rgb;
}

function luminance([r, g, b]: Rgb): number {
  const linear = (v: number) => (v <= 10.31 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

/** WCAG contrast, 1 to 21. */
export function contrast(a: Rgb, b: Rgb): number {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

function css(rgb: Rgb): string {
  return `rgb(${rgb.join(" ")})`;
}

// A pixel of ImageData seen as a 32-bit word; every machine that runs a browser is little-endian.
function word([r, g, b]: Rgb): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

export function colour_index(is_dim: number, is_stripe: number, kind: number, shade: number, level: number): number {
  return (((is_dim * 2 + is_stripe) * kKinds.length + kind) * kShades + shade) * kLevels + level;
}

const kBlack: Rgb = [0, 0, 0];
const kWhite: Rgb = [255, 255, 255];

/** The shades that names of one kind take turns in, each with the ink that can be read upon it. */
export function shades_of(colour: Rgb): { fill: Rgb; ink: Rgb }[] {
  return [colour, mix(colour, kWhite, 0.18), mix(colour, kBlack, 0.16)].map((fill) => ({ fill, ink: contrast(fill, kWhite) >= contrast(fill, kBlack) ? kWhite : kBlack }));
}

export function read_palette(element: Element): Palette {
  const style = getComputedStyle(element);
  const value = (name: string): string => style.getPropertyValue(name).trim() || (kFallback[name] ?? "#808080");
  const background = rgb_of(value("--surface"));
  const text = rgb_of(value("--text"));
  const stripe = mix(background, text, 0.035);
  const kinds = kKinds.map((_, i) => rgb_of(value(`--series-${kSeries[i]!}`)));
  const colours = new Uint32Array(4 * kKinds.length * kShades * kLevels);
  const ink: string[] = [];
  kinds.forEach((kind, k) => {
    shades_of(kind).forEach(({ fill, ink: text_colour }, shade) => {
      ink.push(css(text_colour));
      for (let is_stripe = 0; is_stripe < 2; ++is_stripe) {
        const ground = is_stripe ? stripe : background;
        for (let level = 0; level < kLevels; ++level) {
          // The faintest is still seen: a single short kernel in an empty second is news.
          const share = Math.max(0.06, level / (kLevels - 1));
          const colour = mix(ground, fill, share);
          colours[colour_index(0, is_stripe, k, shade, level)] = word(colour);
          const grey = (colour[0] + colour[1] + colour[2]) / 3;
          colours[colour_index(1, is_stripe, k, shade, level)] = word(mix(ground, [grey, grey, grey], 0.28));
        }
      }
    });
  });
  return {
    background: css(background),
    stripe: css(stripe),
    text: css(text),
    muted: css(rgb_of(value("--text-quiet"))),
    border: css(rgb_of(value("--line"))),
    accent: css(rgb_of(value("--accent"))),
    kinds,
    ink,
    colours,
    grounds: [word(background), word(stripe)],
  };
}
