// Kernels of packages on OpenCL: built by the driver for each precision, given its buffers, timed by markers in an
// in-order queue if the device's profiling is usable, otherwise by the host's clock.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "lab/kernels/package/backends.h"
#include "lab/kernels/package/build.h"
#include "lab/kernels/package/device_kernel.h"
#include "lab/kernels/package/launch_site.h"
#include "lab/kernels/package/opencl_source.h"
#include "weir_build.h"

#if WEIR_HAVE_OPENCL
#include "device/compiler_log.h"
#include "device/gpu/compiler.h"
#include "device/gpu/libraries.h"
#include "device/opencl/context.h"
#include "device/opencl/platforms.h"

namespace weir::package {
namespace {

constexpr std::uint64_t kMinOpenclCacheBytes = std::uint64_t{64} << 20;

template <class T>
std::optional<T> device_fact(const OpenclContext& context, cl_device_info which) {
  T value{};
  if (context.api().device_info(context.device(), which, sizeof value, &value, nullptr) != CL_SUCCESS)
    return std::nullopt;
  return value;
}

// "0000:3b:00.0", from cl_khr_pci_bus_info or NVIDIA's own query; empty if the device reports neither.
std::string bus_id(const OpenclContext& context) {
  struct BusInfo {
    cl_uint domain, bus, device, function;
  };
  constexpr cl_device_info kBusInfo = 0x410F, kNvidiaBus = 0x4008, kNvidiaSlot = 0x4009;
  if (const auto info = device_fact<BusInfo>(context, kBusInfo))
    return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", info->domain, info->bus, info->device, info->function);
  const auto bus = device_fact<cl_uint>(context, kNvidiaBus), slot = device_fact<cl_uint>(context, kNvidiaSlot);
  return bus && slot ? fmt::format("0000:{:02x}:{:02x}.0", *bus, *slot >> 3) : "";
}

// Launches in a queue. Knows no clock and no check.
class OpenclLaunches final : public LaunchSite {
 public:
  // `program` is null for a library that launches by itself. All three must outlive this.
  OpenclLaunches(const OpenclContext& context, cl_program program, cl_command_queue queue, Precision precision,
                 std::vector<void*> buffers, std::string where)
      : LaunchSite(Backend::opencl, precision, queue, std::move(buffers), std::move(where), program == nullptr),
        api_(context.api()),
        program_(program),
        queue_(queue) {}

 private:
  struct Function {
    OpenclKernelOwner kernel;
    std::uint32_t argument_count = 0;  // of its first launch: a kernel keeps its arguments, so fewer would go unnoticed
  };

  // shared_bytes is only for CUDA and HIP: in OpenCL C, local memory is declared.
  int launch(const WeirLaunch& launch) override {
    std::size_t index = find(launch.function);
    if (index == kUnknown) {
      cl_int result = CL_SUCCESS;
      OpenclKernelOwner kernel(api_.create_kernel(program_, launch.function, &result), {&api_});
      if (result != CL_SUCCESS)
        return refuse(launch.function,
                      fmt::format("is not in the device source ({}); is it __kernel?", describe_opencl(result)),
                      result);
      functions_.push_back({std::move(kernel), launch.argument_count});
      index = add(launch.function);
    }
    const Function& function = functions_[index];
    if (launch.argument_count != function.argument_count)
      return refuse(launch.function, fmt::format("was given {} arguments first, and {} now", function.argument_count,
                                                 launch.argument_count));
    for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
      const PackedArgument packed = pack(launch.arguments[i], buffers());
      if (const cl_int result = api_.set_argument(function.kernel.get(), i, packed.bytes, &packed.word);
          result != CL_SUCCESS)
        return refuse(
            launch.function,
            fmt::format("does not take {} bytes as argument {}: {}", packed.bytes, i, describe_opencl(result)), result);
    }
    std::size_t global[3], local[3];
    for (int i = 0; i < 3; ++i) {
      local[i] = at_least_one(launch.block[i]);
      global[i] = local[i] * at_least_one(launch.grid[i]);
    }
    const cl_int result =
        api_.enqueue_kernel(queue_, function.kernel.get(), 3, nullptr, global, local, 0, nullptr, nullptr);
    if (result == CL_SUCCESS) return 0;
    return refuse(launch.function,
                  fmt::format("cannot be launched with {} arguments, {}x{}x{} work-groups of {}x{}x{}: {}",
                              launch.argument_count, launch.grid[0], launch.grid[1], launch.grid[2], local[0], local[1],
                              local[2], describe_opencl(result)),
                  result);
  }

  const OpenclApi& api_;
  cl_program program_;
  cl_command_queue queue_;
  std::vector<Function> functions_;
};

// A device, its compiled programs, and whether its clock is usable. Shared by all kernels that are opened on it.
struct OpenOpencl {
  explicit OpenOpencl(std::shared_ptr<OpenclContext> shared_context) : context(std::move(shared_context)) {
    if (!context->facts().is_gpu) return;
    std::string reason;
    const std::string id = bus_id(*context);
    management = id.empty() ? nullptr : open_nvml(&reason);
    if (management != nullptr) board = management->find(id.c_str());
  }
  std::shared_ptr<OpenclContext> context;
  const GpuManagement* management = nullptr;
  void* board = nullptr;
  std::map<Precision, OpenclProgramOwner> programs;
};

class OpenclKernel final : public DeviceKernel {
 public:
  OpenclKernel(const std::shared_ptr<OpenOpencl>& opened, std::shared_ptr<const HostPart> part, std::string how,
               cl_program program, const Case& wanted)
      : DeviceKernel(std::move(part), wanted, std::move(how), opened->context->name(), program == nullptr),
        opened_(opened),
        context_(*opened->context),
        api_(context_.api()),
        queue_(context_.make_queue(CL_QUEUE_PROFILING_ENABLE)) {
    std::vector<void*> handles;
    for (std::size_t i = 0; i < host_case().buffer_count(); ++i) handles.push_back(allocate(i));
    for (std::size_t i = 0; i < host_case().buffer_count(); ++i) write_initial(i);
    launches_.emplace(context_, program, queue_.get(), wanted.precision, std::move(handles), where());
    clock_reason_ = try_clock();
  }
  ~OpenclKernel() override { api_.finish(queue_.get()); }  // pending work must not outlive its buffers

  std::string device_model() const override { return context_.facts().model; }
  std::string clock() const override {
    return clock_reason_.empty() ? "OpenCL profiling of markers"
                                 : fmt::format("CLOCK_MONOTONIC up to clFinish ({})", clock_reason_);
  }
  double resolution_ns() const override {
    // The host's clock counts nanoseconds, but its calls take some 20 to 40.
    constexpr double kHostClock_ns = 50;
    if (!clock_reason_.empty()) return kHostClock_ns;
    return static_cast<double>(device_fact<std::size_t>(context_, CL_DEVICE_PROFILING_TIMER_RESOLUTION).value_or(1));
  }

  BatchTime run(std::uint64_t count) override {
    run_first();
    return time_runs(count);
  }

  BatchTime run_cold() override {
    if (const std::string reason = cold_reason(); !reason.empty()) fail(reason);
    run_first();
    const cl_uint value = ++flushes_;
    succeed(
        api_.enqueue_fill(queue_.get(), scratch_.get(), &value, sizeof value, 0, scratch_bytes_, 0, nullptr, nullptr),
        "overwriting caches");
    // The host's clock would include the overwriting.
    if (!clock_reason_.empty()) wait();
    return time_runs(1);
  }

  std::string cold_reason() const override {
    if (scratch_) return {};
    const auto reported = device_fact<cl_ulong>(context_, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE).value_or(0);
    // PoCL reports the last level as shared by all cores, some drivers report a part of it: never less than the
    // default.
    const std::uint64_t bytes = 2 * std::max<std::uint64_t>(reported, kMinOpenclCacheBytes);
    try {
      scratch_ = context_.make_buffer(CL_MEM_READ_WRITE, bytes);
    } catch (const Error& error) {
      return fmt::format("{} has no memory left to overwrite its caches with: {}", device_name(), error.what());
    }
    scratch_bytes_ = bytes;
    return {};
  }

  KernelMemory memory() override {
    return {.allocated_bytes = host_case().total_bytes(),
            .peak_bytes = std::nullopt,
            .reason = "OpenCL does not report how much memory is in use"};
  }

  std::optional<double> energy_j() override {
    return opened_->board == nullptr ? std::nullopt : opened_->management->read_energy_j(opened_->board);
  }
  Telemetry telemetry() override {
    return opened_->board == nullptr ? Telemetry{} : opened_->management->read(opened_->board);
  }

 private:
  void enter() override {}
  LaunchSite& launches() override { return *launches_; }
  void wait() override { succeed(api_.finish(queue_.get()), "waiting for the queue"); }
  void write(std::size_t buffer, std::span<const std::byte> bytes) override {
    succeed(api_.enqueue_write(queue_.get(), buffers_[buffer].get(), CL_TRUE, 0, bytes.size(), bytes.data(), 0, nullptr,
                               nullptr),
            "filling a buffer");
  }
  void read(std::size_t buffer, std::span<std::byte> bytes) override {
    succeed(api_.enqueue_read(queue_.get(), buffers_[buffer].get(), CL_TRUE, 0, bytes.size(), bytes.data(), 0, nullptr,
                              nullptr),
            "reading a buffer");
  }

  void succeed(cl_int result, std::string_view action) const {
    if (result != CL_SUCCESS) check_opencl(result, fmt::format("{}: {}", where(), action));
  }

  void* allocate(std::size_t buffer) {
    const std::uint64_t bytes = host_case().bytes(buffer);
    if (const std::uint64_t most = context_.facts().largest_buffer_bytes; bytes > most)
      reject(fmt::format("{}: buffer '{}' needs {} bytes, and the device has {} at most for one", where(),
                         host_case().buffer(buffer).name, bytes, most),
             "Use a smaller problem_size.");
    return buffers_.emplace_back(context_.make_buffer(CL_MEM_READ_WRITE, bytes)).get();
  }

  OpenclEventOwner mark() {
    cl_event event = nullptr;
    succeed(api_.enqueue_marker(queue_.get(), 0, nullptr, &event), "putting a marker into the queue");
    return OpenclEventOwner(event, {&api_});
  }

  // When everything before the marker had ended, in ns of the device's clock; nothing if it reports none.
  std::optional<cl_ulong> time_of(const OpenclEventOwner& marker) const {
    cl_ulong time_ns = 0;
    if (api_.event_times(marker.get(), CL_PROFILING_COMMAND_END, sizeof time_ns, &time_ns, nullptr) != CL_SUCCESS)
      return std::nullopt;
    return time_ns;
  }

  // Checks that markers have times, and that these advance like the host's. Returns why not; empty if they are usable.
  std::string try_clock() {
    constexpr std::int64_t kTrial_ns = 2'000'000;
    const std::int64_t outer_began_ns = now_ns();
    const OpenclEventOwner began = mark();
    wait();
    const std::int64_t inner_began_ns = now_ns();
    while (now_ns() - inner_began_ns < kTrial_ns) {
    }
    const std::int64_t inner_ended_ns = now_ns();
    const OpenclEventOwner ended = mark();
    wait();
    const std::int64_t outer_ended_ns = now_ns();
    const auto from = time_of(began), to = time_of(ended);
    if (!from || !to) return "markers have no times on this device";
    const auto least = static_cast<double>(inner_ended_ns - inner_began_ns);
    const auto most = static_cast<double>(outer_ended_ns - outer_began_ns);
    const double reported = static_cast<double>(*to) - static_cast<double>(*from);
    // 1 %: device clocks differ from the host's.
    if (reported < 0.99 * least || reported > 1.01 * most)
      return fmt::format("by its markers {:.3f} ms passed between two, and {:.3f} by the host's clock", reported * 1e-6,
                         most * 1e-6);
    return {};
  }

  BatchTime time_runs(std::uint64_t count) {
    OpenclEventOwner began, ended;
    if (clock_reason_.empty()) began = mark();
    const std::int64_t began_ns = now_ns();
    const int failed = call_runs(count);
    const std::int64_t called_ns = now_ns();
    report(failed);
    if (clock_reason_.empty()) ended = mark();
    wait();
    BatchTime time{.device_ns = static_cast<double>(now_ns() - began_ns),
                   .host_ns = static_cast<double>(called_ns - began_ns),
                   .wall_ns = std::nullopt};
    if (!clock_reason_.empty()) return time;
    const auto from = time_of(began), to = time_of(ended);
    if (!from || !to || *to < *from) fail(fmt::format("{}: the queue's markers have no times any more", where()));
    time.device_ns = static_cast<double>(*to - *from);
    return time;
  }

  std::shared_ptr<OpenOpencl> opened_;
  OpenclContext& context_;
  const OpenclApi& api_;
  std::vector<OpenclMemoryOwner> buffers_;
  mutable OpenclMemoryOwner scratch_;
  mutable std::uint64_t scratch_bytes_ = 0;
  cl_uint flushes_ = 0;
  OpenclQueueOwner queue_;
  std::optional<OpenclLaunches> launches_;
  std::string clock_reason_;
};

class OpenclPackage final : public HostPackage {
 public:
  OpenclPackage(std::shared_ptr<const HostPart> host_part, DeviceSource source, const OpenOptions& options)
      : HostPackage(std::move(host_part)), source_(std::move(source)) {
    const OpenclDevices& found = opencl_devices();
    if (found.devices.empty()) fail(fmt::format("{}: opencl cannot be used: {}", part()->name(), found.reason));
    if (options.device < 0 || static_cast<std::size_t>(options.device) >= found.devices.size())
      reject(fmt::format("there is no opencl:{}: this machine has {} such device{}", options.device,
                         found.devices.size(), found.devices.size() == 1 ? "" : "s"));
    opened_ = std::make_shared<OpenOpencl>(found.devices[static_cast<std::size_t>(options.device)]);
  }

  std::unique_ptr<ReadyKernel> prepare(const Case& wanted) override {
    const OpenclContext& context = *opened_->context;
    if (wanted.precision == Precision::fp64 && !context.facts().offers("cl_khr_fp64"))
      reject(fmt::format("{}: {} ({}) has no fp64: it does not offer cl_khr_fp64", part()->name(), context.name(),
                         context.facts().model),
             "Leave fp64 out of --precision, or use another device.");
    Case here = wanted;
    here.backend = Backend::opencl;
    return std::make_unique<OpenclKernel>(opened_, part(), source_.text.empty() ? source_.built_by : "opencl",
                                          program_for(wanted.precision), here);
  }

 private:
  cl_program program_for(Precision precision) {
    if (source_.text.empty()) return nullptr;
    OpenclProgramOwner& program = opened_->programs[precision];
    if (program) return program.get();
    const std::filesystem::path file = source_.name;
    std::string options = fmt::format("-DWEIR_PRECISION={}", bit_of(precision));
    for (const std::string& flag : source_.flags) options += " " + flag;
    // The package's headers are beside its source. The list of options cannot contain a blank.
    if (const std::string folder = file.parent_path().string(); !folder.empty() && folder.find(' ') == folder.npos)
      options += " -I" + folder;
    cl_int result = CL_SUCCESS;
    std::string log;
    program = opened_->context->try_build(opencl_text(embedded_headers(), file.filename().string(), source_.text),
                                          options, &result, &log);
    if (!program)
      reject(fmt::format("{}: {} ({}) cannot compile {}: {}{}", part()->name(), opened_->context->name(),
                         opened_->context->facts().platform, file.filename().string(), describe_opencl(result),
                         first_log_lines(log)),
             "It was given: " + options);
    return program.get();
  }

  DeviceSource source_;
  std::shared_ptr<OpenOpencl> opened_;
};

}  // namespace

std::unique_ptr<OpenPackage> open_opencl(std::shared_ptr<const HostPart> part, DeviceSource source,
                                         const OpenOptions& options) {
  return std::make_unique<OpenclPackage>(std::move(part), std::move(source), options);
}

}  // namespace weir::package

#else

namespace weir::package {

std::unique_ptr<OpenPackage> open_opencl(std::shared_ptr<const HostPart> part, DeviceSource, const OpenOptions&) {
  fail(fmt::format("{}: opencl was left out of this build: {}", part->name(), WEIR_OPENCL_REASON));
}

}  // namespace weir::package

#endif
