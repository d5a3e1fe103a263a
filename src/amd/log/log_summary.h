// Counts the contents of a runtime log per process: queues, streams, kernels, gaps, backlog, copies, errors. Takes the
// events of one pass in bounded memory, and counts everything that exceeded a bound. Knows no file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "amd/log/log_counts.h"
#include "amd/log/log_sink.h"

namespace weir::amd {

// A hardware queue whose creation or packets the log shows. Queues are never inferred from anything else.
struct QueueSummary {
  std::uint64_t hwq = 0;  // base address of the ring, or of the queue object if `is_ring` is false
  std::uint64_t swq = 0;  // 0 if not logged
  bool is_ring = true;
  std::optional<std::uint32_t> id;       // ROCr's counter, from its packets
  std::optional<int> priority;           // 0 low, 1 normal, 2 high; from "Created"
  std::optional<std::uint64_t> packets;  // size of the ring
  bool is_cooperative = false;
  std::int64_t asked_ns = kNoTime, created_ns = kNoTime, deleted_ns = kNoTime;
  std::optional<std::int64_t> creation_ns() const;  // asked -> created

  std::optional<int> streams_now, streams_most;  // refCount according to the log; nothing if never logged
  std::uint64_t dispatches = 0;                  // packets that launch a kernel
  std::uint64_t named = 0;                       // kernels named without packets (level 3), by their stream's queue
  std::uint64_t barriers = 0, other_packets = 0;
  std::unordered_map<std::uint32_t, std::uint64_t> kernels;  // index into LogSummary::kernel_names() -> count
  std::uint64_t uncounted_kernels = 0;  // launches of kernels without an entry: no name, or table full
  std::int64_t first_launch_ns = kNoTime, last_launch_ns = kNoTime;
  LogHistogram gap_ns;   // between one launch and the next on this queue, host time
  LogHistogram backlog;  // packets not yet read when one was written (write index - read index)
  TimeCounts launches;   // over time
  std::uint64_t launched() const { return dispatches + named; }
};

// The queue that a stream used from a given time on.
struct StreamUse {
  std::int64_t since_ns = kNoTime;
  std::uint64_t hwq = 0;
};

struct StreamSummary {
  std::uint64_t handle = 0;
  bool is_default = false;  // no creation logged: a default stream, or older than the log
  std::optional<int> priority;
  std::int64_t created_ns = kNoTime, destroyed_ns = kNoTime;
  std::vector<StreamUse> uses;  // in order; at most kMaxUses
  std::uint64_t uncounted_uses = 0;
  std::uint64_t hwq = 0;       // current or last queue; 0: unknown
  std::uint64_t launches = 0;  // kernels
};

struct ProcessSummary {
  std::size_t run = 0;                 // restarts of the file before this one
  std::optional<int> pid;              // nothing: lines without pid (level 3), from one process or several
  std::vector<QueueSummary> queues;    // in the order of their first line
  std::vector<StreamSummary> streams;  // in the order of their first line
  std::int64_t first_ns = kNoTime, last_ns = kNoTime;
  std::uint64_t dispatches = 0, named = 0, barriers = 0, other_packets = 0;
  std::uint64_t launches_without_queue = 0;                  // named, on a stream whose queue is not logged
  std::uint64_t launches_without_stream = 0;                 // neither queue nor stream is known
  std::unordered_map<std::uint32_t, std::uint64_t> kernels;  // like QueueSummary::kernels, over all queues
  std::uint64_t uncounted_kernels = 0;
  TimeCounts launches;                                         // over time, all queues
  LogHistogram gap_ns;                                         // between launches on any queue
  std::map<std::string, std::uint64_t, std::less<>> commands;  // enqueued, by kind
  struct Copies {
    std::uint64_t count = 0, bytes = 0;
  };
  std::map<std::optional<std::uint32_t>, Copies> copies;  // by engine mask; nothing: chosen by ROCr
  std::uint64_t errors = 0, warnings = 0;                 // lines of level 0 and 1; lines of level 2
  std::uint64_t queue_errors = 0;                         // aborted queues among the errors
  struct Message {
    LogMoment at;
    int level = 1;
    bool is_queue = false;
    std::uint64_t queue = 0;
    std::string text;
  };
  std::vector<Message> messages;                              // the first kMaxMessages
  std::uint64_t uncounted_queues = 0, uncounted_streams = 0;  // mentions that did not fit into the tables

  std::uint64_t launched() const { return dispatches + named; }
  const QueueSummary* queue(std::uint64_t hwq) const;  // the last one with this address; null if there is none
};

struct CallCounts {
  std::uint64_t begun = 0, returned = 0, failed = 0;
  std::string first_failure;  // "hipErrorOutOfMemory"
};

class LogSummary : public LogSink {
 public:
  static constexpr std::size_t kMaxProcesses = 256, kMaxQueues = 2048, kMaxStreams = 65'536, kMaxKernels = 65'536,
                               kMaxKernelCounts = 262'144, kMaxUses = 32, kMaxMessages = 32, kMaxCalls = 2048,
                               kMaxKinds = 256;  // over all processes, except uses, messages and kinds

  LogSummary();
  ~LogSummary() override;
  LogSummary(LogSummary&&) noexcept;
  LogSummary& operator=(LogSummary&&) noexcept;

  void on(const QueueCreated&) override;
  void on(const QueueDeleted&) override;
  void on(const QueueShared&) override;
  void on(const StreamChanged&) override;
  void on(const Packet&) override;
  void on(const KernelNamed&) override;
  void on(const CommandEnqueued&) override;
  void on(const LoggedCopy&) override;
  void on(const LoggedError&) override;
  bool wants_calls() const override { return false; }
  bool wants_details() const override { return false; }
  void on(const ApiCalls&) override;
  void on_restart(std::uint64_t line) override;

  // In the order of their first event. A process without events does not appear.
  const std::vector<ProcessSummary>& processes() const { return processes_; }
  const std::vector<std::string>& kernel_names() const { return kernel_names_; }
  const std::map<std::string, CallCounts, std::less<>>& calls() const { return calls_; }  // HIP calls, all processes
  const std::vector<std::uint64_t>& restarts() const { return restarts_; }  // line numbers; the first kMaxMessages
  std::uint64_t restart_count() const { return restart_count_; }
  std::uint64_t uncounted_processes() const { return uncounted_processes_; }
  std::uint64_t uncounted_names() const { return uncounted_names_; }  // launches of kernels beyond kMaxKernels
  std::uint64_t uncounted_calls() const { return uncounted_calls_; }

 private:
  struct Index;  // addresses -> indices
  std::unique_ptr<Index> index_;
  std::vector<ProcessSummary> processes_;
  std::vector<std::string> kernel_names_;
  std::map<std::string, CallCounts, std::less<>> calls_;
  std::vector<std::uint64_t> restarts_;
  std::uint64_t restart_count_ = 0, uncounted_processes_ = 0, uncounted_names_ = 0, uncounted_calls_ = 0;
};

}  // namespace weir::amd
