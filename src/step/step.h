// One iteration of a workload: commands, the data each touches, and the resulting order. Never touches a device.
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
  // Commands of the previous iteration that must have ended before `id` starts, if iterations are pipelined.
  std::span<const CommandId> carried(CommandId id) const { return slice(carried_, carried_begin_, id); }
  // The natural layout's number of streams.
  int stream_count() const { return stream_count_; }
  // True if an iteration reads nothing that an earlier one wrote: then repeating it does not change the result.
  bool is_repeatable() const { return is_repeatable_; }
  // Work of one iteration in the workload's unit; if counted() is set, the device's count applies instead.
  double work() const { return work_; }
  // The i32 elements whose sum, times `unit`, is the last iteration's work. It depends on data, so it is known only
  // then.
  struct Counted {
    Access where;
    double unit = 1;
  };
  const std::optional<Counted>& counted() const { return counted_; }
  // Graph boundaries: commands [segments()[i], segments()[i + 1]) are captured as one. From 0 to the command count.
  std::span<const CommandId> segments() const { return segments_; }
  // Commands that produce a request's next token, in order for each request.
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

// The stream, role and priority of a command.
struct Lane {
  StreamId stream = 0;
  std::uint8_t role = 0;
  std::int8_t priority = 0;
};

// Collects a workload's commands and data. Rejects operands that do not fit their buffer or their kernel.
class StepBuilder {
 public:
  explicit StepBuilder(std::uint64_t seed, Ranks ranks = {}) : seed_(seed) { step_.ranks_ = ranks; }
  Ranks ranks() const { return step_.ranks_; }

  BufferId uniform(ElementType type, std::uint64_t count, float scale = 1, float offset = 0);
  BufferId sharded(ElementType type, std::uint64_t count, float scale = 1);  // uniform, different on every rank
  // uniform: a part of a sequence that is the same on every rank.
  BufferId slice(ElementType type, std::uint64_t count, const Slice& slice, float scale = 1, float offset = 0);
  // The same of the sequence that `other` is a part of.
  BufferId slice_of(BufferId other, std::uint64_t count, const Slice& slice, float scale = 1);
  // Starts with the values of `other`, as floats of another type.
  BufferId same_as(BufferId other, ElementType type);
  BufferId constant(ElementType type, std::uint64_t count, float value);
  BufferId output(ElementType type, std::uint64_t count);  // poisoned: some command must write it
  BufferId indices(std::uint64_t count);
  BufferId integers(std::uint64_t count, std::int64_t limit);  // i32: random in 0..limit-1, different on every rank
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
  // Between ranks; becomes a copy if ranks().has_collectives() is false, because one rank's collective only copies. The
  // same for a rank that is alone in its group.
  CommandId collective(CollectiveOp op, Lane lane, Operand from, Operand to, const RankGroup& group = {});

  CommandId command_count() const { return static_cast<CommandId>(step_.commands_.size()); }
  void work(double amount) { step_.work_ = amount; }
  void count_work(Operand counts, double unit = 1);
  // Graph mode starts a new graph here; eager streams ignore it.
  void cut();
  void token(CommandId command, std::uint32_t request) { step_.tokens_.push_back({command, request}); }

  // Derives all edges. Rejects a step with no command on one of its `stream_count` streams.
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

// The groups that its collectives are between, apart from that of all ranks; in order.
std::vector<RankGroup> rank_groups(const Step& step);

// A subset of the commands, on as many streams as they use, with the buffers that they touch. Results of omitted
// commands are replaced by the initial contents of those buffers.
Step only(const Step& step, const std::function<bool(CommandId)>& keeps);
inline Step only_role(const Step& step, std::uint8_t role) {
  return only(step, [&](CommandId id) { return step.commands()[id].role == role; });
}

// Writes a buffer's initial contents, which are the same bytes on every machine.
void initialise(const Buffer& buffer, std::span<std::byte> bytes);

}  // namespace weir
