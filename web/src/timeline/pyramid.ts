// Coarse pictures of a row, kept: when the view shows a million spans, a pixel is put together from two to five bins, not
// from the spans below it. Levels halve the bins' width; each is made when a zoom first needs it.

import { fill_pixels, kNothing, new_pixels, type Pixels } from "./pixels";
import { kKindCount, type Row } from "./rows";

const kLeastBins = 256;
const kMostBins = 1 << 17;
const kLeastSpans = 2_000; // rows with fewer are drawn from their spans

export class Pyramid {
  private readonly levels_ = new Map<number, Pixels>(); // by number of bins
  private readonly most_bins_: number; // more of them would hold less than two spans each
  private readonly end_: number;

  constructor(
    private readonly row_: Row,
    private readonly kind_of_: Uint8Array,
  ) {
    const wanted = Math.min(kMostBins, row_.count / 1.5);
    this.most_bins_ = row_.count < kLeastSpans ? 0 : 2 ** Math.floor(Math.log2(wanted));
    this.end_ = Math.max(1, row_.ends[row_.count - 1] ?? 0);
  }

  /** As fill_pixels, from bins where they are fine enough, from spans where not. */
  fill(from: number, ns_per_pixel: number, width: number, out: Pixels): void {
    // Two bins for each pixel at least, or edges would blur.
    const least = Math.max(kLeastBins, (2 * this.end_) / ns_per_pixel);
    if (!(least <= this.most_bins_)) {
      fill_pixels(this.row_, this.kind_of_, from, ns_per_pixel, width, out);
      return;
    }
    const bins = 2 ** Math.ceil(Math.log2(least));
    this.gather(this.level(Math.min(bins, this.most_bins_)), from, ns_per_pixel, width, out);
  }

  private level(bins: number): { pixels: Pixels; bins: number } {
    let pixels = this.levels_.get(bins);
    if (!pixels) {
      pixels = new_pixels(bins);
      fill_pixels(this.row_, this.kind_of_, 0, this.end_ / bins, bins, pixels);
      this.levels_.set(bins, pixels);
    }
    return { pixels, bins };
  }

  private gather({ pixels, bins }: { pixels: Pixels; bins: number }, from: number, ns_per_pixel: number, width: number, out: Pixels): void {
    const { kind, share, first, count } = pixels;
    const scale = bins / this.end_;
    const bins_per_pixel = ns_per_pixel * scale;
    const origin = from * scale;
    for (let x = 0; x < width; ++x) {
      const left = origin + x * bins_per_pixel;
      const right = left + bins_per_pixel;
      const low = left > 0 ? Math.floor(left) : 0;
      const high = Math.min(bins, Math.ceil(right));
      let busy = 0;
      let begin = -1;
      let end = 0;
      let best = kNothing;
      let is_mixed = false;
      for (let b = low; b < high; ++b) {
        const k = kind[b]!;
        if (k === kNothing) continue;
        const part = Math.min(b + 1, right) - Math.max(b, left);
        busy += share[b]! * part;
        if (begin < 0) begin = first[b]!;
        end = first[b]! + count[b]!;
        if (best === kNothing) best = k;
        else if (best !== k) is_mixed = true;
      }
      if (begin < 0) {
        out.kind[x] = kNothing;
        out.share[x] = 0;
        out.count[x] = 0;
        continue;
      }
      out.kind[x] = is_mixed ? main_kind(pixels, low, high, left, right) : best;
      out.share[x] = Math.min(1, busy / bins_per_pixel);
      out.first[x] = begin;
      out.count[x] = end - begin;
    }
  }
}

const sums = new Float64Array(kKindCount);

// By the bins' own kinds: where kinds are nearly even it may name the second; asking the spans would cost half a frame.
function main_kind({ kind, share }: Pixels, low: number, high: number, left: number, right: number): number {
  sums.fill(0);
  let best = -1;
  for (let b = low; b < high; ++b) {
    const k = kind[b]!;
    if (k === kNothing) continue;
    sums[k]! += share[b]! * (Math.min(b + 1, right) - Math.max(b, left));
    if (best < 0 || sums[k]! > sums[best]!) best = k;
  }
  return best;
}
