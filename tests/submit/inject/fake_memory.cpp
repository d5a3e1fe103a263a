#include "fake_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace {

struct Memory {
  std::mutex mutex;
  std::map<CUdeviceptr, std::size_t> device, pinned;
  std::map<std::uint64_t, std::string> journal;
  std::string journal_text;
};
Memory& memory() {
  static Memory& kMemory = *new Memory;
  return kMemory;
}

char g_moving, g_delay, g_hash, g_module;
int g_global = 5;

bool find(const std::map<CUdeviceptr, std::size_t>& blocks, CUdeviceptr address, CUdeviceptr* begin,
          std::size_t* bytes) {
  auto at = blocks.upper_bound(address);
  if (at == blocks.begin()) return false;
  --at;
  if (address >= at->first + at->second) return false;
  *begin = at->first;
  *bytes = at->second;
  return true;
}

CUresult add(std::map<CUdeviceptr, std::size_t>& blocks, CUdeviceptr begin, std::size_t bytes) {
  const std::lock_guard lock(memory().mutex);
  blocks[begin] = bytes;
  return CUDA_SUCCESS;
}

// Not by the exported functions, which in a program with hooks are others.
CUresult allocate(CUdeviceptr* made, std::size_t bytes) {
  *made = reinterpret_cast<CUdeviceptr>(std::calloc(1, bytes));
  return add(memory().device, *made, bytes);
}
CUresult release(CUdeviceptr address) {
  const std::lock_guard lock(memory().mutex);
  return memory().device.erase(address) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;  // its memory stays
}

// As the kernel in PTX does it, written down once more.
std::uint64_t hash(const unsigned char* at, std::uint64_t bytes) {
  std::uint64_t sum = 0;
  for (std::uint64_t index = 0; index * 8 < bytes; ++index) {
    std::uint64_t word = 0;
    for (std::uint64_t i = 0; i < 8 && index * 8 + i < bytes; ++i) word |= std::uint64_t{at[index * 8 + i]} << (8 * i);
    word ^= (index + 1) * 0x9e3779b97f4a7c15u;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    sum += word ^ (word >> 31);
  }
  return sum;
}

template <class T>
T parameter(void** parameters, int at) {
  T value{};
  std::memcpy(&value, parameters[at], sizeof(value));
  return value;
}

FakeWork copy_of(void* to, const void* from, std::size_t bytes) {
  return {10, [=] { std::memcpy(to, from, bytes); }};
}

}  // namespace

FakeWork fake_memory_kernel(CUfunction function, void** parameters) {
  const void* const kernel = function;
  if (kernel == &g_moving)
    return {parameter<int>(parameters, 0), [from = parameter<int*>(parameters, 1),
                                            target = parameter<FakeTarget>(parameters, 2)] { *target.to = *from + 1; }};
  if (kernel == &g_delay) return {static_cast<int>(parameter<std::int64_t>(parameters, 0) / 1000), [] {}};
  if (kernel == &g_hash)
    return {1, [begin = parameter<const unsigned char*>(parameters, 0), bytes = parameter<std::uint64_t>(parameters, 1),
                result = parameter<volatile std::uint64_t*>(parameters, 2)] {
              result[0] = hash(begin, bytes);
              result[1] = 1;
            }};
  return {};
}

void fake_memory_note(std::uint64_t stream, const std::string& word) {
  const std::lock_guard lock(memory().mutex);
  std::string& line = memory().journal[stream];
  line += (line.empty() ? "" : " ") + word;
}

extern "C" {

CUfunction fake_driver_moving_kernel() { return reinterpret_cast<CUfunction>(&g_moving); }
int* fake_driver_global() { return &g_global; }
const char* fake_driver_journal() {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  m.journal_text.clear();
  for (const auto& [stream, line] : m.journal)
    m.journal_text += "stream " + std::to_string(stream) + ": " + line + "\n";
  return m.journal_text.c_str();
}

CUresult cuMemAlloc(CUdeviceptr* made, std::size_t bytes) { return allocate(made, bytes); }
CUresult cuMemAllocAsync(CUdeviceptr* made, std::size_t bytes, CUstream) { return allocate(made, bytes); }
CUresult cuMemFree(CUdeviceptr address) { return release(address); }
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) { return release(address); }
CUresult cuMemHostAlloc(void** made, std::size_t bytes, unsigned) {
  *made = std::calloc(1, bytes);
  return add(memory().pinned, reinterpret_cast<CUdeviceptr>(*made), bytes);
}
CUresult cuMemHostRegister(void* begin, std::size_t bytes, unsigned) {
  if (fake_driver_spoils_a_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return add(memory().pinned, reinterpret_cast<CUdeviceptr>(begin), bytes);
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr* address, void* host, unsigned) {
  return *address = reinterpret_cast<CUdeviceptr>(host), CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange(CUdeviceptr* begin, std::size_t* bytes, CUdeviceptr address) {
  const std::lock_guard lock(memory().mutex);
  const auto global = reinterpret_cast<CUdeviceptr>(&g_global);
  if (address >= global && address < global + sizeof(g_global)) {
    *begin = global;
    *bytes = sizeof(g_global);
    return CUDA_SUCCESS;
  }
  return find(memory().device, address, begin, bytes) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  const bool is_device = cuMemGetAddressRange(&begin, &bytes, address) == CUDA_SUCCESS;
  const std::lock_guard lock(memory().mutex);
  if (!is_device && !find(memory().pinned, address, &begin, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
    return *static_cast<unsigned*>(value) = is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST, CUDA_SUCCESS;
  if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) return *static_cast<int*>(value) = 0, CUDA_SUCCESS;
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return fake_driver_submit(stream, copy_of(to, reinterpret_cast<const void*>(from), bytes));
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return fake_driver_submit(stream, copy_of(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes));
}

// What they do is not asked for.
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D*, CUstream stream) {
  return fake_driver_submit(stream, {1, [] {}});
}
CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D*, CUstream stream) {
  return fake_driver_submit(stream, {1, [] {}});
}
CUresult cuMemsetD2D16Async(CUdeviceptr, std::size_t, unsigned short, std::size_t, std::size_t, CUstream stream) {
  return fake_driver_submit(stream, {1, [] {}});
}
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr, cuuint32_t, unsigned) {
  return fake_driver_submit(stream, {1, [] {}});
}

CUresult cuModuleLoadData(CUmodule* made, const void* text) {
  if (fake_driver_spoils_a_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (std::strstr(static_cast<const char*>(text), ".entry") == nullptr) return CUDA_ERROR_INVALID_PTX;
  if (const char* const fails = std::getenv("FAKE_DRIVER_FAILS"); fails != nullptr && std::strcmp(fails, "load") == 0)
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  return *made = reinterpret_cast<CUmodule>(&g_module), CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* made, CUmodule, const char* name) {
  const bool is_delay = std::strcmp(name, "weir_race_delay") == 0;
  if (!is_delay && std::strcmp(name, "weir_race_hash") != 0) return CUDA_ERROR_NOT_FOUND;
  return *made = reinterpret_cast<CUfunction>(is_delay ? &g_delay : &g_hash), CUDA_SUCCESS;
}
// All kernels are of the kind that libraries have.
CUresult cuFuncGetParamInfo(CUfunction, std::size_t, std::size_t*, std::size_t*) { return CUDA_ERROR_INVALID_HANDLE; }
CUresult cuKernelGetParamInfo(CUkernel kernel, std::size_t at, std::size_t* offset, std::size_t* bytes) {
  constexpr std::size_t kOffsets[] = {0, 8, 16}, kBytes[] = {4, 8, 16};
  if (at >= (kernel == reinterpret_cast<CUkernel>(&g_moving) ? 3U : 1U)) return CUDA_ERROR_INVALID_VALUE;
  *offset = kOffsets[at];
  return *bytes = kBytes[at], CUDA_SUCCESS;
}

}  // extern "C"
