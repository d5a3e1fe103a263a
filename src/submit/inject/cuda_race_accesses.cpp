#include "submit/inject/cuda_race_accesses.h"

#include <cuda.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <unordered_map>

#include "submit/inject/cuda_race_driver.h"
#include "submit/inject/of_thread.h"
#include "submit/inject/race_run.h"

// The header says the newest versions where these names stand.
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync

namespace weir::inject {
namespace {

using race_format::Access;
using race_format::kExact;
using race_format::kReads;
using race_format::kWrites;

constexpr std::size_t kMostAccesses = 1024, kMostParameters = 1024, kMostKernels = 10'000;
constexpr std::size_t kMostParameterBytes = 32'764;
constexpr std::size_t kMostPinnedGuesses = 1024;

std::atomic<std::uint32_t> g_parameters_epoch{1};
std::atomic<bool> g_was_blindness_noted{false};

struct Parameter {
  std::uint32_t offset = 0, bytes = 0;
};
struct AccessMemory {
  std::uint32_t epoch = 0;
  std::unordered_map<CUfunction, std::vector<Parameter>> kernels;
  std::array<std::uint64_t, kMostPinnedGuesses> no_pointers{};  // words that are known to point nowhere
  std::vector<Access> words;                                    // of the present launch
};

AccessMemory* access_memory() noexcept {
  AccessMemory* const mine = OfThread<AccessMemory>::get();
  if (const std::uint32_t now = g_parameters_epoch.load(std::memory_order_acquire);
      mine != nullptr && mine->epoch != now) {
    mine->kernels.clear();
    mine->no_pointers.fill(0);
    mine->epoch = now;
  }
  return mine;
}

const std::vector<Parameter>& parameters_of(AccessMemory& mine, CUfunction kernel) {
  if (const auto known = mine.kernels.find(kernel); known != mine.kernels.end()) return known->second;
  if (mine.kernels.size() >= kMostKernels) mine.kernels.clear();
  std::vector<Parameter>& parameters = mine.kernels[kernel];
  const RaceDriver& driver = race_driver();
  if (driver.parameter == nullptr || driver.library_parameter == nullptr || driver.function_name == nullptr ||
      driver.kernel_name == nullptr) {
    if (!g_was_blindness_noted.exchange(true))
      note_race("what kernels touch is not known: the driver lacks cuFuncGetParamInfo, which came with CUDA 12.4");
    return parameters;
  }
  CUcontext context = nullptr;
  driver.current(&context);
  const Visiting visit(cuda_driver(), context);
  // The runtime launches kernels of libraries by handles of the other kind.
  const char* name = nullptr;
  const auto of_library = reinterpret_cast<CUkernel>(kernel);
  const bool is_of_library = visit && driver.function_name(&name, kernel) != CUDA_SUCCESS &&
                             driver.kernel_name(&name, of_library) == CUDA_SUCCESS;
  for (std::size_t i = 0; visit && i < kMostParameters; ++i) {
    std::size_t offset = 0, bytes = 0;
    const CUresult result = is_of_library ? driver.library_parameter(of_library, i, &offset, &bytes)
                                          : driver.parameter(kernel, i, &offset, &bytes);
    if (result != CUDA_SUCCESS) break;
    if (offset + bytes > kMostParameterBytes || offset + bytes < bytes) break;
    parameters.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)});
  }
  return parameters;
}

// The aligned words of all parameters.
void take_words(AccessMemory& mine, CUfunction kernel, void** parameters, void** extra) {
  const char* packed = nullptr;
  std::size_t packed_bytes = 0;
  for (int i = 0; parameters == nullptr && extra != nullptr && i < 8 && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) packed = static_cast<const char*>(extra[i + 1]);
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1] != nullptr)
      packed_bytes = *static_cast<const std::size_t*>(extra[i + 1]);
  }
  if (parameters == nullptr && packed == nullptr) return;
  const std::vector<Parameter>& all = parameters_of(mine, kernel);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Parameter& one = all[i];
    const char* value = parameters != nullptr ? static_cast<const char*>(parameters[i]) : packed + one.offset;
    if (value == nullptr || (parameters == nullptr && one.offset + std::size_t{one.bytes} > packed_bytes)) continue;
    for (std::size_t at = (8 - one.offset % 8) % 8; at + 8 <= one.bytes; at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, value + at, sizeof(word));
      if (word != 0) mine.words.push_back({word, 0, kReads | kWrites, static_cast<std::uint32_t>(i)});
    }
  }
}

// Memory that was allocated while nobody looked, or that belongs to a module.
bool ask_for_block(AccessMemory& mine, std::uint64_t word) {
  // Neither small numbers nor what no address of this machine has.
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 24, kMost = std::uint64_t{1} << 57;
  std::uint64_t& known = mine.no_pointers[((word >> 3) ^ (word >> 13) ^ (word >> 31)) % mine.no_pointers.size()];
  if (word < kLeast || word >= kMost || known == word) return false;
  const RaceDriver& driver = race_driver();
  CUcontext context = nullptr;
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  if (driver.current(&context) != CUDA_SUCCESS || context == nullptr) return false;
  const Visiting visit(cuda_driver(), context);
  if (!visit || driver.address_range(&begin, &bytes, word) != CUDA_SUCCESS || bytes == 0) {
    known = word;
    return false;
  }
  unsigned type = 0;
  const bool is_host =
      driver.pointer(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) == CUDA_SUCCESS && type == CU_MEMORYTYPE_HOST;
  RaceRun& run = race_run();
  const std::lock_guard lock(run.mutex);
  if (run.memory.find(word) == nullptr) add_block(run, {begin, bytes, is_host}, 1, race_format::kNone);
  return true;
}

// Throws when memory runs out.
void find_kernel_accesses(CUfunction kernel, void** parameters, void** extra, RaceAccesses& accesses) {
  AccessMemory* const mine = access_memory();
  if (mine == nullptr) return;
  mine->words.clear();
  take_words(*mine, kernel, parameters, extra);
  RaceRun& run = race_run();
  accesses.list.clear();
  auto unknown_end = mine->words.begin();
  {
    const std::lock_guard lock(run.mutex);
    for (const Access& one : mine->words) {
      if (run.memory.find(one.begin) != nullptr)
        accesses.list.push_back(one);
      else
        *unknown_end++ = one;
    }
  }
  for (auto one = mine->words.begin(); one != unknown_end; ++one)
    if (ask_for_block(*mine, one->begin)) accesses.list.push_back(*one);
  if (accesses.list.size() > kMostAccesses) accesses.list.resize(kMostAccesses);
}

enum class Side : std::uint8_t { device, pinned, pageable };

Side side_of(std::uint64_t address) noexcept {
  RaceRun& run = race_run();
  {
    const std::lock_guard lock(run.mutex);
    if (const RaceMemory::Block* const block = run.memory.find(address); block != nullptr)
      return block->is_host ? Side::pinned : Side::device;
  }
  const RaceDriver& driver = race_driver();
  CUcontext context = nullptr;
  if (driver.current(&context) != CUDA_SUCCESS || context == nullptr) return Side::pageable;
  const Visiting visit(cuda_driver(), context);
  unsigned type = 0;
  if (!visit || driver.pointer(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS) return Side::pageable;
  return type == CU_MEMORYTYPE_DEVICE ? Side::device : type == CU_MEMORYTYPE_HOST ? Side::pinned : Side::pageable;
}

// A command's copy: rows of `width` bytes, the last of which ends where the hull does.
struct Hull {
  std::uint64_t begin = 0, bytes = 0;
};
Hull hull_of(std::uint64_t base, std::uint64_t x, std::uint64_t y, std::uint64_t z, std::uint64_t pitch,
             std::uint64_t slice_rows, std::uint64_t width, std::uint64_t height, std::uint64_t depth) noexcept {
  if (width == 0 || height == 0 || depth == 0) return {};
  const std::uint64_t slice = pitch * slice_rows;
  return {base + x + y * pitch + z * slice, (depth - 1) * slice + (height - 1) * pitch + width};
}

class CopyAccesses {
 public:
  // `is_asynchronous`: the program said so.
  CopyAccesses(RaceAccesses& accesses, bool is_asynchronous, bool is_captured) noexcept
      : accesses_(accesses), is_asynchronous_(is_asynchronous), is_captured_(is_captured) {}
  // `parameter`: of a batch, which copy.
  void read(Hull hull, std::uint32_t parameter = 0) { add(hull, kReads, parameter); }
  void write(Hull hull, std::uint32_t parameter = 0) { add(hull, kWrites, parameter); }

 private:
  void add(Hull hull, std::uint32_t how, std::uint32_t parameter) {
    if (hull.bytes == 0 || hull.begin == 0 || accesses_.list.size() >= kMostAccesses) return;
    const Side side = side_of(hull.begin);
    if (!is_captured_) {
      // A call that copies into pageable memory returns when it has; one that copies from there has taken a copy.
      if (side == Side::pageable && is_asynchronous_ && how == kReads) return;
      if (side == Side::pageable && how == kWrites) accesses_.is_synchronous = true;
      if (side != Side::device && !is_asynchronous_) accesses_.is_synchronous = true;
    }
    accesses_.list.push_back({hull.begin, hull.bytes, how | kExact, parameter});
  }

  RaceAccesses& accesses_;
  bool is_asynchronous_, is_captured_;
};

template <class Copy>
Hull source_of_2d(const Copy& c) noexcept {
  const bool is_host = c.srcMemoryType == CU_MEMORYTYPE_HOST;
  if (c.srcMemoryType == CU_MEMORYTYPE_ARRAY) return {};
  return hull_of(is_host ? reinterpret_cast<std::uint64_t>(c.srcHost) : c.srcDevice, c.srcXInBytes, c.srcY, 0,
                 c.srcPitch, 0, c.WidthInBytes, c.Height, 1);
}
template <class Copy>
Hull target_of_2d(const Copy& c) noexcept {
  const bool is_host = c.dstMemoryType == CU_MEMORYTYPE_HOST;
  if (c.dstMemoryType == CU_MEMORYTYPE_ARRAY) return {};
  return hull_of(is_host ? reinterpret_cast<std::uint64_t>(c.dstHost) : c.dstDevice, c.dstXInBytes, c.dstY, 0,
                 c.dstPitch, 0, c.WidthInBytes, c.Height, 1);
}
template <class Copy>
Hull source_of_3d(const Copy& c) noexcept {
  const bool is_host = c.srcMemoryType == CU_MEMORYTYPE_HOST;
  if (c.srcMemoryType == CU_MEMORYTYPE_ARRAY) return {};
  return hull_of(is_host ? reinterpret_cast<std::uint64_t>(c.srcHost) : c.srcDevice, c.srcXInBytes, c.srcY, c.srcZ,
                 c.srcPitch, c.srcHeight, c.WidthInBytes, c.Height, c.Depth);
}
template <class Copy>
Hull target_of_3d(const Copy& c) noexcept {
  const bool is_host = c.dstMemoryType == CU_MEMORYTYPE_HOST;
  if (c.dstMemoryType == CU_MEMORYTYPE_ARRAY) return {};
  return hull_of(is_host ? reinterpret_cast<std::uint64_t>(c.dstHost) : c.dstDevice, c.dstXInBytes, c.dstY, c.dstZ,
                 c.dstPitch, c.dstHeight, c.WidthInBytes, c.Height, c.Depth);
}

std::uint64_t bits(const void* pointer) noexcept { return reinterpret_cast<std::uint64_t>(pointer); }

// The variants for a default stream per thread have the same parameters.
#define WEIR_CALL(name)                       \
  case CUPTI_DRIVER_TRACE_CBID_##name:        \
  case CUPTI_DRIVER_TRACE_CBID_##name##_ptsz: \
    return
#define WEIR_CALL_NOW(name)                   \
  case CUPTI_DRIVER_TRACE_CBID_##name:        \
  case CUPTI_DRIVER_TRACE_CBID_##name##_ptds: \
    return
#define WEIR_AS(name) (*static_cast<const name##_params*>(arguments))

void find_copy_accesses(const CudaFunction& function, const void* arguments, CopyAccesses& c) {
  const auto linear = [&](std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
    c.read({from, bytes});
    c.write({to, bytes});
  };
  const auto flat = [&](const CUDA_MEMCPY2D* copy) {
    if (copy == nullptr) return;
    c.read(source_of_2d(*copy));
    c.write(target_of_2d(*copy));
  };
  const auto deep = [&](const auto* copy) {
    if (copy == nullptr) return;
    c.read(source_of_3d(*copy));
    c.write(target_of_3d(*copy));
  };
  [[maybe_unused]] const auto batch = [&](const auto& all) {
    if (all.dsts == nullptr || all.srcs == nullptr || all.sizes == nullptr) return;
    for (std::size_t i = 0; i < std::min(all.count, kMostAccesses / 2); ++i) {
      c.read({static_cast<std::uint64_t>(all.srcs[i]), all.sizes[i]}, static_cast<std::uint32_t>(i));
      c.write({static_cast<std::uint64_t>(all.dsts[i]), all.sizes[i]}, static_cast<std::uint32_t>(i));
    }
  };
#define WEIR_LINEAR(name, to, from) linear(WEIR_AS(name).to, WEIR_AS(name).from, WEIR_AS(name).ByteCount)
#define WEIR_HTOD(name) linear(WEIR_AS(name).dstDevice, bits(WEIR_AS(name).srcHost), WEIR_AS(name).ByteCount)
#define WEIR_DTOH(name) linear(bits(WEIR_AS(name).dstHost), WEIR_AS(name).srcDevice, WEIR_AS(name).ByteCount)
  switch (function.id) {
    WEIR_CALL(cuMemcpyAsync) WEIR_LINEAR(cuMemcpyAsync, dst, src);
    WEIR_CALL(cuMemcpyPeerAsync) WEIR_LINEAR(cuMemcpyPeerAsync, dstDevice, srcDevice);
    WEIR_CALL(cuMemcpyHtoDAsync_v2) WEIR_HTOD(cuMemcpyHtoDAsync_v2);
    WEIR_CALL(cuMemcpyDtoHAsync_v2) WEIR_DTOH(cuMemcpyDtoHAsync_v2);
    WEIR_CALL(cuMemcpyDtoDAsync_v2) WEIR_LINEAR(cuMemcpyDtoDAsync_v2, dstDevice, srcDevice);
    WEIR_CALL(cuMemcpyHtoAAsync_v2)
    c.read({bits(WEIR_AS(cuMemcpyHtoAAsync_v2).srcHost), WEIR_AS(cuMemcpyHtoAAsync_v2).ByteCount});
    WEIR_CALL(cuMemcpyAtoHAsync_v2)
    c.write({bits(WEIR_AS(cuMemcpyAtoHAsync_v2).dstHost), WEIR_AS(cuMemcpyAtoHAsync_v2).ByteCount});
    WEIR_CALL(cuMemcpy2DAsync_v2) flat(WEIR_AS(cuMemcpy2DAsync_v2).pCopy);
    WEIR_CALL(cuMemcpy3DAsync_v2) deep(WEIR_AS(cuMemcpy3DAsync_v2).pCopy);
    WEIR_CALL(cuMemcpy3DPeerAsync) deep(WEIR_AS(cuMemcpy3DPeerAsync).pCopy);
    WEIR_CALL_NOW(cuMemcpy) WEIR_LINEAR(cuMemcpy, dst, src);
    WEIR_CALL_NOW(cuMemcpyPeer) WEIR_LINEAR(cuMemcpyPeer, dstDevice, srcDevice);
    WEIR_CALL_NOW(cuMemcpyHtoD_v2) WEIR_HTOD(cuMemcpyHtoD_v2);
    WEIR_CALL_NOW(cuMemcpyDtoH_v2) WEIR_DTOH(cuMemcpyDtoH_v2);
    WEIR_CALL_NOW(cuMemcpyDtoD_v2) WEIR_LINEAR(cuMemcpyDtoD_v2, dstDevice, srcDevice);
    WEIR_CALL_NOW(cuMemcpyHtoA_v2)
    c.read({bits(WEIR_AS(cuMemcpyHtoA_v2).srcHost), WEIR_AS(cuMemcpyHtoA_v2).ByteCount});
    WEIR_CALL_NOW(cuMemcpyAtoH_v2)
    c.write({bits(WEIR_AS(cuMemcpyAtoH_v2).dstHost), WEIR_AS(cuMemcpyAtoH_v2).ByteCount});
    WEIR_CALL_NOW(cuMemcpy2D_v2) flat(WEIR_AS(cuMemcpy2D_v2).pCopy);
    WEIR_CALL_NOW(cuMemcpy2DUnaligned_v2) flat(WEIR_AS(cuMemcpy2DUnaligned_v2).pCopy);
    WEIR_CALL_NOW(cuMemcpy3D_v2) deep(WEIR_AS(cuMemcpy3D_v2).pCopy);
#if CUDA_VERSION >= 12080
    WEIR_CALL(cuMemcpyBatchAsync) batch(WEIR_AS(cuMemcpyBatchAsync));
#endif
#if CUDA_VERSION >= 13000
    WEIR_CALL(cuMemcpyBatchAsync_v2) batch(WEIR_AS(cuMemcpyBatchAsync_v2));
#endif
    default:
      return;
  }
}

void find_set_accesses(const CudaFunction& function, const void* arguments, RaceAccesses& accesses) {
  const auto set = [&](Hull hull) {
    if (hull.bytes != 0) accesses.list.push_back({hull.begin, hull.bytes, kWrites | kExact, 0});
  };
  const auto flat = [&](const auto& all, std::uint64_t word) {
    set(hull_of(all.dstDevice, 0, 0, 0, all.dstPitch, 0, all.Width * word, all.Height, 1));
  };
  switch (function.id) {
    WEIR_CALL(cuMemsetD8Async) set({WEIR_AS(cuMemsetD8Async).dstDevice, WEIR_AS(cuMemsetD8Async).N});
    WEIR_CALL(cuMemsetD16Async) set({WEIR_AS(cuMemsetD16Async).dstDevice, WEIR_AS(cuMemsetD16Async).N * 2});
    WEIR_CALL(cuMemsetD32Async) set({WEIR_AS(cuMemsetD32Async).dstDevice, WEIR_AS(cuMemsetD32Async).N * 4});
    WEIR_CALL(cuMemsetD2D8Async) flat(WEIR_AS(cuMemsetD2D8Async), 1);
    WEIR_CALL(cuMemsetD2D16Async) flat(WEIR_AS(cuMemsetD2D16Async), 2);
    WEIR_CALL(cuMemsetD2D32Async) flat(WEIR_AS(cuMemsetD2D32Async), 4);
    WEIR_CALL_NOW(cuMemsetD8_v2) set({WEIR_AS(cuMemsetD8_v2).dstDevice, WEIR_AS(cuMemsetD8_v2).N});
    WEIR_CALL_NOW(cuMemsetD16_v2) set({WEIR_AS(cuMemsetD16_v2).dstDevice, WEIR_AS(cuMemsetD16_v2).N * 2});
    WEIR_CALL_NOW(cuMemsetD32_v2) set({WEIR_AS(cuMemsetD32_v2).dstDevice, WEIR_AS(cuMemsetD32_v2).N * 4});
    default:
      return;
  }
}

void find_word_accesses(const CudaFunction& function, const void* arguments, RaceAccesses& accesses) {
  const auto word = [&](std::uint64_t address, std::uint64_t bytes, std::uint32_t how) {
    accesses.list.push_back({address, bytes, how | kExact, 0});
  };
  const auto batch = [&](const cuStreamBatchMemOp_v2_params& all) {
    if (all.paramArray == nullptr) return;
    for (std::size_t i = 0; i < std::min(std::size_t{all.count}, kMostAccesses); ++i) {
      const CUstreamBatchMemOpParams& one = all.paramArray[i];
      if (one.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32) word(one.waitValue.address, 4, kReads);
      if (one.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64) word(one.waitValue.address, 8, kReads);
      if (one.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32) word(one.writeValue.address, 4, kWrites);
      if (one.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64) word(one.writeValue.address, 8, kWrites);
    }
  };
  switch (function.id) {
    WEIR_CALL(cuStreamBatchMemOp_v2) batch(WEIR_AS(cuStreamBatchMemOp_v2));
    WEIR_CALL(cuStreamWaitValue32_v2) word(WEIR_AS(cuStreamWaitValue32_v2).addr, 4, kReads);
    WEIR_CALL(cuStreamWaitValue64_v2) word(WEIR_AS(cuStreamWaitValue64_v2).addr, 8, kReads);
    WEIR_CALL(cuStreamWriteValue32_v2) word(WEIR_AS(cuStreamWriteValue32_v2).addr, 4, kWrites);
    WEIR_CALL(cuStreamWriteValue64_v2) word(WEIR_AS(cuStreamWriteValue64_v2).addr, 8, kWrites);
    default:
      return;
  }
}

}  // namespace

void find_accesses(const CudaFunction& function, const void* arguments, bool is_captured, RaceAccesses& accesses) {
  accesses.list.clear();
  accesses.is_synchronous = false;
  switch (function.kind) {
    case record::Kind::launch:
      switch (function.id) {
        WEIR_CALL(cuLaunchKernel)
        find_kernel_accesses(WEIR_AS(cuLaunchKernel).f, WEIR_AS(cuLaunchKernel).kernelParams,
                             WEIR_AS(cuLaunchKernel).extra, accesses);
        WEIR_CALL(cuLaunchKernelEx)
        find_kernel_accesses(WEIR_AS(cuLaunchKernelEx).f, WEIR_AS(cuLaunchKernelEx).kernelParams,
                             WEIR_AS(cuLaunchKernelEx).extra, accesses);
        WEIR_CALL(cuLaunchCooperativeKernel)
        find_kernel_accesses(WEIR_AS(cuLaunchCooperativeKernel).f, WEIR_AS(cuLaunchCooperativeKernel).kernelParams,
                             nullptr, accesses);
        default:
          return;
      }
    case record::Kind::copy:
    case record::Kind::synchronous_copy: {
      CopyAccesses copy(accesses, function.kind == record::Kind::copy, is_captured);
      return find_copy_accesses(function, arguments, copy);
    }
    case record::Kind::memset:
      return find_set_accesses(function, arguments, accesses);
    case record::Kind::memory_operation:
      return find_word_accesses(function, arguments, accesses);
    default:
      return;
  }
}

void forget_kernels_parameters() noexcept { g_parameters_epoch.fetch_add(1, std::memory_order_acq_rel); }

}  // namespace weir::inject
