#include "device/gpu/rocblas.h"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "device/vendor_library.h"

namespace weir {
namespace {

// Declared here: distributions that have HIP often lack rocBLAS. Numbers of rocblas-types.h, the same in ROCm 5 to 7.
constexpr int kRealF16 = 150, kRealF32 = 151, kRealBf16 = 168;
constexpr int kPlain = 111, kTransposed = 112;
constexpr int kStandardAlgorithm = 0;

struct Entries {
  int (*create)(GpuBlasHandle*) = nullptr;
  int (*destroy)(GpuBlasHandle) = nullptr;
  int (*set_stream)(GpuBlasHandle, GpuStream) = nullptr;
  int (*set_workspace)(GpuBlasHandle, void*, std::size_t) = nullptr;
  // D = alpha op(A) op(B) + beta C with separate C and D, each with type, leading dimension and stride.
  int (*gemm_batch)(GpuBlasHandle, int, int, int, int, int, const void*, const void*, int, int, std::int64_t,
                    const void*, int, int, std::int64_t, const void*, const void*, int, int, std::int64_t, void*, int,
                    int, std::int64_t, int, int, int, std::int32_t, std::uint32_t) = nullptr;
  int (*version)(char*, std::size_t) = nullptr;
  const char* (*status_string)(int) = nullptr;
};

Entries g_entries;  // written once, by Opened's constructor

int set_workspace(GpuBlasHandle handle, GpuPointer workspace, std::size_t bytes) {
  return g_entries.set_workspace(handle, reinterpret_cast<void*>(workspace), bytes);
}

int gemm(GpuBlasHandle handle, const GpuGemm& product) {
  const int type = product.type == ElementType::f16    ? kRealF16
                   : product.type == ElementType::bf16 ? kRealBf16
                                                       : kRealF32;
  // Columns first, as cuBLAS: a row-major C = A B is its C' = B' A'.
  const int stride_a = product.transposes_a ? product.m : product.k;
  const int stride_b = product.transposes_b ? product.k : product.n;
  const std::int64_t m = product.m, n = product.n, k = product.k;
  auto* const c = reinterpret_cast<void*>(product.c);
  return g_entries.gemm_batch(
      handle, product.transposes_b ? kTransposed : kPlain, product.transposes_a ? kTransposed : kPlain, product.n,
      product.m, product.k, &product.alpha, reinterpret_cast<const void*>(product.b), type, stride_b, k * n,
      reinterpret_cast<const void*>(product.a), type, stride_a, m * k, &product.beta, c, type, product.n, m * n, c,
      type, product.n, m * n, product.batch, kRealF32, kStandardAlgorithm, 0, 0);
}

std::string describe(int result) {
  return fmt::format("rocBLAS status {} ({})", result,
                     g_entries.status_string == nullptr ? "no text" : g_entries.status_string(result));
}

std::vector<std::string> places() {
  std::vector<std::string> names;
  for (const char* folder : {"", "/opt/rocm/lib/"})
    for (const char* name : {"librocblas.so.5", "librocblas.so.4", "librocblas.so.3", "librocblas.so.0"})
      names.push_back(std::string(folder) + name);
  return names;
}

struct Opened {
  Opened() {
    VendorLibrary library(places());
    if (!library.is_open()) {
      reason = "rocBLAS was not found: " + library.error();
      return;
    }
    library.need(g_entries.create, "rocblas_create_handle");
    library.need(g_entries.destroy, "rocblas_destroy_handle");
    library.need(g_entries.set_stream, "rocblas_set_stream");
    library.need(g_entries.gemm_batch, "rocblas_gemm_strided_batched_ex");
    library.want(g_entries.set_workspace, "rocblas_set_workspace");
    library.want(g_entries.version, "rocblas_get_version_string");
    library.want(g_entries.status_string, "rocblas_status_to_string");
    if (!library.missing().empty()) {
      reason = fmt::format("{} lacks {}", library.name(), library.missing());
      return;
    }
    char version[256] = {};
    if (g_entries.version != nullptr && g_entries.version(version, sizeof version) == 0)
      blas.version = fmt::format("rocBLAS {}", version);
    blas.create = g_entries.create;
    blas.destroy = g_entries.destroy;
    blas.set_stream = g_entries.set_stream;
    blas.set_workspace = g_entries.set_workspace == nullptr ? nullptr : set_workspace;
    blas.gemm = gemm;
    blas.describe = describe;
    is_complete = true;
  }
  GpuBlas blas{};
  std::string reason;
  bool is_complete = false;
};

}  // namespace

const GpuBlas* open_rocblas(std::string* reason) {
  static const Opened opened;
  if (opened.is_complete) return &opened.blas;
  if (reason != nullptr) *reason = opened.reason;
  return nullptr;
}

}  // namespace weir
