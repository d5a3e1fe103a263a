#include "amd/log/log_summary.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace weir::amd {
namespace {

constexpr std::size_t kMaxNameBytes = 32 << 20, kLongestMessage = 1024, kMaxRuns = 16;

}  // namespace

struct LogSummary::Index {
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  // For one process: the current queue or stream at an address. A reused address is a new queue or stream.
  struct Places {
    std::unordered_map<std::uint64_t, std::uint32_t> queues, streams;
    std::unordered_map<std::uint64_t, std::uint64_t> rings;  // queue object -> ring
    std::uint64_t last_hwq = 0, last_stream = 0;             // the two that most packets use
    std::uint32_t last_queue_place = kNowhere, last_stream_place = kNowhere;
    std::int64_t last_launch_ns = kNoTime;
  };
  static constexpr std::uint32_t kNowhere = UINT32_MAX;
  std::vector<Places> places;                        // parallel to processes_
  std::unordered_map<int, std::uint32_t> processes;  // pid (-1: none) -> index, in the current run
  int last_pid = -2;
  std::uint32_t last_process = kNowhere;
  std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> kernels;
  std::size_t queues = 0, streams = 0, kernel_counts = 0, name_bytes = 0;
  std::size_t run = 0;

  void extend_times(ProcessSummary& process, std::int64_t time_ns) const {
    if (time_ns == kNoTime) return;
    if (process.first_ns == kNoTime || time_ns < process.first_ns) process.first_ns = time_ns;
    process.last_ns = std::max(process.last_ns, time_ns);
  }

  // Null if the table is full.
  ProcessSummary* process(LogSummary& summary, const LogMoment& at) {
    const int pid = at.pid.value_or(-1);
    if (pid != last_pid) {
      const auto found = processes.find(pid);
      if (found != processes.end()) {
        last_process = found->second;
      } else {
        if (summary.processes_.size() == kMaxProcesses) {
          ++summary.uncounted_processes_;
          return nullptr;
        }
        last_process = static_cast<std::uint32_t>(summary.processes_.size());
        summary.processes_.emplace_back();
        summary.processes_.back().pid = at.pid;
        summary.processes_.back().run = run;
        places.emplace_back();
        processes.emplace(pid, last_process);
      }
      last_pid = pid;
    }
    ProcessSummary& process = summary.processes_[last_process];
    extend_times(process, at.time_ns);
    return &process;
  }

  Places& of(LogSummary& summary, const ProcessSummary& process) {
    return places[static_cast<std::size_t>(&process - summary.processes_.data())];
  }

  QueueSummary* make_queue(ProcessSummary& process, Places& in, std::uint64_t hwq) {
    if (queues == kMaxQueues) {
      ++process.uncounted_queues;
      return nullptr;
    }
    ++queues;
    in.last_hwq = hwq;
    in.last_queue_place = static_cast<std::uint32_t>(process.queues.size());
    in.queues[hwq] = in.last_queue_place;
    process.queues.emplace_back();
    process.queues.back().hwq = hwq;
    return &process.queues.back();
  }

  // Looks up a queue by its ring or, since some versions print that instead, by its object. Null if unknown.
  QueueSummary* find_queue(ProcessSummary& process, Places& in, std::uint64_t address) {
    if (in.last_queue_place != kNowhere && in.last_hwq == address) return &process.queues[in.last_queue_place];
    auto found = in.queues.find(address);
    if (found == in.queues.end()) {
      const auto ring = in.rings.find(address);
      if (ring == in.rings.end()) return nullptr;
      found = in.queues.find(ring->second);
      if (found == in.queues.end()) return nullptr;
    }
    in.last_hwq = address;
    in.last_queue_place = found->second;
    return &process.queues[found->second];
  }

  StreamSummary* stream(ProcessSummary& process, Places& in, std::uint64_t handle, bool is_new) {
    if (!is_new && in.last_stream_place != kNowhere && in.last_stream == handle)
      return &process.streams[in.last_stream_place];
    const auto found = in.streams.find(handle);
    if (found != in.streams.end() && !is_new) {
      in.last_stream = handle;
      in.last_stream_place = found->second;
      return &process.streams[found->second];
    }
    if (streams == kMaxStreams) {
      ++process.uncounted_streams;
      return nullptr;
    }
    ++streams;
    in.last_stream = handle;
    in.last_stream_place = static_cast<std::uint32_t>(process.streams.size());
    in.streams[handle] = in.last_stream_place;
    process.streams.emplace_back();
    process.streams.back().handle = handle;
    process.streams.back().is_default = !is_new;
    return &process.streams.back();
  }

  static void use(StreamSummary& stream, std::uint64_t hwq, std::int64_t since_ns) {
    if (hwq == 0 || stream.hwq == hwq) return;
    stream.hwq = hwq;
    if (stream.uses.size() == kMaxUses)
      ++stream.uncounted_uses;
    else
      stream.uses.push_back({since_ns, hwq});
  }

  // kNowhere if the kernel has no name or the table is full.
  std::uint32_t kernel(LogSummary& summary, std::string_view name) {
    if (name.empty()) return kNowhere;
    const auto found = kernels.find(name);
    if (found != kernels.end()) return found->second;
    if (kernels.size() == kMaxKernels || name_bytes + name.size() > kMaxNameBytes) {
      ++summary.uncounted_names_;
      return kNowhere;
    }
    name_bytes += name.size();
    const auto place = static_cast<std::uint32_t>(summary.kernel_names_.size());
    summary.kernel_names_.emplace_back(name);
    kernels.emplace(std::string(name), place);
    return place;
  }

  void count(std::unordered_map<std::uint32_t, std::uint64_t>& counts, std::uint64_t& uncounted, std::uint32_t place) {
    if (place == kNowhere) {
      ++uncounted;
    } else if (const auto known = counts.find(place); known != counts.end()) {
      ++known->second;
    } else if (kernel_counts < kMaxKernelCounts) {
      ++kernel_counts;
      counts.emplace(place, 1);
    } else {
      ++uncounted;
    }
  }

  void launch(LogSummary& summary, ProcessSummary& process, Places& in, QueueSummary* queue, std::string_view name,
              std::int64_t time_ns) {
    const auto gap = [](LogHistogram& gaps, std::int64_t last, std::int64_t now) {
      if (last != kNoTime && now >= last) gaps.add(static_cast<std::uint64_t>(now) - static_cast<std::uint64_t>(last));
    };
    const std::uint32_t place = kernel(summary, name);
    count(process.kernels, process.uncounted_kernels, place);
    if (time_ns != kNoTime) {
      gap(process.gap_ns, in.last_launch_ns, time_ns);
      in.last_launch_ns = std::max(in.last_launch_ns, time_ns);
      process.launches.add(time_ns);
    }
    if (queue == nullptr) return;
    count(queue->kernels, queue->uncounted_kernels, place);
    if (time_ns == kNoTime) return;
    gap(queue->gap_ns, queue->last_launch_ns, time_ns);
    if (queue->first_launch_ns == kNoTime) queue->first_launch_ns = time_ns;
    queue->last_launch_ns = std::max(queue->last_launch_ns, time_ns);
    queue->launches.add(time_ns);
  }
};

LogSummary::LogSummary() : index_(std::make_unique<Index>()) {}
LogSummary::~LogSummary() = default;
LogSummary::LogSummary(LogSummary&&) noexcept = default;
LogSummary& LogSummary::operator=(LogSummary&&) noexcept = default;

std::optional<std::int64_t> QueueSummary::creation_ns() const {
  if (asked_ns == kNoTime || created_ns == kNoTime || created_ns < asked_ns) return std::nullopt;
  return created_ns - asked_ns;
}

const QueueSummary* ProcessSummary::queue(std::uint64_t hwq) const {
  const auto found = std::find_if(queues.rbegin(), queues.rend(), [&](const QueueSummary& q) { return q.hwq == hwq; });
  return found == queues.rend() ? nullptr : &*found;
}

void LogSummary::on(const QueueCreated& event) {
  ProcessSummary* const process = index_->process(*this, event.created);
  if (process == nullptr) return;
  auto& in = index_->of(*this, *process);
  QueueSummary* const queue = index_->make_queue(*process, in, event.hwq);
  if (queue == nullptr) {
    // Later lines with this address do not belong to an older queue.
    in.queues.erase(event.hwq);
    in.last_queue_place = Index::kNowhere;
    return;
  }
  if (event.swq != 0 && event.swq != event.hwq) in.rings[event.swq] = event.hwq;
  queue->swq = event.swq;
  queue->is_ring = event.is_ring;
  queue->priority = event.priority;
  queue->packets = event.packets;
  queue->is_cooperative = event.is_cooperative;
  queue->asked_ns = event.asked.time_ns;
  queue->created_ns = event.created.time_ns;
}

void LogSummary::on(const QueueDeleted& event) {
  ProcessSummary* const process = index_->process(*this, event.at);
  if (process == nullptr) return;
  auto& in = index_->of(*this, *process);
  QueueSummary* const queue = index_->find_queue(*process, in, event.hwq);
  if (queue == nullptr) return;
  queue->deleted_ns = event.at.time_ns;
  queue->streams_now = 0;
  in.rings.erase(queue->swq);
  in.queues.erase(queue->hwq);
  in.last_queue_place = Index::kNowhere;
}

void LogSummary::on(const QueueShared& event) {
  ProcessSummary* const process = index_->process(*this, event.at);
  if (process == nullptr) return;
  auto& in = index_->of(*this, *process);
  QueueSummary* queue = index_->find_queue(*process, in, event.hwq);
  // The log began after the queue was created, but the queue counts anyway.
  if (queue == nullptr) queue = index_->make_queue(*process, in, event.hwq);
  if (queue == nullptr) return;
  queue->streams_now = event.count;
  queue->streams_most = std::max(queue->streams_most.value_or(0), event.count);
  if (event.stream == 0 || event.change == QueueShared::Change::released) return;
  if (StreamSummary* const stream = index_->stream(*process, in, event.stream, false))
    Index::use(*stream, queue->hwq, event.at.time_ns);
}

void LogSummary::on(const StreamChanged& event) {
  ProcessSummary* const process = index_->process(*this, event.at);
  if (process == nullptr) return;
  auto& in = index_->of(*this, *process);
  if (!event.is_created) {
    const auto found = in.streams.find(event.stream);
    if (found == in.streams.end()) return;
    process->streams[found->second].destroyed_ns = event.at.time_ns;
    in.streams.erase(found);
    in.last_stream_place = Index::kNowhere;
    return;
  }
  StreamSummary* const stream = index_->stream(*process, in, event.stream, true);
  if (stream == nullptr) {
    in.streams.erase(event.stream);
    in.last_stream_place = Index::kNowhere;
    return;
  }
  stream->created_ns = event.at.time_ns;
  stream->priority = event.priority;
  if (event.hwq == 0) return;
  const QueueSummary* const queue = index_->find_queue(*process, in, event.hwq);
  Index::use(*stream, queue != nullptr ? queue->hwq : event.hwq, event.at.time_ns);
}

void LogSummary::on(const Packet& event) {
  ProcessSummary* const process = index_->process(*this, event.at);
  if (process == nullptr) return;
  auto& in = index_->of(*this, *process);
  QueueSummary* queue = index_->find_queue(*process, in, event.hwq);
  if (queue == nullptr) queue = index_->make_queue(*process, in, event.hwq);
  if (queue != nullptr) {
    if (queue->swq == 0) queue->swq = event.swq;
    if (event.swq == 0) queue->is_ring = false;  // ROCm 5 prints only the object
    if (event.id) queue->id = event.id;
    if (event.read_index && event.write_index) {
      // Both are printed as 32 bits, so the difference is right across a wrap. The read index may be newer than this
      // packet's write index; then nothing is waiting.
      const auto ahead = static_cast<std::uint32_t>(*event.write_index - *event.read_index);
      queue->backlog.add(ahead < 0x80000000U ? ahead : 0);
    }
  }
  StreamSummary* const stream = event.stream == 0 ? nullptr : index_->stream(*process, in, event.stream, false);
  if (stream != nullptr) Index::use(*stream, queue != nullptr ? queue->hwq : event.hwq, event.at.time_ns);
  switch (event.kind) {
    case Packet::Kind::dispatch:
      ++process->dispatches;
      if (queue != nullptr) ++queue->dispatches;
      if (stream != nullptr)
        ++stream->launches;
      else
        ++process->launches_without_stream;
      index_->launch(*this, *process, in, queue, event.kernel, event.at.time_ns);
      return;
    case Packet::Kind::barrier_and:
    case Packet::Kind::barrier_or:
    case Packet::Kind::barrier_value:
      ++process->barriers;
      if (queue != nullptr) ++queue->barriers;
      return;
    case Packet::Kind::other:
      ++process->other_packets;
      if (queue != nullptr) ++queue->other_packets;
      return;
  }
}

void LogSummary::on(const KernelNamed& event) {
  ProcessSummary* const process = index_->process(*this, event.at);
  if (process == nullptr) return;
  auto& in = index_->of(*this, *process);
  ++process->named;
  StreamSummary* const stream = event.stream == 0 ? nullptr : index_->stream(*process, in, event.stream, false);
  QueueSummary* queue = nullptr;
  if (stream == nullptr) {
    ++process->launches_without_stream;
  } else {
    ++stream->launches;
    if (stream->hwq != 0) queue = index_->find_queue(*process, in, stream->hwq);
  }
  if (queue == nullptr)
    ++process->launches_without_queue;
  else
    ++queue->named;
  index_->launch(*this, *process, in, queue, event.kernel, event.at.time_ns);
}

void LogSummary::on(const CommandEnqueued& event) {
  ProcessSummary* const process = index_->process(*this, event.at);
  if (process == nullptr) return;
  const auto found = process->commands.find(event.kind);
  if (found != process->commands.end())
    ++found->second;
  else if (process->commands.size() < kMaxKinds)
    process->commands.emplace(std::string(event.kind), 1);
}

void LogSummary::on(const LoggedCopy& event) {
  ProcessSummary* const process = index_->process(*this, event.at);
  if (process == nullptr) return;
  auto found = process->copies.find(event.engine);
  if (found == process->copies.end()) {
    if (process->copies.size() == kMaxKinds) return;
    found = process->copies.try_emplace(event.engine).first;
  }
  ++found->second.count;
  const std::uint64_t sum = found->second.bytes + event.bytes;
  found->second.bytes = sum < event.bytes ? UINT64_MAX : sum;
}

void LogSummary::on(const LoggedError& event) {
  ProcessSummary* const process = index_->process(*this, event.at);
  if (process == nullptr) return;
  ++(event.level >= 2 ? process->warnings : process->errors);
  if (event.is_queue) ++process->queue_errors;
  if (process->messages.size() < kMaxMessages)
    process->messages.push_back(
        {event.at, event.level, event.is_queue, event.queue, std::string(event.text.substr(0, kLongestMessage))});
}

void LogSummary::on(const ApiCalls& event) {
  auto found = calls_.find(event.name);
  if (found == calls_.end()) {
    if (calls_.size() == kMaxCalls) {
      uncounted_calls_ += std::max(event.begun, event.returned);
      return;
    }
    found = calls_.emplace(std::string(event.name), CallCounts{}).first;
  }
  CallCounts& counts = found->second;
  if (counts.failed == 0 && event.failed > 0) counts.first_failure = event.first_status;
  counts.begun += event.begun;
  counts.returned += event.returned;
  counts.failed += event.failed;
}

void LogSummary::on_restart(std::uint64_t line) {
  if (restarts_.size() < kMaxMessages) restarts_.push_back(line);
  ++restart_count_;
  // More than a few restarts mean that one file mixes several clocks, not that runs follow each other.
  if (restart_count_ > kMaxRuns) return;
  ++index_->run;
  index_->processes.clear();
  index_->last_pid = -2;
}

}  // namespace weir::amd
