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

// What a profiler is told of: the calls that submit, on the thread that makes them, and what the queues ran.
struct FakeHipWork {
  enum Kind : int { kernel, copy, other } kind;
  const char* name;  // of a kernel; lives as long as the program
  unsigned long long bytes;
};
struct FakeHipObserver {
  void (*call_began)(const char* name);  // a literal
  void (*call_ended)();
  // Called within a call; returns what is handed to ran(). Streams and queues are numbered as they were made.
  unsigned long long (*submitted)(const FakeHipWork* work, int stream, int queue);
  // By the queue's thread, on the host's monotonic clock.
  void (*ran)(unsigned long long work, long long started_ns, long long ended_ns);
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
