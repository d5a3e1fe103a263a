// debugfs kfd/rls: the run list of each GPU, as packets for the scheduler firmware. Knows this one file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "amd/kfd/text.h"

namespace weir::kfd {

struct RunlistQueue {
  int engine = 0;              // 0 compute, 2 and 3 SDMA
  int queue_type = 0;          // 0 normal, 1 debug, 2 and 3 static
  std::uint32_t doorbell = 0;  // index in dwords
  std::uint64_t mqd_base = 0;
};

struct RunlistProcess {
  std::uint32_t pasid = 0;
  int quantum = 0;          // as the driver writes it: 10
  int promised_queues = 0;  // num_queues of MAP_PROCESS
  std::vector<RunlistQueue> queues;
};

struct Runlist {
  int node = 0;
  std::uint32_t gpu_id = 0;
  bool is_there = false;    // "No active runlist" otherwise
  bool is_chained = false;  // ends with a RUN_LIST back to its start: more than fits at once
  bool is_whole = true;     // false: something of it was not understood, and a chain may have been in that
  std::vector<RunlistProcess> processes;
  std::size_t other_packets = 0;
  std::size_t broken_promises = 0;  // processes with more or fewer queues than their packet said
};

struct RunlistFile {
  std::string name;
  std::size_t bytes = 0, lines = 0;
  std::vector<Runlist> lists;
  std::vector<UnreadLines> unread;
  std::vector<std::string> problems;
};

bool looks_like_rls(std::string_view text);
RunlistFile parse_rls(std::string_view text, const std::string& name);

}  // namespace weir::kfd
