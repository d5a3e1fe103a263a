import { expect, test } from "vitest";
import { cut, shell_word, short_command, visible } from "../../src/text";

test("characters that act on their surroundings are shown as codes", () => {
  expect(visible("a\u202Eb\u0007")).toBe("a⟨U+202E⟩b⟨U+0007⟩");
  expect(visible("plain, ünïcode\nand lines\t")).toBe("plain, ünïcode\nand lines\t");
});

test("long names are cut between characters", () => {
  expect(cut("short", 10)).toBe("short");
  expect(cut("x".repeat(100_000), 10)).toBe(`${"x".repeat(9)}…`);
  expect(cut("😀".repeat(20), 10)).toBe(`${"😀".repeat(9)}…`);
});

test("kernels' names lose arguments before letters", () => {
  const kernel = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul> >(int, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul>)";
  expect(short_command(kernel, 400)).toBe(kernel);
  expect(short_command(kernel, 120)).toBe("at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul> >");
  expect(short_command(kernel, 80)).toBe("vectorized_elementwise_kernel<4, FillFunctor<BFloat16>, array<char*, 1ul> >");
  expect(short_command(kernel, 60)).toBe("vectorized_elementwise_kernel<4, FillFunctor<>, array<> >");
  expect(short_command(kernel, 54)).toBe("vectorized_elementwise_kernel<FillFunctor>");
  expect(short_command(kernel, 40)).toBe("vectorized_elementwise_ker…<FillFunctor>");
  expect(short_command(kernel, 12)).toBe("vectorized_…");
  expect(short_command("(anonymous namespace)::softmax_warp_forward<float, float, float, 10, false>(float*)", 24)).toBe("softmax_warp_forward<>");
  expect(short_command("Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV", 12)).toBe("Cijk_Ailk_B…");
  expect(short_command("f" + "<".repeat(100_000), 12).length).toBeLessThanOrEqual(12);
});

test("words are quoted for a shell only where they must be", () => {
  expect(shell_word("--streams=1,2,4")).toBe("--streams=1,2,4");
  expect(shell_word("it's here")).toBe("'it'\\''s here'");
  expect(shell_word("$(rm -rf ~)")).toBe("'$(rm -rf ~)'");
  expect(shell_word("")).toBe("''");
});
