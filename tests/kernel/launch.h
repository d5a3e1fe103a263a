// One launch with operands of its own, for tests of the catalogue. Buffers hold exactly the extents, so that a
// sanitizer sees a body that goes past them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/random.h"

namespace weir {

inline constexpr ElementType kFloats[] = {ElementType::f32, ElementType::f16, ElementType::bf16};
constexpr Precision precision_of(ElementType type) {
  return type == ElementType::f16 ? Precision::fp16 : type == ElementType::bf16 ? Precision::bf16 : Precision::fp32;
}

inline double value_at(const void* data, ElementType type, std::size_t index) {
  if (type == ElementType::i32) return static_cast<const std::int32_t*>(data)[index];
  return with_float_type(type, [&]<class T>(T*) -> double { return to_float(static_cast<const T*>(data)[index]); });
}
inline void set_value(void* data, ElementType type, std::size_t index, double value) {
  if (type == ElementType::i32) {
    static_cast<std::int32_t*>(data)[index] = static_cast<std::int32_t>(value);
    return;
  }
  with_float_type(type, [&]<class T>(T*) { static_cast<T*>(data)[index] = from_float<T>(static_cast<float>(value)); });
}

class Launch {
 public:
  Launch(std::string_view name, const KernelShape& shape)
      : kernel_(&kernel(kernel_named(name))), call_{.shape = shape} {
    const auto extents = kernel_->extents(shape);
    const std::string_view modes = kernel_->operands(shape);
    for (std::size_t i = 0; i < modes.size(); ++i) {
      counts_.push_back(static_cast<std::size_t>(extents[i]));
      types_.push_back(kernel_->type_of(shape, i));
      storage_.push_back(std::make_unique<std::byte[]>(size_bytes(i)));
      call_.operands[i] = storage_.back().get();
      fill(i, modes[i] == 'w');
      if (modes[i] != 'r') outputs_.push_back(i);
    }
  }
  Launch(const Launch& other) : Launch(other.kernel_->name, other.call_.shape) {
    for (std::size_t i = 0; i < storage_.size(); ++i)
      std::memcpy(storage_[i].get(), other.storage_[i].get(), size_bytes(i));
  }

  const Kernel& body() const { return *kernel_; }
  KernelCall& call() { return call_; }
  std::size_t count(std::size_t i) const { return counts_[i]; }
  std::size_t size_bytes(std::size_t i) const { return counts_[i] * size_of(types_[i]); }
  std::span<const std::size_t> outputs() const { return outputs_; }  // every operand that a body writes
  double get(std::size_t i, std::size_t index) const { return value_at(storage_[i].get(), types_[i], index); }
  void set(std::size_t i, std::size_t index, double value) { set_value(storage_[i].get(), types_[i], index, value); }
  std::byte* bytes(std::size_t i) { return storage_[i].get(); }

  // All blocks but `skipped`, in an order that depends on `seed`.
  void run(unsigned seed, std::uint32_t skipped = std::numeric_limits<std::uint32_t>::max()) {
    std::vector<std::uint32_t> order(kernel_->blocks(call_.shape));
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    for (std::uint32_t i = static_cast<std::uint32_t>(order.size()); i > 1; --i)
      std::swap(order[i - 1], order[random_bits(seed, i) % i]);
    for (const std::uint32_t block : order)
      if (block != skipped) kernel_->run_block(call_, block);
  }

  // Largest |ours - theirs| / max(|theirs|, rms of theirs) over each output: what `tolerance` is about.
  double error_against(const Launch& reference) const {
    double worst = 0;
    for (const std::size_t i : outputs_) worst = std::max(worst, error_against(reference, i));
    return worst;
  }
  double error_against(const Launch& reference, std::size_t i) const {
    const double rms = reference.rms(i);
    double worst = 0;
    for (std::size_t e = 0; e < counts_[i]; ++e) {
      const double ours = get(i, e), theirs = reference.get(i, e);
      if (ours == theirs) continue;
      const double error = std::fabs(ours - theirs) / std::max(std::fabs(theirs), rms);
      if (!(error <= worst)) worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    }
    return worst;
  }
  double rms(std::size_t i) const {
    double squares = 0;
    for (std::size_t e = 0; e < counts_[i]; ++e) squares += std::pow(get(i, e), 2);
    return std::sqrt(squares / static_cast<double>(counts_[i]));
  }

 private:
  void fill(std::size_t i, bool is_output) {
    const bool is_index = i == 1 && (kernel_->name == "gather" || kernel_->name == "scatter");
    if (is_index) return permute(i);
    const double poison = types_[i] == ElementType::i32 ? -1 : std::nan("");
    const float scale = types_[i] == ElementType::i32 ? 1000.0f : 2.0f;
    for (std::size_t e = 0; e < counts_[i]; ++e) {
      set(i, e, is_output ? poison : sensible(i, e, random_uniform(17 + i, e, scale, 0.25f)));
    }
  }
  // What data can be: squares and weights are not negative, targets are between 0 and 1, steps are counted from 1.
  double sensible(std::size_t i, std::size_t e, double value) const {
    const std::string_view name = kernel_->name;
    const bool is_positive = ((name == "adam" || name == "adamw") && i == 3) || (name == "clip" && i == 0) ||
                             (name == "weighted_bce" && i == 2);
    if (is_positive) return std::fabs(value);
    if (name == "weighted_bce" && i == 1) return std::fmod(std::fabs(value), 1.0);
    if (name == "adamw" && i == 4) return e == 0 ? 3 : e == 1 ? 0.75 : 1e-2;
    // Some rows are named several times, and some indices are outside on either side.
    if (name == "embedding_grad" && i == 0)
      return static_cast<double>(random_bits(3, e) % static_cast<std::uint64_t>(call_.shape.dims[2] + 2)) - 1;
    return value;
  }
  // Distinct indices, some of them outside on either side.
  void permute(std::size_t i) {
    const auto rows = static_cast<std::uint32_t>(call_.shape.dims[2]);
    std::vector<std::int32_t> all;
    for (std::uint32_t row = 0; row < rows; ++row) all.push_back(static_cast<std::int32_t>(row));
    for (std::uint32_t row = rows; row > 1; --row) std::swap(all[row - 1], all[random_bits(3, row) % row]);
    for (std::size_t e = 0; e < counts_[i]; ++e) {
      const auto outside = static_cast<std::int32_t>(rows + e);
      set(i, e, e % 7 == 3 ? -static_cast<std::int32_t>(e) : e < all.size() ? all[e] : outside);
    }
  }

  const Kernel* kernel_;
  KernelCall call_;
  std::vector<std::size_t> counts_;
  std::vector<ElementType> types_;
  std::vector<std::size_t> outputs_;
  std::vector<std::unique_ptr<std::byte[]>> storage_;
};

}  // namespace weir
