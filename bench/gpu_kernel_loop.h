// A kernel launched again and again between two events, as an expert would write it by hand for CUDA. Knows nothing of
// Weir: it is what `weir bench` is held against.
#pragma once

#include <memory>
#include <string>

namespace raw {

class KernelLoop {
 public:
  virtual ~KernelLoop() = default;
  // Milliseconds between events around `runs` launches.
  virtual float run(int runs) = 0;
};

// `function` of compiled code: (const void* in, void* out, int columns), one block of `threads` per row. Ends the
// program where CUDA fails.
std::unique_ptr<KernelLoop> make_kernel_loop(const std::string& code, const std::string& function, int rows,
                                             int columns, int threads, std::size_t element_bytes);

}  // namespace raw
