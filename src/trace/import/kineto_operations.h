// What threads of PyTorch did, from nested ranges: operators with shapes, modules, phases, and lines of the program.
// The ranges around a call say what it belongs to. Knows no kernels.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/import/kineto_event.h"
#include "trace/timeline_builder.h"

namespace weir {

class KinetoOperations {
 public:
  explicit KinetoOperations(TimelineBuilder& to) : to_(to) {}

  // An operator, a frame of Python, or an annotation; the event has times. Others are ignored.
  void add(const KinetoEvent& event, std::uint16_t process, std::uint32_t thread);
  // Says of the file's calls what they belong to, and of `others`, which are calls of no driver. Call once, at the end
  // of the file.
  void finish(std::span<HostCall> others);

 private:
  enum class Kind : std::uint8_t { operation, module, line, phase };
  struct Frame {
    std::uint16_t process = 0;
    Kind kind = Kind::operation;
    Phase phase = Phase::unknown;  // that this range begins
    std::uint32_t thread = 0;
    std::uint32_t name = kNoName;
    std::uint32_t shapes = kNoName;
    std::uint32_t forward_thread = 0;
    std::int64_t started_ns = kNoTime, ended_ns = kNoTime;
    std::uint64_t sequence = 0;  // counts from 1; 0: none
  };
  // All that is known where a frame is the innermost.
  struct State {
    Operation operation;
    std::uint32_t line = kNoName;
    std::uint32_t innermost = kNoOperation;  // place of the operator's frame
  };
  // An operator of a forward pass that has a number.
  struct Forward {
    std::uint16_t process = 0;
    std::uint32_t thread = 0;
    std::uint64_t sequence = 0;
    std::int64_t started_ns = 0;
    std::uint32_t module = kNoModule;
  };
  using Frames = std::span<const std::uint32_t>;  // places of one thread's frames, by start
  using Calls = std::span<HostCall* const>;       // of one thread, by start

  void describe_all(const std::vector<Frames>& threads, std::span<HostCall> all);
  std::vector<Frames> threads();
  bool is_backward_thread(Frames frames) const;
  template <class Visit>
  void walk(Frames frames, Calls calls, Visit&& visit);
  void describe(HostCall& call, const State& state);
  void apply(const Frame& frame, State& state);
  std::uint32_t module_of(std::uint32_t name, std::uint32_t parent);
  void find_forwards(const std::vector<Frames>& threads);
  const Forward* forward_of(const Frame& frame) const;
  template <class Use>
  void each_forward(const Frame& frame, Use&& use) const;

  TimelineBuilder& to_;
  std::deque<Frame> frames_;          // there may be many, and a vector has room for twice as many
  std::vector<std::uint32_t> order_;  // by thread and start, outer ones first
  std::vector<bool> has_calls_;       // by frame: an operator that has called the driver
  std::unordered_map<std::uint32_t, std::uint32_t> modules_;  // by name: a module is where it was called first
  std::vector<Forward> forwards_;  // by process, sequence, start; empty where there are no modules
  // Which thread is meant by a backward operator's number of a thread: the one that has most of its sequence numbers.
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::uint32_t> thread_of_;
};

}  // namespace weir
