// Keeps OpenBLAS to the thread that calls it. References and bodies call it from several threads at once; threads of its
// own would compete with them, and spend the system's time on yielding to each other.
#pragma once

#include <cblas.h>

namespace weir {

inline void use_one_blas_thread() noexcept {
  if (openblas_get_num_threads() != 1) openblas_set_num_threads(1);
}

}  // namespace weir
