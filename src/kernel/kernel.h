// The kernel catalogue's entry: name, cost, operands, CPU body, reference. Knows no device and no stream.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernel/arguments.h"
#include "kernel/cost.h"
#include "kernel/numeric.h"

namespace weir {

// Everything about one launch except the data: cost, geometry and bodies depend on it.
struct KernelShape {
  ElementType type = ElementType::f32;
  Precision precision = Precision::fp32;
  std::array<std::int64_t, kMaxDims> dims{};
  std::array<float, kMaxScalars> scalars{};

  // A dimension as a double, for costs.
  constexpr double dim(std::size_t index) const { return static_cast<double>(dims[index]); }
};

using Extents = std::array<std::int64_t, kMaxOperands>;

// One launch as seen by a host body.
struct KernelCall {
  KernelShape shape;
  std::array<void*, kMaxOperands> operands{};
};

// Blocks and threads of a launch on a GPU.
struct Geometry {
  unsigned grid = 1;
  unsigned block = 1;
};

// How far a result is from the reference, relative to the largest reference value nearby, and how far it may be.
struct Verification {
  double error = 0;      // largest relative error found
  double tolerance = 0;  // allowed by the kernel's arithmetic
  std::uint64_t element = 0;
};

// What determines how long a launch takes.
enum class Lasts : std::uint8_t {
  by_work,     // the amount of work
  by_time,     // dims[0], in ns
  until_flag,  // at most dims[0]: it ends when the host sets the flag in its first operand
  by_units,    // a job of units, see toil.h
};

struct Kernel {
  std::string_view name;
  std::string_view summary;
  // One letter per operand: r reads, w writes all of it, p writes a part that depends on the data, u reads and writes.
  std::string_view (*operands)(const KernelShape&);
  // Elements of each operand that a launch touches; zero if the extent depends on the data.
  Extents (*extents)(const KernelShape&);
  Cost (*cost)(const KernelShape&);
  // CPU device: a launch is split into blocks that run independently, in any order, on any worker.
  std::uint32_t (*blocks)(const KernelShape&);
  void (*run_block)(const KernelCall&, std::uint32_t block);
  // The expected result: accumulates in double, written independently of `run_block`.
  void (*reference)(const KernelCall&);
  // Relative error that a correct implementation may have against `reference`; by default none.
  double (*tolerance)(const KernelShape&) = [](const KernelShape&) { return 0.0; };
  // The size of results whose terms do not cancel: errors are relative to at least this. Null: use the size of the
  // results.
  double (*scale)(const KernelCall&) = nullptr;
  // GPU launch geometry; null if a vendor library does the work (gemm).
  Geometry (*geometry)(const KernelShape&) = nullptr;
  // Name of a leaner device body for this shape, which takes ElementArguments; empty: the general one.
  std::string_view (*lean_body)(const KernelShape&) = nullptr;
  // Checks the outputs of `call` against its inputs without recomputing everything; null if that is not possible.
  Verification (*verify)(const KernelCall& call) = nullptr;
  // One letter per operand: t the shape's type, i i32, f f32. Empty: all have the shape's type.
  std::string_view types = {};
  bool is_host_only = false;  // no device body: only hosts run it
  // Measures but computes nothing: its operands are host memory that both sides use while it runs, and its output has
  // no reference (null).
  bool is_probe = false;
  // For probes, one letter per operand: h host memory, a any. Empty: all are in host memory.
  std::string_view places = {};
  Lasts lasts = Lasts::by_work;

  ElementType type_of(const KernelShape& shape, std::size_t operand) const {
    const char letter = operand < types.size() ? types[operand] : 't';
    return letter == 'i' ? ElementType::i32 : letter == 'f' ? ElementType::f32 : shape.type;
  }
};

enum class KernelId : std::uint16_t {};

std::span<const Kernel> kernels();
const Kernel& kernel(KernelId id);
// Rejects an unknown name with a suggestion.
KernelId kernel_named(std::string_view name);

}  // namespace weir
