// Kernels of packages on CUDA and HIP: compiled for each precision, given buffers of the device, timed by its events.
#include "package/gpu_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "device/cuda.h"
#include "device/gpu_compiler.h"
#include "device/gpu_context.h"
#include "device/hip.h"
#include "package/build.h"
#include "package/gpu_launch.h"

namespace weir::package {
namespace {

// What event_elapsed of CUDA promises ("a resolution of around 0.5 microseconds"); HIP says nothing, and its GPUs have
// clocks of 10 ns and 40 ns.
constexpr double kEventResolution_ns = 500;
// Overwritten before a cold run where the size of the caches is not known: twice the largest Infinity Cache.
constexpr std::uint64_t kUnknownCacheBytes = std::uint64_t{256} << 20;

// A device with its context, compiled code and what it says of itself. Shared by all kernels that are opened on it.
struct Opened {
  Opened(const GpuApi& api, int index) : context(api, index) {
    context.enter();
    check(api, api.facts(index, &facts), "asking what " + context.device_name() + " is");
    std::string reason;
    management = api.management == nullptr ? nullptr : api.management(&reason);
    if (management != nullptr && !facts.bus_id.empty()) board = management->find(facts.bus_id.c_str());
  }
  ~Opened() {
    context.bind();
    modules.clear();
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

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

class GpuKernel final : public ReadyKernel {
 public:
  GpuKernel(std::shared_ptr<Opened> opened, std::shared_ptr<const HostPart> part, Backend backend, std::string how,
            GpuModule module, const Case& wanted)
      : opened_(std::move(opened)),
        api_(opened_->context.api()),
        part_(std::move(part)),
        how_(std::move(how)),
        launches_itself_(module == nullptr),
        free_before_(opened_->free_bytes()),
        host_case_(*part_, wanted, 1) {
    // Not kGpuStreamNonBlocking: what a library puts on the default stream by mistake is then ordered with ours, and
    // inside of what is timed.
    GpuStream stream = nullptr;
    weir::check(api_, api_.stream_create(&stream, 0, 0), "creating a stream");
    stream_ = GpuStreamOwner(stream, {&api_});
    began_ = make_event(api_, kGpuEventTiming);
    ended_ = make_event(api_, kGpuEventTiming);
    allocate();
    for (std::size_t i = 0; i < host_case_.buffer_count(); ++i) write(i);
    std::vector<void*> pointers;
    for (const GpuMemoryOwner& memory : buffers_) pointers.push_back(reinterpret_cast<void*>(memory.get()));
    launches_.emplace(api_, module, stream_.get(), backend, wanted.precision, std::move(pointers), where());
    note_free();
  }
  ~GpuKernel() override {
    // Errors were reported where they came up; what is still under way must not outlive its buffers.
    opened_->context.bind();
    api_.stream_synchronize(stream_.get());
  }

  const Work& work() const override { return host_case_.work(); }
  std::string how() const override { return how_; }
  std::string device_name() const override { return opened_->context.device_name(); }
  std::string device_model() const override { return opened_->facts.model; }
  std::string clock() const override { return fmt::format("{} events", api_.vendor_name); }
  double resolution_ns() const override { return kEventResolution_ns; }

  BatchTime run(std::uint64_t count) override {
    opened_->context.enter();
    return time_runs(count);
  }

  BatchTime run_cold() override {
    opened_->context.enter();
    if (const std::string reason = cold_reason(); !reason.empty()) fail(reason);
    if (!has_run_) run_first();
    weir::check(api_, api_.set_32(scratch_.get(), ++flushes_, scratch_bytes_ / sizeof(std::uint32_t), stream_.get()),
                where() + ": overwriting caches");
    return time_runs(1);
  }

  // Scratch is taken on first need, so that runs without it have all of the memory.
  std::string cold_reason() const override {
    if (scratch_) return {};
    opened_->context.enter();
    const std::uint64_t cache = opened_->facts.cache_bytes == 0 ? kUnknownCacheBytes : opened_->facts.cache_bytes;
    GpuPointer memory = 0;
    if (api_.memory_allocate(&memory, 2 * cache) != 0)
      return fmt::format("{} has no {} MiB left to overwrite its caches with", device_name(), 2 * cache >> 20);
    scratch_ = GpuMemoryOwner(memory, {&api_});
    scratch_bytes_ = 2 * cache;
    return {};
  }

  Checked check() override {
    opened_->context.enter();
    for (std::size_t i = 0; i < host_case_.buffer_count(); ++i)
      if (host_case_.buffer(i).role != WEIR_INPUT) write(i);
    run_once();
    std::vector<std::vector<std::byte>> after(host_case_.buffer_count());
    for (std::size_t i = 0; i < after.size(); ++i) {
      after[i].resize(host_case_.bytes(i));
      if (after[i].empty()) continue;
      weir::check(api_, api_.copy_to_host(after[i].data(), buffers_[i].get(), after[i].size(), stream_.get()),
                  fmt::format("{}: reading buffer '{}'", where(), host_case_.buffer(i).name));
    }
    // The stream alone: what was launched elsewhere is not waited for, and its poison shows.
    weir::check(api_, api_.stream_synchronize(stream_.get()), where());
    return host_case_.compare(after);
  }
  KernelMemory memory() override {
    KernelMemory memory;
    memory.allocated_bytes = host_case_.total_bytes();
    if (least_free_ <= free_before_) {
      memory.peak_bytes = free_before_ - least_free_;
    } else {
      memory.reason = fmt::format("others gave memory of {} back meanwhile", device_name());
    }
    return memory;
  }

  Telemetry telemetry() override {
    return opened_->board == nullptr ? Telemetry{} : opened_->management->read(opened_->board);
  }
  std::optional<std::uint64_t> launches_per_run() const override { return launches_per_run_; }

 private:
  std::string where() const { return fmt::format("{} on {}", part_->name(), device_name()); }

  void allocate() {
    for (std::size_t i = 0; i < host_case_.buffer_count(); ++i) {
      // Every buffer has an address, also one without elements.
      const std::uint64_t bytes = std::max<std::uint64_t>(host_case_.bytes(i), 16);
      GpuPointer memory = 0;
      const std::uint64_t free = opened_->free_bytes();
      if (const int result = api_.memory_allocate(&memory, bytes); result != 0)
        reject(fmt::format("{}: buffer '{}' needs {} bytes (all buffers: {}), and {} are free: {}", where(),
                           host_case_.buffer(i).name, bytes, host_case_.total_bytes(), free, api_.describe(result)),
               "Use a smaller problem_size.");
      buffers_.emplace_back(memory, GpuClose<GpuPointer, &GpuApi::memory_free>{&api_});
    }
  }

  void write(std::size_t index) {
    const std::vector<std::byte> bytes = host_case_.initial(index);
    if (bytes.empty()) return;
    weir::check(api_, api_.copy_to_device(buffers_[index].get(), bytes.data(), bytes.size(), stream_.get()),
                fmt::format("{}: filling buffer '{}'", where(), host_case_.buffer(index).name));
    weir::check(api_, api_.stream_synchronize(stream_.get()), where());  // `bytes` ends here
  }

  void note_free() { least_free_ = std::min(least_free_, opened_->free_bytes()); }

  BatchTime time_runs(std::uint64_t count) {
    if (!has_run_) run_first();
    const WeirKernel& table = part_->table();
    void* const state = host_case_.state();
    WeirStream* const stream = launches_->stream();
    int failed = 0;
    int result = api_.event_record(began_.get(), stream_.get());
    const std::int64_t began_ns = now_ns();
    for (std::uint64_t i = 0; i < count && failed == 0; ++i) failed = table.run(state, stream);
    const std::int64_t called_ns = now_ns();
    if (result == 0) result = api_.event_record(ended_.get(), stream_.get());
    report(failed);
    if (result == 0) result = api_.event_synchronize(ended_.get());
    float milliseconds = 0;
    if (result == 0) result = api_.event_elapsed(&milliseconds, began_.get(), ended_.get());
    weir::check(api_, result, where());
    return {.device_ns = static_cast<double>(milliseconds) * 1e6,
            .host_ns = static_cast<double>(called_ns - began_ns),
            .wall_ns = std::nullopt};
  }

  void run_once() {
    if (!has_run_) return run_first();
    report(part_->table().run(host_case_.state(), launches_->stream()));
  }

  // Shows that something runs here at all, and what libraries take of the memory by then.
  void run_first() {
    const std::uint64_t before = launches_->count();
    report(part_->table().run(host_case_.state(), launches_->stream()));
    weir::check(api_, api_.stream_synchronize(stream_.get()), where());
    if (!launches_itself_) {
      launches_per_run_ = launches_->count() - before;
      if (*launches_per_run_ == 0)
        fail(fmt::format("{}: ran nothing on {}: run() launched no function of the device source", part_->name(),
                         device_name()),
             "run() must call stream->launch() where stream->backend is not WEIR_CPU.");
    }
    has_run_ = true;
    note_free();
  }

  // The driver's words before the kernel's: they are the cause.
  void report(int failed) {
    if (const std::string trouble = launches_->take_trouble(); !trouble.empty()) fail(trouble);
    if (failed != 0) part_->fail_with("run", failed);
  }

  std::shared_ptr<Opened> opened_;
  const GpuApi& api_;
  std::shared_ptr<const HostPart> part_;
  std::string how_;
  bool launches_itself_;
  std::uint64_t free_before_;
  std::uint64_t least_free_ = std::numeric_limits<std::uint64_t>::max();
  HostCase host_case_;
  std::vector<GpuMemoryOwner> buffers_;
  mutable GpuMemoryOwner scratch_;
  mutable std::uint64_t scratch_bytes_ = 0;
  std::uint32_t flushes_ = 0;
  GpuStreamOwner stream_;
  GpuEventOwner began_, ended_;
  std::optional<GpuLaunches> launches_;
  bool has_run_ = false;
  std::optional<std::uint64_t> launches_per_run_;
};

class GpuPackage final : public OpenPackage {
 public:
  GpuPackage(const GpuApi& api, std::shared_ptr<const HostPart> part, Backend backend, DeviceSource source,
             const OpenOptions& options)
      : part_(std::move(part)),
        backend_(backend),
        source_(std::move(source)),
        summary_(part_->table().summary == nullptr ? "" : part_->table().summary) {
    int count = 0;
    check(api, api.device_count(&count), fmt::format("counting {} devices", api.vendor_name));
    if (options.device < 0 || options.device >= count)
      reject(fmt::format("there is no {}:{}: this machine has {} such devices", api.backend, options.device, count));
    if (!source_.text.empty()) {
      std::string reason = "this build has none";
      compiler_ = api.compiler == nullptr ? nullptr : api.compiler(&reason);
      if (compiler_ == nullptr)
        fail(fmt::format("{}: nothing compiles {}: {}", part_->name(), source_.name, reason),
             "Install it (it comes with the toolkit), or build ahead: `compiler: ahead` in bench.yaml.");
    }
    opened_ = std::make_shared<Opened>(api, options.device);
  }

  std::uint32_t backends() const override { return part_->table().backends; }
  std::uint32_t precisions() const override { return part_->table().precisions; }
  const std::string& summary() const override { return summary_; }
  Problem defaults() const override { return part_->defaults(); }

  std::unique_ptr<ReadyKernel> prepare(const Case& wanted) override {
    opened_->context.enter();
    // Without a source: "nvcc" or "hipcc" where we had it built, as the source's name; else somebody else's library.
    std::string how = compiler_ != nullptr ? compiler_->name : source_.name.empty() ? "library" : source_.name;
    return std::make_unique<GpuKernel>(opened_, part_, backend_, std::move(how), module_for(wanted.precision), wanted);
  }

 private:
  GpuModule module_for(Precision precision) {
    if (compiler_ == nullptr) return nullptr;
    GpuModuleOwner& module = opened_->modules[precision];
    if (module) return module.get();
    GpuSource source{.name = std::filesystem::path(source_.name).filename().string(),
                     .text = source_.text,
                     .headers = {},
                     .options = source_.flags};
    for (const EmbeddedHeader& header : embedded_headers()) {
      const std::string name(header.name.substr(header.name.rfind('/') + 1));
      source.headers.emplace_back("weir/" + name, header.text);
    }
    source.options.push_back(fmt::format("-DWEIR_PRECISION={}", bit_of(precision)));
    // Headers of the package, beside its source.
    if (const auto folder = std::filesystem::path(source_.name).parent_path(); !folder.empty())
      source.options.push_back("-I" + folder.string());
    const std::string image = compiler_->compile(source, opened_->facts.architecture);
    const GpuApi& api = opened_->context.api();
    GpuModule loaded = nullptr;
    check(api, api.module_load(&loaded, image.data()),
          fmt::format("{}: loading {} as compiled by {} for {} {}", part_->name(), source_.name, compiler_->version,
                      opened_->context.device_name(), opened_->facts.architecture));
    module = GpuModuleOwner(loaded, {&api});
    return loaded;
  }

  std::shared_ptr<const HostPart> part_;
  Backend backend_;
  DeviceSource source_;
  std::string summary_;
  const GpuCompiler* compiler_ = nullptr;
  std::shared_ptr<Opened> opened_;
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
  if (api == nullptr) fail(fmt::format("{}: {} is not usable: {}", part->name(), name_of(backend), reason));
  return open_gpu_with(*api, std::move(part), backend, std::move(source), options);
}

}  // namespace weir::package
