#include "device/gpu/fp8_products.h"

#include <algorithm>

#include "device/gpu/compiler.h"

namespace weir {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;
constexpr unsigned kThreads = 256, kMostBlocks = 4096;

// The same scale and the same roundings as kernel/fp8.cpp: a power of two that brings the largest element below 448.
// Its struct is that of the header.
constexpr const char* kSource = R"(#include "weir/device.h"
struct Rounding {
  const weir_bf16* from;
  weir_fp8_e4m3* to;
  unsigned* largest;
  float* scale;
  long long rows, k, padded, batch, is_transposed;
};
extern "C" __global__ void weir_fp8_largest(const Rounding a) {
  const long long count = a.batch * a.rows * a.k, stride = (long long)gridDim.x * blockDim.x;
  unsigned largest = 0;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    const unsigned size = a.from[i].bits & 0x7fffu;
    if (size < 0x7f80u && size > largest) largest = size;
  }
  largest = __reduce_max_sync(0xffffffffu, largest);
  if (threadIdx.x % 32 == 0 && largest != 0) atomicMax(a.largest, largest);
}
template <class Index>
__device__ __forceinline__ void weir_round_all(const Rounding& a, const float scale) {
  const Index count = (Index)(a.batch * a.rows * a.padded), stride = (Index)gridDim.x * blockDim.x;
  const Index rows = (Index)a.rows, k = (Index)a.k, padded = (Index)a.padded;
  for (Index i = (Index)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    const Index line = i / padded, p = i - line * padded, matrix = line / rows, row = line - matrix * rows;
    const Index at = matrix * rows * k + (a.is_transposed != 0 ? p * rows + row : row * k + p);
    weir_bf16 element = {};
    if (p < k) element = a.from[at];
    const bool is_finite = (element.bits & 0x7fffu) < 0x7f80u;  // infinity becomes NaN, not the largest number
    a.to[i] = weir_narrow_to<weir_fp8_e4m3>(is_finite ? weir_widen(element) * scale : __uint_as_float(0x7fffffffu));
  }
}
extern "C" __global__ void weir_fp8_round(const Rounding a) {
  const unsigned largest = *a.largest;
  int power = largest == 0 ? 0 : 8 - ((int)(largest >> 7) - 127);
  power = power > 126 ? 126 : power < -126 ? -126 : power;
  float scale = __uint_as_float((unsigned)(power + 127) << 23);
  if (__uint_as_float(largest << 16) * scale > 448.0f) scale *= 0.5f;
  if (blockIdx.x == 0 && threadIdx.x == 0) *a.scale = 1.0f / scale;
  // Divisions of 32 bits take a fraction of the time; a bit is left for the last step past the end.
  if (a.batch * a.rows * a.padded < 1ll << 31)
    weir_round_all<unsigned>(a, scale);
  else
    weir_round_all<long long>(a, scale);
}
)";

}  // namespace

Fp8Products::~Fp8Products() {
  for (const Prepared& product : products_)
    if (product.plan != nullptr) library_->drop(product.plan);
  if (handle_ != nullptr) library_->destroy(handle_);
}

void Fp8Products::open() {
  const GpuApi& api = context_.api();
  std::string reason = "fp8 products are not supported on this vendor's GPUs";
  library_ = api.fp8 == nullptr ? nullptr : api.fp8(&reason);
  if (library_ == nullptr)
    reject_setting("precision", "fp8_e4m3", fmt::format("{}: {}", context_.device_name(), reason),
                   "Install cuBLASLt, which comes with cuBLAS, or use bf16.");
  Compilation done;
  const GpuSource source{.name = "fp8_products.cu", .text = kSource};
  find_largest_ = context_.regions().function(source, "weir_fp8_largest", done);
  round_ = find_largest_ == nullptr ? nullptr : context_.regions().function(source, "weir_fp8_round", done);
  if (round_ == nullptr)
    reject_setting(
        "precision", "fp8_e4m3",
        fmt::format("{}: the kernels that round to it cannot be compiled: {}", context_.device_name(), done.reason),
        "Install NVRTC, which comes with the CUDA toolkit, or use bf16.");
  if (const int result = library_->create(&handle_); result != 0)
    fail(fmt::format("{}: creating a cuBLASLt handle failed: {}", context_.device_name(), describe(result)));
}

GpuPointer Fp8Products::allocate(std::size_t bytes) {
  GpuPointer memory = 0;
  check(context_.api(), context_.api().memory_allocate(&memory, bytes), "allocating memory for operands in fp8");
  memory_.emplace_back(memory, GpuClose<GpuPointer, &GpuApi::memory_free>{&context_.api()});
  return memory;
}

std::size_t Fp8Products::add(const GpuGemm& gemm, GpuStream stream) {
  if (library_ == nullptr) open();
  GpuPointer& workspace = workspaces_[stream];
  if (workspace == 0) workspace = allocate(kWorkspaceBytes);
  const int padded = (gemm.k + 15) / 16 * 16;
  Prepared& product = products_.emplace_back();
  const auto operand = [&](Rounding& rounding, GpuPointer from, int rows, bool is_transposed) {
    const auto bytes =
        static_cast<std::size_t>(gemm.batch) * static_cast<std::size_t>(rows) * static_cast<std::size_t>(padded);
    rounding = {from,   allocate(bytes), allocate(sizeof(unsigned)), allocate(sizeof(float)), rows, gemm.k,
                padded, gemm.batch,      is_transposed ? 1 : 0};
  };
  operand(product.operands[0], gemm.a, gemm.m, gemm.transposes_a);   // stored as [k][m] if it is transposed
  operand(product.operands[1], gemm.b, gemm.n, !gemm.transposes_b);  // stored as [k][n] unless it is
  const auto& [a, b] = product.operands;
  const GpuFp8Product planned{.m = gemm.m,
                              .n = gemm.n,
                              .k = padded,
                              .batch = gemm.batch,
                              .alpha = gemm.alpha,
                              .beta = gemm.beta,
                              .a = a.to,
                              .b = b.to,
                              .a_scale = a.scale,
                              .b_scale = b.scale,
                              .c = gemm.c,
                              .workspace = workspace,
                              .workspace_bytes = kWorkspaceBytes};
  if (const int result = library_->plan(handle_, planned, &product.plan); result != 0)
    fail(fmt::format("{}: planning a product of fp8 ({} x {} x {}) failed: {}", context_.device_name(), gemm.m, gemm.n,
                     gemm.k, describe(result)));
  return products_.size() - 1;
}

int Fp8Products::round(const Rounding& operand, GpuStream stream) const noexcept {
  const GpuApi& api = context_.api();
  const long long count = operand.batch * operand.rows * operand.padded;
  const auto blocks = static_cast<unsigned>(std::min<long long>((count + kThreads - 1) / kThreads, kMostBlocks));
  void* parameters[] = {const_cast<Rounding*>(&operand)};
  int result = api.set_32(operand.largest, 0, 1, stream);
  for (const GpuFunction function : {find_largest_, round_})
    if (result == 0) result = api.launch(function, blocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr);
  return result;
}

int Fp8Products::launch(std::size_t number, GpuStream stream) const noexcept {
  const Prepared& product = products_[number];
  for (const Rounding& operand : product.operands)
    if (const int result = round(operand, stream); result != 0) return result;
  const int result = library_->run(product.plan, stream);
  return result == 0 ? 0 : result + kOffset;
}

}  // namespace weir
