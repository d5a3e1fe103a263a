#include "submit/inject/cuda_hooks.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "submit/inject/cupti_library.h"
#include "submit/inject/cupti_subscription.h"
#include "submit/inject/of_thread.h"

// The header says the newest versions where these names stand.
#undef cuGetProcAddress
#undef cuCtxDestroy
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuGraphExecKernelNodeSetParams
#undef cuGraphExecUpdate
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // programs still call them

// Hidden, so that this library's own reference to it is never to another dlsym().
extern "C" __attribute__((visibility("hidden"))) void* weir_dlsym(void* library, const char* name);

namespace weir::inject {

#if CUDA_VERSION >= 13000
// Declared for their types, which are as CUDA 12.8 had them, and defined nowhere.
CUresult copy_batch(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*, size_t*, size_t, size_t*,
                    CUstream);
CUresult copy_batch_3d(size_t, CUDA_MEMCPY3D_BATCH_OP*, size_t*, unsigned long long, CUstream);
#endif
struct cuCtxSynchronize_params {};
// As programs know them that were built before CUDA 12.
CUresult update_graph(CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*);
CUresult set_kernel_node(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1*);

namespace {

using Dlsym = void* (*)(void*, const char*);

[[gnu::noinline]] Dlsym loaders() noexcept {
  static std::atomic<Dlsym> found{nullptr};
  if (const Dlsym known = found.load(std::memory_order_relaxed); known != nullptr) return known;
#if defined(__x86_64__)
  constexpr const char* kVersion = "GLIBC_2.2.5";
#else
  constexpr const char* kVersion = "GLIBC_2.17";
#endif
  const auto next = reinterpret_cast<Dlsym>(::dlvsym(RTLD_NEXT, "dlsym", kVersion));
  found.store(next, std::memory_order_relaxed);
  return next;
}

// Functions without which there are no hooks.
struct Driver {
  CUresult (*current)(CUcontext*) = nullptr;
  CUresult (*context_id)(CUcontext, unsigned long long*) = nullptr;
  CUresult (*stream_id)(CUstream, unsigned long long*) = nullptr;
  CUresult (*function_name)(const char**, CUfunction) = nullptr;
  CUresult (*kernel_name)(const char**, CUkernel) = nullptr;
  CUresult (*exchange_capture_mode)(CUstreamCaptureMode*) = nullptr;
};
Driver g_driver;                        // filled before anything is wanted
std::atomic<std::uint32_t> g_calls{0};  // correlation numbers
std::atomic<std::uint32_t> g_epoch{1};  // changes when handles may have become others'

struct Memory {
  struct Name {
    CUfunction function = nullptr;
    const char* text = nullptr;
  };
  std::uint32_t epoch = 0, context_id = 0;
  CUcontext context = nullptr;
  // Where the present call goes instead.
  CUstream stream = nullptr;
  CUgraphExec graph = nullptr;
  std::array<Name, 256> names;
};

Memory* memory() noexcept {
  Memory* const mine = OfThread<Memory>::get();
  if (const std::uint32_t now = g_epoch.load(std::memory_order_acquire); mine != nullptr && mine->epoch != now) {
    *mine = Memory{};
    mine->epoch = now;
  }
  return mine;
}

// A question may load a kernel, which would end the capture that this thread, or in global mode any other, has begun.
class Relaxed {
 public:
  Relaxed() noexcept { g_driver.exchange_capture_mode(&mode_); }
  ~Relaxed() { g_driver.exchange_capture_mode(&mode_); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

const char* name_of(Memory& mine, CUfunction function) noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(function);
  Memory::Name& known = mine.names[((bits >> 4) ^ (bits >> 12)) % mine.names.size()];
  if (known.function == function) return known.text;
  const char* text = nullptr;
  const Relaxed relaxed;
  // The runtime launches kernels of libraries by handles of the other kind.
  if (g_driver.function_name(&text, function) != CUDA_SUCCESS &&
      g_driver.kernel_name(&text, reinterpret_cast<CUkernel>(function)) != CUDA_SUCCESS)
    text = nullptr;
  known = {function, text};
  return text;
}

// The kernel among the arguments of a call.
template <class Argument>
CUfunction kernel_in(Argument argument) noexcept {
  if constexpr (std::is_same_v<Argument, CUfunction>) return argument;
  return nullptr;
}

// A call under way.
class Reported {
 public:
  Reported(std::uint16_t id, const void* arguments, CUfunction kernel, Memory& mine) noexcept
      : function_(cuda_functions()[id]) {
    CUcontext context = nullptr;
    if (g_driver.current(&context) != CUDA_SUCCESS) context = nullptr;
    if (context != mine.context) {
      unsigned long long number = 0;
      if (context == nullptr || g_driver.context_id(context, &number) != CUDA_SUCCESS) number = 0;
      mine.context = context;
      mine.context_id = static_cast<std::uint32_t>(number);
    }
    data_.functionName = function_.name;
    data_.functionParams = arguments;
    data_.functionReturnValue = &result_;
    data_.symbolName = kernel == nullptr ? nullptr : name_of(mine, kernel);
    data_.context = context;
    data_.contextUid = mine.context_id;
    data_.correlationData = &between_;
    data_.correlationId = g_calls.fetch_add(1, std::memory_order_relaxed) + 1;
    data_.callbackSite = CUPTI_API_ENTER;
    deliver_call(function_, data_, true);
  }
  CUresult ended(CUresult result) noexcept {
    result_ = result;
    data_.callbackSite = CUPTI_API_EXIT;
    deliver_call(function_, data_, true);
    if (function_.role == CudaFunction::Role::names_end || function_.role == CudaFunction::Role::context_ends)
      g_epoch.fetch_add(1, std::memory_order_acq_rel);
    return result;
  }

 private:
  const CudaFunction& function_;
  CUpti_CallbackData data_{};
  CUresult result_ = CUDA_SUCCESS;
  std::uint64_t between_ = 0;
};

void find_all() noexcept;

// The arguments of a launch that goes elsewhere.
class Redirected {
 public:
  Redirected(CUstream stream, CUgraphExec graph) noexcept : stream_(stream), graph_(graph) {}
  CUstream operator()(CUstream stream) noexcept { return stream_ != nullptr ? stream_ : stream; }
  CUgraphExec operator()(CUgraphExec graph) noexcept { return graph_ != nullptr ? graph_ : graph; }
  const CUlaunchConfig* operator()(const CUlaunchConfig* config) noexcept {
    if (config == nullptr || stream_ == nullptr) return config;
    config_ = *config;
    config_.hStream = stream_;
    return &config_;
  }
  template <class Other>
  Other operator()(Other other) noexcept {
    return other;
  }

 private:
  CUstream stream_;
  CUgraphExec graph_;
  CUlaunchConfig config_{};
};

// One function of the driver. `Arguments`: what CUPTI calls its parameters.
template <std::uint16_t Id, class Arguments, class Signature>
struct Hook;
template <std::uint16_t Id, class Arguments, class... Types>
struct Hook<Id, Arguments, CUresult(Types...)> {
  static constinit inline std::atomic<void*> real{nullptr};
  static constinit inline std::atomic<bool> is_wanted{false};
  static constexpr bool kIsRedirected =
      Id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel || Id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz ||
      Id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx || Id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz ||
      Id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch || Id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz;

  // Not noexcept: a thread may be cancelled while the driver waits.
  static CUresult CUDAAPI call(Types... arguments) {
    auto driver = reinterpret_cast<CUresult (*)(Types...)>(real.load(std::memory_order_relaxed));
    if (driver == nullptr) [[unlikely]] {
      find_all();  // a program that is linked with the driver
      driver = reinterpret_cast<CUresult (*)(Types...)>(real.load(std::memory_order_relaxed));
      if (driver == nullptr) return CUDA_ERROR_NOT_FOUND;
    }
    if (!is_wanted.load(std::memory_order_acquire)) return driver(arguments...);
    Memory* const mine = memory();
    if (mine == nullptr) return driver(arguments...);
    const Arguments all{arguments...};
    CUfunction kernel = nullptr;
    ((kernel = kernel == nullptr ? kernel_in(arguments) : kernel), ...);
    Reported reported(Id, &all, kernel, *mine);
    if constexpr (kIsRedirected) {
      if (mine->stream != nullptr || mine->graph != nullptr) [[unlikely]] {
        Redirected instead(std::exchange(mine->stream, nullptr), std::exchange(mine->graph, nullptr));
        if (driver(instead(arguments)...) == CUDA_SUCCESS) return reported.ended(CUDA_SUCCESS);
      }
    }
    return reported.ended(driver(arguments...));
  }
};

// one(name, a function of the same type), with its variants for programs with a default stream per thread
#define WEIR_SZ(one, name, like) one(name, like) one(name##_ptsz, like)
#define WEIR_DS(one, name) one(name, name) one(name##_ptds, name)
#if CUDA_VERSION >= 13000
#define WEIR_BATCHES(one)                                    \
  WEIR_SZ(one, cuMemcpyBatchAsync, copy_batch)               \
  WEIR_SZ(one, cuMemcpy3DBatchAsync, copy_batch_3d)          \
  WEIR_SZ(one, cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2) \
  WEIR_SZ(one, cuMemcpy3DBatchAsync_v2, cuMemcpy3DBatchAsync_v2) one(cuCtxSynchronize_v2, cuCtxSynchronize_v2)
#elif CUDA_VERSION >= 12080
#define WEIR_BATCHES(one)                              \
  WEIR_SZ(one, cuMemcpyBatchAsync, cuMemcpyBatchAsync) \
  WEIR_SZ(one, cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync)
#else
#define WEIR_BATCHES(one)
#endif
#if CUDA_VERSION >= 12030
#define WEIR_CAPTURES(one) WEIR_SZ(one, cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph)
#else
#define WEIR_CAPTURES(one)
#endif
#if CUDA_VERSION >= 12040
#define WEIR_GREEN(one) one(cuGreenCtxDestroy, cuGreenCtxDestroy)
#else
#define WEIR_GREEN(one)
#endif
#define WEIR_SAME(one, name) WEIR_SZ(one, name, name)
#define WEIR_ONE(one, name) one(name, name)
// clang-format off
#define WEIR_GRAPHS(one)                                                                                 \
  WEIR_ONE(one, cuGraphInstantiateWithFlags)                                                             \
  WEIR_SAME(one, cuGraphInstantiateWithParams)                                                           \
  WEIR_ONE(one, cuGraphExecDestroy)                                                                      \
  one(cuGraphExecUpdate, update_graph)                                                                   \
  WEIR_ONE(one, cuGraphExecUpdate_v2)                                                                    \
  WEIR_ONE(one, cuGraphExecNodeSetParams)                                                                \
  one(cuGraphExecKernelNodeSetParams, set_kernel_node)                                                   \
  WEIR_ONE(one, cuGraphExecKernelNodeSetParams_v2)                                                       \
  WEIR_ONE(one, cuGraphExecMemcpyNodeSetParams)                                                          \
  WEIR_ONE(one, cuGraphExecMemsetNodeSetParams)                                                          \
  WEIR_ONE(one, cuGraphExecHostNodeSetParams)                                                            \
  WEIR_ONE(one, cuGraphExecChildGraphNodeSetParams)                                                      \
  WEIR_ONE(one, cuGraphExecEventRecordNodeSetEvent)                                                      \
  WEIR_ONE(one, cuGraphExecEventWaitNodeSetEvent)                                                        \
  WEIR_ONE(one, cuGraphExecExternalSemaphoresSignalNodeSetParams)                                        \
  WEIR_ONE(one, cuGraphExecExternalSemaphoresWaitNodeSetParams)                                          \
  WEIR_ONE(one, cuGraphExecBatchMemOpNodeSetParams)                                                      \
  WEIR_ONE(one, cuGraphNodeSetEnabled)
// Memory, and what else only those want who ask which commands touch the same memory.
#define WEIR_TOUCHES(one)                                                                                \
  WEIR_ONE(one, cuMemAllocPitch_v2)                                                                      \
  WEIR_ONE(one, cuMemAllocManaged)                                                                       \
  WEIR_SAME(one, cuMemAllocAsync)                                                                        \
  WEIR_SAME(one, cuMemAllocFromPoolAsync)                                                                \
  WEIR_SAME(one, cuMemFreeAsync)                                                                         \
  WEIR_ONE(one, cuMemAllocHost_v2)                                                                       \
  WEIR_ONE(one, cuMemHostRegister_v2)                                                                    \
  WEIR_ONE(one, cuMemHostUnregister)                                                                     \
  WEIR_ONE(one, cuMemMap)                                                                                \
  WEIR_ONE(one, cuMemUnmap)                                                                              \
  WEIR_ONE(one, cuStreamCreate)                                                                          \
  WEIR_ONE(one, cuStreamCreateWithPriority)                                                              \
  WEIR_SAME(one, cuStreamQuery)                                                                          \
  WEIR_ONE(one, cuEventQuery)
// clang-format on
// All that cupti_functions.cpp follows.
#define WEIR_HOOKS(one)                                                                                                \
  WEIR_SAME(one, cuLaunchKernel)                                                                                       \
  WEIR_SAME(one, cuLaunchCooperativeKernel)                                                                            \
  WEIR_SAME(one, cuLaunchKernelEx)                                                                                     \
  one(cuLaunchCooperativeKernelMultiDevice, cuLaunchCooperativeKernelMultiDevice) WEIR_SAME(one, cuLaunchHostFunc)     \
      WEIR_SAME(one, cuStreamAddCallback) WEIR_SAME(one, cuGraphLaunch) WEIR_SAME(one, cuMemcpyAsync) WEIR_SAME(       \
          one, cuMemcpyPeerAsync) WEIR_SAME(one, cuMemcpyHtoDAsync_v2) WEIR_SAME(one, cuMemcpyDtoHAsync_v2)            \
          WEIR_SAME(one, cuMemcpyDtoDAsync_v2) WEIR_SAME(one, cuMemcpyHtoAAsync_v2) WEIR_SAME(                         \
              one, cuMemcpyAtoHAsync_v2) WEIR_SAME(one, cuMemcpy2DAsync_v2) WEIR_SAME(one, cuMemcpy3DAsync_v2)         \
              WEIR_SAME(one, cuMemcpy3DPeerAsync) WEIR_BATCHES(one) WEIR_SAME(one, cuMemsetD8Async) WEIR_SAME(         \
                  one, cuMemsetD16Async) WEIR_SAME(one, cuMemsetD32Async) WEIR_SAME(one, cuMemsetD2D8Async)            \
                  WEIR_SAME(one, cuMemsetD2D16Async) WEIR_SAME(one, cuMemsetD2D32Async) WEIR_DS(                       \
                      one, cuMemsetD8_v2) WEIR_DS(one, cuMemsetD16_v2) WEIR_DS(one, cuMemsetD32_v2)                    \
                      WEIR_DS(one, cuMemcpy) WEIR_DS(one, cuMemcpyPeer) WEIR_DS(one, cuMemcpyHtoD_v2) WEIR_DS(         \
                          one, cuMemcpyDtoH_v2) WEIR_DS(one, cuMemcpyDtoD_v2) WEIR_DS(one, cuMemcpyHtoA_v2)            \
                          WEIR_DS(one, cuMemcpyAtoH_v2) WEIR_DS(one, cuMemcpy2D_v2) WEIR_DS(                           \
                              one, cuMemcpy2DUnaligned_v2) WEIR_DS(one, cuMemcpy3D_v2)                                 \
                              WEIR_SAME(one, cuStreamWaitValue32_v2) WEIR_SAME(one, cuStreamWaitValue64_v2) WEIR_SAME( \
                                  one, cuStreamWriteValue32_v2) WEIR_SAME(one, cuStreamWriteValue64_v2)                \
                                  WEIR_SAME(one, cuStreamBatchMemOp_v2) WEIR_SAME(one, cuEventRecord) WEIR_SAME(       \
                                      one, cuEventRecordWithFlags) WEIR_SAME(one, cuStreamWaitEvent)                   \
                                      WEIR_SAME(one, cuStreamSynchronize) one(cuEventSynchronize, cuEventSynchronize)  \
                                          one(cuCtxSynchronize, cuCtxSynchronize) one(                                 \
                                              cuEventCreate, cuEventCreate) one(cuEventDestroy_v2, cuEventDestroy_v2)  \
                                              one(cuMemAlloc_v2, cuMemAlloc_v2) one(cuMemFree_v2, cuMemFree_v2) one(   \
                                                  cuMemHostAlloc, cuMemHostAlloc) one(cuMemFreeHost, cuMemFreeHost)    \
                                                  one(cuModuleLoadData, cuModuleLoadData)                              \
                                                      one(cuModuleLoadDataEx, cuModuleLoadDataEx)                      \
                                                          one(cuLibraryLoadData, cuLibraryLoadData)                    \
                                                              WEIR_SAME(one, cuStreamBeginCapture_v2) WEIR_SAME(       \
                                                                  one, cuStreamEndCapture) WEIR_CAPTURES(one)          \
                                                                  one(cuStreamDestroy_v2, cuStreamDestroy_v2) one(     \
                                                                      cuModuleUnload, cuModuleUnload)                  \
                                                                      one(cuLibraryUnload, cuLibraryUnload) one(       \
                                                                          cuCtxDestroy, cuCtxDestroy_v2)               \
                                                                          one(cuCtxDestroy_v2, cuCtxDestroy_v2) one(   \
                                                                              cuDevicePrimaryCtxRelease,               \
                                                                              cuDevicePrimaryCtxRelease_v2)            \
                                                                              one(cuDevicePrimaryCtxRelease_v2,        \
                                                                                  cuDevicePrimaryCtxRelease_v2)        \
                                                                                  one(cuDevicePrimaryCtxReset,         \
                                                                                      cuDevicePrimaryCtxReset_v2)      \
                                                                                      one(cuDevicePrimaryCtxReset_v2,  \
                                                                                          cuDevicePrimaryCtxReset_v2)  \
                                                                                          WEIR_GREEN(one)              \
                                                                                              WEIR_GRAPHS(one)         \
                                                                                                  WEIR_TOUCHES(one)

#define WEIR_TYPE(name, like) Hook<CUPTI_DRIVER_TRACE_CBID_##name, name##_params, decltype(like)>

struct Entry {
  const char* name;
  std::uint16_t id;  // 0: not one that is followed
  void* ours;
  std::atomic<void*>* real;
  std::atomic<bool>* is_wanted;
};

CUresult CUDAAPI give_address(const char*, void**, int, cuuint64_t);
CUresult CUDAAPI give_address_v2(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
constinit std::atomic<void*> g_give_address{nullptr}, g_give_address_v2{nullptr};
constinit std::atomic<bool> g_ignored{false};

const Entry* entries(std::size_t& count) noexcept {
#define WEIR_ENTRY(name, like)                                                                   \
  {#name, CUPTI_DRIVER_TRACE_CBID_##name, reinterpret_cast<void*>(&WEIR_TYPE(name, like)::call), \
   &WEIR_TYPE(name, like)::real, &WEIR_TYPE(name, like)::is_wanted},
  static const Entry kEntries[] = {
      WEIR_HOOKS(WEIR_ENTRY){"cuGetProcAddress", 0, reinterpret_cast<void*>(&give_address), &g_give_address,
                             &g_ignored},
      {"cuGetProcAddress_v2", 0, reinterpret_cast<void*>(&give_address_v2), &g_give_address_v2, &g_ignored}};
  count = std::size(kEntries);
  return kEntries;
}

void* driver_library() noexcept { return ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); }

constinit std::atomic<bool> g_was_searched{false};

// All functions of the driver that is loaded; again is harmless.
void find_all() noexcept {
  void* const library = driver_library();
  std::size_t count = 0;
  const Entry* const all = entries(count);
  for (std::size_t i = 0; library != nullptr && i < count; ++i)
    if (void* const found = find_symbol(library, all[i].name); found != nullptr && found != all[i].ours)
      all[i].real->store(found, std::memory_order_release);
  g_was_searched.store(library != nullptr, std::memory_order_release);
}

// The driver has given the program a launch that it does not export, and that is therefore none of the entries.
constinit std::atomic<bool> g_has_others{false};

// Ours in place of a function of the driver; others stay what they are.
void* replaced(void* function) noexcept {
  if (function == nullptr) return nullptr;
  if (!g_was_searched.load(std::memory_order_acquire)) find_all();
  std::size_t count = 0;
  const Entry* const all = entries(count);
  for (std::size_t i = 0; i < count; ++i)
    if (all[i].real->load(std::memory_order_acquire) == function) return all[i].ours;
  return function;
}

// Replaces what the driver gave for a name.
void replace_given(const char* name, void** function) noexcept {
  if (function == nullptr || *function == nullptr) return;
  void* const given = *function;
  *function = replaced(given);
  if (*function == given && name != nullptr && std::strcmp(name, "cuLaunchKernel") == 0) g_has_others.store(true);
}

CUresult CUDAAPI give_address(const char* name, void** function, int version, cuuint64_t flags) {
  if (g_give_address.load(std::memory_order_acquire) == nullptr)
    find_all();  // a program that is linked with the driver
  const auto driver = reinterpret_cast<decltype(&give_address)>(g_give_address.load(std::memory_order_acquire));
  if (driver == nullptr) return CUDA_ERROR_NOT_FOUND;
  const CUresult result = driver(name, function, version, flags);
  if (result == CUDA_SUCCESS) replace_given(name, function);
  return result;
}
CUresult CUDAAPI give_address_v2(const char* name, void** function, int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult* status) {
  if (g_give_address_v2.load(std::memory_order_acquire) == nullptr) find_all();
  const auto driver = reinterpret_cast<decltype(&give_address_v2)>(g_give_address_v2.load(std::memory_order_acquire));
  if (driver == nullptr) return CUDA_ERROR_NOT_FOUND;
  const CUresult result = driver(name, function, version, flags, status);
  if (result == CUDA_SUCCESS) replace_given(name, function);
  return result;
}

// "cuLaunchKernel", but not "cudaLaunchKernel" or "cublasCreate".
bool is_of_driver(const char* name) noexcept {
  return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

// Profilers call the driver for themselves.
bool is_profiler(void* code) noexcept {
  Dl_info info{};
  if (::dladdr(code, &info) == 0 || info.dli_fname == nullptr) return false;
  const std::string_view path = info.dli_fname;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (const std::string_view theirs : {"libcupti.", "libcuda.", "libnvperf", "libcudadebugger."})
    if (file.starts_with(theirs)) return true;
  return false;
}

[[gnu::noinline]] void* driver_symbol(void* library, const char* name, void* caller) noexcept {
  void* const found = find_symbol(library, name);
  if (found == nullptr) return nullptr;
  void* const ours = is_profiler(caller) ? found : replaced(found);
  ::dlerror();  // what was not found on the way is no error of the program
  return ours;
}

bool bind() noexcept {
  // Preloaded means that the program's dlsym() is ours.
  if (find_symbol(RTLD_DEFAULT, "dlsym") != reinterpret_cast<void*>(&weir_dlsym)) return false;
  void* const library = driver_library();
  if (library == nullptr) return false;
  find_all();
  const EntryPoints driver(library);
  Driver found;
  const bool has_all = driver.want(found.current, "cuCtxGetCurrent") && driver.want(found.context_id, "cuCtxGetId") &&
                       driver.want(found.stream_id, "cuStreamGetId") &&
                       driver.want(found.function_name, "cuFuncGetName") &&
                       driver.want(found.kernel_name, "cuKernelGetName") &&
                       driver.want(found.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  if (!has_all || g_has_others.load()) return false;
  g_driver = found;
  return true;
}

}  // namespace

void* find_symbol(void* library, const char* name) noexcept {
  const Dlsym next = loaders();
  return next == nullptr ? nullptr : next(library, name);
}

bool has_hooks() noexcept {
  static const bool kHas = bind();
  return kHas;
}

void want_hooks(const std::bitset<kMaxCudaFunctions>& functions) noexcept {
  g_epoch.fetch_add(1, std::memory_order_acq_rel);  // what ended while nobody looked was not seen
  std::size_t count = 0;
  const Entry* const all = entries(count);
  for (std::size_t i = 0; i < count; ++i)
    all[i].is_wanted->store(all[i].id != 0 && functions[all[i].id], std::memory_order_release);
}

void redirect_call(CUstream stream, CUgraphExec graph) noexcept {
  if (Memory* const mine = memory(); mine != nullptr) {
    mine->stream = stream;
    mine->graph = graph;
  }
}

std::uint32_t stream_id_by_driver(CUstream stream) noexcept {
  unsigned long long number = 0;
  const Relaxed relaxed;
  return g_driver.stream_id(stream, &number) == CUDA_SUCCESS ? static_cast<std::uint32_t>(number) : record::kNone;
}

std::uint32_t context_id_by_driver(CUcontext context) noexcept {
  unsigned long long number = 0;
  return g_driver.context_id(context, &number) == CUDA_SUCCESS ? static_cast<std::uint32_t>(number) : record::kNone;
}

// What the program's own references to the driver's functions lead to, where it is linked with the driver.
#if defined(__x86_64__)
#define WEIR_JUMP(name) "endbr64\n\tjmp *weir_hook_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define WEIR_JUMP(name) \
  "hint #34\n\tadrp x16, weir_hook_" #name "\n\tldr x16, [x16, :lo12:weir_hook_" #name "]\n\tbr x16\n"
#endif
#define WEIR_EXPORT_AS(name, function)                                                                     \
  extern "C" {                                                                                             \
  extern decltype(&function) weir_hook_##name;                                                             \
  __attribute__((visibility("hidden"), used)) decltype(&function) weir_hook_##name = &function;            \
  }                                                                                                        \
  asm(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n\t" WEIR_JUMP(name) ".size " #name \
                                                                                            ", .-" #name "\n");
#define WEIR_EXPORT(name, like) WEIR_EXPORT_AS(name, WEIR_TYPE(name, like)::call)
WEIR_HOOKS(WEIR_EXPORT)
WEIR_EXPORT_AS(cuGetProcAddress, give_address)
WEIR_EXPORT_AS(cuGetProcAddress_v2, give_address_v2)

}  // namespace weir::inject

// The loader looks for RTLD_NEXT behind the library that calls it, and takes the return address for that: this must be
// a jump, which is also why it is not noexcept.
#if defined(__clang__)
#define WEIR_JUMPS [[clang::musttail]]
#else
#define WEIR_JUMPS
__attribute__((optimize("O2")))
#endif
void* weir_dlsym(void* library, const char* name) {
  using namespace weir::inject;
  // In the scope of everybody our functions come first, and the loader knows the scope of the caller by the jump.
  if (library != RTLD_NEXT && library != RTLD_DEFAULT && is_of_driver(name)) [[unlikely]]
    return driver_symbol(library, name, __builtin_return_address(0));
  const Dlsym next = loaders();
  WEIR_JUMPS return next(library, name);
}
asm(".globl dlsym\n.type dlsym, @function\n.set dlsym, weir_dlsym\n");
