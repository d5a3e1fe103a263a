#include "step/workload/yaml_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "step/workload/yaml_order.h"
#include "step/workload/yaml_values.h"

namespace weir {
namespace {

constexpr double kLargestScalar = 1e30;
constexpr double kLargestInteger = 1e9;  // for values that are stored as i32

// The elements of a buffer written so far, as disjoint ranges.
class Written {
 public:
  void add(std::uint64_t begin, std::uint64_t end) {
    auto it = ranges_.upper_bound(begin);
    if (it != ranges_.begin() && std::prev(it)->second >= begin) --it;
    while (it != ranges_.end() && it->first <= end) {
      begin = std::min(begin, it->first);
      end = std::max(end, it->second);
      it = ranges_.erase(it);
    }
    ranges_.emplace(begin, end);
  }
  bool covers(std::uint64_t begin, std::uint64_t end) const {
    const auto it = ranges_.upper_bound(begin);
    return it != ranges_.begin() && std::prev(it)->second >= end;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin -> end
};

// An operand with known numbers.
struct Range {
  std::size_t buffer = 0;
  std::uint64_t offset = 0, count = 0;
  const YamlPlace* place = nullptr;

  std::uint64_t end() const { return offset + count; }
  Operand operand() const { return {static_cast<BufferId>(buffer), offset, count}; }
  bool is_same(const Range& other) const {
    return buffer == other.buffer && offset == other.offset && count == other.count;
  }
  bool overlaps(const Range& other) const {
    return buffer == other.buffer && offset < other.end() && other.offset < end();
  }
};

class StepMaker {
 public:
  StepMaker(const YamlDefinition& definition, const Params& params, int stream_count)
      : definition_(definition),
        params_(params),
        stream_count_(stream_count),
        values_(definition, params, stream_count),
        step_(params.seed, params.ranks) {}

  Step run() {
    for (const YamlBuffer& buffer : definition_.buffers) add_buffer(buffer);
    expand(definition_.items, 0);
    if (instances_.empty()) definition_.place.refuse("its loops come to no command at all");
    is_busy_.resize(static_cast<std::size_t>(stream_count_), false);
    for (const std::uint32_t index : issue_order(definition_, instances_, loop_values_)) add_command(instances_[index]);
    reject_idle_streams();
    reject_too_many_overlaps();
    step_.work(work());
    return definition_.place.guard([&] { return std::move(step_).seal(stream_count_); });
  }

 private:
  [[noreturn]] void refuse(const YamlPlace& place, const std::string& what, std::string hint = {}) const {
    values_.refuse(place, what, std::move(hint));
  }
  std::int64_t whole(const YamlPlace& place, const Expression& expression, std::int64_t lowest, std::int64_t highest,
                     std::string_view what) const {
    return values_.whole(place, expression, lowest, highest, what);
  }

  void add_buffer(const YamlBuffer& buffer) {
    const ElementType type = buffer.type.value_or(storage_of(params_.precision));
    constexpr std::int64_t kMaxCount = std::int64_t{1} << 44;
    const auto count =
        static_cast<std::uint64_t>(whole(buffer.count.place, buffer.count.expression, 1, kMaxCount, "the count"));
    total_bytes_ += count * size_of(type);
    if (total_bytes_ > definition_.limits.bytes)
      refuse(buffer.count.place, fmt::format("with it the buffers take {} bytes or more", total_bytes_),
             "Use a smaller --scale or smaller --param sizes.");
    const bool is_integer = type == ElementType::i32;
    const double largest = is_integer ? kLargestInteger : kLargestScalar;
    const float scale = values_.number(buffer.scale, 1, largest), offset = values_.number(buffer.offset, 0, largest);
    const float value = values_.number(buffer.value, 0, largest);
    const std::int64_t limit =
        buffer.limit ? whole(buffer.limit->place, buffer.limit->expression, 1, INT32_MAX, "the limit") : 1;
    if (buffer.init == YamlInit::indices && count > INT32_MAX)
      refuse(buffer.count.place, "too many elements for init: indices", fmt::format("{} at most.", INT32_MAX));
    buffers_.push_back({type, buffer.where, count, buffer.init == YamlInit::output, {}, {}});
    if (buffer.where == Place::host) {
      constexpr Init kInits[] = {Init::poison, Init::uniform, Init::uniform, Init::constant,
                                 Init::ramp,   Init::indices, Init::uniform};
      const float host_scale = buffer.init == YamlInit::integers ? static_cast<float>(limit) : scale;
      step_.host(type, count, kInits[static_cast<int>(buffer.init)], host_scale,
                 buffer.init == YamlInit::constant ? value : offset);
      return;
    }
    using enum YamlInit;
    if (buffer.init == output) step_.output(type, count);
    if (buffer.init == uniform) step_.uniform(type, count, scale, offset);
    if (buffer.init == sharded) step_.sharded(type, count, scale);
    if (buffer.init == constant) step_.constant(type, count, value);
    if (buffer.init == ramp) step_.ramp(type, count, scale, offset);
    if (buffer.init == indices) step_.indices(count);
    if (buffer.init == integers) step_.integers(count, limit);
  }

  void expand(const std::vector<YamlItem>& items, std::size_t level) {
    for (const YamlItem& item : items) {
      values_.set_level(level);
      if (item.when && values_.value(*item.when) == 0) continue;
      if (item.kind == YamlItem::Kind::command) {
        if (instances_.size() == definition_.limits.commands)
          item.place.refuse(fmt::format("more than {} commands", definition_.limits.commands), "Repeat less often.");
        instances_.push_back(
            {static_cast<std::uint32_t>(item.command), static_cast<std::uint32_t>(loop_values_.size())});
        for (std::size_t i = 0; i < level; ++i) loop_values_.push_back(values_.loop(i));
        continue;
      }
      const std::int64_t count =
          item.count ? whole(item.count->place, item.count->expression, 0, INT32_MAX, "the count") : stream_count_;
      for (std::int64_t i = 0; i < count; ++i) {
        if (++iterations_ > definition_.limits.iterations)
          item.place.refuse(fmt::format("more than {} iterations of loops", definition_.limits.iterations),
                            "Repeat less often.");
        values_.set_loop(level, static_cast<std::int32_t>(i));
        expand(item.items, level + 1);
      }
    }
    values_.set_level(level);
  }

  Range range_of(const YamlOperand& operand) const {
    const Target& buffer = buffers_[operand.buffer];
    const auto room = static_cast<std::int64_t>(buffer.count);
    Range range{operand.buffer, 0, buffer.count, &operand.place};
    const std::string& name = definition_.buffers[operand.buffer].name;
    if (operand.offset)
      range.offset = static_cast<std::uint64_t>(whole(operand.place, *operand.offset, 0, room - 1,
                                                      fmt::format("{} has {} elements; the offset", name, room)));
    range.count -= range.offset;
    if (operand.count)
      range.count = static_cast<std::uint64_t>(
          whole(operand.place, *operand.count, 1, static_cast<std::int64_t>(range.count),
                fmt::format("{} has {} elements from {} on; the count", name, range.count, range.offset)));
    return range;
  }

  void note(const Range& range, bool reads, bool writes) {
    Target& buffer = buffers_[range.buffer];
    if (reads && buffer.is_poisoned && !buffer.written.covers(range.offset, range.end()))
      refuse(*range.place,
             fmt::format("it reads '{}' where nothing has been written", definition_.buffers[range.buffer].name),
             "Write it in an earlier command, or give the buffer an `init`.");
    if (writes && buffer.is_poisoned) buffer.written.add(range.offset, range.end());
    buffer.uses.emplace_back(range.offset, range.end());
  }

  void add_command(const YamlInstance& instance) {
    const YamlCommand& command = definition_.commands[instance.command];
    values_.set_level(command.loops.size());
    for (std::size_t i = 0; i < command.loops.size(); ++i) values_.set_loop(i, loop_values_[instance.first_value + i]);
    Lane lane;
    lane.role = command.role;
    if (command.stream) {
      lane.stream = static_cast<StreamId>(
          whole(command.stream->place, command.stream->expression, 0, stream_count_ - 1, "the stream"));
    } else if (command.own_stream) {
      lane.stream = static_cast<StreamId>(values_.variable(*command.own_stream));
    }
    if (command.priority)
      lane.priority = static_cast<std::int8_t>(
          whole(command.priority->place, command.priority->expression, -100, 100, "the priority"));
    is_busy_[lane.stream] = true;
    ++command_count_;
    try {
      if (command.kind == CommandKind::copy || command.kind == CommandKind::collective) {
        add_transfer(command, lane);
      } else {
        add_kernel(command, lane);
      }
    } catch (const Error& error) {
      if (error.fault == Fault::input) throw;  // already names its place
      refuse(command.place, error.what(), error.hint);
    }
  }

  void add_transfer(const YamlCommand& command, Lane lane) {
    const Range from = range_of(command.reads[0]), to = range_of(command.writes[0]);
    const Target &source = buffers_[from.buffer], &target = buffers_[to.buffer];
    if (source.type != target.type)
      refuse(command.place, fmt::format("from holds {} and to holds {}", name_of(source.type), name_of(target.type)));
    if (from.overlaps(to)) refuse(command.place, "from and to overlap");
    const bool is_copy = command.kind == CommandKind::copy || !params_.ranks.has_collectives();
    if (is_copy && from.count != to.count)
      refuse(
          command.place, fmt::format("from has {} elements and to has {}", from.count, to.count),
          command.kind == CommandKind::copy ? "" : "With one rank a collective is a copy: use `ranks` in its sizes.");
    note(from, true, false);
    note(to, false, true);
    cost_.bytes += static_cast<double>((from.count + to.count) * size_of(source.type));
    if (command.kind == CommandKind::copy) {
      step_.copy(lane, from.operand(), to.operand());
    } else {
      step_.collective(command.collective, lane, from.operand(), to.operand());
    }
  }

  void add_kernel(const YamlCommand& command, Lane lane) {
    const Kernel& entry = kernel(command.kernel);
    std::vector<Range> reads, writes;
    for (const YamlOperand& operand : command.reads) reads.push_back(range_of(operand));
    for (const YamlOperand& operand : command.writes) writes.push_back(range_of(operand));
    KernelShape shape = shape_of(command, reads, writes);
    const std::string_view modes = entry.operands(shape);
    const std::vector<Range> operands = matched(command, modes, reads, writes);
    // The shape takes the type of the first operand without a fixed type ('t').
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (i < entry.types.size() && entry.types[i] != 't') continue;
      shape.type = buffers_[operands[i].buffer].type;
      break;
    }
    shape.precision = shape.type == storage_of(params_.precision) ? params_.precision
                      : shape.type == ElementType::f16            ? Precision::fp16
                      : shape.type == ElementType::bf16           ? Precision::bf16
                                                                  : Precision::fp32;
    check_type(command, shape.type);
    if (shape.type == ElementType::i32)
      for (const float value : shape.scalars)
        if (std::fabs(value) > static_cast<float>(kLargestInteger))
          refuse(command.place, fmt::format("{} is too large for integers", value));
    const auto extents = entry.extents(shape);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      check_operand(command, shape, i, operands[i], extents[i]);
      const bool is_written = modes[i] != 'r';
      note(operands[i], modes[i] == 'r' || modes[i] == 'u', is_written);
      for (std::size_t j = 0; is_written && j < operands.size(); ++j) {
        const bool is_in_place =
            operands[i].is_same(operands[j]) && (command.names == nullptr || command.names->can_work_in_place);
        if (j != i && operands[i].overlaps(operands[j]) && !is_in_place)
          refuse(command.place, fmt::format("{} and {} overlap", label(command, i), label(command, j)),
                 command.names != nullptr && command.names->can_work_in_place ? "Equal ranges are fine, others are not."
                                                                              : "This kernel cannot work in place.");
      }
    }
    cost_ += entry.cost(shape);
    std::array<Operand, kMaxOperands> list{};
    for (std::size_t i = 0; i < operands.size(); ++i) list[i] = operands[i].operand();
    if (command.kind == CommandKind::kernel) {
      step_.launch(entry.name, lane, shape, std::span(list).first(operands.size()));
    } else {
      step_.launch_on_host(entry.name, lane, shape, std::span(list).first(operands.size()));
    }
  }

  KernelShape shape_of(const YamlCommand& command, const std::vector<Range>& reads,
                       const std::vector<Range>& writes) const {
    KernelShape shape;
    double product = 1;  // kernels multiply their dims without overflow checks
    const auto set = [&](const YamlKernel::Slot* slot, std::size_t index, std::int64_t value) {
      product *= static_cast<double>(std::max<std::int64_t>(1, value));
      if (slot != nullptr && slot->bit >= 0) {
        shape.dims[index] |= value << slot->bit;
      } else {
        shape.dims[index] = value;
      }
    };
    for (const YamlSize& size : command.dims) {
      const std::int64_t lowest = size.slot == nullptr ? 0 : size.slot->lowest;
      const std::int64_t highest = size.slot == nullptr ? std::int64_t{1} << 40 : size.slot->highest;
      set(size.slot, size.index,
          whole(size.value.place, size.value.expression, lowest, highest,
                size.slot == nullptr ? "the dim" : size.slot->name));
    }
    const auto slots = command.names == nullptr ? std::span<const YamlKernel::Slot>() : command.names->dims;
    for (const YamlKernel::Slot& slot : slots) {
      const auto is_this = [&](const YamlSize& size) { return size.slot == &slot; };
      if (std::any_of(command.dims.begin(), command.dims.end(), is_this)) continue;
      const auto index = static_cast<std::size_t>(slot.index);
      if (slot.is_optional) {
        set(&slot, index, static_cast<std::int64_t>(slot.initial));
        continue;
      }
      const std::vector<Range>& counted = writes.empty() ? reads : writes;
      if (!command.names->counts_itself || counted.empty())
        refuse(command.place, fmt::format("the dim '{}' is missing", slot.name), "dims: {name: size, ...}");
      set(&slot, index, static_cast<std::int64_t>(counted[0].count));
    }
    if (product > 0x1p62) refuse(command.place, "its dims are too large");
    if (command.chain != 0) shape.dims[1] = command.chain;
    if (command.names != nullptr)
      for (const YamlKernel::Slot& slot : command.names->scalars)
        shape.scalars[static_cast<std::size_t>(slot.index)] = static_cast<float>(slot.initial);
    for (const YamlSize& size : command.scalars)
      shape.scalars[size.index] = values_.number(size.value, 0, kLargestScalar);
    return shape;
  }

  // Operands in the kernel's order. Letters of `modes`: r from reads, w and p from writes, u from both.
  std::vector<Range> matched(const YamlCommand& command, std::string_view modes, const std::vector<Range>& reads,
                             const std::vector<Range>& writes) const {
    const auto is_read = [](char mode) { return mode == 'r' || mode == 'u'; };
    const auto read_count = static_cast<std::size_t>(std::count_if(modes.begin(), modes.end(), is_read));
    const auto write_count =
        static_cast<std::size_t>(std::count_if(modes.begin(), modes.end(), [](char mode) { return mode != 'r'; }));
    std::string wanted_reads, wanted_writes;
    for (std::size_t i = 0; i < modes.size(); ++i) {
      if (is_read(modes[i])) wanted_reads += (wanted_reads.empty() ? "" : ", ") + label(command, i);
      if (modes[i] != 'r') wanted_writes += (wanted_writes.empty() ? "" : ", ") + label(command, i);
    }
    const std::string_view name = kernel(command.kernel).name;
    const auto compare = [&](const char* key, std::size_t given, std::size_t wanted, const std::string& names) {
      if (given == wanted) return;
      const YamlPlace place{command.place.file, command.place.line, fmt::format("{}.{}", command.place.path, key)};
      refuse(place, fmt::format("{} {} {} operand{}, {} given", name, key, wanted, wanted == 1 ? "" : "s", given),
             names.empty() ? "" : fmt::format("{}: {}", key, names));
    };
    compare("reads", reads.size(), read_count, wanted_reads);
    compare("writes", writes.size(), write_count, wanted_writes);
    std::vector<Range> operands;
    std::size_t next_read = 0, next_write = 0;
    for (std::size_t i = 0; i < modes.size(); ++i) {
      if (modes[i] == 'u' && !reads[next_read].is_same(writes[next_write]))
        refuse(*writes[next_write].place,
               fmt::format("{} reads and writes {}: both must name the same range", name, label(command, i)));
      operands.push_back(modes[i] == 'r' ? reads[next_read] : writes[next_write]);
      next_read += is_read(modes[i]);
      next_write += modes[i] != 'r';
    }
    return operands;
  }

  std::string label(const YamlCommand& command, std::size_t operand) const {
    if (command.names != nullptr && operand < command.names->operands.size())
      return std::string(command.names->operands[operand]);
    return fmt::format("operand {}", operand);
  }

  void check_type(const YamlCommand& command, ElementType type) const {
    const auto types = command.names == nullptr ? YamlKernel::Types::any : command.names->types;
    const std::string_view name = kernel(command.kernel).name;
    if (types == YamlKernel::Types::floating && type == ElementType::i32)
      refuse(command.place, fmt::format("{} does not compute with integers", name), "Use f32, f16, bf16 or compute.");
    if (types == YamlKernel::Types::f32 && type != ElementType::f32)
      refuse(command.place, fmt::format("{} writes f32, the buffer holds {}", name, name_of(type)));
  }

  void check_operand(const YamlCommand& command, const KernelShape& shape, std::size_t index, const Range& range,
                     std::int64_t extent) const {
    const Kernel& entry = kernel(command.kernel);
    const Target& buffer = buffers_[range.buffer];
    const std::string what = fmt::format("{} of {}", label(command, index), entry.name);
    if (const ElementType wanted = entry.type_of(shape, index); buffer.type != wanted)
      refuse(*range.place, fmt::format("{} holds {}, {} is needed", what, name_of(buffer.type), name_of(wanted)));
    if (extent < 0 || range.count < static_cast<std::uint64_t>(extent))
      refuse(*range.place, fmt::format("{} has {} elements, {} are needed", what, range.count, extent));
    // Operands of probes are 64-bit words, which host and device read and write as one.
    if (entry.is_probe && (buffer.type != ElementType::i32 || range.offset % 2 != 0))
      refuse(*range.place, fmt::format("{} must be i32 and begin at an even element", what));
    const bool is_on_host = command.kind == CommandKind::host || entry.is_probe;
    const Place wanted = is_on_host ? Place::host : Place::device;
    if (buffer.where != wanted)
      refuse(*range.place, fmt::format("{} is in {} memory", what, buffer.where == Place::host ? "host" : "device"),
             wanted == Place::device ? "Copy it first: copy: {from: ..., to: ...}"
             : entry.is_probe        ? "Host and device use it while it runs: place: host."
                                     : "What runs on the host needs buffers with place: host.");
  }

  void reject_idle_streams() const {
    const auto idle = std::find(is_busy_.begin(), is_busy_.end(), false);
    if (idle == is_busy_.end()) return;
    const auto busy = std::count(is_busy_.begin(), is_busy_.end(), true);
    definition_.place.refuse(
        fmt::format("stream {} of {} has no work", idle - is_busy_.begin(), stream_count_),
        fmt::format("Put commands under per_stream, or on `stream: i % streams`; or say `streams: {{max: {}}}`.",
                    busy));
  }

  // Deriving edges examines every separately used range that a command touches.
  void reject_too_many_overlaps() {
    std::size_t total = 0;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const auto& uses = buffers_[i].uses;
      std::vector<std::uint64_t> cuts;
      cuts.reserve(2 * uses.size());
      for (const auto& [begin, end] : uses) cuts.insert(cuts.end(), {begin, end});
      std::sort(cuts.begin(), cuts.end());
      cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
      for (const auto& [begin, end] : uses)
        total += static_cast<std::size_t>(std::lower_bound(cuts.begin(), cuts.end(), end) -
                                          std::lower_bound(cuts.begin(), cuts.end(), begin));
      if (total > definition_.limits.overlaps)
        definition_.buffers[i].place.refuse("too many commands use overlapping slices of it",
                                            "Use fewer slices, or a buffer for each.");
    }
  }

  double work() {
    values_.set_level(0);
    double amount = static_cast<double>(command_count_);
    if (definition_.work == YamlDefinition::Work::flop) amount = cost_.flop * definition_.work_scale;
    if (definition_.work == YamlDefinition::Work::bytes) amount = cost_.bytes * definition_.work_scale;
    if (definition_.work_expression) amount = values_.value(*definition_.work_expression);
    if (!(amount > 0)) definition_.place.refuse(fmt::format("the work of an iteration is {}", amount), "Check `work`.");
    return amount;
  }

  // Facts about a buffer for checking commands against it.
  struct Target {
    ElementType type;
    Place where;
    std::uint64_t count;
    bool is_poisoned;
    Written written;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> uses;
  };

  const YamlDefinition& definition_;
  const Params& params_;
  int stream_count_;
  YamlValues values_;
  StepBuilder step_;
  std::vector<Target> buffers_;
  std::uint64_t total_bytes_ = 0;
  std::vector<YamlInstance> instances_;
  std::vector<std::int32_t> loop_values_;
  std::size_t iterations_ = 0;
  std::size_t command_count_ = 0;
  std::vector<bool> is_busy_;
  Cost cost_;
};

}  // namespace

Step build_yaml_step(const YamlDefinition& definition, const Params& params, int stream_count) {
  return StepMaker(definition, params, stream_count).run();
}

}  // namespace weir
