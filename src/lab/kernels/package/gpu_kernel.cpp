// Kernels of packages on CUDA and HIP: compiled for each precision, given device buffers, timed by the device's events.
#include "lab/kernels/package/gpu_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "device/gpu/compiler.h"
#include "device/gpu/context.h"
#include "device/gpu/cuda.h"
#include "device/gpu/error.h"
#include "device/gpu/hip.h"
#include "lab/kernels/package/build.h"
#include "lab/kernels/package/device_kernel.h"
#include "lab/kernels/package/launch_site.h"

namespace weir::package {
namespace {

// CUDA documents event_elapsed with "a resolution of around 0.5 microseconds"; HIP documents nothing, and its GPUs have
// clocks of 10 ns and 40 ns.
constexpr double kEventResolution_ns = 500;
// Used if the cache size is unknown: the largest Infinity Cache.
constexpr std::uint64_t kAssumedGpuCacheBytes = std::uint64_t{256} << 20;

// Launches in a stream. Knows no clock and no check.
class GpuLaunches final : public LaunchSite {
 public:
  // `module` is null for a library that launches by itself.
  GpuLaunches(const GpuApi& api, GpuModule module, GpuStream stream, const Case& wanted, std::vector<void*> buffers,
              std::string where)
      : LaunchSite(wanted.backend, wanted.precision, stream, std::move(buffers), std::move(where), module == nullptr),
        api_(api),
        module_(module),
        stream_(stream) {
    for (std::uint32_t i = 0; i < kMaxArguments; ++i) parameters_[i] = &words_[i];
  }

 private:
  struct Function {
    GpuFunction handle = nullptr;
    bool knows_parameters = false;
    std::vector<std::size_t> parameter_bytes;
    std::uint32_t shared_bytes = 48 << 10;  // allowed without a request, and then as requested
  };

  int launch(const WeirLaunch& launch) override {
    std::size_t index = find(launch.function);
    if (index == kUnknown)
      if (const int result = look_up(launch.function, &index); result != 0) return result;
    Function& function = functions_[index];
    if (function.knows_parameters && function.parameter_bytes.size() != launch.argument_count)
      return refuse(launch.function, fmt::format("takes {} arguments, and {} were given",
                                                 function.parameter_bytes.size(), launch.argument_count));
    for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
      const PackedArgument packed = pack(launch.arguments[i], buffers());
      if (function.knows_parameters && function.parameter_bytes[i] != packed.bytes)
        return refuse(launch.function, fmt::format("takes {} bytes as argument {}, and {} were given",
                                                   function.parameter_bytes[i], i, packed.bytes));
      words_[i] = packed.word;
    }
    int result = 0;
    if (launch.shared_bytes > function.shared_bytes && api_.function_attribute != nullptr) {
      result = api_.function_attribute(function.handle, kGpuMaxSharedBytes, static_cast<int>(launch.shared_bytes));
      function.shared_bytes = launch.shared_bytes;
    }
    const auto grid = [&](int i) { return at_least_one(launch.grid[i]); };
    const auto block = [&](int i) { return at_least_one(launch.block[i]); };
    if (result == 0)
      result = api_.launch(function.handle, grid(0), grid(1), grid(2), block(0), block(1), block(2),
                           launch.shared_bytes, stream_, parameters_, nullptr);
    if (result == 0) return 0;
    // An earlier launch may have lost the device, which has nothing to do with this launch's sizes.
    const std::string lost = lost_hint(api_, result);
    return refuse(
        launch.function,
        fmt::format("cannot be launched with grid {}x{}x{}, block {}x{}x{} and {} bytes of shared memory: {}{}{}",
                    grid(0), grid(1), grid(2), block(0), block(1), block(2), launch.shared_bytes, api_.describe(result),
                    lost.empty() ? "" : ". ", lost),
        result);
  }

  int look_up(const char* name, std::size_t* index) {
    Function found;
    int result = api_.function_get(&found.handle, module_, name);
    if (result == 0 && api_.function_load != nullptr) result = api_.function_load(found.handle);
    if (result != 0)
      return refuse(
          name, fmt::format("is not in the device source ({}); is it extern \"C\" __global__?", api_.describe(result)),
          result);
    if (api_.function_parameter != nullptr) {
      std::size_t offset = 0, bytes = 0;
      while (found.parameter_bytes.size() <= kMaxArguments &&
             api_.function_parameter(found.handle, found.parameter_bytes.size(), &offset, &bytes) == 0)
        found.parameter_bytes.push_back(bytes);
      found.knows_parameters = true;
    }
    functions_.push_back(std::move(found));
    *index = add(name);
    return 0;
  }

  const GpuApi& api_;
  GpuModule module_;
  GpuStream stream_;
  std::vector<Function> functions_;
  std::uint64_t words_[kMaxArguments] = {};
  void* parameters_[kMaxArguments];  // each points to its word: a driver that reads more than were given reads nothing
                                     // wild
};

// A device with its context, compiled code and properties. Shared by all kernels that are opened on it.
struct OpenGpu {
  OpenGpu(const GpuApi& api, int index) : context(api, index) {
    context.enter();
    check(api, api.facts(index, &facts), "asking what " + context.device_name() + " is");
    std::string reason;
    management = api.management == nullptr ? nullptr : api.management(&reason);
    if (management != nullptr && !facts.bus_id.empty()) board = management->find(facts.bus_id.c_str());
  }
  ~OpenGpu() {
    context.bind();
    modules.clear();
  }
  OpenGpu(const OpenGpu&) = delete;
  OpenGpu& operator=(const OpenGpu&) = delete;

  std::uint64_t free_bytes() const {
    std::size_t free = 0, total = 0;
    check(context.api(), context.api().memory_info(&free, &total), "asking " + context.device_name() + " for memory");
    return free;
  }

  PrimaryContext context;
  GpuFacts facts;
  const GpuManagement* management = nullptr;
  void* board = nullptr;
  std::map<Precision, GpuModuleOwner> modules;
};

class GpuKernel final : public DeviceKernel {
 public:
  // `free_before`: free bytes before setup(), which may allocate memory itself.
  GpuKernel(const std::shared_ptr<OpenGpu>& gpu, std::shared_ptr<const HostPart> part, std::string how,
            GpuModule module, const Case& wanted, std::uint64_t free_before)
      : DeviceKernel(std::move(part), wanted, std::move(how), gpu->context.device_name(), module == nullptr),
        gpu_(gpu),
        api_(gpu->context.api()),
        free_before_(free_before) {
    // Not kGpuStreamNonBlocking: launches that a library puts on the default stream by mistake are then ordered with
    // this stream, and timed.
    GpuStream stream = nullptr;
    succeed(api_.stream_create(&stream, 0, 0), "creating a stream");
    stream_ = GpuStreamOwner(stream, {&api_});
    began_ = make_event(api_, kGpuEventTiming);
    ended_ = make_event(api_, kGpuEventTiming);
    std::vector<void*> pointers;
    for (std::size_t i = 0; i < host_case().buffer_count(); ++i) pointers.push_back(allocate(i));
    for (std::size_t i = 0; i < host_case().buffer_count(); ++i) write_initial(i);
    launches_.emplace(api_, module, stream, wanted, std::move(pointers), where());
    note_free();
  }
  ~GpuKernel() override {
    // Pending work must not outlive its buffers. Errors were reported when they occurred.
    gpu_->context.bind();
    api_.stream_synchronize(stream_.get());
  }

  std::string device_model() const override { return gpu_->facts.model; }
  std::string clock() const override { return fmt::format("{} events", api_.vendor_name); }
  double resolution_ns() const override { return kEventResolution_ns; }

  BatchTime run(std::uint64_t count) override {
    enter();
    run_first();
    return time_runs(count);
  }

  BatchTime run_cold() override {
    enter();
    if (const std::string reason = cold_reason(); !reason.empty()) fail(reason);
    run_first();
    succeed(api_.set_32(scratch_.get(), ++flushes_, scratch_bytes_ / sizeof(std::uint32_t), stream_.get()),
            "overwriting caches");
    return time_runs(1);
  }

  // Scratch is allocated on first use, so that kernels without cold runs have all of the memory.
  std::string cold_reason() const override {
    if (scratch_) return {};
    gpu_->context.enter();
    const std::uint64_t bytes = 2 * (gpu_->facts.cache_bytes == 0 ? kAssumedGpuCacheBytes : gpu_->facts.cache_bytes);
    GpuPointer memory = 0;
    if (api_.memory_allocate(&memory, bytes) != 0)
      return fmt::format("{} has no {} MiB left to overwrite its caches with", device_name(), bytes >> 20);
    scratch_ = GpuMemoryOwner(memory, {&api_});
    scratch_bytes_ = bytes;
    return {};
  }

  KernelMemory memory() override {
    KernelMemory memory;
    memory.allocated_bytes = host_case().total_bytes();
    if (min_free_ <= free_before_) {
      memory.peak_bytes = free_before_ - min_free_;
    } else {
      memory.reason = fmt::format("others gave memory of {} back meanwhile", device_name());
    }
    return memory;
  }

  std::optional<double> energy_j() override {
    if (gpu_->board == nullptr) return std::nullopt;
    const auto read = gpu_->management->read_energy_j;
    return read == nullptr ? telemetry().energy_j : read(gpu_->board);
  }
  Telemetry telemetry() override { return gpu_->board == nullptr ? Telemetry{} : gpu_->management->read(gpu_->board); }

 private:
  void enter() override { gpu_->context.enter(); }
  LaunchSite& launches() override { return *launches_; }
  void wait() override { succeed(api_.stream_synchronize(stream_.get()), "waiting for the stream"); }
  void write(std::size_t buffer, std::span<const std::byte> bytes) override {
    succeed(api_.copy_to_device(buffers_[buffer].get(), bytes.data(), bytes.size(), stream_.get()), "filling a buffer");
    wait();
  }
  void read(std::size_t buffer, std::span<std::byte> bytes) override {
    succeed(api_.copy_to_host(bytes.data(), buffers_[buffer].get(), bytes.size(), stream_.get()), "reading a buffer");
    wait();
  }
  void after_first_run() override { note_free(); }  // by now libraries have allocated their workspaces

  void succeed(int result, std::string_view action) const {
    if (result != 0) weir::check(api_, result, fmt::format("{}: {}", where(), action));
  }

  void* allocate(std::size_t buffer) {
    const std::uint64_t bytes = host_case().bytes(buffer);
    const std::uint64_t free = gpu_->free_bytes();
    GpuPointer memory = 0;
    if (const int result = api_.memory_allocate(&memory, bytes); result != 0)
      reject(
          fmt::format("{}: buffer '{}' needs {} bytes (all buffers: {}), and {} are free: {}", where(),
                      host_case().buffer(buffer).name, bytes, host_case().total_bytes(), free, api_.describe(result)),
          "Use a smaller problem_size.");
    buffers_.emplace_back(memory, GpuClose<GpuPointer, &GpuApi::memory_free>{&api_});
    return reinterpret_cast<void*>(memory);
  }

  // Scratch belongs to the harness, so it counts as free.
  void note_free() { min_free_ = std::min(min_free_, gpu_->free_bytes() + scratch_bytes_); }

  BatchTime time_runs(std::uint64_t count) {
    int result = api_.event_record(began_.get(), stream_.get());
    const std::int64_t began_ns = now_ns();
    const int failed = call_runs(count);
    const std::int64_t called_ns = now_ns();
    if (result == 0) result = api_.event_record(ended_.get(), stream_.get());
    report(failed);
    if (result == 0) result = api_.event_synchronize(ended_.get());
    float milliseconds = 0;
    if (result == 0) result = api_.event_elapsed(&milliseconds, began_.get(), ended_.get());
    succeed(result, "running");
    return {.device_ns = static_cast<double>(milliseconds) * 1e6,
            .host_ns = static_cast<double>(called_ns - began_ns),
            .wall_ns = std::nullopt};
  }

  std::shared_ptr<OpenGpu> gpu_;
  const GpuApi& api_;
  std::uint64_t free_before_;
  std::uint64_t min_free_ = std::numeric_limits<std::uint64_t>::max();
  std::vector<GpuMemoryOwner> buffers_;
  mutable GpuMemoryOwner scratch_;
  mutable std::uint64_t scratch_bytes_ = 0;
  std::uint32_t flushes_ = 0;
  GpuStreamOwner stream_;
  GpuEventOwner began_, ended_;
  std::optional<GpuLaunches> launches_;
};

class GpuPackage final : public HostPackage {
 public:
  GpuPackage(const GpuApi& api, std::shared_ptr<const HostPart> host_part, Backend backend, DeviceSource source,
             const OpenOptions& options)
      : HostPackage(std::move(host_part)), backend_(backend), source_(std::move(source)) {
    int count = 0;
    check(api, api.device_count(&count), fmt::format("counting {} devices", api.vendor_name));
    if (options.device < 0 || options.device >= count)
      reject(fmt::format("there is no {}:{}: this machine has {} such device{}", api.backend, options.device, count,
                         count == 1 ? "" : "s"));
    if (!source_.text.empty()) {
      std::string reason = "this build has no compiler for it";
      compiler_ = api.compiler == nullptr ? nullptr : api.compiler(&reason);
      if (compiler_ == nullptr)
        fail(fmt::format("{}: nothing compiles {}: {}", part()->name(), source_.name, reason),
             "Install it (it comes with the toolkit), or build ahead: `compiler: ahead` in bench.yaml.");
    }
    gpu_ = std::make_shared<OpenGpu>(api, options.device);
  }

  std::unique_ptr<ReadyKernel> prepare(const Case& wanted) override {
    gpu_->context.enter();
    Case here = wanted;
    here.backend = backend_;
    // In this order: the module takes memory, which is then not free.
    const GpuModule module = module_for(wanted.precision);
    const auto free_bytes = gpu_->free_bytes();
    return std::make_unique<GpuKernel>(gpu_, part(), compiler_ == nullptr ? source_.built_by : compiler_->name, module,
                                       here, free_bytes);
  }

 private:
  GpuModule module_for(Precision precision) {
    if (compiler_ == nullptr) return nullptr;
    GpuModuleOwner& module = gpu_->modules[precision];
    if (module) return module.get();
    GpuSource source{.name = std::filesystem::path(source_.name).filename().string(),
                     .text = source_.text,
                     .options = source_.flags};
    for (const EmbeddedHeader& header : embedded_headers())
      source.headers.emplace_back(fmt::format("weir/{}", header.name.substr(header.name.rfind('/') + 1)), header.text);
    source.options.push_back(fmt::format("-DWEIR_PRECISION={}", bit_of(precision)));
    // The package's headers are beside its source.
    if (const auto folder = std::filesystem::path(source_.name).parent_path(); !folder.empty())
      source.options.push_back("-I" + folder.string());
    const std::string image = compiler_->compile(source, gpu_->facts.architecture);
    const GpuApi& api = gpu_->context.api();
    GpuModule loaded = nullptr;
    check(api, api.module_load(&loaded, image.data()),
          fmt::format("{}: loading {} as compiled by {} for {} {}", part()->name(), source.name, compiler_->version,
                      gpu_->context.device_name(), gpu_->facts.architecture));
    module = GpuModuleOwner(loaded, {&api});
    return loaded;
  }

  Backend backend_;
  DeviceSource source_;
  const GpuCompiler* compiler_ = nullptr;
  std::shared_ptr<OpenGpu> gpu_;
};

}  // namespace

std::unique_ptr<OpenPackage> open_gpu_with(const GpuApi& api, std::shared_ptr<const HostPart> part, Backend backend,
                                           DeviceSource source, const OpenOptions& options) {
  return std::make_unique<GpuPackage>(api, std::move(part), backend, std::move(source), options);
}

std::unique_ptr<OpenPackage> open_gpu(std::shared_ptr<const HostPart> part, Backend backend, DeviceSource source,
                                      const OpenOptions& options) {
  std::string reason;
  const GpuApi* const api = backend == Backend::cuda ? cuda_api(&reason) : hip_api(&reason);
  if (api == nullptr) fail(fmt::format("{}: {} cannot be used: {}", part->name(), name_of(backend), reason));
  return open_gpu_with(*api, std::move(part), backend, std::move(source), options);
}

}  // namespace weir::package
