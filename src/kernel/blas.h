// Matrix products by OpenBLAS, which is opened when the first one is planned: linked, it would start a thread per core
// and take 70 MB of address space in every command. Knows no kernel.
#pragma once

#include <cstdint>

namespace weir {

// A factor as it is stored, row by row: its first element, and the distance between rows.
template <class Number>
struct Factor {
  const Number* data;
  std::int64_t stride;
  bool is_transposed = false;
};

// Opens the library and keeps it to one thread: bodies, references and verifications run on all cores already, and its
// own threads would compete with them: so two workers reach 42, 98 and 101 GFLOP/s at n = 64, 256 and 512 (2
// Neoverse-V1 cores, by 2026-11). Throws where it is missing or has no room. Whoever plans products calls it, because
// those who run them cannot fail.
void open_blas();

// C = alpha * op(A) op(B) + beta * C on this thread; C is [m,n].
void blas_multiply(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const Factor<float>& a,
                   const Factor<float>& b, float beta, float* c, std::int64_t stride);
void blas_multiply(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const Factor<double>& a,
                   const Factor<double>& b, double beta, double* c, std::int64_t stride);

}  // namespace weir
