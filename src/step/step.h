// One iteration of a workload: commands, the data each touches, and the order that follows. Never touches a device.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
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
  // Work of one iteration in the workload's unit; where it is counted(), what the device counted instead.
  double work() const { return work_; }
  // The i32 elements whose sum, times `unit`, is the work of the last iteration: decided by data, so only known then.
  struct Counted {
    Access where;
    double unit = 1;
  };
  const std::optional<Counted>& counted() const { return counted_; }
  // Where graphs begin: commands [segments()[i], segments()[i + 1]) are captured as one. From 0 to the command count.
  std::span<const CommandId> segments() const { return segments_; }
  // Commands that hand a request its next token, in order for each request.
  struct Token {
    CommandId command = 0;
    std::uint32_t request = 0;
  };
  std::span<const Token> tokens() const { return tokens_; }
  Ranks ranks() const { return ranks_; }
  Cost cost() const;
  std::uint64_t size_bytes(Place place) const;

 private:
  friend class StepBuilder;
  friend Step only(const Step& step, const std::function<bool(CommandId)>& keeps);
  static std::span<const CommandId> slice(const std::vector<CommandId>& all, const std::vector<std::uint32_t>& begin,
                                          CommandId id) {
    return std::span(all).subspan(begin[id], begin[id + 1] - begin[id]);
  }

  std::vector<Command> commands_;
  std::vector<Buffer> buffers_;
  std::vector<Access> accesses_;
  std::vector<CommandId> edges_, carried_;
  std::vector<std::uint32_t> edge_begin_, carried_begin_;
  std::vector<CommandId> segments_;
  std::vector<Token> tokens_;
  std::optional<Counted> counted_;
  Ranks ranks_;
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
  explicit StepBuilder(std::uint64_t seed, Ranks ranks = {}) : seed_(seed) { step_.ranks_ = ranks; }
  Ranks ranks() const { return step_.ranks_; }

  BufferId uniform(ElementType type, std::uint64_t count, float scale = 1, float offset = 0);
  BufferId sharded(ElementType type, std::uint64_t count, float scale = 1);  // uniform, other values on every rank
  // uniform: this part of a sequence that is the same on every rank.
  BufferId slice(ElementType type, std::uint64_t count, const Slice& slice, float scale = 1, float offset = 0);
  // Begins with the values of `other`, as floats of another type.
  BufferId same_as(BufferId other, ElementType type);
  BufferId constant(ElementType type, std::uint64_t count, float value);
  BufferId output(ElementType type, std::uint64_t count);  // poisoned: some command must write it
  BufferId indices(std::uint64_t count);
  BufferId integers(std::uint64_t count, std::int64_t limit);  // i32: 0..limit-1 at random, by rank too
  BufferId ramp(ElementType type, std::uint64_t count, float scale = 1, float offset = 0);
  BufferId host(ElementType type, std::uint64_t count, Init init, float scale = 1, float offset = 0);

  // `operands` takes a braced list: launch("gemm", lane, shape, {{a}, {b}, {c}}).
  CommandId launch(std::string_view kernel, Lane lane, const KernelShape& shape,
                   std::initializer_list<Operand> operands) {
    return launch(kernel, lane, shape, std::span(operands.begin(), operands.size()));
  }
  CommandId launch(std::string_view kernel, Lane lane, const KernelShape& shape, std::span<const Operand> operands);
  // The same kernel on host threads; all operands must be in host memory.
  CommandId launch_on_host(std::string_view kernel, Lane lane, const KernelShape& shape,
                           std::initializer_list<Operand> operands) {
    return launch_on_host(kernel, lane, shape, std::span(operands.begin(), operands.size()));
  }
  CommandId launch_on_host(std::string_view kernel, Lane lane, const KernelShape& shape,
                           std::span<const Operand> operands);
  CommandId copy(Lane lane, Operand from, Operand to);
  // Between ranks; a copy where there are none, which is what all of them then are.
  CommandId collective(CollectiveOp op, Lane lane, Operand from, Operand to);

  CommandId command_count() const { return static_cast<CommandId>(step_.commands_.size()); }
  void work(double amount) { step_.work_ = amount; }
  void count_work(Operand counts, double unit = 1);
  // Graph mode starts a new graph here; streams in eager mode take no notice.
  void cut();
  void token(CommandId command, std::uint32_t request) { step_.tokens_.push_back({command, request}); }

  // Derives all edges. Rejects a step that leaves one of its `stream_count` streams without a command.
  Step seal(int stream_count) &&;

 private:
  friend Step only(const Step& step, const std::function<bool(CommandId)>& keeps);
  BufferId add(Buffer buffer);
  std::uint64_t rank_seed() const { return static_cast<std::uint64_t>(ranks().rank) * 0x9e3779b97f4a7c15u; }
  const Access& access(const Operand& operand, bool reads, bool writes);
  Command& begin(CommandKind kind, Lane lane);
  CommandId add_kernel(CommandKind kind, std::string_view kernel, Lane lane, const KernelShape& shape,
                       std::span<const Operand> operands);

  std::uint64_t seed_;
  Step step_;
};

// Some commands alone, on as many streams as they use, with the buffers that they touch. What they would have read of
// the others' results is what those buffers begin with.
Step only(const Step& step, const std::function<bool(CommandId)>& keeps);
inline Step only_role(const Step& step, std::uint8_t role) {
  return only(step, [&](CommandId id) { return step.commands()[id].role == role; });
}

// Writes a buffer's initial contents; the same bytes on every machine.
void initialise(const Buffer& buffer, std::span<std::byte> bytes);

}  // namespace weir
