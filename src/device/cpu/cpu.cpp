// The cpu device: a software GPU with real threads. Streams share hardware queues that block at their heads; kernels
// run as blocks by priority; copies, host functions and collectives run on engines of their own. This file has only the
// device and the session; the hardware is in workers.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "device/cpu/step.h"
#include "device/cpu/test_parts.h"
#include "device/cpu/workers.h"
#include "device/failure.h"
#include "device/rank/communicator.h"

namespace weir::cpu {
namespace {

// One call of submit(): turns hops into packets.
class PacketWriter {
 public:
  PacketWriter(Engine& engine, PreparedStep& step, std::uint32_t iteration) noexcept
      : step_(step), iteration_(iteration), sender_(engine) {}
  PacketWriter(const PacketWriter&) = delete;
  PacketWriter& operator=(const PacketWriter&) = delete;
  ~PacketWriter() {
    sender_.ring();
    // Relaxed: a thread that waits for the sum to reach 0 knows by other means that submit() has returned.
    step_.outstanding.fetch_add(sender_.pushed(), std::memory_order_relaxed);
  }

  void launch(CommandId command, StreamId stream) noexcept {
    step_.times.submitted(command, iteration_);
    step_.submitted[stream].add(1);  // before the push, or it could end uncounted
    push(PacketKind::launch, command, iteration_, stream, wakes(step_.unit_of[command]));
    step_.times.accepted(command, iteration_);
  }
  void record(EventId event, StreamId stream) noexcept {
    // Only one stream records a given event, so only one thread writes here.
    auto& submitted = step_.events[event].submitted;
    const std::uint32_t instance = submitted.load(std::memory_order_relaxed) + 1;
    push(PacketKind::record, event, instance, stream, step_.woken);  // a copy may wait for it while workers are busy
    submitted.store(instance, std::memory_order_release);            // pairs with the acquire in wait()
  }
  void wait(EventId event, StreamId stream) noexcept {
    const std::uint32_t instance =
        step_.events[event].submitted.load(std::memory_order_acquire);  // pairs with record()
    if (instance != 0) push(PacketKind::wait, event, instance, stream, 0);
  }
  // Iterations are timed by their commands.
  void mark_first(StreamId) noexcept {}
  void mark_last(StreamId) noexcept {}

 private:
  void push(PacketKind kind, std::uint32_t subject, std::uint32_t number, StreamId stream,
            std::uint8_t woken) noexcept {
    sender_.push(step_.queue_of_stream[stream],
                 {.step = &step_, .subject = subject, .number = number, .stream = stream, .kind = kind}, woken);
  }

  PreparedStep& step_;
  std::uint32_t iteration_;
  Engine::PacketSender sender_;
};

class CpuSession final : public Session {
 public:
  CpuSession(std::shared_ptr<Engine> engine, const Step& step, const Placement& placement,
             const SessionOptions& options, const TestParts& test_parts, Communicator* communicator,
             std::shared_ptr<RegionCode> region_code)
      : engine_(std::move(engine)),
        step_(step, placement, options, engine_->assign_queues(placement.stream_count), test_parts.kernel_of,
              communicator, std::move(region_code)) {
    for (const Unit unit : step_.unit_of) engine_->start_threads(unit);
    // Each stream is a channel, because all ranks have the same order within a stream.
    if ((step_.woken & wakes(Unit::collective)) != 0) {
      communicator->open_channels(placement.stream_count);
      for (const RankGroup& group : rank_groups(step)) communicator->open_group(group, placement.stream_count);
    }
  }
  ~CpuSession() override { wait_for_all(); }

  void begin_iteration() noexcept override {
    engine_->wait_until([&] { return step_.times.can_begin() || is_idle(); });
    step_.times.begin();
  }

  void submit(std::span<const CommandId> commands) noexcept override {
    if (step_.times.begun() == 0) {
      step_.latch(std::make_exception_ptr(Error(Fault::run, "submit() before begin_iteration()")));
      return;
    }
    const std::uint32_t iteration = step_.times.begun() - 1;
    if (!step_.graphs.empty()) {
      submit_graph(iteration);
      return;
    }
    PacketWriter writer(*engine_, step_, iteration);
    walk(step_.plan, commands, writer);
  }

  void finish() override {
    wait_for_all();
    if (!step_.has_failed.load(std::memory_order_acquire)) return;  // pairs with latch()
    const std::exception_ptr failure = std::exchange(step_.failure, nullptr);
    step_.has_failed.store(false, std::memory_order_release);  // pairs with latch()
    rethrow(failure, "a kernel failed on device 'cpu'");
  }

  std::vector<IterationSpan> take_spans() override { return step_.times.take_spans(); }
  Timeline timeline() override { return step_.times.timeline(); }
  void reset() override { step_.reset(); }

  void read(BufferId buffer, std::span<std::byte> bytes) override {
    if (buffer >= step_.step.buffers().size() || bytes.size() != step_.bytes(buffer).size())
      fail(fmt::format("read: the span does not fit buffer {}", buffer));
    std::memcpy(bytes.data(), step_.bytes(buffer).data(), bytes.size());
  }

  std::span<std::byte> host_memory(BufferId buffer) override { return step_.bytes(buffer); }

  std::vector<StreamProgress> progress() noexcept override {
    std::vector<StreamProgress> streams(step_.streams.size());
    for (std::size_t i = 0; i < streams.size(); ++i) {
      const std::uint64_t ended = step_.streams[i].ended();  // first, so that `ended` cannot exceed `submitted`
      // Relaxed: a stale count only misses the newest commands.
      const std::uint64_t submitted = step_.submitted[i].count.load(std::memory_order_relaxed);
      streams[i] = {std::max(submitted, ended), ended, true};
    }
    return streams;
  }

  std::optional<std::uint64_t> ended(StreamId stream) noexcept override { return step_.streams[stream].ended(); }

  std::optional<Footprint> footprint(CommandId id) const override {
    const PreparedCommand& command = step_.commands[id];
    if (command.unit != Unit::workers) return std::nullopt;
    return Footprint{command.blocks, 1};
  }

  std::string collectives() const override {
    return (step_.woken & wakes(Unit::collective)) == 0 ? "" : step_.communicator->library() + " on host memory";
  }
  std::optional<Compilation> compilation() const override { return step_.compilation; }
  MemoryUse memory() const override {
    MemoryUse use;
    use.allocated_bytes = step_.step.size_bytes(Place::device) + step_.step.size_bytes(Place::host);
    use.reserved_bytes = step_.size_bytes();
    use.peak_bytes = use.reserved_bytes;  // all of it is allocated in prepare() and freed at the end
    return use;
  }

 private:
  bool is_idle() const noexcept {
    return step_.outstanding.load(std::memory_order_seq_cst) == 0;  // pairs with Engine::retire()
  }
  void wait_for_all() noexcept {
    engine_->wait_until([&] { return is_idle(); });
  }

  void submit_graph(std::uint32_t iteration) noexcept {
    for (std::size_t i = 0; i < step_.submitted.size(); ++i) step_.submitted[i].add(step_.stream_commands[i]);
    Engine::PacketSender sender(*engine_);
    for (std::uint32_t segment = 0; segment < step_.graphs.size(); ++segment) {
      step_.times.graph_submitted(segment, iteration);
      sender.push(engine_->graph_queue(),
                  {.step = &step_, .subject = segment, .number = iteration, .kind = PacketKind::graph}, step_.woken);
      step_.times.graph_accepted(segment, iteration);
    }
    sender.ring();
    step_.outstanding.fetch_add(sender.pushed(), std::memory_order_relaxed);  // as in PacketWriter
  }

  std::shared_ptr<Engine> engine_;  // may outlive the device
  PreparedStep step_;
};

class CpuDevice final : public Device {
 public:
  CpuDevice(int queue_count, int worker_count, TestParts test_parts, Communicator* communicator, std::string compiler)
      : queue_count_(queue_count),
        worker_count_(worker_count),
        seams_(std::move(test_parts)),
        communicator_(communicator),
        region_code_(std::make_shared<RegionCode>(std::move(compiler))) {}

  DeviceInfo info() const override {
    DeviceInfo info;
    info.name = "cpu";
    info.backend = "cpu";
    const unsigned cores = std::thread::hardware_concurrency();
    info.model = fmt::format("{} ({} {})", host_model(seams_.roots), cores, cores == 1 ? "core" : "cores");
    info.precisions = {Precision::fp32, Precision::fp16, Precision::bf16, Precision::fp8_e4m3, Precision::fp8_e5m2};
    info.lowest_priority = kLowestPriority;
    info.highest_priority = kHighestPriority;
    info.hardware_queues = {queue_count_, "--hw-queues"};
    info.max_hardware_queues = kMaxStreams;
    info.multiprocessors = {worker_count_, "worker threads"};
    info.copy_engines = {kCopyEngines, "a thread of its own"};
    info.memory_bytes = {total_memory_bytes(seams_.roots), seams_.roots.proc + "/meminfo"};
    return info;
  }

  Telemetry telemetry() override { return host_telemetry(seams_.roots); }

  std::unique_ptr<Session> prepare(const Step& step, const Placement& placement,
                                   const SessionOptions& options) override {
    check_memory(step);
    if (!engine_) engine_ = std::make_shared<Engine>(queue_count_, worker_count_);
    return std::make_unique<CpuSession>(engine_, step, placement, options, seams_, communicator_, region_code_);
  }

 private:
  // Linux overcommits memory and kills the processes that use it, so a failed allocation would come too late.
  void check_memory(const Step& step) const {
    const std::uint64_t needed = step.size_bytes(Place::device) + step.size_bytes(Place::host);
    const auto available = available_memory_bytes(seams_.roots);
    if (available && needed > *available)
      reject(fmt::format("device 'cpu': the step needs {} of memory and {} are available", format_bytes(needed),
                         format_bytes(*available)),
             "Use a smaller --scale, smaller sizes or fewer streams.");
  }

  int queue_count_;
  int worker_count_;
  TestParts seams_;
  Communicator* communicator_;
  std::shared_ptr<RegionCode> region_code_;
  std::shared_ptr<Engine> engine_;  // created by the first prepare(), so that opening the device starts no thread
};

}  // namespace

std::unique_ptr<Device> open_cpu(const DeviceOptions& options, const TestParts& test_parts) {
  constexpr int kDefaultQueues = 8;  // as CUDA without CUDA_DEVICE_MAX_CONNECTIONS
  constexpr int kMaxWorkers = 1024;
  const int queues = options.hardware_queues == 0 ? kDefaultQueues : options.hardware_queues;
  if (queues < 1 || queues >= kMaxQueues)
    reject(fmt::format("device 'cpu' cannot have {} hardware queues", queues),
           fmt::format("Use --hw-queues 1 to {}.", kMaxQueues - 1));
  int workers = options.workers;
  if (workers == 0) workers = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (workers < 1 || workers > kMaxWorkers)
    reject(fmt::format("device 'cpu' cannot have {} workers", workers), fmt::format("Use 1 to {}.", kMaxWorkers));
  std::string compiler = options.variable == nullptr ? "" : options.variable("CXX").value_or("");
  if (compiler.empty()) compiler = "c++";
  return std::make_unique<CpuDevice>(queues, workers, test_parts, options.communicator, std::move(compiler));
}

}  // namespace weir::cpu

namespace weir::device_list {

DeviceType cpu() {
  return {.name = "cpu",
          .summary = "software GPU: worker threads behind hardware queues, on this machine's cores",
          .find = [] { return DeviceType::Found{{"cpu"}, {}, true}; },
          .open =
              [](const std::string& which, const DeviceOptions& options) {
                if (device_number("cpu", which) != 0)
                  reject(fmt::format("device 'cpu:{}' does not exist", which), "There is one: use 'cpu'.");
                return weir::cpu::open_cpu(options);
              }};
}

}  // namespace weir::device_list
