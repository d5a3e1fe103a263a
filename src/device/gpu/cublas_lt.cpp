// cuBLASLt as the table's products of fp8. It takes them in one form alone ("TN"): both operands with the summed
// dimension innermost, whole multiples of 16 bytes long. Column-major as cuBLAS is: a row-major C = A B' is its
// C' = B A', so the operands are swapped. Declared here, because its header may not be installed.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "device/gpu/cuda_toolkit.h"
#include "device/gpu/libraries.h"

namespace weir {
namespace {

// Numbers of cublasLt.h, cublas_api.h and library_types.h, the same since CUDA 11.8.
constexpr int kComputeF32 = 68, kRealF32 = 0, kRealBf16 = 14, kRealE4m3 = 28;
constexpr int kTransposed = 1, kUntransposed = 0;
constexpr int kNoAlgorithm = 15;
constexpr int kUnaligned = 1'000;              // ours
constexpr std::uint32_t kLeastAlignment = 16;  // of fp8 matrices
enum DescriptionValue { kTransposesA = 3, kTransposesB = 4, kScaleOfA = 17, kScaleOfB = 18 };
enum LayoutValue { kBatchCount = 5, kBatchStride = 6 };
enum PreferenceValue { kWorkspaceLimit = 1, kAlignmentOfA = 5, kAlignmentOfB, kAlignmentOfC, kAlignmentOfD };

struct Algorithm {
  std::uint64_t data[8];
};
struct Found {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Found) == 96);

struct CublasLt : VendorLibrary {
  CublasLt() : VendorLibrary(toolkit_places(std::vector<std::string>{"libcublasLt.so.13", "libcublasLt.so.12"})) {}

  int (*create)(void** handle) = need("cublasLtCreate");
  int (*destroy)(void* handle) = need("cublasLtDestroy");
  int (*description_create)(void** made, int compute, int scale) = need("cublasLtMatmulDescCreate");
  int (*description_destroy)(void* description) = need("cublasLtMatmulDescDestroy");
  int (*description_set)(void* description, int attribute, const void* value,
                         std::size_t bytes) = need("cublasLtMatmulDescSetAttribute");
  int (*layout_create)(void** made, int type, std::uint64_t rows, std::uint64_t columns,
                       std::int64_t stride) = need("cublasLtMatrixLayoutCreate");
  int (*layout_destroy)(void* layout) = need("cublasLtMatrixLayoutDestroy");
  int (*layout_set)(void* layout, int attribute, const void* value,
                    std::size_t bytes) = need("cublasLtMatrixLayoutSetAttribute");
  int (*preference_create)(void** made) = need("cublasLtMatmulPreferenceCreate");
  int (*preference_destroy)(void* preference) = need("cublasLtMatmulPreferenceDestroy");
  int (*preference_set)(void* preference, int attribute, const void* value,
                        std::size_t bytes) = need("cublasLtMatmulPreferenceSetAttribute");
  int (*choose)(void* handle, void* description, void* a, void* b, void* c, void* d, void* preference, int wanted,
                Found* found, int* count) = need("cublasLtMatmulAlgoGetHeuristic");
  int (*multiply)(void* handle, void* description, const void* alpha, const void* a, void* a_layout, const void* b,
                  void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                  const Algorithm* algorithm, void* workspace, std::size_t workspace_bytes,
                  GpuStream stream) = need("cublasLtMatmul");
};
const CublasLt* g_cublas_lt = nullptr;  // written once, by fill()

// In bytes, as far as the library cares. Without it, the library assumes 256 and may choose what faults.
std::uint32_t alignment_of(GpuPointer address) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(256, address & (~std::uint64_t{address} + 1)));
}
const void* pointer(GpuPointer address) { return reinterpret_cast<const void*>(address); }

// Everything about a product that does not change from launch to launch.
struct Plan {
  ~Plan() {
    for (void* const layout : {a, b, c})
      if (layout != nullptr) g_cublas_lt->layout_destroy(layout);
    if (description != nullptr) g_cublas_lt->description_destroy(description);
  }
  int make(void* its_handle, const GpuFp8Product& its_product) {
    const CublasLt& lt = *g_cublas_lt;
    handle = its_handle;
    product = its_product;
    for (const GpuPointer operand : {product.a, product.b, product.c})
      if (alignment_of(operand) < kLeastAlignment) return kUnaligned;
    int result = lt.description_create(&description, kComputeF32, kRealF32);
    const auto describe = [&](int attribute, const auto& value) {
      if (result == 0) result = lt.description_set(description, attribute, &value, sizeof value);
    };
    // The library's A is our B, and the other way round.
    const std::int32_t transposed = kTransposed, plain = kUntransposed;
    describe(kTransposesA, transposed);
    describe(kTransposesB, plain);
    describe(kScaleOfA, pointer(product.b_scale));
    describe(kScaleOfB, pointer(product.a_scale));
    const auto lay_out = [&](void** layout, int type, std::int64_t rows, std::int64_t columns) {
      if (result == 0)
        result =
            lt.layout_create(layout, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), rows);
      const std::int32_t count = product.batch;
      const std::int64_t stride = rows * columns;
      if (result == 0 && count > 1) result = lt.layout_set(*layout, kBatchCount, &count, sizeof count);
      if (result == 0 && count > 1) result = lt.layout_set(*layout, kBatchStride, &stride, sizeof stride);
    };
    lay_out(&a, kRealE4m3, product.k, product.n);
    lay_out(&b, kRealE4m3, product.k, product.m);
    lay_out(&c, kRealBf16, product.n, product.m);
    return result == 0 ? choose() : result;
  }
  int choose() {
    const CublasLt& lt = *g_cublas_lt;
    void* preference = nullptr;
    int result = lt.preference_create(&preference);
    if (result != 0) return result;
    const auto prefer = [&](int attribute, const auto& value) {
      if (result == 0) result = lt.preference_set(preference, attribute, &value, sizeof value);
    };
    prefer(kWorkspaceLimit, product.workspace_bytes);
    prefer(kAlignmentOfA, alignment_of(product.b));
    prefer(kAlignmentOfB, alignment_of(product.a));
    prefer(kAlignmentOfC, alignment_of(product.c));
    prefer(kAlignmentOfD, alignment_of(product.c));
    Found found{};
    int count = 0;
    if (result == 0) result = lt.choose(handle, description, a, b, c, c, preference, 1, &found, &count);
    lt.preference_destroy(preference);
    if (result == 0 && count == 0) result = kNoAlgorithm;
    if (result == 0) result = found.state;
    algorithm = found.algorithm;
    return result;
  }

  void* handle = nullptr;
  GpuFp8Product product;
  void *description = nullptr, *a = nullptr, *b = nullptr, *c = nullptr;
  Algorithm algorithm{};
};

std::string fill_fp8(GpuFp8& fp8) {
  g_cublas_lt = new CublasLt;
  fp8.create = g_cublas_lt->create;
  fp8.destroy = g_cublas_lt->destroy;
  fp8.plan = [](void* handle, const GpuFp8Product& product, void** made) {
    auto plan = std::make_unique<Plan>();
    const int result = plan->make(handle, product);
    if (result == 0) *made = plan.release();
    return result;
  };
  fp8.drop = [](void* plan) { delete static_cast<Plan*>(plan); };
  fp8.run = [](const void* plan, GpuStream stream) {
    const auto& [handle, product, description, a, b, c, algorithm] = *static_cast<const Plan*>(plan);
    return g_cublas_lt->multiply(handle, description, &product.alpha, pointer(product.b), a, pointer(product.a), b,
                                 &product.beta, pointer(product.c), c, const_cast<void*>(pointer(product.c)), c,
                                 &algorithm, const_cast<void*>(pointer(product.workspace)), product.workspace_bytes,
                                 stream);
  };
  fp8.describe = [](int result) {
    if (result == kUnaligned) return std::string("operands of fp8 products begin at multiples of 16 bytes");
    if (result == kNoAlgorithm) return std::string("cuBLASLt has no algorithm for this product of fp8");
    return fmt::format("cuBLASLt status {}", result);
  };
  return g_cublas_lt->shortfall("cuBLASLt");
}

}  // namespace

const GpuFp8* open_cublas_lt(std::string* reason) {
  static const Opened<GpuFp8> kOpened(fill_fp8);
  return kOpened.get(reason);
}

}  // namespace weir
