import { describe, expect, it } from "vitest";
import { bytes_of_base64, decode_spans } from "../../src/timeline/decode";
import { encode_spans, leb128, seeded, type Triple } from "../timeline_fixture";

const text_of = (...bytes: number[]): string => Buffer.from(bytes).toString("base64");

describe("base64", () => {
  it("reads what Node writes, of every length", () => {
    const random = seeded(1);
    for (let length = 0; length < 70; ++length) {
      const bytes = Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
      const read = bytes_of_base64(bytes.toString("base64"));
      expect(Buffer.from(read.bytes)).toEqual(bytes);
      expect(read.bad_at).toBeNull();
      expect(Buffer.from(bytes_of_base64(bytes.toString("base64").replace(/=+$/, "")).bytes)).toEqual(bytes);
    }
  });
  it("stops at the first character that is none", () => {
    expect(bytes_of_base64("AAAA AAA").bad_at).toBe(4);
    expect(bytes_of_base64("AAAAé").bad_at).toBe(4);
    expect(bytes_of_base64("AA=A").bad_at).toBe(2);
    expect(bytes_of_base64("AAAA====").bad_at).toBe(4);
    expect(bytes_of_base64("\u{1F600}AAA").bytes.length).toBe(0);
    expect(bytes_of_base64("<script>").bad_at).toBe(0);
  });
});

describe("spans", () => {
  it("come back as they were written", () => {
    const spans: Triple[] = [[5, 0, 0], [5, 127, 1], [133, 128, 2], [20_000, 2 ** 40, 1], [2 ** 50, 3, 0]];
    const read = decode_spans(encode_spans(spans), 5, 3);
    expect(read.problem).toBeNull();
    expect([...read.starts]).toEqual(spans.map(([start]) => start));
    expect([...read.durations]).toEqual(spans.map(([, duration]) => duration));
    expect([...read.names]).toEqual(spans.map(([, , name]) => name));
  });
  it("of nothing are none", () => {
    expect(decode_spans("", 0, 0)).toMatchObject({ count: 0, problem: null });
  });
  it("are kept up to a cut", () => {
    const whole = Buffer.from(encode_spans([[1, 300, 0], [2, 300, 0]]), "base64");
    for (let length = 4; length < whole.length; ++length) {
      const read = decode_spans(whole.subarray(0, length).toString("base64"), 2, 1);
      expect(read.count).toBe(1);
      expect(read.problem).toBe(length === 4 ? "holds 1 spans where the file says 2" : "cut off within span 2");
    }
    expect(decode_spans(text_of(0x80), 1, 1)).toMatchObject({ count: 0, problem: "cut off within span 1" });
    expect(decode_spans(text_of(0x80, 0x80, 0x80), 1, 1)).toMatchObject({ count: 0, problem: "cut off within span 1" });
  });
  it("are counted, whatever the file claims", () => {
    for (const claimed of [0, 1, 1e15, -4, NaN, Infinity]) {
      const read = decode_spans(encode_spans([[1, 1, 0], [2, 1, 0]]), claimed, 1);
      expect(read.count).toBe(2);
      expect(read.starts.buffer.byteLength).toBeLessThan(100);
      expect(read.problem).toMatch(/^holds 2 spans where the file says/);
    }
  });
  it("with numbers too large to be exact end the lane", () => {
    const first = [...leb128(1), ...leb128(1), ...leb128(0)];
    const large = "span 2 has a number that is too large";
    expect(decode_spans(text_of(...first, ...leb128(2 ** 53), 1, 0), 2, 1)).toMatchObject({ count: 1, problem: large });
    expect(decode_spans(text_of(...first, 1, ...leb128(2 ** 60), 0), 2, 1)).toMatchObject({ count: 1, problem: large });
    expect(decode_spans(text_of(...first, ...Array<number>(5000).fill(0xff)), 2, 1)).toMatchObject({ count: 1, problem: large });
    expect(decode_spans(text_of(...first, 1, 1, ...Array<number>(9).fill(0xff), 0x7f), 2, 1).count).toBe(2);
  });
  it("with a name that is not there keep their times", () => {
    const read = decode_spans(encode_spans([[1, 1, 7], [2, 1, 2 ** 40]]), 2, 3);
    expect([...read.names]).toEqual([3, 3]);
    expect(read.problem).toBe("2 spans have a name that is not in the file");
  });
});
