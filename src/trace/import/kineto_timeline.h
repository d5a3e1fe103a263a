// Builds the parts of a timeline from Kineto's events, in any order: lanes, commands, calls, waits, collectives. Knows
// what the events mean, not how they are written.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/import/importer.h"
#include "trace/import/kineto_event.h"
#include "trace/import/kineto_finish.h"
#include "trace/import/kineto_operations.h"

namespace weir {

class KinetoTimeline {
 public:
  KinetoTimeline(const TraceFile& file, TimelineBuilder& to) : file_(file), to_(to), stacks_(to) {}

  // Adds an event that was read completely, or (`is_damaged`) in part: that one is used if it suffices, and what it
  // lacks is not reported. Returns whether it was used.
  bool add(KinetoEvent& event, bool is_damaged = false);
  // What the file says of a device; empty and zeros where it does not.
  struct DeviceFacts {
    std::string name;
    std::uint32_t multiprocessors = 0, resident_threads = 0;
  };
  // `rank` is set where the file holds several and names the rank of the device.
  void set_device(std::optional<std::int64_t> rank, std::int64_t device, DeviceFacts facts);
  void set_rank(std::int64_t rank) { rank_ = rank; }
  // What an export by Weir records about its timeline.
  void set_exact_gaps(bool are_exact) { are_gaps_exact_ = are_exact; }
  void set_one_clock() { is_one_clock_ = true; }
  // Joins facts from different events. Call once, at the end of the file.
  void finish();

 private:
  struct Place {
    std::uint16_t process = 0, device = 0, stream = 0;
  };

  bool pair(KinetoEvent& event);
  bool use(const KinetoEvent& event, bool is_damaged);
  bool has_times(const KinetoEvent& event, bool is_damaged);
  std::uint16_t process_of(const KinetoEvent& event);
  bool place(const KinetoEvent& event, bool is_damaged, Place* to);
  std::optional<std::uint16_t> stream_of(std::uint16_t device, std::uint64_t id, std::uint64_t at);
  bool add_command(const KinetoEvent& event, bool is_damaged);
  bool add_call(const KinetoEvent& event);
  bool add_sync(const KinetoEvent& event);
  bool add_range(const KinetoEvent& event);
  bool add_memory(const KinetoEvent& event);
  TraceCollective facts_of(const KinetoEvent& event);
  void join_collectives();
  void join_copies();
  void join_grids();
  void join_waits();
  void finish_memory();

  const TraceFile& file_;
  TimelineBuilder& to_;
  KinetoOperations stacks_;
  std::optional<std::int64_t> rank_;
  bool has_ranks_ = false;  // events name their rank
  std::int64_t last_rank_ = 0;
  std::uint16_t last_process_ = 0;
  using DeviceKey = std::pair<std::optional<std::int64_t>, std::int64_t>;  // rank, id
  std::map<DeviceKey, DeviceFacts> device_facts_;
  struct UsedDevice {
    std::uint16_t process = 0;
    DeviceKey key;
  };
  std::unordered_map<std::uint16_t, UsedDevice> devices_;
  std::set<std::uint16_t> processes_;  // of the ranks that events name
  KinetoFacts facts_;
  std::unordered_map<std::uint64_t, std::uint32_t> commands_;          // by its number in an export by Weir
  std::vector<std::pair<std::uint64_t, std::uint64_t>> own_waits_;     // before, after, by those numbers
  std::unordered_map<std::uint64_t, std::vector<KinetoEvent>> begun_;  // by process and thread
  std::size_t begun_count_ = 0, begun_bytes_ = 0, begun_charged_ = 0;
  bool has_cuda_calls_ = false, has_rocm_ = false, has_fine_times_ = false;
  bool has_noted_queues_ = false;
  bool is_one_clock_ = false;
  std::optional<bool> are_gaps_exact_;  // from Weir's own export
};

}  // namespace weir
