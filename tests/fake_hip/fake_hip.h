// What the fake HIP runtime exports besides HIP: for its BLAS, and for tests.
#pragma once

#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#include <hip/hip_runtime_api.h>

// C = alpha * op(A) * op(B) + beta * C, row-major and dense, a batch one after the other. `type` as rocblas_datatype.
struct FakeHipGemm {
  int type;
  int transposes_a, transposes_b;
  int m, n, k, batch;
  float alpha, beta;
  const void* a;
  const void* b;
  void* c;
};

extern "C" {
hipError_t weir_fake_hip_gemm(hipStream_t stream, const FakeHipGemm* gemm);
// Starts over with other settings ("lost_after=100,memory=1048576"; empty: the environment's): nothing is lost any
// more, and the log is empty. Only while nothing runs.
void weir_fake_hip_configure(const char* settings);
// One line per stream made, graph launched and so on; lives until the calling thread asks again.
const char* weir_fake_hip_log();
// Things made and not given back, in words; empty if there are none. Lives as long as the log.
const char* weir_fake_hip_leaks();
}
