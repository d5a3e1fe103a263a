// Shared by CPU bodies and launch geometries: how a launch is split, how rows become floats. Knows no kernel by name.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/running_sum.h"

namespace weir {

// 16K elements are 64 KiB of f32: a block fits the L1/L2 cache and takes microseconds, so workers share fairly.
inline constexpr std::int64_t kBlockElements = 16384;

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};

constexpr std::int64_t divide_up(std::int64_t amount, std::int64_t by) { return (amount + by - 1) / by; }

constexpr std::uint32_t block_count(std::int64_t amount, std::int64_t per_block) {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(1, divide_up(amount, per_block)));
}
constexpr Range block_range(std::int64_t amount, std::int64_t per_block, std::uint32_t block) {
  const std::int64_t begin = std::min(amount, block * per_block);
  return {begin, std::min(amount, begin + per_block)};
}
// Rows of a matrix per block of about kBlockElements.
constexpr std::int64_t rows_per_block(std::int64_t columns) {
  return std::max<std::int64_t>(1, kBlockElements / std::max<std::int64_t>(1, columns));
}

template <class T>
T* operand(const KernelCall& call, int index) {
  return static_cast<T*>(call.operands[static_cast<std::size_t>(index)]);
}
inline double element_bytes(const KernelShape& shape) { return static_cast<double>(size_of(shape.type)); }

// Half a unit in the last place of a stored element, relative; 0 for integers.
constexpr double rounding_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return rounding_of(Precision::fp32);
    case ElementType::f16:
      return rounding_of(Precision::fp16);
    case ElementType::bf16:
      return rounding_of(Precision::bf16);
    case ElementType::i32:
      return 0;
  }
  return 0;
}
inline constexpr double kFloatRounding = rounding_of(Precision::fp32);

// A body and its reference each round their result once to the stored type; `roundings` is how many the body's float
// arithmetic may add before that. Errors are relative to max(|reference|, rms of the reference).
constexpr double storage_tolerance(ElementType type, double roundings) {
  return 2 * rounding_of(type) + roundings * kFloatRounding;
}

template <class T>
void load_floats(const T* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = to_float(from[i]);
}
template <class T>
void store_floats(const float* from, T* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from_float<T>(from[i]);
}

// Converts a double to storage, effectively with one rounding. The intermediate rounding to float is exact enough for
// the 24 bits of f32, and changes an f16 or bf16 only if the double is within 2^-25 of a tie.
template <class T>
T from_double(double value) {
  return from_float<T>(static_cast<float>(value));
}

// Sum of term(i) for i below `count`. Uses independent lanes, because a compensated sum is a chain of four dependent
// operations per element.
template <class Term>
float sum_of(std::int64_t count, Term&& term) {
  constexpr std::int64_t kLanes = 16;
  RunningSum lanes[kLanes];
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane].add(term(i + lane));
  for (; i < count; ++i) lanes[0].add(term(i));
  RunningSum total;
  for (const RunningSum& lane : lanes) total.add(lane.value());
  return total.value();
}

// A float buffer of this thread that only grows: the first launches of a shape allocate, later ones do not.
inline float* scratch(std::int64_t count) {
  thread_local std::vector<float> buffer;
  if (buffer.size() < static_cast<std::size_t>(count)) buffer.resize(static_cast<std::size_t>(count));
  return buffer.data();
}

inline constexpr unsigned kThreads = 256;

constexpr unsigned grid_of(std::int64_t blocks) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, std::numeric_limits<std::int32_t>::max()));
}
// Element-wise kernels: one element per thread up to about what a GPU holds, then 16 bytes each.
inline constexpr std::int64_t kOnePerThread = 256 * 1024;
constexpr Geometry element_geometry(std::int64_t count, ElementType type) {
  const auto per_thread = count <= kOnePerThread ? 1 : static_cast<std::int64_t>(16 / size_of(type));
  return {grid_of(divide_up(count, per_thread * kThreads)), kThreads};
}
constexpr Geometry element_geometry(const KernelShape& shape) { return element_geometry(shape.dims[0], shape.type); }
// Kernels over indexed rows: adjacent threads along a row, several rows per block if rows are short.
constexpr Geometry indexed_geometry(std::int64_t rows, std::int64_t width) {
  std::int64_t lanes = 1;
  while (lanes < kThreads && lanes < width) lanes *= 2;
  return {grid_of(divide_up(rows, kThreads / lanes)), kThreads};
}
// Row kernels: a block per row, wide enough for about four columns per thread.
constexpr Geometry row_geometry(std::int64_t rows, std::int64_t columns) {
  unsigned threads = 32;
  while (threads < 1024 && threads * 4 < columns) threads *= 2;
  return {grid_of(rows), threads};
}

}  // namespace weir
