#include "submit/inject/cuda_race_driver.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "submit/inject/cupti_library.h"

namespace weir::inject {
namespace {

RaceDriver g_race_driver;
std::atomic<bool> g_has_race_driver{false};

// By hand, so that no toolkit is needed: the driver compiles it for its device. The delay ends by the clock, or after
// so many turns as it has nanoseconds, should the clock stand still. The hash is the sum over all words of 8 bytes, the
// last one filled up with zeros, of splitmix64(word ^ (index + 1) * golden ratio); one block of 1,024 threads, so that
// no memory has to be cleared before.
constexpr const char* kRacePtx = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry weir_race_delay(.param .u64 p_ns)
{
  .reg .pred %p<3>;
  .reg .u64 %r<8>;
  ld.param.u64 %r1, [p_ns];
  mov.u64 %r2, %globaltimer;
  mov.u64 %r3, 0;
AGAIN:
  mov.u64 %r4, %globaltimer;
  sub.u64 %r5, %r4, %r2;
  add.u64 %r3, %r3, 1;
  setp.lt.u64 %p1, %r5, %r1;
  setp.lt.u64 %p2, %r3, %r1;
  and.pred %p1, %p1, %p2;
  @%p1 bra AGAIN;
  ret;
}
.visible .entry weir_race_hash(.param .u64 p_begin, .param .u64 p_bytes, .param .u64 p_result)
{
  .reg .pred %p<8>;
  .reg .u32 %t<8>;
  .reg .u64 %r<32>;
  .shared .align 8 .b8 sums[8192];
  ld.param.u64 %r1, [p_begin];
  ld.param.u64 %r2, [p_bytes];
  ld.param.u64 %r3, [p_result];
  mov.u32 %t1, %tid.x;
  cvt.u64.u32 %r4, %t1;
  mov.u64 %r5, 0;
  and.b64 %r6, %r1, 7;
  setp.ne.u64 %p1, %r6, 0;
NEXT:
  shl.b64 %r7, %r4, 3;
  setp.ge.u64 %p2, %r7, %r2;
  @%p2 bra SUM;
  sub.u64 %r8, %r2, %r7;
  min.u64 %r8, %r8, 8;
  add.u64 %r9, %r1, %r7;
  setp.ne.u64 %p3, %r8, 8;
  or.pred %p3, %p3, %p1;
  @%p3 bra BYTES;
  ld.global.u64 %r10, [%r9];
  bra MIX;
BYTES:
  mov.u64 %r10, 0;
  mov.u32 %t2, 0;
BYTE:
  ld.global.u8 %r11, [%r9];
  shl.b64 %r11, %r11, %t2;
  or.b64 %r10, %r10, %r11;
  add.u64 %r9, %r9, 1;
  add.u32 %t2, %t2, 8;
  sub.u64 %r8, %r8, 1;
  setp.ne.u64 %p4, %r8, 0;
  @%p4 bra BYTE;
MIX:
  add.u64 %r12, %r4, 1;
  mul.lo.u64 %r12, %r12, 0x9e3779b97f4a7c15;
  xor.b64 %r10, %r10, %r12;
  shr.u64 %r13, %r10, 30;
  xor.b64 %r10, %r10, %r13;
  mul.lo.u64 %r10, %r10, 0xbf58476d1ce4e5b9;
  shr.u64 %r13, %r10, 27;
  xor.b64 %r10, %r10, %r13;
  mul.lo.u64 %r10, %r10, 0x94d049bb133111eb;
  shr.u64 %r13, %r10, 31;
  xor.b64 %r10, %r10, %r13;
  add.u64 %r5, %r5, %r10;
  add.u64 %r4, %r4, 1024;
  bra NEXT;
SUM:
  mul.wide.u32 %r14, %t1, 8;
  mov.u64 %r15, sums;
  add.u64 %r14, %r14, %r15;
  st.shared.u64 [%r14], %r5;
  bar.sync 0;
  setp.ne.u32 %p5, %t1, 0;
  @%p5 bra DONE;
  mov.u32 %t3, 1;
ADD:
  ld.shared.u64 %r16, [%r14 + 8];
  add.u64 %r14, %r14, 8;
  add.u64 %r5, %r5, %r16;
  add.u32 %t3, %t3, 1;
  setp.lt.u32 %p6, %t3, 1024;
  @%p6 bra ADD;
  st.volatile.global.u64 [%r3], %r5;
  membar.sys;
  mov.u64 %r17, 1;
  st.volatile.global.u64 [%r3 + 8], %r17;
DONE:
  ret;
}
)";
constexpr unsigned kHashThreads = 1024;

struct Loaded {
  RaceKernels kernels;
  std::string reason;  // why there are none; empty: there are
};
std::mutex& g_kernels_mutex = *new std::mutex;  // protects the next; never held while the driver is called
std::map<CUcontext, Loaded>& g_kernels = *new std::map<CUcontext, Loaded>;

constexpr std::size_t kSlots = 4096;
std::mutex& g_slots_mutex = *new std::mutex;
RaceSlot* g_slots = nullptr;
std::size_t g_used_slots = kSlots;

}  // namespace

const char* bind_race_driver() noexcept {
  if (g_has_race_driver.load(std::memory_order_acquire)) return nullptr;
  if (const char* const missing = bind_cuda_driver(); missing != nullptr) return missing;
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return "libcuda.so.1";
  RaceDriver found;
  EntryPoints driver(library);
  driver.want(found.parameter, "cuFuncGetParamInfo");
  driver.want(found.library_parameter, "cuKernelGetParamInfo");
  driver.want(found.function_name, "cuFuncGetName");
  driver.want(found.kernel_name, "cuKernelGetName");
  driver.want(found.load_function, "cuFuncLoad");
  driver.want(found.stream_id, "cuStreamGetId");
  driver.want(found.error_name, "cuGetErrorName");
  driver.need(found.address_range, "cuMemGetAddressRange_v2");
  driver.need(found.pointer, "cuPointerGetAttribute");
  driver.need(found.stream_flags, "cuStreamGetFlags");
  driver.need(found.is_capturing, "cuStreamIsCapturing");
  driver.need(found.capture, "cuStreamGetCaptureInfo_v2");
  driver.need(found.current, "cuCtxGetCurrent");
  driver.need(found.load, "cuModuleLoadData");
  driver.need(found.function, "cuModuleGetFunction");
  driver.need(found.launch, "cuLaunchKernel");
  driver.need(found.record, "cuEventRecord");
  driver.need(found.wait, "cuStreamWaitEvent");
  driver.need(found.synchronize, "cuCtxSynchronize");
  driver.need(found.pin, "cuMemHostRegister_v2");
  driver.need(found.device_address, "cuMemHostGetDevicePointer_v2");
  if (driver.missing() != nullptr) return driver.missing();
  g_race_driver = found;
  g_has_race_driver.store(true, std::memory_order_release);
  return nullptr;
}

bool has_race_driver() noexcept { return g_has_race_driver.load(std::memory_order_acquire); }
const RaceDriver& race_driver() noexcept { return g_race_driver; }

std::string describe_answer(CUresult result) {
  const char* name = nullptr;
  if (g_race_driver.error_name == nullptr || g_race_driver.error_name(result, &name) != CUDA_SUCCESS || name == nullptr)
    name = "no name";
  return "CUDA error " + std::to_string(static_cast<int>(result)) + " (" + name + ")";
}

std::string find_race_kernels(CUcontext context, RaceKernels& kernels) {
  {
    const std::lock_guard lock(g_kernels_mutex);
    const auto [at, is_new] = g_kernels.try_emplace(context, Loaded{{}, "another thread is loading kernels just now"});
    if (!is_new) {
      kernels = at->second.kernels;
      return at->second.reason;
    }
  }
  CUmodule module = nullptr;
  CUresult result = g_race_driver.load(&module, kRacePtx);
  if (result == CUDA_SUCCESS) result = g_race_driver.function(&kernels.delay, module, "weir_race_delay");
  if (result == CUDA_SUCCESS) result = g_race_driver.function(&kernels.hash, module, "weir_race_hash");
  // Else a kernel is loaded when it is first launched, which may be in a capture.
  for (const CUfunction kernel : {kernels.delay, kernels.hash})
    if (result == CUDA_SUCCESS && g_race_driver.load_function != nullptr) result = g_race_driver.load_function(kernel);
  std::string reason = result == CUDA_SUCCESS ? "" : "kernels cannot be loaded: " + describe_answer(result);
  const std::lock_guard lock(g_kernels_mutex);
  g_kernels[context] = {kernels, reason};
  return reason;
}

void forget_race_kernels() noexcept {
  const std::lock_guard lock(g_kernels_mutex);
  g_kernels.clear();
}

RaceSlot* new_race_slot(std::string& reason) {
  {
    const std::lock_guard lock(g_slots_mutex);
    if (g_used_slots < kSlots) return &g_slots[g_used_slots++];
  }
  constexpr std::size_t kBytes = kSlots * sizeof(RaceSlot);
  void* const pages = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    reason = std::string("no memory for hashes: ") + std::strerror(errno);
    return nullptr;
  }
  const CUresult result = g_race_driver.pin(pages, kBytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (result != CUDA_SUCCESS) {
    ::munmap(pages, kBytes);
    reason = "memory for hashes cannot be pinned: " + describe_answer(result);
    return nullptr;
  }
  const std::lock_guard lock(g_slots_mutex);
  g_slots = static_cast<RaceSlot*>(pages);  // the ones before stay
  g_used_slots = 1;
  return g_slots;
}

std::string launch_delay(CUcontext context, CUstream stream, std::int64_t ns) {
  RaceKernels kernels;
  if (std::string reason = find_race_kernels(context, kernels); !reason.empty()) return reason;
  void* parameters[] = {&ns};
  const CUresult result = g_race_driver.launch(kernels.delay, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  return result == CUDA_SUCCESS ? "" : "the delay cannot be launched: " + describe_answer(result);
}

std::string launch_hash(CUcontext context, CUstream stream, std::uint64_t begin, std::uint64_t bytes, RaceSlot* slot) {
  RaceKernels kernels;
  if (std::string reason = find_race_kernels(context, kernels); !reason.empty()) return reason;
  CUdeviceptr result_at = 0;
  CUresult result = g_race_driver.device_address(&result_at, slot, 0);
  void* parameters[] = {&begin, &bytes, &result_at};
  if (result == CUDA_SUCCESS)
    result = g_race_driver.launch(kernels.hash, 1, 1, 1, kHashThreads, 1, 1, 0, stream, parameters, nullptr);
  return result == CUDA_SUCCESS ? "" : "the hash cannot be launched: " + describe_answer(result);
}

std::uint64_t hash_of_memory(const void* memory, std::size_t bytes) noexcept {
  const auto* at = static_cast<const char*>(memory);
  std::uint64_t sum = 0;
  for (std::uint64_t index = 1; bytes > 0; ++index) {
    const std::size_t part = std::min(bytes, sizeof(std::uint64_t));
    std::uint64_t word = 0;
    std::memcpy(&word, at, part);
    word ^= index * 0x9e3779b97f4a7c15u;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    sum += word ^ (word >> 31);
    at += part;
    bytes -= part;
  }
  return sum;
}

}  // namespace weir::inject
