// Puts a timeline together from what readers find, in any order: names, lanes, commands, calls, waits. Joins calls with
// commands, tells collectives by name, resolves waits, counts what was dropped. Knows no file format.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "measure/timeline.h"
#include "trace/kinds.h"

namespace weir {

// Reads no more than this: a trace that needs more memory is refused with the figure.
struct TraceLimits {
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;
  std::uint64_t used_bytes = 0;  // of it, by traces that were read before
};

// A command as a file has it. Kernels whose name says so become collectives; the builder numbers commands.
struct TraceCommand : Span {
  std::uint16_t process = 0;
  std::uint64_t correlation = 0;  // 0: none
  std::uint64_t at = 0;           // where in the file, as drop() wants it
};

// Commands of `stream` submitted after the call `correlation` wait for those of `on_stream` submitted before
// `record_correlation`.
struct TraceWait {
  std::uint16_t process = 0;
  std::uint16_t stream = 0;
  std::uint16_t on_stream = 0;
  std::uint64_t correlation = 0;
  std::uint64_t record_correlation = 0;
};

// The host waited until everything on `stream` had ended; on all streams of the process where it is nothing.
struct TraceSync {
  std::uint16_t process = 0;
  std::optional<std::uint16_t> stream;
  std::int64_t started_ns = kNoTime, ended_ns = kNoTime;
};

// What the source says of a collective besides its times.
struct TraceCollective {
  CollectiveKind kind = CollectiveKind::unknown;
  std::uint32_t ranks = 0;
  std::uint32_t group = kNoName;
  std::uint64_t bytes = 0;
};

class TimelineBuilder {
 public:
  explicit TimelineBuilder(const TraceLimits& limits = {});

  // What follows is from this file; positions in it are counted in `unit` ("byte", "line", "row").
  void begin_file(std::string name, std::string_view unit = "byte");

  // Gives equal texts one number.
  std::uint32_t name(std::string_view text);
  const std::string& name_of(std::uint32_t name) const { return *texts_[name]; }
  // Whether a kernel of this name is a collective's; what a function of this name does.
  bool is_collective(std::uint32_t name) const { return kernel_kinds_[name] == SpanKind::collective; }
  CallKind call_kind_of(std::uint32_t name) const { return call_kinds_[name]; }

  std::uint16_t add_process(int rank, std::string label);
  // For files that hold several ranks: `of` itself takes the first rank that is asked for, others get processes of
  // their own.
  std::uint16_t process_of_rank(std::uint16_t of, int rank);
  void set_rank(std::uint16_t process, int rank);
  // One recorder wrote the times of all processes with this number: their clocks need no alignment.
  void set_clock(std::uint16_t process, std::int32_t clock) { timeline_.processes[process].clock = clock; }

  // Each call with the same key gives the same lane. Nothing where there are too many (65,535 of a kind); then drop().
  std::optional<std::uint16_t> device(std::uint16_t process, std::int64_t id, std::string_view label = {});
  // `owner` tells streams with the same id apart: contexts number theirs on their own.
  std::optional<std::uint16_t> stream(std::uint16_t device, std::uint64_t id, std::uint16_t owner = 0);
  // A device and a stream of it, for a command at `at`; nothing where there are too many: that is dropped.
  struct Lane {
    std::uint16_t device = 0, stream = 0;
  };
  std::optional<Lane> lane(std::uint16_t process, std::int64_t device_id, std::uint64_t stream_id, std::uint64_t at,
                           std::string_view device_label = {});
  void label_device(std::uint16_t device, std::string label);
  void label_stream(std::uint16_t stream, std::string label);
  std::int32_t queue(std::uint16_t device, std::uint64_t id, bool is_copy_engine = false);

  // Nothing for a command without start or end, or that ends before it starts: that is dropped. Otherwise its number
  // for about_collective() and add(Dependency).
  std::optional<std::uint32_t> add(const TraceCommand& command);
  // For sources that tell a command's name or a copy's size elsewhere than with its times.
  void set_name(std::uint32_t command, std::uint32_t name);
  void set_bytes(std::uint32_t command, std::uint64_t bytes) { commands_[command].span.bytes = bytes; }
  void about_collective(std::uint32_t command, const TraceCollective& collective);
  // Kind by name where it is `other`. One that ends before it starts is dropped; `at` as drop() wants it.
  void add(HostCall call, std::uint64_t at = 0);
  void add(const TraceWait& wait);
  void add(TraceSync sync);
  void add(TraceRange range);
  // `before` and `after` are what add() returned.
  void add(const Dependency& dependency);
  // The source records waits, whether there were any or not.
  void knows_dependencies() noexcept { timeline_.has_dependencies = true; }

  // Counts what cannot be used, by reason (few of them: they are compared as text); keeps where the first one was.
  void drop(std::string_view reason, std::uint64_t at, std::uint64_t count = 1);
  void note(std::string text);
  std::size_t command_count() const noexcept { return commands_.size(); }
  std::uint64_t dropped_count() const noexcept;
  // Counts memory against the limit: the builder's own, and what readers keep besides. Rejects what goes beyond it.
  void charge(std::size_t bytes);
  std::uint64_t used_bytes() const noexcept { return used_bytes_; }

  void set_source(std::string source) { timeline_.source = std::move(source); }
  // Starts and ends are the device's own stamps, and tracing did not pull commands apart.
  void trust_gaps() noexcept { timeline_.has_exact_gaps = true; }

  // Joins and sorts: spans by start (then end, stream), calls by process, thread and start. The builder is empty then.
  Timeline finish();

 private:
  struct Command {
    Span span;
    std::uint64_t correlation = 0;
    std::uint16_t process = 0;
  };
  struct Fact {
    std::uint32_t command = 0;
    TraceCollective collective;
  };
  struct LaneKey {
    std::uint32_t owner = 0;
    std::uint64_t id = 0;
    bool operator==(const LaneKey&) const = default;
  };
  struct LaneHash {
    std::size_t operator()(const LaneKey& key) const noexcept;
  };
  template <class Value>
  using Lanes = std::unordered_map<LaneKey, Value, LaneHash>;

  void sort_commands();
  void join_calls();
  void join_syncs();
  void resolve_waits();
  void tell_collectives();
  void check_clocks();
  void check_files();

  TraceLimits limits_;
  // What a file's times span, and whose they are.
  struct FileRange {
    std::string name;
    std::int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
    std::uint16_t process = 0;
  };
  void extend(std::uint16_t process, std::int64_t from_ns, std::int64_t to_ns) noexcept;

  std::string file_ = "trace", unit_ = "byte";
  std::vector<FileRange> files_;
  std::uint64_t used_bytes_ = 0;
  Timeline timeline_;
  std::vector<Command> commands_;
  std::vector<std::uint32_t> place_of_;  // of command i in the sorted spans
  std::vector<Fact> facts_;
  std::vector<TraceWait> waits_;
  std::vector<TraceSync> syncs_;
  std::vector<Dependency> dependencies_;  // between commands as added
  std::unordered_map<std::string_view, std::uint32_t> names_;
  std::vector<std::unique_ptr<const std::string>> texts_;  // what names_ points at
  std::array<std::uint32_t, 1024> recent_names_{};         // by length and ends; may be another's
  std::vector<SpanKind> kernel_kinds_;                     // by name
  std::vector<CallKind> call_kinds_;                       // by name
  Lanes<std::uint16_t> devices_, streams_, ranks_;
  Lanes<std::int32_t> queues_;
  std::vector<bool> has_rank_;  // by process: process_of_rank gave it one
};

}  // namespace weir
