// Matrix products of fp8 on a GPU: the operands are scaled and rounded by kernels that are compiled at run time, and a
// library multiplies them. Knows no step.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "device/gpu/context.h"

namespace weir {

class Fp8Products {
 public:
  explicit Fp8Products(PrimaryContext& context) : context_(context) {}
  ~Fp8Products();
  Fp8Products(const Fp8Products&) = delete;
  Fp8Products& operator=(const Fp8Products&) = delete;

  // Plans a product of bf16 storage that rounds its operands (rounds_to_fp8()), with memory of its own for the rounded
  // ones. Rejects a machine that lacks the library or the compiler. Returns the product's number.
  std::size_t add(const GpuGemm& gemm, GpuStream stream);
  int launch(std::size_t number, GpuStream stream) const noexcept;
  // Of a result of launch(), less kOffset.
  std::string describe(int result) const { return library_->describe(result); }
  // Results of the library are distinguished from those of the driver by this.
  static constexpr int kOffset = 3'000'000;

 private:
  // Parameters of both kernels; `from` is read as [batch][rows][k], or transposed as [batch][k][rows].
  struct Rounding {
    GpuPointer from = 0, to = 0, largest = 0, scale = 0;
    long long rows = 0, k = 0, padded = 0, batch = 0, is_transposed = 0;
  };
  static_assert(sizeof(Rounding) == 9 * 8);  // the kernels' source has it again
  struct Prepared {
    Rounding operands[2];
    void* plan = nullptr;
  };
  void open();
  GpuPointer allocate(std::size_t bytes);
  int round(const Rounding& operand, GpuStream stream) const noexcept;

  PrimaryContext& context_;
  const GpuFp8* library_ = nullptr;
  void* handle_ = nullptr;
  GpuFunction find_largest_ = nullptr, round_ = nullptr;
  std::vector<GpuMemoryOwner> memory_;
  std::map<GpuStream, GpuPointer> workspaces_;  // one for all products of a stream, which run one after the other
  std::vector<Prepared> products_;
};

}  // namespace weir
