// k host threads submit, each its own streams. A command is held back until everything it depends on was submitted:
// waiting for an event that was never recorded is a no-op on GPUs, so a dependant that came first would run too early.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/relax.h"
#include "submit/submitter.h"

namespace weir {
namespace {

constexpr std::size_t kLine = 128;  // keeps neighbours off one cache line, adjacent-line prefetch included
constexpr int kParkSpins = 4000;    // about 10 us before a thread parks; iterations usually follow sooner

// Progress of another thread that a segment needs: thread `thread` must have submitted `count` of its commands.
struct Requirement {
  std::uint32_t thread;
  std::uint32_t count;
};

// A run of one thread's commands that can be submitted as one batch.
struct Segment {
  std::uint32_t end;  // index into the thread's commands
  std::uint32_t first_requirement;
  std::uint32_t requirement_count;
};

struct alignas(kLine) Lane {
  std::vector<CommandId> commands;
  std::vector<Segment> segments;
  std::vector<Requirement> requirements;
  alignas(kLine) std::atomic<std::uint64_t> submitted{0};  // over all iterations
};

class ThreadsSubmitter final : public Submitter {
 public:
  ThreadsSubmitter(int threads, const Step& step, const Placement& placement, Session& session)
      : session_(session), lanes_(static_cast<std::size_t>(threads)) {
    divide(step, placement);
    // The caller's thread is one of the k: it submits lane 0.
    try {
      for (std::size_t i = 1; i < lanes_.size(); ++i) threads_.emplace_back([this, i] { serve(i); });
    } catch (const std::exception& error) {
      close();  // threads that did start must end, or joining them would wait for ever
      fail(fmt::format("cannot start {} threads that submit: {}", threads, error.what()), "Use fewer threads.");
    }
  }
  ~ThreadsSubmitter() override { close(); }

  void submit_step() noexcept override {
    const std::uint64_t iteration =
        iteration_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in serve()
    iteration_.notify_all();
    submit_lane(lanes_[0], iteration);
    for (std::size_t i = 1; i < lanes_.size(); ++i) await(lanes_[i], (iteration + 1) * lanes_[i].commands.size());
  }

 private:
  void close() noexcept {
    is_closing_.store(true, std::memory_order_relaxed);  // published by the release below
    iteration_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in serve()
    iteration_.notify_all();
  }

  // Streams go to threads round robin; a thread's commands keep the step's order.
  void divide(const Step& step, const Placement& placement) {
    const std::size_t count = step.commands().size();
    std::vector<std::uint32_t> position(count);
    const auto lane_of = [&](CommandId id) { return placement.stream_of[id] % lanes_.size(); };
    std::vector<std::vector<std::uint32_t>> known(lanes_.size(), std::vector<std::uint32_t>(lanes_.size(), 0));
    for (CommandId id = 0; id < count; ++id) {
      const std::size_t own = lane_of(id);
      Lane& lane = lanes_[own];
      const auto first = static_cast<std::uint32_t>(lane.requirements.size());
      for (const CommandId before : step.predecessors(id)) {
        const std::size_t other = lane_of(before);
        const std::uint32_t needed = position[before] + 1;
        if (other == own || known[own][other] >= needed) continue;
        known[own][other] = needed;
        lane.requirements.push_back({static_cast<std::uint32_t>(other), needed});
      }
      const auto found = static_cast<std::uint32_t>(lane.requirements.size()) - first;
      if (lane.segments.empty() || found != 0) lane.segments.push_back({0, first, found});
      position[id] = static_cast<std::uint32_t>(lane.commands.size());
      lane.commands.push_back(id);
      lane.segments.back().end = static_cast<std::uint32_t>(lane.commands.size());
    }
    split_for_waiters();
  }

  // Progress is published per segment, so a command that another thread waits for ends its segment.
  void split_for_waiters() {
    std::vector<std::vector<std::uint32_t>> cuts(lanes_.size());
    for (const Lane& lane : lanes_)
      for (const Requirement& requirement : lane.requirements) cuts[requirement.thread].push_back(requirement.count);
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      std::sort(cuts[i].begin(), cuts[i].end());
      std::vector<Segment> split;
      std::size_t next = 0;
      std::uint32_t begin = 0;
      for (Segment segment : lanes_[i].segments) {
        while (next < cuts[i].size() && cuts[i][next] < segment.end) {
          if (cuts[i][next] > begin) {
            split.push_back({cuts[i][next], segment.first_requirement, segment.requirement_count});
            segment.requirement_count = 0;
            begin = cuts[i][next];
          }
          ++next;
        }
        split.push_back(segment);
        begin = segment.end;
      }
      lanes_[i].segments = std::move(split);
    }
  }

  void submit_lane(Lane& lane, std::uint64_t iteration) noexcept {
    const std::uint64_t base = iteration * lane.commands.size();
    std::uint32_t begin = 0;
    for (const Segment& segment : lane.segments) {
      for (std::uint32_t i = 0; i < segment.requirement_count; ++i) {
        const Requirement& requirement = lane.requirements[segment.first_requirement + i];
        const Lane& other = lanes_[requirement.thread];
        await(other, iteration * other.commands.size() + requirement.count);
      }
      session_.submit(std::span(lane.commands).subspan(begin, segment.end - begin));
      begin = segment.end;
      lane.submitted.store(base + begin, std::memory_order_release);  // pairs with the acquire in await()
    }
  }

  static void await(const Lane& lane, std::uint64_t count) noexcept {
    for (int spins = 0; lane.submitted.load(std::memory_order_acquire) < count;
         ++spins)  // pairs with the release in submit_lane()
      relax(spins);
  }

  void serve(std::size_t index) noexcept {
    for (std::uint64_t done = 0;; ++done) {
      // Pairs with the release in submit_step() and in the destructor.
      for (int spins = 0; iteration_.load(std::memory_order_acquire) == done; ++spins) {
        if (spins < kParkSpins) {
          relax(spins);
        } else {
          iteration_.wait(done, std::memory_order_acquire);
        }
      }
      if (is_closing_.load(std::memory_order_relaxed)) return;
      submit_lane(lanes_[index], done);
    }
  }

  Session& session_;
  std::vector<Lane> lanes_;
  alignas(kLine) std::atomic<std::uint64_t> iteration_{0};
  std::atomic<bool> is_closing_{false};
  std::vector<std::jthread> threads_;  // declared last: joined before the other members are destroyed
};

}  // namespace

std::unique_ptr<Submitter> threads_submitter(int threads, const Step& step, const Placement& placement,
                                             Session& session) {
  return std::make_unique<ThreadsSubmitter>(threads, step, placement, session);
}

}  // namespace weir
