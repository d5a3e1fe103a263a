#include "run/record_metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "measure/openmetrics_text.h"

namespace weir {
namespace {

constexpr std::size_t kSlowest = 10, kMostKernels = 50'000, kMostLabel = 200;
// The first line, which distinguishes a file of an earlier recording from somebody else's file.
constexpr std::string_view kBegin = "# TYPE weir_record_processes gauge\n";

MetricLabels labels_of(const RecordFigures& process) {
  return {{"pid", std::to_string(process.pid)},
          {"program", process.program},
          {"rank", process.rank < 0 ? "" : std::to_string(process.rank)}};
}

// The same handle may be a stream in several contexts, and a place in the table is not in the program.
std::string stream_label(const record::Stream& stream) {
  const std::string id = stream.id == record::kNone ? fmt::format("{:#x}", stream.handle) : std::to_string(stream.id);
  return stream.thread == record::kNone ? fmt::format("{}.{}", stream.context, id)
                                        : fmt::format("{}.{}.{}", stream.context, id, stream.thread);
}

struct Family {
  const char *name, *type, *unit, *help;
  std::optional<double> (*value)(const RecordFigures&);
};

constexpr Family kFamilies[] = {
    {"commands", "counter", "", "Commands that the process has submitted to the GPU.",
     [](const RecordFigures& p) { return std::optional(static_cast<double>(p.state.commands())); }},
    {"calls", "counter", "", "Calls of the driver that were recorded.",
     [](const RecordFigures& p) { return std::optional(static_cast<double>(p.state.calls())); }},
    {"lost_entries", "counter", "", "Entries that found no place in the recording.",
     [](const RecordFigures& p) { return std::optional(static_cast<double>(p.state.header.lost)); }},
    {"off", "gauge", "", "1 while the recording is switched off.",
     [](const RecordFigures& p) { return std::optional(p.state.header.is_off != 0 ? 1.0 : 0.0); }},
    {"since_last_end_seconds", "gauge", "seconds", "Time since a command was last seen to have ended.",
     [](const RecordFigures& p) -> std::optional<double> {
       const std::int64_t last_ns = p.state.last_end_ns();
       if (last_ns <= 0 || last_ns > p.now_ns) return std::nullopt;
       return static_cast<double>(p.now_ns - last_ns) * 1e-9;
     }},
    {"outstanding_ratio", "gauge", "ratio",
     "Part of the looks at the process, two per second, that found commands outstanding.",
     [](const RecordFigures& p) { return p.outstanding_share; }},
    {"exact", "gauge", "",
     "1: with --exact. 0: the busy share and the times of kernels are left out, because without --exact nobody knows "
     "the device's times of single commands.",
     [](const RecordFigures& p) { return std::optional(p.state.header.is_exact != 0 ? 1.0 : 0.0); }},
    {"busy_ratio", "gauge", "ratio", "Part of the time in which the GPU ran commands of the process.",
     [](const RecordFigures& p) { return p.busy_share; }},
};

}  // namespace

void RecordMetrics::look(const RecordedState& state, std::int64_t now_ns) {
  state_ = state;
  now_ns_ = now_ns;
  if (since_ns_ == 0) since_ns_ = now_ns;
  ++looks_;
  if (state.outstanding() > 0) ++looks_with_work_;
}

void RecordMetrics::add(std::span<const RecordedEntry> entries, const LiveRecording& recording) {
  // By their start, because those of several streams overlap.
  std::vector<const RecordedEntry*> commands;
  for (const RecordedEntry& entry : entries)
    if (static_cast<record::Kind>(entry.kind) == record::Kind::device && entry.started_ns > 0 &&
        entry.ended_ns >= entry.started_ns)
      commands.push_back(&entry);
  std::stable_sort(commands.begin(), commands.end(),
                   [](const RecordedEntry* a, const RecordedEntry* b) { return a->started_ns < b->started_ns; });
  for (const RecordedEntry* const command : commands) {
    const std::int64_t from_ns = std::max(command->started_ns, busy_to_ns_);
    if (command->ended_ns > from_ns) {
      busy_ns_ += static_cast<double>(command->ended_ns - from_ns);
      busy_to_ns_ = command->ended_ns;
    }
    if (command->name == record::kNoText) continue;
    auto kernel = kernels_.find(command->name);
    if (kernel == kernels_.end()) {
      if (kernels_.size() == kMostKernels) continue;
      kernel =
          kernels_.emplace(command->name, Kernel{recording.text(state_.header, command->name).substr(0, kMostLabel), 0})
              .first;
    }
    kernel->second.seconds += static_cast<double>(command->ended_ns - command->started_ns) * 1e-9;
  }
}

RecordFigures RecordMetrics::take() {
  RecordFigures figures;
  figures.pid = state_.header.pid;
  figures.state = state_;
  figures.now_ns = now_ns_;
  if (looks_ > 0) figures.outstanding_share = static_cast<double>(looks_with_work_) / static_cast<double>(looks_);
  if (state_.header.is_exact != 0) {
    // Records come late, and then those of a longer time at once.
    if (now_ns_ > since_ns_) figures.busy_share = std::min(1.0, busy_ns_ / static_cast<double>(now_ns_ - since_ns_));
    // Kernels may differ in what was cut off: samples of one name would be refused.
    std::map<std::string, double> by_name;
    for (const auto& [number, kernel] : kernels_) by_name[kernel.name] += kernel.seconds;
    figures.slowest_s.assign(by_name.begin(), by_name.end());
    std::stable_sort(figures.slowest_s.begin(), figures.slowest_s.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    if (figures.slowest_s.size() > kSlowest) figures.slowest_s.resize(kSlowest);
  }
  looks_ = looks_with_work_ = 0;
  busy_ns_ = 0;
  since_ns_ = now_ns_;
  return figures;
}

std::string record_metrics_text(std::span<const RecordFigures> processes) {
  OpenMetricsText text("weir_record_");
  text.family("processes", "gauge", "", "Recorded processes that run.");
  text.add({}, static_cast<double>(processes.size()));
  for (const Family& family : kFamilies) {
    text.family(family.name, family.type, family.unit, family.help);
    for (const RecordFigures& process : processes)
      if (const auto value = family.value(process)) text.add(labels_of(process), *value);
  }
  text.family("outstanding_commands", "gauge", "commands", "Submitted to the stream and not known to have ended.");
  for (const RecordFigures& process : processes) {
    std::map<std::string, double> by_label;
    for (const record::Stream& stream : process.state.streams)
      if (stream.is_destroyed == 0)
        by_label[stream_label(stream)] +=
            stream.submitted > stream.ended ? static_cast<double>(stream.submitted - stream.ended) : 0;
    for (const auto& [label, count] : by_label) {
      MetricLabels labels = labels_of(process);
      labels.emplace_back("stream", label);
      text.add(labels, count);
    }
  }
  text.family("kernel_seconds", "counter", "seconds", "Time of the kernels that took longest since the program began.");
  for (const RecordFigures& process : processes)
    for (const auto& [name, seconds] : process.slowest_s) {
      MetricLabels labels = labels_of(process);
      labels.emplace_back("kernel", name);
      text.add(labels, seconds);
    }
  return text.end();
}

void check_record_metrics(const std::filesystem::path& path) {
  std::error_code status;
  if (std::filesystem::exists(path, status) && !std::filesystem::is_regular_file(path, status))
    reject(fmt::format("--openmetrics {}: exists and is not a file", path.string()), "Choose another name.");
  check_writable(path, start_of_file(path, kBegin.size()) == kBegin);
}

void write_record_metrics(const std::filesystem::path& path, const std::string& text) {
  // Without sync(): a moment later there is another one.
  NewFile file(path, true);
  file.write(text);
  file.commit();
}

}  // namespace weir
