// Reads a lane's spans: base64 of LEB128 triples (document.ts, Timeline). The text is hostile input: memory is bounded
// by its length, never by the count it claims, and reading stops at the first thing that cannot be true.

export interface Spans {
  count: number;
  starts: Float64Array; // ns from the timeline's origin, never falling
  durations: Float64Array;
  names: Uint32Array; // index into names; names.length where the file points at a name that is not there
  problem: string | null; // what was wrong, in words; what came before it is kept
}

const kBad = 255;
const kSextet = (() => {
  const table = new Uint8Array(128).fill(kBad);
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (let i = 0; i < alphabet.length; ++i) table[alphabet.charCodeAt(i)] = i;
  return table;
})();

/** Bytes of base64 text; `bad_at` is the first character that is not base64, or null. */
export function bytes_of_base64(text: string): { bytes: Uint8Array; bad_at: number | null } {
  let length = text.length;
  if (length % 4 === 0 && length > 0 && text.charCodeAt(length - 1) === 61) --length;
  if (length % 4 === 3 && text.charCodeAt(length - 1) === 61) --length;
  const bytes = new Uint8Array(Math.floor((length * 3) / 4));
  let at = 0;
  let read = 0;
  const whole = length - (length % 4);
  for (; read < whole; read += 4) {
    const a = text.charCodeAt(read);
    const b = text.charCodeAt(read + 1);
    const c = text.charCodeAt(read + 2);
    const d = text.charCodeAt(read + 3);
    if ((a | b | c | d) > 127) break;
    const i = kSextet[a]!;
    const j = kSextet[b]!;
    const k = kSextet[c]!;
    const l = kSextet[d]!;
    if ((i | j | k | l) > 63) break;
    const word = (i << 18) | (j << 12) | (k << 6) | l;
    bytes[at] = word >> 16;
    bytes[at + 1] = word >> 8; // a Uint8Array keeps the low eight bits
    bytes[at + 2] = word;
    at += 3;
  }
  // The rest: two or three characters, or the group with the bad one.
  let word = 0;
  let bits = 0;
  for (; read < length; ++read) {
    const code = text.charCodeAt(read);
    const sextet = code < 128 ? kSextet[code]! : kBad;
    if (sextet === kBad) return { bytes: bytes.subarray(0, at), bad_at: read };
    word = ((word << 6) | sextet) & 0xffffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = word >> bits;
    }
  }
  return { bytes: bytes.subarray(0, at), bad_at: null };
}

/** The spans of one lane. `claimed` is the count that the file gives, `names` how many names there are. */
export function decode_spans(text: string, claimed: number, names: number): Spans {
  const { bytes, bad_at } = bytes_of_base64(text);
  const most = Math.floor(bytes.length / 3); // a triple is three bytes at least
  const starts = new Float64Array(most);
  const durations = new Float64Array(most);
  const indices = new Uint32Array(most);
  const size = bytes.length;
  let problem: string | null = bad_at === null ? null : `not base64 from character ${bad_at} on`;
  let at = 0;
  let is_cut = false;

  // Adds seven bits at a time in floating point: exact up to 2^53, beyond it only large, which the caller refuses.
  function next(): number {
    let byte = bytes[at++]!;
    if (byte < 128) return byte;
    let value = byte & 127;
    let scale = 128;
    for (let more = 1; more < 10; ++more) {
      if (at >= size) {
        is_cut = true;
        return Infinity;
      }
      byte = bytes[at++]!;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
    return Infinity;
  }

  let count = 0;
  let start = 0;
  let unknown = 0;
  while (at < size) {
    const delta = next();
    const duration = at < size ? next() : ((is_cut = true), Infinity);
    const name = at < size ? next() : ((is_cut = true), Infinity);
    if (is_cut || !(start + delta + duration <= Number.MAX_SAFE_INTEGER) || name === Infinity) {
      problem ??= is_cut ? `cut off within span ${count + 1}` : `span ${count + 1} has a number that is too large`;
      break;
    }
    start += delta;
    starts[count] = start;
    durations[count] = duration;
    if (name >= names) ++unknown;
    indices[count] = name < names ? name : names;
    ++count;
  }
  if (problem === null && unknown > 0) problem = `${unknown} spans have a name that is not in the file`;
  if (problem === null && count !== claimed) problem = `holds ${count} spans where the file says ${claimed}`;
  return {
    count,
    starts: starts.subarray(0, count),
    durations: durations.subarray(0, count),
    names: indices.subarray(0, count),
    problem,
  };
}
