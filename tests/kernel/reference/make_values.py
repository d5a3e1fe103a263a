#!/usr/bin/env python3
"""Writes values.h: inputs and results of every kernel from numpy and scipy, in double, rounded once. Run it after
changing a case:  python3 tests/kernel/reference/make_values.py > tests/kernel/reference/values.h"""
import numpy as np
from scipy import special

MASK = (1 << 64) - 1
generator = np.random.default_rng(20240607)


def random_bits(seed, index):
    z = (seed * 0x9E3779B97F4A7C15 + index) & MASK
    z = ((z ^ (z >> 33)) * 0xFF51AFD7ED558CCD) & MASK
    z = ((z ^ (z >> 33)) * 0xC4CEB9FE1A85EC53) & MASK
    z ^= z >> 33
    return (z >> 16) & 0xFFFFFFFF


def random_uniform(seed, index, scale, offset):
    unit = np.float32(random_bits(seed, index) >> 8) * np.float32(2.0**-23) - np.float32(1)
    return np.float32(scale) * unit + np.float32(offset)


def to_bf16(values):
    """Bits of the nearest bfloat16, ties to even, from the double itself."""
    values = np.atleast_1d(np.asarray(values, np.float64))
    low = (values.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
    # The cast may have rounded away from zero past a bfloat16; step back towards zero, then choose the nearer one.
    low = np.where(np.abs(low.astype(np.float64)) > np.abs(values), (low.view(np.uint32) - 0x10000).view(np.float32), low)
    low_bits = low.view(np.uint32) >> 16
    high_bits = low_bits + 1
    high = (high_bits << 16).astype(np.uint32).view(np.float32)
    to_low, to_high = np.abs(values - low), np.abs(high.astype(np.float64) - values)
    take_low = (to_low < to_high) | ((to_low == to_high) & (low_bits % 2 == 0))
    return np.where(take_low, low_bits, high_bits).astype(np.uint16)


def rounded(values, kind):
    """Storage bits and the values they stand for."""
    values = np.asarray(values, np.float64)
    if kind == "i32":
        return values.astype(np.int32).view(np.uint32).ravel(), values
    if kind == "f32":
        stored = values.astype(np.float32)
        return stored.view(np.uint32).ravel(), stored.astype(np.float64)
    if kind == "f16":
        stored = values.astype(np.float16)
        return stored.view(np.uint16).ravel(), stored.astype(np.float64)
    bits = to_bf16(values.ravel())
    return bits, (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64).reshape(values.shape)


def array(bits):
    return "{" + ", ".join(f"0x{int(b):x}" for b in bits) + "}"


cases = []


def case(kernel, kind, dims, scalars, operands, *results):
    """operands: one list of bits each, in order; written ones hold what they hold before. results: their bits after."""
    while len(dims) < 4:
        dims = dims + [0]
    while len(scalars) < 4:
        scalars = scalars + [0.0]
    dims = ", ".join(str(d) for d in dims)
    # As hexadecimal floats: every float exactly.
    scalars = ", ".join(float(np.float32(s)).hex() + "f" for s in scalars)
    operands = ",\n      ".join(array(o) for o in operands)
    results = ",\n      ".join(array(r) for r in results)
    cases.append(f'    {{"{kernel}", ElementType::{kind}, {{{dims}}}, {{{scalars}}},\n     {{{operands}}},\n     {{{results}}}}},')


def uniform(*shape, scale=2.0):
    return generator.uniform(-scale, scale, shape)


for kind in ("f32", "f16", "bf16"):
    for flags, alpha, beta in ((0, 1.0, 0.0), (1, 0.5, 0.0), (2, -2.0, 1.0), (3, 1.25, -0.5)):
        m, n, k = 3, 5, 7
        a_bits, a = rounded(uniform(k, m) if flags & 1 else uniform(m, k), kind)
        b_bits, b = rounded(uniform(n, k) if flags & 2 else uniform(k, n), kind)
        c_bits, c = rounded(uniform(m, n), kind)
        product = np.einsum("mk,kn->mn", a.T if flags & 1 else a, b.T if flags & 2 else b)
        result = alpha * product + beta * c
        case("gemm", kind, [m, n, k, flags], [alpha, beta], [a_bits, b_bits, c_bits], rounded(result, kind)[0])

    batch_a_bits, batch_a = rounded(uniform(2, 4, 3), kind)
    batch_b_bits, batch_b = rounded(uniform(2, 5, 4), kind)
    case("gemm", kind, [3, 5, 4, 3 | 2 << 8], [1.0, 0.0], [batch_a_bits, batch_b_bits, [0] * 30],
         rounded(np.einsum("bkm,bnk->bmn", batch_a, batch_b), kind)[0])

    blank = lambda count: [0] * count
    x_bits, x = rounded(uniform(11), kind)
    # mul 1, add 2, abs 3, clamp 4, relu 5, square 6; low byte first
    case("chain", kind, [11, 0x0201], [1.5, 0.5], [x_bits, blank(11)], rounded(x * 1.5 + 0.5, kind)[0])
    case("chain", kind, [11, 0x04030201], [1.5, 0.5, 0.25, 2.0], [x_bits, blank(11)],
         rounded(np.clip(np.abs(x * 1.5 + 0.5), 0.25, 2.0), kind)[0])
    case("chain", kind, [11, 0x010605], [-3.0], [x_bits, blank(11)], rounded(np.maximum(x, 0) ** 2 * -3.0, kind)[0])
    case("chain", kind, [11, 0x010402], [1.0, -0.5, 0.75, 4.0], [x_bits, blank(11)],
         rounded(np.clip(x + 1.0, -0.5, 0.75) * 4.0, kind)[0])

    x_bits, x = rounded(uniform(3, 9, scale=20.0), kind)
    case("softmax", kind, [3, 9], [], [x_bits, blank(27)], rounded(special.softmax(x, axis=1), kind)[0])

    x_bits, x = rounded(uniform(3, 9) + 5.0, kind)
    gamma_bits, gamma = rounded(uniform(9), kind)
    beta_bits, beta = rounded(uniform(9), kind)
    epsilon = float(np.float32(1e-3))
    normal = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + epsilon)
    case("layer_norm", kind, [3, 9], [1e-3], [x_bits, gamma_bits, beta_bits, blank(27)],
         rounded(normal * gamma + beta, kind)[0])

    x_bits, x = rounded(np.concatenate([uniform(6, scale=6.0), [-4.0, -1.0, 0.0, 1.0, 4.0]]), kind)
    case("gelu", kind, [11], [], [x_bits, blank(11)], rounded(x * special.ndtr(x), kind)[0])

    x_bits, x = rounded(uniform(4, 6), kind)
    case("reduce", kind, [4, 6, 0], [], [x_bits, blank(6)], rounded(x.sum(axis=0), kind)[0])
    case("reduce", kind, [4, 6, 1], [], [x_bits, blank(4)], rounded(x.sum(axis=1), kind)[0])

    table_bits, table = rounded(uniform(5, 3), kind)
    index = np.array([4, 0, 2, 4, 1], np.int32)
    case("gather", kind, [5, 3, 5], [], [table_bits, index, blank(15)], rounded(np.take(table, index, axis=0), kind)[0])
    in_bits, values = rounded(uniform(3, 3), kind)
    index = np.array([4, 0, 2], np.int32)
    after = table.copy()
    after[index] = values
    case("scatter", kind, [3, 3, 5], [], [in_bits, index, table_bits], rounded(after, kind)[0])

# What training adds to the above.
for kind in ("f32", "f16", "bf16"):
    x_bits, x = rounded(uniform(5, 4, scale=5.0), kind)
    hidden = np.where(np.arange(4)[None, :] <= (np.arange(5) % 4)[:, None], x, -np.inf)
    case("softmax", kind, [5, 4, 1], [], [x_bits, blank(20)], rounded(special.softmax(hidden, axis=1), kind)[0])

    p_bits, p = rounded(special.softmax(uniform(3, 9), axis=1), kind)
    dp_bits, dp = rounded(uniform(3, 9), kind)
    case("softmax_backward", kind, [3, 9], [], [p_bits, dp_bits, blank(27)],
         rounded(p * (dp - np.sum(p * dp, axis=1, keepdims=True)), kind)[0])

    x_bits, x = rounded(np.concatenate([uniform(6, scale=6.0), [-4.0, -1.0, 0.0, 1.0, 4.0]]), kind)
    dy_bits, dy = rounded(uniform(11), kind)
    slope = special.ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    case("gelu_backward", kind, [11], [], [x_bits, dy_bits, blank(11)], rounded(dy * slope, kind)[0])

    x_bits, x = rounded(uniform(3, 9) + 5.0, kind)
    gamma_bits, gamma = rounded(uniform(9), kind)
    dy_bits, dy = rounded(uniform(3, 9), kind)
    epsilon = float(np.float32(1e-3))
    mean = x.mean(axis=1, keepdims=True)
    inverse = 1 / np.sqrt(x.var(axis=1, keepdims=True) + epsilon)
    normal = (x - mean) * inverse
    scaled = dy * gamma
    dx = inverse * (scaled - scaled.mean(axis=1, keepdims=True) - normal * (scaled * normal).mean(axis=1, keepdims=True))
    stats_bits, stats = rounded(np.concatenate([mean, inverse], axis=1), "f32")
    case("layer_norm_backward", kind, [3, 9], [1e-3], [x_bits, gamma_bits, dy_bits, blank(27), blank(6)],
         rounded(dx, kind)[0], stats_bits)
    normal = (x - stats[:, :1]) * stats[:, 1:]
    case("layer_norm_grad", kind, [3, 9], [], [x_bits, dy_bits, stats_bits, blank(9), blank(9)],
         rounded((dy * normal).sum(axis=0), kind)[0], rounded(dy.sum(axis=0), kind)[0])

    a_bits, a = rounded(uniform(3, 5), kind)
    b_bits, b = rounded(uniform(3, 5), kind)
    case("add", kind, [3, 5, 0], [0.75, -1.5], [a_bits, b_bits, blank(15)], rounded(0.75 * a - 1.5 * b, kind)[0])
    row_bits, row = rounded(uniform(5), kind)
    case("add", kind, [3, 5, 1], [1.0, 0.5], [a_bits, row_bits, blank(15)], rounded(a + 0.5 * row, kind)[0])

    in_bits, values = rounded(uniform(2 * 3 * 5 - 1), kind)
    padded = np.append(values, 0.0).reshape(2, 3, 5)[:, :, :4]
    case("sum_rows", kind, [2, 3, 4, 5], [0.25], [in_bits, blank(8)], rounded(0.25 * padded.sum(axis=1), kind)[0])

    g_bits, g = rounded(uniform(7), kind)
    w_bits, w = rounded(uniform(7), "f32")
    m_bits, m = rounded(uniform(7), "f32")
    v_bits, v = rounded(np.abs(uniform(7)), "f32")
    rate, beta1, beta2, epsilon = (float(np.float32(s)) for s in (0.01, 0.9, 0.999, 1e-8))
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    w = w - rate * m / (np.sqrt(v) + epsilon)
    case("adam", kind, [7], [0.01, 0.9, 0.999, 1e-8], [g_bits, w_bits, m_bits, v_bits],
         rounded(w, "f32")[0], rounded(m, "f32")[0], rounded(v, "f32")[0])

for kind in ("f32", "f16", "bf16", "i32"):
    x_bits, x = rounded(np.arange(2 * 3 * 4 * 2).reshape(2, 3, 4, 2), kind)
    case("transpose", kind, [2, 3, 4, 2], [], [x_bits, [0] * 48], rounded(x.transpose(0, 2, 1, 3), kind)[0])
    x_bits, _ = rounded(np.arange(5) * -7.0, kind)
    case("graph_break", kind, [5, 100], [], [x_bits, [0] * 5], x_bits)

for kind in ("f32", "f16", "bf16", "i32"):
    x_bits, _ = rounded(np.arange(-3, 4) * 1000.0, kind)
    case("copy", kind, [7], [], [x_bits, [0] * 7], x_bits)
    case("fill", kind, [5, 0, 0], [-2.75], [[0] * 5], rounded(np.full(5, -2.75), kind)[0])
    values = np.array([random_uniform(12345, i, 100.0, 3.0) for i in range(9)], np.float64)
    case("fill", kind, [9, 1, 12345], [100.0, 3.0], [[0] * 9], rounded(values, kind)[0])

case("spin", "f32", [1000, 3], [], [[0] * 3], rounded(np.ones(3), "f32")[0])

print("""// Generated by make_values.py from numpy and scipy; do not edit.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"

namespace weir::values {

// clang-format off
struct Conversion {
  std::uint32_t f32;
  std::uint16_t f16, bf16;
};
inline constexpr Conversion kConversions[] = {""")
# Magnitudes from 2^-30 to 2^20: f16 subnormals, normals and overflow.
numbers = (generator.uniform(1, 2, 200) * 2.0 ** generator.integers(-30, 20, 200) * generator.choice([-1, 1], 200)).astype(np.float32)
with np.errstate(over="ignore"):
    for number, half, brain in zip(numbers, numbers.astype(np.float16), to_bf16(numbers)):
        print(f"    {{0x{number.view(np.uint32):08x}, 0x{half.view(np.uint16):04x}, 0x{brain:04x}}},")
print("""};

struct RandomValue {
  std::uint64_t seed, index;
  std::uint32_t bits, uniform;  // uniform: scale 1.5, offset -0.25
};
inline constexpr RandomValue kRandom[] = {""")
for seed, index in ((0, 0), (0, 1), (1, 0), (1, 1), (42, 123456789), (2**64 - 1, 2**64 - 1), (7, 2**32), (1000003, 255)):
    value = random_uniform(seed, index, 1.5, -0.25)
    print(f"    {{{seed}u, {index}u, 0x{random_bits(seed, index):08x}, 0x{value.view(np.uint32):08x}}},")
print("""};

// Bits of 16-bit types are in the low half of a word.
struct Case {
  std::string_view kernel;
  ElementType type;
  std::array<std::int64_t, kMaxDims> dims;
  std::array<float, kMaxScalars> scalars;
  std::vector<std::vector<std::uint32_t>> operands;  // before the launch
  std::vector<std::vector<std::uint32_t>> results;   // of those that it writes, after it
};
inline const Case kCases[] = {""")
print("\n".join(cases))
print("""};
// clang-format on

}  // namespace weir::values""")
