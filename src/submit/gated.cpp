#include "submit/gated.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "channel/system.h"

namespace weir {
namespace {

constexpr std::int64_t kLongNs = 50'000'000;
constexpr int kAskingSpin = 4095;  // the one at which devices ask their driver: see GpuSession::relax()
// A thread that waits for its own commands looks for their ends itself: at first without a pause, and then, while
// nobody else is about and the attending thread looks rarely, after short naps.
constexpr std::int64_t kOwnSpin_ns = 20'000, kOwnNap_ns = 50'000;

}  // namespace

class GatedSession final : public Session {
 public:
  // `unit`: the number of commands that the gate counts as one: 1, or all of a graph.
  GatedSession(std::unique_ptr<Session> session, std::shared_ptr<GatedWork> work, const Placement& placement,
               std::size_t unit)
      : session_(std::move(session)), work_(std::move(work)), gate_(work_->gate()), placement_(placement), unit_(unit) {
    const std::vector<StreamProgress> streams = session_->progress();
    knows_ends_ = !streams.empty() && std::all_of(streams.begin(), streams.end(),
                                                  [](const StreamProgress& stream) { return stream.is_exact; });
    const std::lock_guard lock(work_->mutex_);
    work_->sessions_.push_back(this);
  }
  ~GatedSession() override {
    {
      const std::lock_guard lock(work_->mutex_);
      std::erase(work_->sessions_, this);
    }
    session_.reset();  // waits for running commands
    leave_until(given_.load(std::memory_order_relaxed));
  }

  void begin_iteration() noexcept override {
    if (!knows_ends_) enter_iteration();
    session_->begin_iteration();
  }

  void submit(std::span<const CommandId> commands) noexcept override {
    if (!knows_ends_ || !gate_.is_shared()) {
      session_->submit(commands);
      return;
    }
    while (!commands.empty()) {
      // After a failure nothing ends any more, so nothing may wait for an end.
      if (session_->ended(placement_.stream_of[commands.front()]) == kAllEnded) {
        session_->submit(commands);
        return;
      }
      const std::uint32_t admitted = enter(unit_ == 1 ? static_cast<std::uint32_t>(commands.size()) : 1);
      const std::size_t batch = unit_ == 1 ? admitted : commands.size();
      session_->submit(commands.first(batch));
      commands = commands.subspan(batch);
      given_.fetch_add(admitted, std::memory_order_release);  // pairs with the acquire in look()
    }
  }

  void finish() override {
    finish_all();
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  void look() noexcept {
    if (!knows_ends_) return;
    // Reads the count first: commands given to the device later can only increase `running`. Leaving late costs a
    // moment, while leaving early would let too many commands run. Commands that were submitted while the device was
    // not shared also run but were never counted; they, too, only delay leaving.
    const std::uint64_t given = given_.load(std::memory_order_acquire);  // pairs with the release in submit()
    std::uint64_t running = 0;
    for (const StreamProgress& stream : session_->progress()) running += stream.submitted - stream.ended;
    running = (running + unit_ - 1) / unit_;
    if (running < given) leave_until(given - running);
  }

  std::vector<IterationSpan> take_spans() override { return session_->take_spans(); }
  Timeline timeline() override { return session_->timeline(); }
  void reset() override { session_->reset(); }
  void read(BufferId buffer, std::span<std::byte> bytes) override { session_->read(buffer, bytes); }
  MemoryUse memory() const override { return session_->memory(); }
  std::int64_t now_ns() noexcept override { return session_->now_ns(); }
  void pause(std::int64_t ns) noexcept override { session_->pause(ns); }
  void poll(StreamId stream) noexcept override { session_->poll(stream); }
  std::span<std::byte> host_memory(BufferId buffer) override { return session_->host_memory(buffer); }
  std::vector<StreamProgress> progress() noexcept override { return session_->progress(); }
  std::optional<std::uint64_t> ended(StreamId stream) noexcept override { return session_->ended(stream); }
  void relax(int spins) noexcept override { session_->relax(spins); }
  int compute_units(StreamId stream) const override { return session_->compute_units(stream); }
  std::string collectives() const override { return session_->collectives(); }
  std::optional<Footprint> footprint(CommandId id) const override { return session_->footprint(id); }

 private:
  std::uint32_t enter(std::uint32_t most) noexcept {
    std::uint32_t admitted = gate_.try_enter(most);
    if (admitted != 0) return admitted;
    const std::int64_t begun = weir::now_ns();
    for (int spins = 0; admitted == 0 && gate_.on_device() != 0; ++spins) {
      const std::int64_t waited = weir::now_ns() - begun;
      if (waited >= (gate_.is_loose() ? kLongNs : kOwnSpin_ns)) break;
      if (waited < kOwnSpin_ns) {
        System::relax(spins);
      } else {
        const timespec nap{0, kOwnNap_ns};
        ::clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
      }
      look();
      admitted = gate_.try_enter(most);
    }
    if (admitted == 0) admitted = gate_.enter(most);
    if (weir::now_ns() - begun < kLongNs) return admitted;
    // A crashed kernel never ends; devices detect that for callers that wait in their own loops, like this one. Asked
    // once: thousands of yields take a second on a busy machine.
    session_->relax(kAskingSpin);
    return admitted;
  }

  // The gate can only be left when everything has ended, so pipelined iterations are waited for while the device is
  // shared: otherwise others would wait for the whole run.
  void enter_iteration() noexcept {
    if (!gate_.is_shared()) return;
    finish_all();
    gate_.enter();
    given_.fetch_add(1, std::memory_order_relaxed);  // read by this thread, and by no other while it submits
  }

  void finish_all() noexcept {
    try {
      session_->finish();
    } catch (...) {
      if (failure_ == nullptr) failure_ = std::current_exception();
    }
    leave_until(given_.load(std::memory_order_relaxed));  // nobody submits during finish()
  }

  // Raises the number of commands that have left to `count`; a second caller with the same count does nothing.
  void leave_until(std::uint64_t count) noexcept {
    std::uint64_t before = left_.load(std::memory_order_relaxed);
    while (before < count && !left_.compare_exchange_weak(before, count, std::memory_order_relaxed)) {
    }
    if (before < count) gate_.leave(static_cast<std::uint32_t>(count - before));
  }

  std::unique_ptr<Session> session_;
  std::shared_ptr<GatedWork> work_;
  scheduler::Gate& gate_;
  const Placement& placement_;
  std::uint64_t unit_;
  bool knows_ends_ = false;
  std::exception_ptr failure_;           // of iterations that were finished before finish() was called
  std::atomic<std::uint64_t> given_{0};  // commands given to the device through the gate
  std::atomic<std::uint64_t> left_{0};   // of these: those whose end the gate knows
};

namespace {

class GatedDevice final : public Device {
 public:
  GatedDevice(std::unique_ptr<Device> device, std::shared_ptr<GatedWork> work)
      : work_(std::move(work)), device_(std::move(device)) {}

  DeviceInfo info() const override { return device_->info(); }
  Telemetry telemetry() override { return device_->telemetry(); }
  DeviceBoard board() override { return device_->board(); }
  std::unique_ptr<DeviceMemory> memory(Place place) override { return device_->memory(place); }
  std::unique_ptr<Session> prepare(const Step& step, const Placement& placement,
                                   const SessionOptions& options) override {
    SessionOptions followed = options;
    followed.follows_progress = true;
    const std::size_t unit = options.mode == SubmitMode::graph ? step.commands().size() : 1;
    return std::make_unique<GatedSession>(device_->prepare(step, placement, followed), work_, placement, unit);
  }

 private:
  std::shared_ptr<GatedWork> work_;
  std::unique_ptr<Device> device_;
};

}  // namespace

void GatedWork::look() noexcept {
  const std::lock_guard lock(mutex_);
  for (GatedSession* const session : sessions_) session->look();
}

std::unique_ptr<Device> gated_device(std::unique_ptr<Device> device, std::shared_ptr<GatedWork> work) {
  return std::make_unique<GatedDevice>(std::move(device), std::move(work));
}

}  // namespace weir
