#include "device/gpu/cublas.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "device/vendor_library.h"

namespace weir {
namespace {

// Declared here: a machine that compiles device code need not have the cuBLAS headers. Numbers of cublas_api.h and
// library_types.h, the same since CUDA 11.
constexpr int kRealF32 = 0, kRealF16 = 2, kRealBf16 = 14;
constexpr int kComputeF32 = 68, kComputeTf32 = 77;
constexpr int kPlain = 0, kTransposed = 1;
constexpr int kDefaultAlgorithm = -1;

struct Entries {
  int (*create)(GpuBlasHandle*) = nullptr;
  int (*destroy)(GpuBlasHandle) = nullptr;
  int (*set_stream)(GpuBlasHandle, GpuStream) = nullptr;
  int (*set_workspace)(GpuBlasHandle, void*, std::size_t) = nullptr;
  int (*gemm)(GpuBlasHandle, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int,
              const void*, void*, int, int, int, int) = nullptr;
  int (*gemm_batch)(GpuBlasHandle, int, int, int, int, int, const void*, const void*, int, int, long long, const void*,
                    int, int, long long, const void*, void*, int, int, long long, int, int, int) = nullptr;
  int (*version)(GpuBlasHandle, int*) = nullptr;
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
  const int compute = product.precision == Precision::tf32 ? kComputeTf32 : kComputeF32;
  // cuBLAS thinks in columns: a row-major C = A B is its C' = B' A', so the operands change places and nothing moves.
  const int stride_a = product.transposes_a ? product.m : product.k;
  const int stride_b = product.transposes_b ? product.k : product.n;
  const int order_a = product.transposes_a ? kTransposed : kPlain;
  const int order_b = product.transposes_b ? kTransposed : kPlain;
  const auto* const a = reinterpret_cast<const void*>(product.a);
  const auto* const b = reinterpret_cast<const void*>(product.b);
  auto* const c = reinterpret_cast<void*>(product.c);
  if (product.batch == 1)
    return g_entries.gemm(handle, order_b, order_a, product.n, product.m, product.k, &product.alpha, b, type, stride_b,
                          a, type, stride_a, &product.beta, c, type, product.n, compute, kDefaultAlgorithm);
  const long long m = product.m, n = product.n, k = product.k;
  return g_entries.gemm_batch(handle, order_b, order_a, product.n, product.m, product.k, &product.alpha, b, type,
                              stride_b, k * n, a, type, stride_a, m * k, &product.beta, c, type, product.n, m * n,
                              product.batch, compute, kDefaultAlgorithm);
}

std::string describe(int result) {
  return fmt::format("cuBLAS status {} ({})", result,
                     g_entries.status_string == nullptr ? "no text" : g_entries.status_string(result));
}

// The loader's own search first, then where the toolkit is usually installed.
std::vector<std::string> places() {
  std::vector<std::string> folders = {"/usr/local/cuda/lib64"};
  std::error_code error;
  for (const auto& target : std::filesystem::directory_iterator("/usr/local/cuda/targets", error))
    folders.push_back((target.path() / "lib").string());
  std::vector<std::string> names;
  for (const char* name : {"libcublas.so.13", "libcublas.so.12"}) names.emplace_back(name);
  for (const char* name : {"libcublas.so.13", "libcublas.so.12"})
    for (const std::string& folder : folders) names.push_back(folder + "/" + name);
  return names;
}

struct Opened {
  Opened() {
    VendorLibrary library(places());
    if (!library.is_open()) {
      reason = "cuBLAS was not found: " + library.error();
      return;
    }
    library.need(g_entries.create, "cublasCreate_v2");
    library.need(g_entries.destroy, "cublasDestroy_v2");
    library.need(g_entries.set_stream, "cublasSetStream_v2");
    library.need(g_entries.gemm, "cublasGemmEx");
    library.need(g_entries.gemm_batch, "cublasGemmStridedBatchedEx");
    library.want(g_entries.set_workspace, "cublasSetWorkspace_v2");
    library.want(g_entries.status_string, "cublasGetStatusString");
    if (!library.missing().empty()) {
      reason = "cuBLAS lacks " + library.missing();
      return;
    }
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

const GpuBlas* open_cublas(std::string* reason) {
  static const Opened opened;
  if (opened.is_complete) return &opened.blas;
  if (reason != nullptr) *reason = opened.reason;
  return nullptr;
}

}  // namespace weir
