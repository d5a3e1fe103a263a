// One iteration of a workload: commands, the data each touches, and the order that follows. Never touches a device.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "step/command.h"

namespace weir {

// Flat and immutable. Edges follow from reads and writes alone, so every legal submit order gives the same buffers.
class Step {
 public:
  std::span<const Command> commands() const { return commands_; }
  std::span<const Buffer> buffers() const { return buffers_; }
  std::span<const Access> accesses(CommandId id) const {
    return std::span(accesses_).subspan(commands_[id].first_access, commands_[id].access_count);
  }
  // Commands of the same iteration that must have ended before `id` starts; ascending, all smaller than `id`.
  std::span<const CommandId> predecessors(CommandId id) const { return slice(edges_, edge_begin_, id); }
  // Commands of the previous iteration that must have ended before `id` starts, where iterations are pipelined.
  std::span<const CommandId> carried(CommandId id) const { return slice(carried_, carried_begin_, id); }
  // The natural layout's number of streams.
  int stream_count() const { return stream_count_; }
  // True when an iteration reads nothing that an earlier one wrote: then running it again changes no result.
  bool is_repeatable() const { return is_repeatable_; }
  // Work of one iteration in the workload's unit.
  double work() const { return work_; }
  Cost cost() const;
  std::uint64_t size_bytes(Place place) const;

 private:
  friend class StepBuilder;
  friend Step only_role(const Step& step, std::uint8_t role);
  static std::span<const CommandId> slice(const std::vector<CommandId>& all, const std::vector<std::uint32_t>& begin,
                                          CommandId id) {
    return std::span(all).subspan(begin[id], begin[id + 1] - begin[id]);
  }

  std::vector<Command> commands_;
  std::vector<Buffer> buffers_;
  std::vector<Access> accesses_;
  std::vector<CommandId> edges_, carried_;
  std::vector<std::uint32_t> edge_begin_, carried_begin_;
  int stream_count_ = 0;
  bool is_repeatable_ = true;
  double work_ = 0;
};

// A range of elements of a buffer, as an operand of a command. Count 0: from the offset to the end.
struct Operand {
  BufferId buffer = 0;
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};

// Where and as what a command runs.
struct Lane {
  StreamId stream = 0;
  std::uint8_t role = 0;
  std::int8_t priority = 0;
};

// Collects what a workload does to which data. Rejects operands that do not fit their buffer or their kernel.
class StepBuilder {
 public:
  explicit StepBuilder(std::uint64_t seed) : seed_(seed) {}

  BufferId uniform(ElementType type, std::uint64_t count, float scale = 1, float offset = 0);
  BufferId constant(ElementType type, std::uint64_t count, float value);
  BufferId output(ElementType type, std::uint64_t count);  // poisoned: some command must write it
  BufferId indices(std::uint64_t count);
  BufferId host(ElementType type, std::uint64_t count, Init init);

  CommandId launch(std::string_view kernel, Lane lane, const KernelShape& shape,
                   std::initializer_list<Operand> operands);
  CommandId copy(Lane lane, Operand from, Operand to);
  void work(double amount) { step_.work_ = amount; }

  // Derives all edges. Rejects a step that leaves one of its `stream_count` streams without a command.
  Step seal(int stream_count) &&;

 private:
  friend Step only_role(const Step& step, std::uint8_t role);
  BufferId add(Buffer buffer);
  void access(const Operand& operand, bool reads, bool writes);

  std::uint64_t seed_;
  Step step_;
};

// The commands of one role alone, on as many streams as they use, with the buffers that they touch.
Step only_role(const Step& step, std::uint8_t role);

// Writes a buffer's initial contents; the same bytes on every machine.
void initialise(const Buffer& buffer, std::span<std::byte> bytes);

}  // namespace weir
