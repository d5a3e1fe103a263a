#include "run/check_order.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace weir {
namespace {

double collective_tolerance(const Command& command, int ranks) {
  const bool adds =
      command.collective == CollectiveOp::reduce_scatter || command.collective == CollectiveOp::all_reduce;
  if (!adds || command.shape.type == ElementType::i32) return 0;
  // Partial sums may be rounded to the stored type between ranks.
  const Precision precision = command.shape.type == ElementType::f16    ? Precision::fp16
                              : command.shape.type == ElementType::bf16 ? Precision::bf16
                                                                        : Precision::fp32;
  return (ranks + 1) * rounding_of(precision);
}

}  // namespace

std::vector<bool> chained_buffers(const Step& step) {
  struct Use {
    std::uint64_t begin, end;
    CommandId id;
  };
  struct Uses {
    std::vector<Use> reads, writes;
  };
  std::vector<Uses> uses(step.buffers().size());
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    for (const Access& access : step.accesses(id)) {
      const Use use{access.offset_bytes, access.offset_bytes + access.size_bytes, id};
      if (access.reads) uses[access.buffer].reads.push_back(use);
      if (access.writes) uses[access.buffer].writes.push_back(use);
    }
  }
  std::vector<bool> is_chained(uses.size(), false);
  for (std::size_t b = 0; b < uses.size(); ++b) {
    auto& [reads, writes] = uses[b];
    std::sort(writes.begin(), writes.end(), [](const Use& x, const Use& y) { return x.begin < y.begin; });
    for (std::size_t i = 1; i < writes.size() && !is_chained[b]; ++i)
      is_chained[b] = writes[i].begin < writes[i - 1].end;
    for (std::size_t r = 0; r < reads.size() && !is_chained[b]; ++r) {
      auto write = std::upper_bound(writes.begin(), writes.end(), reads[r].begin,
                                    [](std::uint64_t at, const Use& use) { return at < use.end; });
      for (; write != writes.end() && write->begin < reads[r].end && !is_chained[b]; ++write)
        is_chained[b] = write->id >= reads[r].id;
    }
  }
  return is_chained;
}

std::vector<CollectiveInput> collective_inputs(const Step& step, const std::vector<bool>& is_chained) {
  std::vector<CollectiveInput> inputs(step.commands().size(), CollectiveInput::device);
  for (CommandId id = 0; id < inputs.size(); ++id) {
    if (step.commands()[id].kind != CommandKind::collective) continue;
    const Access& from = step.accesses(id)[0];
    if (!is_chained[from.buffer]) continue;
    bool is_written_before = false, is_written_after = false;
    for (CommandId other = 0; other < inputs.size(); ++other)
      for (const Access& access : step.accesses(other))
        if (access.writes && access.buffer == from.buffer &&
            access.offset_bytes < from.offset_bytes + from.size_bytes &&
            from.offset_bytes < access.offset_bytes + access.size_bytes)
          (other < id ? is_written_before : is_written_after) = true;
    if (is_written_after) inputs[id] = is_written_before ? CollectiveInput::replayed : CollectiveInput::initial;
  }
  return inputs;
}

std::vector<std::vector<CommandId>> check_groups(const Step& step, const std::vector<bool>& is_chained,
                                                 const std::vector<CollectiveInput>& inputs) {
  std::vector<BufferId> parent(step.buffers().size());
  std::iota(parent.begin(), parent.end(), BufferId{0});
  const auto root = [&](BufferId b) {
    while (parent[b] != b) b = parent[b] = parent[parent[b]];
    return b;
  };
  constexpr BufferId kNone = ~BufferId{0};
  const auto chain_of = [&](CommandId id) {
    for (const Access& access : step.accesses(id))
      if (is_chained[access.buffer]) return root(access.buffer);
    return kNone;
  };
  const auto count = static_cast<CommandId>(step.commands().size());
  for (CommandId id = 0; id < count; ++id)
    for (const Access& access : step.accesses(id))
      if (is_chained[access.buffer]) parent[root(access.buffer)] = chain_of(id);
  BufferId shared = kNone;
  for (CommandId id = 0; id < count; ++id) {
    if (inputs[id] != CollectiveInput::replayed) continue;
    if (shared != kNone) parent[root(shared)] = chain_of(id);
    shared = chain_of(id);
  }

  std::vector<std::vector<CommandId>> groups;
  std::map<BufferId, std::size_t> group_of;
  for (CommandId id = 0; id < count; ++id) {
    const BufferId chain = chain_of(id);
    if (step.commands()[id].kind == CommandKind::collective && inputs[id] != CollectiveInput::replayed &&
        !is_chained[step.accesses(id)[1].buffer])
      continue;  // checked with the other ranks
    if (chain == kNone) {
      groups.push_back({id});
      continue;
    }
    const auto [known, is_new] = group_of.emplace(chain, groups.size());
    if (is_new) groups.emplace_back();
    groups[known->second].push_back(id);
  }
  return groups;
}

std::vector<KeptCopy> kept_copies(const Step& step, const std::vector<bool>& is_chained, CommandId id,
                                  std::size_t operand) {
  const Access& written = step.accesses(id)[operand];
  const std::uint64_t begin = written.offset_bytes, end = begin + written.size_bytes;
  std::vector<KeptCopy> copies;
  bool is_overwritten = false;
  for (CommandId later = id + 1; later < step.commands().size() && !is_overwritten; ++later) {
    const auto accesses = step.accesses(later);
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const Access& access = accesses[i];
      const std::uint64_t from = std::max(begin, access.offset_bytes);
      const std::uint64_t to = std::min(end, access.offset_bytes + access.size_bytes);
      if (access.buffer != written.buffer || from >= to) continue;
      is_overwritten = is_overwritten || access.writes;
      if (step.commands()[later].kind != CommandKind::copy || i != 0 || is_chained[accesses[1].buffer]) continue;
      const std::uint64_t offset_bytes = accesses[1].offset_bytes + (from - access.offset_bytes);
      copies.push_back({from - begin, accesses[1].buffer, offset_bytes, to - from});
    }
  }
  std::sort(copies.begin(), copies.end(), [](const KeptCopy& x, const KeptCopy& y) { return x.at_bytes < y.at_bytes; });
  std::uint64_t covered = 0;
  for (const KeptCopy& copy : copies)
    if (copy.at_bytes <= covered) covered = std::max(covered, copy.at_bytes + copy.size_bytes);
  if (covered < written.size_bytes) copies.clear();
  return copies;
}

std::vector<double> check_tolerances(const Step& step, const std::vector<bool>& is_chained) {
  std::vector<double> of_command(step.commands().size(), 0.0);
  for (CommandId id = 0; id < of_command.size(); ++id) {
    const Command& command = step.commands()[id];
    double inherited = 0;
    for (const Access& read : step.accesses(id)) {
      if (!read.reads || !is_chained[read.buffer]) continue;
      for (const CommandId before : step.predecessors(id)) {
        for (const Access& write : step.accesses(before)) {
          const bool flows = write.writes && read.buffer == write.buffer &&
                             read.offset_bytes < write.offset_bytes + write.size_bytes &&
                             write.offset_bytes < read.offset_bytes + read.size_bytes;
          if (flows) inherited = std::max(inherited, of_command[before]);
        }
      }
    }
    of_command[id] = inherited;
    if (command.kind == CommandKind::kernel || command.kind == CommandKind::host)
      of_command[id] += kernel(command.kernel).tolerance(command.shape);
    if (command.kind == CommandKind::collective)
      of_command[id] += collective_tolerance(command, command.group.within(step.ranks()).count);
  }
  return of_command;
}

}  // namespace weir
