import { expect, test } from "vitest";
import { cut, shell_word, visible } from "../../src/text";

test("characters that act on their surroundings are shown as codes", () => {
  expect(visible("a\u202Eb\u0007")).toBe("a⟨U+202E⟩b⟨U+0007⟩");
  expect(visible("plain, ünïcode\nand lines\t")).toBe("plain, ünïcode\nand lines\t");
});

test("long names are cut between characters", () => {
  expect(cut("short", 10)).toBe("short");
  expect(cut("x".repeat(100_000), 10)).toBe(`${"x".repeat(9)}…`);
  expect(cut("😀".repeat(20), 10)).toBe(`${"😀".repeat(9)}…`);
});

test("words are quoted for a shell only where they must be", () => {
  expect(shell_word("--streams=1,2,4")).toBe("--streams=1,2,4");
  expect(shell_word("it's here")).toBe("'it'\\''s here'");
  expect(shell_word("$(rm -rf ~)")).toBe("'$(rm -rf ~)'");
  expect(shell_word("")).toBe("''");
});
