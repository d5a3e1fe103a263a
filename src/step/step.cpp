#include "step/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "base/error.h"
#include "kernel/random.h"

namespace weir {
namespace {

constexpr CommandId kNone = std::numeric_limits<CommandId>::max();
constexpr std::size_t kMaxCommands = 10'000'000;  // several GB of memory for the step alone

// A byte range with one history: its last writer, and its readers since then.
struct Segment {
  std::uint64_t end = 0;
  CommandId writer = kNone;
  std::vector<CommandId> readers;
};

// Disjoint segments by start, per buffer. Commands are numbered through both iterations: the second one's are n + id.
class History {
 public:
  explicit History(std::span<const Buffer> buffers) : segments_(buffers.size()) {
    for (std::size_t i = 0; i < buffers.size(); ++i)
      segments_[i].emplace(0, Segment{buffers[i].size_bytes(), kNone, {}});
  }

  // Calls `edge(before, is_value)` for each earlier command that `access` must follow, then records the access.
  template <class Edge>
  void apply(const Access& access, CommandId id, Edge&& edge) {
    auto& segments = segments_[access.buffer];
    const std::uint64_t end = access.offset_bytes + access.size_bytes;
    split(segments, access.offset_bytes);
    split(segments, end);
    for (auto it = segments.find(access.offset_bytes); it != segments.end() && it->first < end; ++it) {
      Segment& segment = it->second;
      if (segment.writer != kNone && segment.writer != id) edge(segment.writer, access.reads || access.is_partial);
      if (access.writes) {
        for (const CommandId reader : segment.readers)
          if (reader != id) edge(reader, false);
        segment.readers.clear();
        segment.writer = id;
      } else if (segment.readers.empty() || segment.readers.back() != id) {
        segment.readers.push_back(id);
      }
    }
  }

 private:
  static void split(std::map<std::uint64_t, Segment>& segments, std::uint64_t at) {
    auto it = segments.upper_bound(at);
    if (it == segments.begin()) return;
    --it;
    if (it->first == at || at >= it->second.end) return;
    Segment tail = it->second;
    it->second.end = at;
    segments.emplace(at, std::move(tail));
  }

  std::vector<std::map<std::uint64_t, Segment>> segments_;
};

void append_sorted(std::vector<CommandId>& found, std::vector<CommandId>& all, std::vector<std::uint32_t>& begin) {
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  all.insert(all.end(), found.begin(), found.end());
  begin.push_back(static_cast<std::uint32_t>(all.size()));
  found.clear();
}

}  // namespace

Cost Step::cost() const {
  Cost total;
  for (CommandId id = 0; id < commands_.size(); ++id) {
    const Command& command = commands_[id];
    if (command.kind == CommandKind::kernel || command.kind == CommandKind::host) {
      total += kernel(command.kernel).cost(command.shape);
    } else {
      total.bytes += static_cast<double>(accesses(id)[0].size_bytes + accesses(id)[1].size_bytes);
    }
  }
  return total;
}

std::uint64_t Step::size_bytes(Place place) const {
  std::uint64_t total = 0;
  for (const Buffer& buffer : buffers_)
    if (buffer.place == place) total += buffer.size_bytes();
  return total;
}

BufferId StepBuilder::add(Buffer buffer) {
  if (buffer.count == 0) reject("a buffer of 0 elements", "Choose sizes of at least 1.");
  const auto id = static_cast<BufferId>(step_.buffers_.size());
  buffer.seed = seed_ * 1'000'003 + id;
  step_.buffers_.push_back(buffer);
  return id;
}

BufferId StepBuilder::uniform(ElementType type, std::uint64_t count, float scale, float offset) {
  return add({.type = type, .init = Init::uniform, .scale = scale, .offset = offset, .count = count});
}
BufferId StepBuilder::slice(ElementType type, std::uint64_t count, const Slice& slice, float scale, float offset) {
  return add({.type = type, .init = Init::uniform, .scale = scale, .offset = offset, .count = count, .slice = slice});
}
BufferId StepBuilder::slice_of(BufferId other, std::uint64_t count, const Slice& slice, float scale) {
  const std::uint64_t seed = step_.buffers_[other].seed;
  const BufferId id = this->slice(step_.buffers_[other].type, count, slice, scale);
  step_.buffers_[id].seed = seed;
  return id;
}
BufferId StepBuilder::same_as(BufferId other, ElementType type) {
  const std::uint64_t seed = step_.buffers_[other].seed;
  Buffer buffer = step_.buffers_[other];
  buffer.type = type;
  const BufferId id = add(buffer);
  step_.buffers_[id].seed = seed;
  return id;
}
BufferId StepBuilder::constant(ElementType type, std::uint64_t count, float value) {
  return add({.type = type, .init = Init::constant, .offset = value, .count = count});
}
BufferId StepBuilder::output(ElementType type, std::uint64_t count) {
  return add({.type = type, .init = Init::poison, .count = count});
}
BufferId StepBuilder::indices(std::uint64_t count) {
  return add({.type = ElementType::i32, .init = Init::indices, .count = count});
}
BufferId StepBuilder::sharded(ElementType type, std::uint64_t count, float scale) {
  const BufferId id = uniform(type, count, scale);
  step_.buffers_[id].seed += rank_seed();
  return id;
}
BufferId StepBuilder::integers(std::uint64_t count, std::int64_t limit) {
  const BufferId id = add({.type = ElementType::i32,
                           .init = Init::uniform,
                           .scale = static_cast<float>(limit),
                           .offset = 0,
                           .count = count});
  step_.buffers_[id].seed += rank_seed();
  return id;
}
BufferId StepBuilder::ramp(ElementType type, std::uint64_t count, float scale, float offset) {
  return add({.type = type, .init = Init::ramp, .scale = scale, .offset = offset, .count = count});
}
BufferId StepBuilder::host(ElementType type, std::uint64_t count, Init init, float scale, float offset) {
  return add({.type = type, .place = Place::host, .init = init, .scale = scale, .offset = offset, .count = count});
}

const Access& StepBuilder::access(const Operand& operand, bool reads, bool writes) {
  if (operand.buffer >= step_.buffers_.size())
    fail(fmt::format("operand names buffer {}, which does not exist", operand.buffer));
  Buffer& buffer = step_.buffers_[operand.buffer];
  const std::uint64_t room = operand.offset <= buffer.count ? buffer.count - operand.offset : 0;
  const std::uint64_t count = operand.count == 0 ? room : operand.count;
  if (count == 0 || count > room)
    fail(fmt::format("operand {}+{} is outside of buffer {} of {} elements", operand.offset, operand.count,
                     operand.buffer, buffer.count));
  buffer.is_written = buffer.is_written || writes;
  const std::uint64_t element = size_of(buffer.type);
  step_.accesses_.push_back({operand.buffer, reads, writes, false, operand.offset * element, count * element});
  return step_.accesses_.back();
}

Command& StepBuilder::begin(CommandKind kind, Lane lane) {
  if (step_.commands_.size() == kMaxCommands)
    reject(fmt::format("the step has more than {} commands", kMaxCommands),
           "Use smaller --param values: fewer layers, rounds, batches or pieces.");
  step_.commands_.push_back({.kind = kind,
                             .role = lane.role,
                             .priority = lane.priority,
                             .stream = lane.stream,
                             .first_access = static_cast<std::uint32_t>(step_.accesses_.size()),
                             .access_count = 2,
                             .shape = {}});
  return step_.commands_.back();
}

CommandId StepBuilder::launch(std::string_view name, Lane lane, const KernelShape& shape,
                              std::span<const Operand> operands) {
  return add_kernel(CommandKind::kernel, name, lane, shape, operands);
}
CommandId StepBuilder::launch_on_host(std::string_view name, Lane lane, const KernelShape& shape,
                                      std::span<const Operand> operands) {
  return add_kernel(CommandKind::host, name, lane, shape, operands);
}

CommandId StepBuilder::add_kernel(CommandKind kind, std::string_view name, Lane lane, const KernelShape& shape,
                                  std::span<const Operand> operands) {
  const KernelId id = kernel_named(name);
  const Kernel& entry = kernel(id);
  if (kind == CommandKind::kernel && entry.is_host_only) fail(fmt::format("kernel '{}' runs on the host only", name));
  const std::string_view modes = entry.operands(shape);
  if (modes.size() != operands.size())
    fail(fmt::format("kernel '{}' takes {} operands, {} given", name, modes.size(), operands.size()));
  const auto extents = entry.extents(shape);
  Command& command = begin(kind, lane);
  command.kernel = id;
  command.shape = shape;
  command.access_count = static_cast<std::uint32_t>(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Access& range = access(operands[i], modes[i] == 'r' || modes[i] == 'u', modes[i] != 'r');
    step_.accesses_.back().is_partial = modes[i] == 'p';
    const Buffer& buffer = step_.buffers_[range.buffer];
    // A kernel trusts its dims and types, so an operand that is too short would mean an out-of-bounds device write.
    if (const ElementType wanted = entry.type_of(shape, i); buffer.type != wanted)
      fail(fmt::format("kernel '{}': operand {} holds {}, {} is needed", name, i, name_of(buffer.type),
                       name_of(wanted)));
    if (range.size_bytes / size_of(buffer.type) < static_cast<std::uint64_t>(extents[i]))
      fail(fmt::format("kernel '{}': operand {} has {} elements, {} are needed", name, i,
                       range.size_bytes / size_of(buffer.type), extents[i]));
    if (i < entry.places.size() && entry.places[i] == 'a') continue;
    const bool is_on_host = kind == CommandKind::host || entry.is_probe;
    if (const Place wanted = is_on_host ? Place::host : Place::device; buffer.place != wanted)
      fail(fmt::format("kernel '{}': operand {} is in {} memory", name, i,
                       buffer.place == Place::host ? "host" : "device"));
  }
  return static_cast<CommandId>(step_.commands_.size() - 1);
}

CommandId StepBuilder::copy(Lane lane, Operand from, Operand to) {
  begin(CommandKind::copy, lane);
  access(from, true, false);
  access(to, false, true);
  const std::size_t count = step_.accesses_.size();
  if (step_.accesses_[count - 2].size_bytes != step_.accesses_[count - 1].size_bytes)
    fail("a copy between ranges of unequal size");
  return static_cast<CommandId>(step_.commands_.size() - 1);
}

CommandId StepBuilder::collective(CollectiveOp op, Lane lane, Operand from, Operand to, const RankGroup& group) {
  const Ranks own = group.within(ranks());
  if (group.has_all() ? !ranks().has_collectives() : own.count == 1) return copy(lane, from, to);
  Command& command = begin(CommandKind::collective, lane);
  command.collective = op;
  command.group = group;
  command.shape.type = step_.buffers_[from.buffer].type;
  const std::uint64_t in = access(from, true, false).size_bytes;
  const std::uint64_t out = access(to, false, true).size_bytes;
  if (step_.buffers_[to.buffer].type != command.shape.type) fail("a collective between buffers of different types");
  const auto count = static_cast<std::uint64_t>(own.count);
  const bool fits = op == CollectiveOp::all_gather       ? out == in * count
                    : op == CollectiveOp::reduce_scatter ? in == out * count
                                                         : in == out && (op != CollectiveOp::all_to_all ||
                                                                         in / size_of(command.shape.type) % count == 0);
  if (!fits) fail(fmt::format("{} of {} bytes into {} between {} ranks", name_of(op), in, out, count));
  return static_cast<CommandId>(step_.commands_.size() - 1);
}

void StepBuilder::count_work(Operand counts, double unit) {
  const Buffer& buffer = step_.buffers_[counts.buffer];
  if (buffer.type != ElementType::i32) fail("work is counted in i32 elements");
  const std::uint64_t count = counts.count == 0 ? buffer.count - counts.offset : counts.count;
  step_.counted_ = {{counts.buffer, true, false, false, counts.offset * 4, count * 4}, unit};
}

void StepBuilder::cut() {
  const auto here = static_cast<CommandId>(step_.commands_.size());
  if (here != 0 && (step_.segments_.empty() || step_.segments_.back() != here)) step_.segments_.push_back(here);
}

std::vector<RankGroup> rank_groups(const Step& step) {
  std::vector<RankGroup> groups;
  for (const Command& command : step.commands())
    if (!command.group.has_all() && std::find(groups.begin(), groups.end(), command.group) == groups.end())
      groups.push_back(command.group);
  std::sort(groups.begin(), groups.end());
  return groups;
}

Step StepBuilder::seal(int stream_count) && {
  const auto count = static_cast<CommandId>(step_.commands_.size());
  std::vector<bool> has_work(static_cast<std::size_t>(stream_count), false);
  for (const Command& command : step_.commands_) {
    if (command.stream >= stream_count) fail(fmt::format("a command on stream {} of {}", command.stream, stream_count));
    has_work[command.stream] = true;
  }
  if (const auto idle = std::find(has_work.begin(), has_work.end(), false); idle != has_work.end())
    reject_setting(
        "streams", std::to_string(stream_count), fmt::format("stream {} would have no work", idle - has_work.begin()),
        "Use fewer streams, or sizes that give every stream a part (more samples, micro-batches or pieces).");

  // Analyzes two iterations in a row: edges from the first to the second are what pipelined iterations must wait for.
  // An edge from an earlier command of the last iteration is implied by stream order and by this iteration's edge from
  // that command.
  History history(step_.buffers_);
  std::vector<CommandId> found, found_carried;
  step_.edge_begin_.push_back(0);
  step_.carried_begin_.push_back(0);
  for (int iteration = 0; iteration < 2; ++iteration) {
    for (CommandId id = 0; id < count; ++id) {
      const CommandId number = iteration == 0 ? id : count + id;
      const auto edge = [&](CommandId before, bool is_value) {
        if (iteration == 0) {
          found.push_back(before);
        } else if (before < count) {
          if (is_value) step_.is_repeatable_ = false;
          if (before > id) found_carried.push_back(before);
        }
      };
      // Reads first: a command that reads and writes one range depends on the old value, not on itself.
      for (const Access& access : step_.accesses(id))
        if (access.reads)
          history.apply({access.buffer, true, false, false, access.offset_bytes, access.size_bytes}, number, edge);
      for (const Access& access : step_.accesses(id))
        if (access.writes)
          history.apply({access.buffer, false, true, access.is_partial, access.offset_bytes, access.size_bytes}, number,
                        edge);
      if (iteration == 0) {
        append_sorted(found, step_.edges_, step_.edge_begin_);
      } else {
        append_sorted(found_carried, step_.carried_, step_.carried_begin_);
      }
    }
  }
  step_.stream_count_ = stream_count;
  step_.segments_.insert(step_.segments_.begin(), 0);
  if (step_.segments_.back() != count) step_.segments_.push_back(count);
  return std::move(step_);
}

Step only(const Step& step, const std::function<bool(CommandId)>& keeps) {
  StepBuilder builder(0, step.ranks());
  std::map<BufferId, BufferId> buffer_of;
  std::map<StreamId, StreamId> stream_of;
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    if (!keeps(id)) continue;
    Command command = step.commands()[id];
    const auto stream = stream_of.emplace(command.stream, static_cast<StreamId>(stream_of.size())).first;
    command.stream = stream->second;
    command.first_access = static_cast<std::uint32_t>(builder.step_.accesses_.size());
    for (Access access : step.accesses(id)) {
      const auto next = static_cast<BufferId>(builder.step_.buffers_.size());
      const auto [buffer, is_new] = buffer_of.emplace(access.buffer, next);
      if (is_new) builder.step_.buffers_.push_back(step.buffers()[access.buffer]);
      access.buffer = buffer->second;
      builder.step_.accesses_.push_back(access);
    }
    builder.step_.commands_.push_back(command);
  }
  return std::move(builder).seal(static_cast<int>(stream_of.size()));
}

void initialise(const Buffer& buffer, std::span<std::byte> bytes) {
  if (bytes.size() != buffer.size_bytes()) fail("initialise: the span does not fit the buffer");
  if (buffer.type == ElementType::i32) {
    std::span<std::int32_t> values(reinterpret_cast<std::int32_t*>(bytes.data()), buffer.count);
    if (buffer.init == Init::ramp) {
      std::iota(values.begin(), values.end(), 0);
    } else if (buffer.init == Init::uniform) {
      const auto limit = static_cast<std::uint64_t>(buffer.scale);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] =
            static_cast<std::int32_t>(random_bits(buffer.seed, buffer.slice[i]) % std::max<std::uint64_t>(1, limit));
    } else if (buffer.init == Init::indices) {
      std::iota(values.begin(), values.end(), 0);
      for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random_bits(buffer.seed, i) % i]);
    } else {
      std::fill(values.begin(), values.end(),
                buffer.init == Init::constant ? static_cast<std::int32_t>(buffer.offset) : -1);
    }
    return;
  }
  with_float_type(buffer.type, [&]<class T>(T*) {
    T* const values = reinterpret_cast<T*>(bytes.data());
    const float filler = buffer.init == Init::poison ? std::numeric_limits<float>::quiet_NaN() : buffer.offset;
    const auto value = [&](std::uint64_t i) {
      if (buffer.init == Init::uniform)
        return random_uniform(buffer.seed, buffer.slice[i], buffer.scale, buffer.offset);
      if (buffer.init == Init::ramp)
        return buffer.offset + buffer.scale * (static_cast<float>(i) / static_cast<float>(buffer.count));
      return filler;
    };
    for (std::uint64_t i = 0; i < buffer.count; ++i) values[i] = from_float<T>(value(i));
  });
}

}  // namespace weir
