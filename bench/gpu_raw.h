// tiny_kernel_stress as an expert would write it by hand for CUDA. Knows nothing of Weir: it is what Weir is held
// against.
#pragma once

#include <memory>
#include <vector>

namespace raw {

inline constexpr int kOperations = 100;  // per stream
inline constexpr int kKernels = 4;       // per operation: x*1.5, +0.5, abs, clamp to 0..10
inline constexpr int kElements = 256;

enum class Mode { loop, threads, graph };

class Stress {
 public:
  virtual ~Stress() = default;
  // Submits all kernels of one iteration and waits for them.
  virtual void iterate() = 0;
  // Input and output of one stream, kOperations slices of kElements.
  virtual std::vector<float> input(int stream) = 0;
  virtual std::vector<float> output(int stream) = 0;
};

// `threads` submit in Mode::threads, the caller being one of them. Ends the program where CUDA fails.
std::unique_ptr<Stress> make_stress(Mode mode, int streams, int threads);

}  // namespace raw
