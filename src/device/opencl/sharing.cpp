#include "device/opencl/sharing.h"

#if WEIR_HAVE_OPENCL
#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace weir {
namespace {

// Words of the trial's memory, a cache line apart.
constexpr std::size_t kStarted = 0, kFlag = 16, kAnswer = 32, kWords = 48;

bool has_ended(const OpenclApi& api, cl_event event) {
  cl_int status = CL_COMPLETE;
  api.event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return status <= CL_COMPLETE;
}

enum class Outcome : std::uint8_t { works, too_short, fails };

// Runs one kernel that reads the flag `looks` times. The host sets it only after it has seen the kernel start, so an
// answer shows that each saw the other's writes while the kernel ran.
Outcome run_trial(const OpenclContext& context, cl_kernel kernel, cl_command_queue queue,
                  const OpenclHostMemory& memory, cl_uint looks) {
  constexpr std::int64_t kLongEnough_ns = 200'000'000;  // the host may be descheduled for that long
  const OpenclApi& api = context.api();
  auto* const words = reinterpret_cast<cl_uint*>(memory.data());
  const auto word = [&](std::size_t index) { return std::atomic_ref(words[index]); };
  for (const std::size_t index : {kStarted, kFlag, kAnswer}) word(index).store(0);
  const cl_mem buffer = memory.buffer();
  check_opencl(api.set_argument(kernel, 0, sizeof buffer, &buffer), "setting an argument");
  check_opencl(api.set_argument(kernel, 1, sizeof looks, &looks), "setting an argument");
  const std::size_t one = 1;
  cl_event raw = nullptr;
  const std::int64_t began_ns = now_ns();
  check_opencl(api.enqueue_kernel(queue, kernel, 1, nullptr, &one, &one, 0, nullptr, &raw), "launching a kernel");
  const OpenclEventOwner event(raw, {&api});
  check_opencl(api.flush(queue), "flushing a queue");
  bool is_seen = false;
  while (!is_seen && !has_ended(api, raw)) is_seen = word(kStarted).load(std::memory_order_acquire) != 0;
  if (is_seen) word(kFlag).store(1, std::memory_order_release);
  check_opencl(api.finish(queue), "waiting for a kernel");
  if (is_seen && word(kAnswer).load(std::memory_order_acquire) != 0) return Outcome::works;
  return now_ns() - began_ns < kLongEnough_ns ? Outcome::too_short : Outcome::fails;
}

}  // namespace

// Uses no clock, so that it runs everywhere: the host increases `looks` until it runs long enough.
const std::string_view kSharingTrial = R"(
__kernel void weir_trial(volatile __global uint* words, const uint looks) {
  words[0] = 1;
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  for (uint i = 0; i < looks; ++i) {
    if (words[16] != 0) {
      words[32] = 1;
      return;
    }
  }
}
)";

OpenclHostMemory::OpenclHostMemory(const OpenclContext& context, OpenclSharing sharing, std::size_t bytes)
    : context_(&context), sharing_(sharing) {
  const OpenclApi& api = context.api();
  void* data = nullptr;
  switch (sharing) {
    case OpenclSharing::fine_svm:
      data = api.svm_allocate(context.get(), CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, bytes, 128);
      break;
    case OpenclSharing::none:
    // Pinned: NVIDIA's driver (580) reads pageable memory when a copy is enqueued, not when it runs, and would miss
    // what a host function writes in between.
    case OpenclSharing::mapped: {
      // Stays mapped while kernels use it, which the standard does not guarantee to work: hence the trial.
      buffer_ = context.make_buffer(CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes);
      queue_ = context.make_queue(0);
      cl_int result = CL_SUCCESS;
      data = api.enqueue_map(queue_.get(), buffer_.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, nullptr,
                             nullptr, &result);
      check_opencl(result, context.name() + ": mapping host memory");
      break;
    }
  }
  if (data == nullptr) fail(fmt::format("{}: cannot allocate {} bytes of host memory", context.name(), bytes));
  data_ = static_cast<std::byte*>(data);
  if (sharing != OpenclSharing::fine_svm) return;
  try {
    buffer_ = context.make_buffer(CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, data);
  } catch (...) {
    release();
    throw;
  }
}

OpenclHostMemory::OpenclHostMemory(OpenclHostMemory&& other) noexcept
    : context_(other.context_),
      sharing_(other.sharing_),
      data_(std::exchange(other.data_, nullptr)),
      buffer_(std::move(other.buffer_)),
      queue_(std::move(other.queue_)) {}

OpenclHostMemory& OpenclHostMemory::operator=(OpenclHostMemory&& other) noexcept {
  if (this == &other) return *this;
  release();
  context_ = other.context_;
  sharing_ = other.sharing_;
  data_ = std::exchange(other.data_, nullptr);
  buffer_ = std::move(other.buffer_);
  queue_ = std::move(other.queue_);
  return *this;
}

void OpenclHostMemory::release() noexcept {
  std::byte* const data = std::exchange(data_, nullptr);
  if (data == nullptr) return;
  const OpenclApi& api = context_->api();
  if (sharing_ != OpenclSharing::fine_svm &&
      api.enqueue_unmap(queue_.get(), buffer_.get(), data, 0, nullptr, nullptr) == 0)
    api.finish(queue_.get());
  buffer_.reset();
  if (sharing_ == OpenclSharing::fine_svm) api.svm_free(context_->get(), data);
}

OpenclSharing try_sharing(const OpenclContext& context, cl_program program, std::string* reason) {
  const OpenclApi& api = context.api();
  cl_int result = CL_SUCCESS;
  const OpenclKernelOwner kernel(api.create_kernel(program, "weir_trial", &result), {&api});
  check_opencl(result, "looking the trial's kernel up");
  const OpenclQueueOwner queue = context.make_queue(0);
  std::string tried;
  const auto works = [&](OpenclSharing sharing, std::string_view name) {
    try {
      const OpenclHostMemory memory(context, sharing, kWords * sizeof(cl_uint));
      constexpr cl_uint kFirstLooks = 1 << 14, kMaxLooks = 1u << 30;
      run_trial(context, kernel.get(), queue.get(), memory, 1);  // triggers compilation at the first launch
      for (cl_uint looks = kFirstLooks; looks <= kMaxLooks; looks *= 2) {
        const Outcome outcome = run_trial(context, kernel.get(), queue.get(), memory, looks);
        if (outcome == Outcome::works) return true;
        if (outcome == Outcome::fails) break;
      }
      tried += fmt::format("{}{} is not seen by the other side while a kernel runs", tried.empty() ? "" : "; ", name);
    } catch (const Error& error) {
      tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ", name, error.what());
    }
    return false;
  };
  if ((context.facts().svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0 && api.svm_allocate != nullptr &&
      works(OpenclSharing::fine_svm, "fine-grained shared memory"))
    return OpenclSharing::fine_svm;
  if (works(OpenclSharing::mapped, "mapped host memory")) return OpenclSharing::mapped;
  *reason = "by trial: " + tried;
  return OpenclSharing::none;
}

}  // namespace weir
#endif
