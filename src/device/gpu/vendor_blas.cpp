// cuBLAS and rocBLAS as the table's matrix products. Both are column-major: a row-major C = A B is their C' = B' A', so
// the operands are swapped and no data moves. Declared here, because their headers may not be installed.
#include <fmt/format.h>

#include <cstdint>

#include "device/gpu/cuda_toolkit.h"
#include "device/gpu/libraries.h"

namespace weir {
namespace {

// A product in a library's terms.
struct Product {
  template <class Library>
  Product(const GpuGemm& gemm, const Library&)
      : type(gemm.type == ElementType::f16    ? Library::kRealF16
             : gemm.type == ElementType::bf16 ? Library::kRealBf16
                                              : Library::kRealF32),
        order_a(gemm.transposes_a ? Library::kTransposed : Library::kPlain),
        order_b(gemm.transposes_b ? Library::kTransposed : Library::kPlain),
        stride_a(gemm.transposes_a ? gemm.m : gemm.k),
        stride_b(gemm.transposes_b ? gemm.k : gemm.n),
        a(reinterpret_cast<const void*>(gemm.a)),
        b(reinterpret_cast<const void*>(gemm.b)),
        c(reinterpret_cast<void*>(gemm.c)),
        size_a(std::int64_t{gemm.m} * gemm.k),
        size_b(std::int64_t{gemm.k} * gemm.n),
        size_c(std::int64_t{gemm.m} * gemm.n) {}
  int type, order_a, order_b, stride_a, stride_b;
  const void *a, *b;
  void* c;
  std::int64_t size_a, size_b, size_c;
};

// Numbers of cublas_api.h and library_types.h, the same since CUDA 11.
struct Cublas : VendorLibrary {
  static constexpr const char* kTitle = "cuBLAS";
  static constexpr int kRealF32 = 0, kRealF16 = 2, kRealBf16 = 14;
  static constexpr int kComputeF32 = 68, kComputeTf32 = 77;
  static constexpr int kPlain = 0, kTransposed = 1;
  static constexpr int kDefaultAlgorithm = -1;

  Cublas() : VendorLibrary(toolkit_places(std::vector<std::string>{"libcublas.so.13", "libcublas.so.12"})) {}
  std::string reason() const { return shortfall(kTitle); }
  std::string version() const { return ""; }

  int gemm(GpuBlasHandle handle, const GpuGemm& gemm) const {
    const Product p(gemm, *this);
    const int compute = gemm.precision == Precision::tf32 ? kComputeTf32 : kComputeF32;
    if (gemm.batch == 1)
      return gemm_single(handle, p.order_b, p.order_a, gemm.n, gemm.m, gemm.k, &gemm.alpha, p.b, p.type, p.stride_b,
                         p.a, p.type, p.stride_a, &gemm.beta, p.c, p.type, gemm.n, compute, kDefaultAlgorithm);
    return gemm_batch(handle, p.order_b, p.order_a, gemm.n, gemm.m, gemm.k, &gemm.alpha, p.b, p.type, p.stride_b,
                      p.size_b, p.a, p.type, p.stride_a, p.size_a, &gemm.beta, p.c, p.type, gemm.n, p.size_c,
                      gemm.batch, compute, kDefaultAlgorithm);
  }

  int (*create)(GpuBlasHandle*) = need("cublasCreate_v2");
  int (*destroy)(GpuBlasHandle) = need("cublasDestroy_v2");
  int (*set_stream)(GpuBlasHandle, GpuStream) = need("cublasSetStream_v2");
  int (*gemm_single)(GpuBlasHandle, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int,
                     const void*, void*, int, int, int, int) = need("cublasGemmEx");
  int (*gemm_batch)(GpuBlasHandle, int, int, int, int, int, const void*, const void*, int, int, long long, const void*,
                    int, int, long long, const void*, void*, int, int, long long, int, int,
                    int) = need("cublasGemmStridedBatchedEx");
  int (*set_workspace)(GpuBlasHandle, void*, std::size_t) = want("cublasSetWorkspace_v2");
  const char* (*status_string)(int) = want("cublasGetStatusString");
};

// Numbers of rocblas-types.h, the same in ROCm 5 to 7.
struct Rocblas : VendorLibrary {
  static constexpr const char* kTitle = "rocBLAS";
  static constexpr int kRealF16 = 150, kRealF32 = 151, kRealBf16 = 168;
  static constexpr int kPlain = 111, kTransposed = 112;
  static constexpr int kStandardAlgorithm = 0;

  Rocblas()
      : VendorLibrary(library_places({"", "/opt/rocm/lib/"},
                                     {"librocblas.so.5", "librocblas.so.4", "librocblas.so.3", "librocblas.so.0"})) {}
  std::string reason() const { return shortfall(kTitle, name()); }
  std::string version() const {
    char text[256] = {};
    return version_string != nullptr && version_string(text, sizeof text) == 0 ? fmt::format("rocBLAS {}", text) : "";
  }

  int gemm(GpuBlasHandle handle, const GpuGemm& gemm) const {
    const Product p(gemm, *this);
    return gemm_batch(handle, p.order_b, p.order_a, gemm.n, gemm.m, gemm.k, &gemm.alpha, p.b, p.type, p.stride_b,
                      p.size_b, p.a, p.type, p.stride_a, p.size_a, &gemm.beta, p.c, p.type, gemm.n, p.size_c, p.c,
                      p.type, gemm.n, p.size_c, gemm.batch, kRealF32, kStandardAlgorithm, 0, 0);
  }

  int (*create)(GpuBlasHandle*) = need("rocblas_create_handle");
  int (*destroy)(GpuBlasHandle) = need("rocblas_destroy_handle");
  int (*set_stream)(GpuBlasHandle, GpuStream) = need("rocblas_set_stream");
  // D = alpha op(A) op(B) + beta C with separate C and D, each with type, leading dimension and stride.
  int (*gemm_batch)(GpuBlasHandle, int, int, int, int, int, const void*, const void*, int, int, std::int64_t,
                    const void*, int, int, std::int64_t, const void*, const void*, int, int, std::int64_t, void*, int,
                    int, std::int64_t, int, int, int, std::int32_t,
                    std::uint32_t) = need("rocblas_gemm_strided_batched_ex");
  int (*set_workspace)(GpuBlasHandle, void*, std::size_t) = want("rocblas_set_workspace");
  int (*version_string)(char*, std::size_t) = want("rocblas_get_version_string");
  const char* (*status_string)(int) = want("rocblas_status_to_string");
};

template <class Library>
const Library* g_library = nullptr;  // written once, by fill_blas()

template <class Library>
std::string fill_blas(GpuBlas& blas) {
  const Library& library = *(g_library<Library> = new Library);
  blas.create = library.create;
  blas.destroy = library.destroy;
  blas.set_stream = library.set_stream;
  if (library.set_workspace != nullptr)
    blas.set_workspace = [](GpuBlasHandle handle, GpuPointer workspace, std::size_t bytes) {
      return g_library<Library>->set_workspace(handle, reinterpret_cast<void*>(workspace), bytes);
    };
  blas.gemm = [](GpuBlasHandle handle, const GpuGemm& gemm) { return g_library<Library>->gemm(handle, gemm); };
  blas.describe = [](int result) {
    const auto text = g_library<Library>->status_string;
    return fmt::format("{} status {} ({})", Library::kTitle, result, text == nullptr ? "no text" : text(result));
  };
  std::string reason = library.reason();
  if (reason.empty()) blas.version = library.version();
  return reason;
}

}  // namespace

const GpuBlas* open_cublas(std::string* reason) {
  static const Opened<GpuBlas> kOpened(fill_blas<Cublas>);
  return kOpened.get(reason);
}
const GpuBlas* open_rocblas(std::string* reason) {
  static const Opened<GpuBlas> kOpened(fill_blas<Rocblas>);
  return kOpened.get(reason);
}

}  // namespace weir
