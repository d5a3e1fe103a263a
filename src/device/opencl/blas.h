// Matrix products by CLBlast, opened at run time. Knows buffers and queues; no step.
#pragma once

#include "device/opencl/api.h"

#if WEIR_HAVE_OPENCL
#include <cstddef>
#include <string>

namespace weir {

// C = alpha * op(A) * op(B) + beta * C in fp32, all matrices row-major and dense; the matrices of a batch are
// contiguous. Offsets are in elements.
struct OpenclGemm {
  bool transposes_a = false, transposes_b = false;
  std::size_t m = 0, n = 0, k = 0, batch = 1;
  float alpha = 1, beta = 0;
  cl_mem a = nullptr, b = nullptr, c = nullptr;
  std::size_t a_offset = 0, b_offset = 0, c_offset = 0;
};

class OpenclBlas {
 public:
  // Opens the library on the first call; null if there is none. Lives as long as the program.
  static const OpenclBlas* open();

  // Returns an OpenCL error, or one of CLBlast's own. `event` may be null; it is that of the last kernel. The first
  // call for a device takes seconds.
  int gemm(const OpenclGemm& gemm, cl_command_queue queue, cl_event* event) const noexcept;
  // "1.5.3"; empty if not known.
  const std::string& version() const noexcept { return version_; }

 private:
  // Declared by hand, as in clblast_c.h since 1.3, so that no header is needed.
  using Sgemm = int(int layout, int a_transpose, int b_transpose, std::size_t m, std::size_t n, std::size_t k,
                    float alpha, cl_mem a, std::size_t a_offset, std::size_t a_ld, cl_mem b, std::size_t b_offset,
                    std::size_t b_ld, float beta, cl_mem c, std::size_t c_offset, std::size_t c_ld,
                    cl_command_queue* queue, cl_event* event);
  using SgemmStridedBatched = int(int layout, int a_transpose, int b_transpose, std::size_t m, std::size_t n,
                                  std::size_t k, float alpha, cl_mem a, std::size_t a_offset, std::size_t a_ld,
                                  std::size_t a_stride, cl_mem b, std::size_t b_offset, std::size_t b_ld,
                                  std::size_t b_stride, float beta, cl_mem c, std::size_t c_offset, std::size_t c_ld,
                                  std::size_t c_stride, std::size_t batch, cl_command_queue* queue, cl_event* event);

  Sgemm* sgemm_ = nullptr;
  SgemmStridedBatched* batched_ = nullptr;
  std::string version_;
};

}  // namespace weir
#endif
