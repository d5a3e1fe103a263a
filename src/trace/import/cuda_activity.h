// What CUPTI's activity records mean, whichever tool wrote them: lanes by context, names of copies and calls, and which
// record of an event a wait was for. Knows no file format.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/timeline_builder.h"

namespace weir {

// For example "Memcpy HtoD", by CUPTI's number for the kind.
std::string_view cuda_copy_name(std::int64_t kind) noexcept;

// The function name without its version: cudaLaunchKernel_v7000, cuMemcpyAsync_v2_ptsz.
std::string_view without_version(std::string_view function) noexcept;

// Collects streams, events and waits of a trace; adds the resulting lanes and waits to the builder.
class CudaActivity {
 public:
  using Lane = TimelineBuilder::Lane;
  // An event was recorded on a stream. `sync` distinguishes records of one event; 0 where unknown.
  struct Recorded {
    std::uint16_t process = 0;
    std::uint32_t context = 0;
    std::uint64_t stream = 0;
    std::uint64_t event = 0, sync = 0;
    std::uint64_t correlation = 0;
  };
  // A stream waits for an event.
  struct Waited : Recorded {
    std::uint64_t at = 0;
  };

  explicit CudaActivity(TimelineBuilder& to) : to_(to) {}

  // Where a command ran; remembers which device its context is on. Empty where there are too many; the command is
  // dropped.
  std::optional<Lane> lane(std::uint16_t process, std::int64_t device, std::uint32_t context, std::uint64_t stream,
                           std::uint64_t at);
  void context_is_on(std::uint16_t process, std::uint32_t context, std::int64_t device) {
    context_of(process, context, device);
  }
  // CUPTI writes 0 for both times where it could not measure a command; such a command is dropped.
  bool has_times(std::int64_t started_ns, std::int64_t ended_ns, std::uint64_t at);
  // Names a device; must precede its first command.
  void name_device(std::int64_t device, std::string name) { labels_[device] = std::move(name); }
  void add(const Recorded& recorded) { keep(records_, recorded); }
  // A record about waiting. `type` is a capture::SyncType; other types have no effect. For a wait on a context the
  // stream is ignored.
  void add(std::int64_t type, const Waited& waited, std::int64_t started_ns, std::int64_t ended_ns);
  // The source records waits, even if there are none.
  void knows_waits() noexcept { knows_waits_ = true; }
  // Call after all commands were added. `how_to` explains how to get records of events into such a file.
  void resolve(std::string_view how_to);

 private:
  // The host waits for a stream, or for a whole context.
  struct HostWaited {
    std::uint16_t process = 0;
    std::uint32_t context = 0;
    std::optional<std::uint64_t> stream;
    std::int64_t started_ns = kNoTime, ended_ns = kNoTime;
  };
  // Stream ids are unique only within a context, and a device may run commands from several contexts.
  struct Context {
    std::int64_t device = 0;
    std::uint16_t place = 0;  // among the contexts of its process and device that ran something, in order of appearance
    std::unordered_map<std::uint64_t, std::uint16_t> streams;
  };
  template <class Record>
  void keep(std::vector<Record>& records, const Record& record) {
    to_.charge(sizeof(Record));
    records.push_back(record);
  }
  Context& context_of(std::uint16_t process, std::uint32_t context, std::int64_t device);
  // Empty where no command ran on it.
  std::optional<std::uint16_t> stream_of(std::uint16_t process, std::uint32_t context, std::uint64_t stream) const;

  TimelineBuilder& to_;
  std::unordered_map<std::uint64_t, Context> contexts_;                   // by process and context
  std::map<std::pair<std::uint16_t, std::int64_t>, std::size_t> counts_;  // of contexts, by process and device
  std::unordered_map<std::int64_t, std::string> labels_;
  std::vector<Recorded> records_;
  std::vector<Waited> waits_;
  std::vector<HostWaited> host_waits_;
  bool knows_waits_ = false;
};

}  // namespace weir
