#include "kernel/blas.h"

#include <cblas.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <optional>
#include <semaphore>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/vendor_library.h"

namespace weir {
namespace {

// OpenBLAS starts a thread per core that its loader may use, and where that fails it raises SIGINT or waits forever.
// Restricting this thread to one core while it is loaded needs no environment variable, which children would inherit.
class OneCore {
 public:
  OneCore() noexcept {
    cpu_set_t one;
    CPU_ZERO(&one);
    const int here = ::sched_getcpu();
    if (here < 0 || here >= CPU_SETSIZE || ::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    CPU_SET(static_cast<unsigned>(here), &one);
    is_restricted_ = ::sched_setaffinity(0, sizeof one, &one) == 0;
  }
  ~OneCore() {
    if (is_restricted_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_{};
  bool is_restricted_ = false;
};

bool has_limited_address_space() noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

bool has_room(std::size_t bytes) noexcept {
  void* const place = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return false;
  ::munmap(place, bytes);
  return true;
}

struct OpenBlas : VendorLibrary {
  // By the loader's search, and where it was when this was built.
  OpenBlas() : VendorLibrary({"libopenblas.so.0", "libopenblas.so", WEIR_OPENBLAS}) {
    constexpr const char* kRaise = "Raise the limit on address space (ulimit -v).";
    if (!is_open())
      fail("OpenBLAS cannot be opened: " + error(),
           is_absent() || !has_limited_address_space()
               ? "Install it (Debian and Ubuntu: libopenblas0), or add its folder to LD_LIBRARY_PATH."
               : kRaise);
    if (!missing().empty()) fail("OpenBLAS lacks " + missing(), "Install another version.");
    if (!has_limited_address_space() || allocate == nullptr || release == nullptr) return;
    // It needs a buffer per thread that multiplies, and where address space is limited it would wait forever for one.
    // So they are made now, while it is known that there is room; threads take turns if there are fewer.
    // As 0.3.21 maps it on these two; others were not looked at.
    utsname here{};
    const bool is_x86 = ::uname(&here) == 0 && std::string_view(here.machine) == "x86_64";
    const std::size_t buffer_bytes = std::size_t{is_x86 ? 128U : 32U} << 20;
    const std::size_t wanted = std::max(1U, std::thread::hardware_concurrency());
    std::vector<void*> buffers;
    // Twice as much, because its first one is cut from a larger piece. That for each of them, because the program needs
    // the rest: one per core would take all of it on a machine with many.
    while (buffers.size() < wanted && has_room(2 * buffer_bytes * (buffers.size() + 1))) buffers.push_back(allocate(0));
    for (void* const buffer : buffers) release(buffer);
    if (buffers.empty())
      fail(fmt::format("out of address space: OpenBLAS needs {} MiB for matrix products", 2 * buffer_bytes >> 20), kRaise);
    turns.emplace(static_cast<std::ptrdiff_t>(buffers.size()));
  }

  template <class Multiply, class... Values>
  void call(Multiply multiply, Values... values) {
    if (turns) turns->acquire();
    multiply(CblasRowMajor, values...);
    if (turns) turns->release();
  }

  decltype(&cblas_sgemm) sgemm = need("cblas_sgemm");
  decltype(&cblas_dgemm) dgemm = need("cblas_dgemm");
  int (*threads)() = need("openblas_get_num_threads");
  void (*set_threads)(int) = need("openblas_set_num_threads");
  void* (*allocate)(int) = want("blas_memory_alloc");
  void (*release)(void*) = want("blas_memory_free");
  std::optional<std::counting_semaphore<>> turns;
};

OpenBlas& library() {
  static OpenBlas opened = [] {
    const OneCore during_load;
    return OpenBlas();
  }();
  return opened;
}

blasint size(std::int64_t value) { return static_cast<blasint>(value); }
CBLAS_TRANSPOSE order(bool is_transposed) { return is_transposed ? CblasTrans : CblasNoTrans; }

template <class Multiply, class Number>
void multiply(Multiply function, std::int64_t m, std::int64_t n, std::int64_t k, Number alpha, const Factor<Number>& a,
              const Factor<Number>& b, Number beta, Number* c, std::int64_t stride) {
  library().call(function, order(a.is_transposed), order(b.is_transposed), size(m), size(n), size(k), alpha, a.data,
                 size(a.stride), b.data, size(b.stride), beta, c, size(stride));
}

}  // namespace

void open_blas() {
  OpenBlas& blas = library();
  if (blas.threads() != 1) blas.set_threads(1);
}

void blas_multiply(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const Factor<float>& a,
                   const Factor<float>& b, float beta, float* c, std::int64_t stride) {
  multiply(library().sgemm, m, n, k, alpha, a, b, beta, c, stride);
}
void blas_multiply(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const Factor<double>& a,
                   const Factor<double>& b, double beta, double* c, std::int64_t stride) {
  multiply(library().dgemm, m, n, k, alpha, a, b, beta, c, stride);
}

}  // namespace weir
