#include "lab/race/step_log.h"

#include <fmt/format.h>

#include <numeric>
#include <unordered_map>

#include "device/plan.h"

namespace weir::race {
namespace {

constexpr std::uint64_t kFirstAddress = 1 << 20, kAlign = 256;

// A CommandQueue that writes the calls down.
class LogWriter {
 public:
  LogWriter(const Step& step, Log& log) : step_(step), log_(log) {
    for (BufferId id = 0; id < step.buffers().size(); ++id) {
      addresses_.push_back(next_address_);
      next_address_ += (step.buffers()[id].size_bytes() + kAlign - 1) / kAlign * kAlign + kAlign;
      Call& call = add(Kind::allocate, kNoStream);
      call.is_host = step.buffers()[id].place == Place::host;
      add_range({addresses_[id], addresses_[id] + step.buffers()[id].size_bytes(), false, true, true});
    }
  }

  void launch(CommandId id, StreamId stream) noexcept {
    const Command& command = step_.commands()[id];
    const Kind kind = command.kind == CommandKind::copy   ? Kind::copy
                      : command.kind == CommandKind::host ? Kind::host_function
                                                          : Kind::kernel;
    Call& call = add(kind, stream);
    call.name.sequence = ++commands_;
    call.label = label_of(command);
    for (const Access& access : step_.accesses(id)) {
      const std::uint64_t begin = addresses_[access.buffer] + access.offset_bytes;
      if (access.size_bytes != 0) add_range({begin, begin + access.size_bytes, access.reads, access.writes, true});
    }
  }
  void record(EventId event, StreamId stream) noexcept { add(Kind::event_record, stream).object = event; }
  void wait(EventId event, StreamId stream) noexcept { add(Kind::stream_wait_event, stream).object = event; }
  void mark_first(StreamId) noexcept {}
  void mark_last(StreamId) noexcept {}
  void finish() { add(Kind::context_synchronize, kNoStream); }

 private:
  Call& add(Kind kind, std::uint32_t stream) {
    Call call;
    call.kind = kind;
    call.stream = stream;
    call.name.thread = 1;
    call.time_ns =
        static_cast<std::int64_t>(log_.calls.size());  // nothing runs: the place in the order, as if 1 ns each
    call.first_range = static_cast<std::uint32_t>(log_.ranges.size());
    log_.calls.push_back(call);
    return log_.calls.back();
  }
  void add_range(const Range& range) {
    log_.ranges.push_back(range);
    ++log_.calls.back().range_count;
  }
  std::uint32_t label_of(const Command& command) {
    const std::string_view name = command.kind == CommandKind::copy         ? std::string_view("copy")
                                  : command.kind == CommandKind::collective ? name_of(command.collective)
                                                                            : kernel(command.kernel).name;
    const auto [place, is_new] = labels_.try_emplace(std::string(name), static_cast<std::uint32_t>(log_.texts.size()));
    if (is_new) log_.texts.emplace_back(name);
    return place->second;
  }

  const Step& step_;
  Log& log_;
  std::uint64_t next_address_ = kFirstAddress;
  std::vector<std::uint64_t> addresses_;
  std::unordered_map<std::string, std::uint32_t> labels_;
  std::uint32_t commands_ = 0;
};

}  // namespace

std::uint64_t address_of(const Step& step, BufferId buffer) {
  std::uint64_t address = kFirstAddress;
  for (BufferId id = 0; id < buffer; ++id)
    address += (step.buffers()[id].size_bytes() + kAlign - 1) / kAlign * kAlign + kAlign;
  return address;
}

StepCommand command_of(const Step& step, const Call& call) {
  const auto count = static_cast<std::uint32_t>(step.commands().size());
  const std::uint32_t number = call.name.sequence - 1;
  return {number / count, number % count};
}

Log log_of(const Step& step, const Placement& placement, std::span<const std::uint32_t> missing_waits,
           bool is_pipelined) {
  SessionOptions options;
  options.is_pipelined = is_pipelined;
  options.disturbance.missing_waits.assign(missing_waits.begin(), missing_waits.end());
  const StepPlan plan = make_plan(step, placement, options);
  std::vector<CommandId> ids(step.commands().size());
  std::iota(ids.begin(), ids.end(), 0);

  Log log;
  for (int i = 0; i < placement.stream_count; ++i)
    log.streams.push_back({fmt::format("stream {}", i), false, false, 0});
  LogWriter writer(step, log);
  for (int i = 0; i < (is_pipelined ? 2 : 1); ++i) walk(plan, ids, writer);
  writer.finish();
  return log;
}

}  // namespace weir::race
