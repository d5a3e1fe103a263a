// Builds a timeline from what readers find, in any order: names, lanes, commands, calls, waits. Joins calls with
// commands, recognises collectives by name, resolves waits, counts what was dropped. Knows no file format.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "measure/timeline.h"
#include "trace/kinds.h"

namespace weir {

// The memory limit for reading: a trace that needs more is refused, with the figure.
struct TraceLimits {
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;
  std::uint64_t used_bytes = 0;  // part of it, by traces that were read before
};

// A command as a file describes it. Kernels with a collective's name become collectives; the builder numbers commands.
struct TraceCommand : Span {
  std::uint16_t process = 0;
  std::uint64_t correlation = 0;  // 0: none
  std::uint64_t at = 0;           // position in the file, as for drop()
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

// The host waited until everything on `stream` had ended, or on all streams of the process where `stream` is empty.
struct TraceSync {
  std::uint16_t process = 0;
  std::optional<std::uint16_t> stream;
  std::int64_t started_ns = kNoTime, ended_ns = kNoTime;
};

// What the source records about a collective besides its times.
struct TraceCollective {
  CollectiveKind kind = CollectiveKind::unknown;
  std::uint32_t ranks = 0;
  std::uint32_t group = kNoName;
  std::uint64_t bytes = 0;
  std::uint64_t sequence = 0;  // from 1
};

class TimelineBuilder {
 public:
  // `collectives`: patterns of the user (trace/kinds.h) for kernels that communicate, besides the known names.
  explicit TimelineBuilder(const TraceLimits& limits = {}, std::vector<std::string> collectives = {},
                           bool wants_operations = false);

  // Everything added from now on is from this file; positions in it are counted in `unit` ("byte", "line", "row").
  void begin_file(std::string name, std::string_view unit = "byte");
  // When the first command or call of this file began; kNoTime where it has none.
  std::int64_t file_start() const noexcept;
  // Moves everything that was added from this file later by `by_ns`. Returns false, and moves nothing, where commands
  // would leave the range of times.
  bool shift_file(std::int64_t by_ns);

  // Gives equal texts the same number.
  std::uint32_t name(std::string_view text);
  const std::string& name_of(std::uint32_t name) const { return *texts_[name]; }
  // Whether a kernel of this name belongs to a collective; what a function of this name does.
  bool is_collective(std::uint32_t name) const { return kernel_kinds_[name] == SpanKind::collective; }
  CallKind call_kind_of(std::uint32_t name) const { return call_kinds_[name]; }

  std::uint16_t add_process(int rank, std::string label);
  // For files that hold several ranks: the first rank that is requested gets `of` itself, others get new processes.
  std::uint16_t process_of_rank(std::uint16_t of, int rank);
  void set_rank(std::uint16_t process, int rank);
  // One recorder wrote the times of all processes with this number, so their clocks need no alignment.
  void set_clock(std::uint16_t process, std::int32_t clock) { timeline_.processes[process].clock = clock; }

  // Each call with the same key returns the same lane. Empty where there are too many (65,535 of a kind); then call
  // drop().
  std::optional<std::uint16_t> device(std::uint16_t process, std::int64_t id, std::string_view label = {});
  // `owner` distinguishes streams with the same id, because each context numbers its own.
  std::optional<std::uint16_t> stream(std::uint16_t device, std::uint64_t id, std::uint16_t owner = 0);
  // A device and one of its streams, for a command at `at`. Empty where there are too many; the command is then
  // dropped.
  struct Lane {
    std::uint16_t device = 0, stream = 0;
  };
  std::optional<Lane> lane(std::uint16_t process, std::int64_t device_id, std::uint64_t stream_id, std::uint64_t at,
                           std::string_view device_label = {});
  void label_device(std::uint16_t device, std::string label);
  // What it is; zeros where that is not known.
  void describe_device(std::uint16_t device, std::string model, std::uint32_t multiprocessors,
                       std::uint32_t resident_threads);
  void label_stream(std::uint16_t stream, std::string label);
  void set_priority(std::uint16_t stream, std::int32_t priority) { timeline_.streams[stream].priority = priority; }
  // An empty label is made of the id.
  std::int32_t queue(std::uint16_t device, std::uint64_t id, bool is_copy_engine = false, std::string label = {});

  // Returns the command's number for about_collective() and add(Dependency). Empty for a command without start or end,
  // or that ends before it starts; it is dropped.
  std::optional<std::uint32_t> add(const TraceCommand& command);
  // For sources that record a command's name or a copy's size separately from its times.
  void set_name(std::uint32_t command, std::uint32_t name);
  void set_bytes(std::uint32_t command, std::uint64_t bytes) { timeline_.spans[command].bytes = bytes; }
  void set_grid(std::uint32_t command, std::uint32_t blocks, std::uint16_t threads);
  void about_collective(std::uint32_t command, const TraceCollective& collective);
  // Sets the kind by name where it is `other`. A call that ends before it starts is dropped; `at` is as for drop().
  void add(HostCall call, std::uint64_t at = 0);
  void add(const TraceWait& wait);
  void add(TraceSync sync);
  void add(TraceRange range);
  // `at` is as for drop().
  void add(const MemoryChange& change, std::uint64_t at);
  // Whether operators are of use: a trace may have more of them than of anything else.
  bool wants_operations() const noexcept { return timeline_.has_operations; }
  // Gives equal operations the same number.
  std::uint32_t operation(const Operation& operation);
  // Gives the part of this name in `parent` (kNoModule: outermost) its number.
  std::uint32_t module_in(std::uint32_t parent, std::uint32_t name);
  // The calls of this file so far, in the order of add(), for what becomes known of them later.
  std::span<HostCall> file_calls() noexcept;
  // `before` and `after` are numbers that add() returned.
  void add(const Dependency& dependency);
  // The source records waits, whether or not there were any.
  void knows_dependencies() noexcept { timeline_.has_dependencies = true; }

  // Counts unusable records by reason (reasons are few and compared as text), and keeps the position of the first.
  void drop(std::string_view reason, std::uint64_t at, std::uint64_t count = 1);
  void note(std::string text);
  std::size_t command_count() const noexcept { return origins_.size(); }
  // At most so many commands and calls follow. Takes room for them at once: while lists grow, they are in memory twice.
  void expect(std::size_t commands, std::size_t calls);
  // Counts memory against the limit: the builder's own, and what readers allocate besides. Rejects what exceeds it.
  void charge(std::size_t bytes);
  std::uint64_t used_bytes() const noexcept { return used_bytes_; }

  void set_source(std::string source) { timeline_.source = std::move(source); }
  // Starts and ends are the device's own timestamps, and tracing did not add gaps between commands.
  void trust_gaps() noexcept { timeline_.has_exact_gaps = true; }

  // Joins and sorts: spans by start (then end, stream), calls by process, thread and start. Leaves the builder empty.
  Timeline finish();

 private:
  // What a command's span does not say.
  struct Origin {
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
  void mark_collectives();
  void check_clocks();
  void check_files();

  TraceLimits limits_;
  std::vector<std::string> collectives_;
  // The time range of a file, and the process it belongs to.
  struct FileRange {
    std::string name;
    std::int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
    std::uint16_t process = 0;
    std::size_t commands = 0, calls = 0, syncs = 0, ranges = 0, memory = 0;  // of the files before it
  };
  void extend(std::uint16_t process, std::int64_t from_ns, std::int64_t to_ns) noexcept;

  std::string file_ = "trace", unit_ = "byte";
  std::vector<FileRange> files_;
  std::uint64_t used_bytes_ = 0;
  Timeline timeline_;
  std::vector<Origin> origins_;          // by command; until finish(), spans are in that order too
  std::vector<std::uint32_t> place_of_;  // position of command i in the sorted spans
  std::vector<Fact> facts_;
  std::vector<TraceWait> waits_;
  std::vector<TraceSync> syncs_;
  struct OperationHash {
    std::size_t operator()(const Operation& operation) const noexcept;
  };
  std::unordered_map<Operation, std::uint32_t, OperationHash> known_operations_;
  std::vector<Dependency> dependencies_;  // numbers as given to add()
  std::unordered_map<std::string_view, std::uint32_t> names_;
  std::vector<std::unique_ptr<const std::string>> texts_;  // owns the texts that names_ refers to
  std::array<std::uint32_t, 1024> recent_names_{};         // by length and ends; may hold another name
  std::vector<SpanKind> kernel_kinds_;                     // by name
  std::vector<CallKind> call_kinds_;                       // by name
  Lanes<std::uint16_t> devices_, streams_, ranks_;
  Lanes<std::int32_t> queues_;
  Lanes<std::uint32_t> modules_;  // by parent and name
  std::vector<bool> has_rank_;    // by process: process_of_rank() assigned its rank
};

}  // namespace weir
