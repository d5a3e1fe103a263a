// Modules and launches of the fake HIP runtime: device functions are the catalogue's bodies on the host, or those of a
// library that the fake hipRTC made.
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "fake_hip.h"
#include "kernel/gemm.h"
#include "state.h"

using namespace weir::fake_hip;

struct ihipModule_t {
  void* library = nullptr;  // null: the catalogue
  int file = -1;            // that the library was opened from
  std::map<std::string, std::unique_ptr<ihipModuleSymbol_t>> functions;
};

namespace weir::fake_hip {
namespace {

// Blocks that only let time pass are at it at once, as on a GPU: as many as there are compute units, within reason.
// What computes is faster on one thread than on more than there are cores.
void run_blocks(const Kernel& kernel, const KernelCall& call, int compute_units) {
  const std::uint32_t blocks = kernel.blocks(call.shape);
  const bool only_waits = kernel.is_probe || kernel.name == "spin";
  const auto workers = only_waits ? std::min({blocks, static_cast<std::uint32_t>(compute_units), 16u}) : 1u;
  std::atomic<std::uint32_t> next{0};
  const auto work = [&] {
    // Relaxed: blocks know nothing of each other, and joining publishes what they wrote.
    for (std::uint32_t i = next.fetch_add(1, std::memory_order_relaxed); i < blocks;
         i = next.fetch_add(1, std::memory_order_relaxed))
      kernel.run_block(call, i);
  };
  std::vector<std::jthread> others;
  for (std::uint32_t i = 1; i < workers; ++i) others.emplace_back(work);
  work();
}

hipError_t launch(hipStream_t stream, const Kernel& kernel, const KernelCall& call) {
  const FakeHipWork what = {FakeHipWork::kernel, kernel.name.data(), 0};
  return submit(stream, "hipModuleLaunchKernel", what, [&kernel, call](int compute_units) {
    if (may_run_kernel()) run_blocks(kernel, call, compute_units);
  });
}

// What the fake hipRTC makes: a library for this machine, where others have code for a GPU.
bool is_library(const void* image) {
  constexpr unsigned kAmdGpu = 224;
  if (std::memcmp(image, ELFMAG, SELFMAG) != 0) return false;
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  return header.e_type == ET_DYN && header.e_machine != kAmdGpu;
}

// Images come without their size; the table of sections is the last thing in a library. The file stays open as long as
// the library: the loader knows libraries by name, and the next file would get the same number.
bool open_library(const void* image, ihipModule_t& module) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  const std::size_t bytes = header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
  module.file = memfd_create("weir_fake_hip", MFD_CLOEXEC);
  if (module.file < 0) return false;
  if (write(module.file, image, bytes) == static_cast<ssize_t>(bytes))
    module.library = dlopen(("/proc/self/fd/" + std::to_string(module.file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module.library == nullptr) close(module.file);
  return module.library != nullptr;
}

// Functions of such a library, under the names that hiprtc.cpp gives them.
std::unique_ptr<ihipModuleSymbol_t> library_function(void* library, const std::string& name) {
  auto made = std::make_unique<ihipModuleSymbol_t>();
  const auto find = [&](auto& entry, const char* prefix) {
    entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(dlsym(library, (prefix + name).c_str()));
  };
  find(made->pack, "weir_pack_");
  find(made->drop, "weir_drop_");
  find(made->run, "weir_run_");
  return made->run == nullptr ? nullptr : std::move(made);
}

bool is_code_object(const void* image) {
  if (image == nullptr) return false;
  constexpr std::string_view kBundle = "__CLANG_OFFLOAD_BUNDLE__", kElf = "\177ELF";
  return std::memcmp(image, kElf.data(), kElf.size()) == 0 ||
         std::strncmp(static_cast<const char*>(image), kBundle.data(), kBundle.size()) == 0;
}

}  // namespace
}  // namespace weir::fake_hip

WEIR_FAKE_EXPORT hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  const Lock lock(state().mutex);
  if (state().lost != 0) return static_cast<hipError_t>(state().lost);
  if (!is_code_object(image)) return hipErrorInvalidImage;
  auto made = std::make_unique<ihipModule_t>();
  if (is_library(image) && !open_library(image, *made)) return hipErrorInvalidImage;
  *module = made.release();
  return hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipModuleUnload(hipModule_t module) {
  const Lock lock(state().mutex);
  if (module != nullptr && module->library != nullptr) {
    dlclose(module->library);
    close(module->file);
  }
  delete module;
  return static_cast<hipError_t>(state().lost);
}

WEIR_FAKE_EXPORT hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
  const Lock lock(state().mutex);
  if (state().lost != 0) return static_cast<hipError_t>(state().lost);
  if (module == nullptr || name == nullptr) return hipErrorInvalidValue;
  auto& known = module->library == nullptr ? state().functions[name] : module->functions[name];
  if (known == nullptr && module->library != nullptr) {
    known = library_function(module->library, name);
    if (known == nullptr) return hipErrorNotFound;
  } else if (known == nullptr) {
    // "NAME=BODY" is a kernel of any name that does what the catalogue's does.
    const std::string_view all = name;
    const std::size_t equals = all.find('=');
    const auto found = weir::testing::device_function(all.substr(equals == all.npos ? 0 : equals + 1));
    if (!found) return hipErrorNotFound;
    known.reset(new ihipModuleSymbol_t{.function = *found, .name = std::string(all.substr(0, equals))});
  }
  *function = known.get();
  return hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y,
                                                  unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                                                  unsigned, hipStream_t stream, void** parameters, void** extra) {
  if (function == nullptr || parameters == nullptr || extra != nullptr) return hipErrorInvalidValue;
  const std::uint64_t threads = std::uint64_t{block_x} * block_y * block_z;
  if (std::uint64_t{grid_x} * grid_y * grid_z == 0 || threads == 0 || threads > 1024)
    return hipErrorInvalidConfiguration;
  if (function->run != nullptr) {
    const std::shared_ptr<void> packed(function->pack(parameters), function->drop);
    return submit(stream, "hipModuleLaunchKernel", {FakeHipWork::kernel, "library", 0},
                  [run = function->run, packed, grid = std::array{grid_x, grid_y, grid_z},
                   block = std::array{block_x, block_y, block_z}](int) {
                    if (may_run_kernel()) run(packed.get(), grid.data(), block.data());
                  });
  }
  return launch(stream, *function->function.kernel, weir::testing::kernel_call(function->function, parameters[0]));
}

// Kernels that a compiler put into the program: here a function of a module, as no compiler did. Calls what it exports
// itself, as ROCm does in places: whoever stands before both sees one launch twice.
WEIR_FAKE_EXPORT hipError_t hipLaunchKernel(const void* function, dim3 grid, dim3 block, void** parameters,
                                            size_t shared, hipStream_t stream) {
  return hipModuleLaunchKernel(static_cast<hipFunction_t>(const_cast<void*>(function)), grid.x, grid.y, grid.z, block.x,
                               block.y, block.z, static_cast<unsigned>(shared), stream, parameters, nullptr);
}

// Its events are in the order of the stream, as the device's times around a kernel are.
WEIR_FAKE_EXPORT hipError_t hipExtLaunchKernel(const void* function, dim3 grid, dim3 block, void** parameters,
                                               size_t shared, hipStream_t stream, hipEvent_t start, hipEvent_t stop,
                                               int) {
  if (start != nullptr)
    if (const hipError_t error = hipEventRecord(start, stream); error != hipSuccess) return error;
  if (const hipError_t error = hipLaunchKernel(function, grid, block, parameters, shared, stream); error != hipSuccess)
    return error;
  return stop == nullptr ? hipSuccess : hipEventRecord(stop, stream);
}

WEIR_FAKE_EXPORT const char* hipKernelNameRef(const hipFunction_t function) {
  return function == nullptr ? nullptr : function->name.c_str();
}

WEIR_FAKE_EXPORT const char* hipKernelNameRefByPtr(const void* function, hipStream_t) {
  return hipKernelNameRef(static_cast<hipFunction_t>(const_cast<void*>(function)));
}

WEIR_FAKE_EXPORT hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, hipFunction_t function,
                                                                               int threads, size_t) {
  if (function == nullptr || threads <= 0 || threads > 1024) return hipErrorInvalidValue;
  *blocks = 2048 / threads;
  return hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t body, void* data) {
  if (body == nullptr) return hipErrorInvalidValue;
  return submit(stream, "hipLaunchHostFunc", {FakeHipWork::other, "", 0},
                [body, data](int) { run_on_host_thread([body, data] { body(data); }); });
}

WEIR_FAKE_EXPORT hipError_t hipStreamAddCallback(hipStream_t handle, hipStreamCallback_t callback, void* data,
                                                 unsigned flags) {
  if (callback == nullptr || flags != 0) return hipErrorInvalidValue;
  {
    const Lock lock(state().mutex);
    const auto stream = find_stream(handle);
    if (stream != nullptr && stream->capture != nullptr) {
      stream->capture->is_invalid = true;
      return hipErrorStreamCaptureUnsupported;
    }
    note("callback");
  }
  return submit(handle, "hipStreamAddCallback", {FakeHipWork::other, "", 0},
                [=](int) { run_on_host_thread([=] { callback(handle, hipSuccess, data); }); });
}

WEIR_FAKE_EXPORT hipError_t weir_fake_hip_gemm(hipStream_t stream, const FakeHipGemm* gemm) {
  const weir::KernelShape shape{
      .type = gemm->type == 150   ? weir::ElementType::f16
              : gemm->type == 168 ? weir::ElementType::bf16
                                  : weir::ElementType::f32,
      .precision = gemm->type == 150   ? weir::Precision::fp16
                   : gemm->type == 168 ? weir::Precision::bf16
                                       : weir::Precision::fp32,
      .dims = {gemm->m, gemm->n, gemm->k,
               weir::gemm_flags(gemm->transposes_a != 0, gemm->transposes_b != 0, gemm->batch)},
      .scalars = {gemm->alpha, gemm->beta}};
  return launch(stream, weir::kernel(weir::kernel_named("gemm")),
                {shape, {const_cast<void*>(gemm->a), const_cast<void*>(gemm->b), gemm->c}});
}
