// Elements of a package's buffers: their types, how inputs are generated from the seed, and conversion between doubles
// and bytes. Knows one buffer at a time; calls no kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lab/kernels/package/package.h"
#include "weir/kernel.h"

namespace weir::package {

enum class Number : std::uint8_t { f64, f32, f16, bf16, fp8_e4m3, fp8_e5m2, i32, u32, i64, u8 };

// `type` is one of WEIR_REAL ... WEIR_U8 and must be in range.
Number number_of(std::uint32_t type, Precision precision);
std::size_t size_of(Number number);
bool is_whole(Number number);

// The bytes of an element that was never written: all bits set. That is NaN for reals, -1 for signed integers, the
// largest value for others.
inline constexpr std::byte kPoison{0xff};

// Element `index` of an input. It depends only on seed, buffer and index, so that any part can be generated anywhere.
double draw(const WeirBuffer& buffer, std::uint32_t buffer_index, std::uint64_t seed, std::uint64_t index);

// Rounds to the type: reals to nearest even. Integers must fit; returns the index of the first that does not, or
// `values.size()`.
std::size_t encode(Number number, std::span<const double> values, std::byte* to);
void decode(Number number, const std::byte* from, std::span<double> values);

// Fills an input with rounded random numbers; a number that rounding lifted to `high` takes one step back if the range
// excludes it.
void draw_all(const WeirBuffer& buffer, std::uint32_t buffer_index, std::uint64_t seed, Number number, std::byte* to);

// What is wrong with the fill of a buffer; empty if nothing is.
std::string trouble_with_fill(const WeirBuffer& buffer, Number number);

}  // namespace weir::package
