#include "device/opencl/blas.h"

#if WEIR_HAVE_OPENCL
#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "base/vendor_library.h"

namespace weir {
namespace {

constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;

// The library does not report its version, but its file name does: libclblast.so.1.5.3
std::string version_of(const void* function) {
  Dl_info info{};
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return "";
  std::error_code error;
  const std::string file = std::filesystem::canonical(info.dli_fname, error).filename().string();
  const std::size_t at = file.find(".so.");
  return error || at == std::string::npos ? "" : file.substr(at + 4);
}

}  // namespace

const OpenclBlas* OpenclBlas::open() {
  static const OpenclBlas* const kBlas = []() -> const OpenclBlas* {
    VendorLibrary library({"libclblast.so.1", "libclblast.so"});
    static OpenclBlas blas;
    blas.sgemm_ = library.need("CLBlastSgemm");
    blas.batched_ = library.need("CLBlastSgemmStridedBatched");
    if (!library.is_open() || !library.missing().empty()) return nullptr;
    blas.version_ = version_of(reinterpret_cast<const void*>(blas.sgemm_));
    return &blas;
  }();
  return kBlas;
}

int OpenclBlas::gemm(const OpenclGemm& g, cl_command_queue queue, cl_event* event) const noexcept {
  const int a_order = g.transposes_a ? kTranspose : kNoTranspose, b_order = g.transposes_b ? kTranspose : kNoTranspose;
  const std::size_t a_ld = g.transposes_a ? g.m : g.k, b_ld = g.transposes_b ? g.k : g.n;
  if (g.batch == 1)
    return sgemm_(kRowMajor, a_order, b_order, g.m, g.n, g.k, g.alpha, g.a, g.a_offset, a_ld, g.b, g.b_offset, b_ld,
                  g.beta, g.c, g.c_offset, g.n, &queue, event);
  return batched_(kRowMajor, a_order, b_order, g.m, g.n, g.k, g.alpha, g.a, g.a_offset, a_ld, g.m * g.k, g.b,
                  g.b_offset, b_ld, g.k * g.n, g.beta, g.c, g.c_offset, g.n, g.m * g.n, g.batch, &queue, event);
}

}  // namespace weir
#endif
