#include "trace/import/perfetto_timeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "trace/import/json_text.h"

namespace weir {
namespace {

constexpr std::string_view kSystemPrefix = "rocm_";
constexpr int kDeepestTrack = 32;
constexpr std::size_t kMaxCategories = 64;  // that are counted apart
constexpr std::size_t kLongestCategory = 80;
constexpr std::uint64_t kMaxAgent = 65'535;  // above it a number is a handle

struct CategoryName {
  std::string_view name;
  PerfettoCategory category;
};
// Both profilers', without "rocm_".
constexpr std::array kCategories = {CategoryName{"kernel_dispatch", PerfettoCategory::kernel},
                                    CategoryName{"memory_copy", PerfettoCategory::copy},
                                    CategoryName{"hip_api", PerfettoCategory::call},
                                    CategoryName{"hsa_api", PerfettoCategory::call},
                                    CategoryName{"rccl_api", PerfettoCategory::call},
                                    CategoryName{"rccl", PerfettoCategory::call},
                                    CategoryName{"rocdecode_api", PerfettoCategory::call},
                                    CategoryName{"rocjpeg_api", PerfettoCategory::call},
                                    CategoryName{"hipfile_api", PerfettoCategory::call},
                                    CategoryName{"marker_api", PerfettoCategory::range},
                                    CategoryName{"user", PerfettoCategory::range},
                                    CategoryName{"python", PerfettoCategory::range}};

struct KeyName {
  std::string_view name;
  PerfettoKey key;
};
constexpr std::array kKeys = {KeyName{"agent", PerfettoKey::agent},
                              KeyName{"src_agent", PerfettoKey::source_agent},
                              KeyName{"src_agent_id", PerfettoKey::source_agent},
                              KeyName{"dst_agent", PerfettoKey::target_agent},
                              KeyName{"dst_agent_id", PerfettoKey::target_agent},
                              KeyName{"stream_ID", PerfettoKey::stream},
                              KeyName{"stream_id", PerfettoKey::stream},
                              KeyName{"queue", PerfettoKey::queue},
                              KeyName{"corr_id", PerfettoKey::correlation},
                              KeyName{"copy_bytes", PerfettoKey::bytes},
                              KeyName{"bytes", PerfettoKey::bytes},
                              KeyName{"begin_ns", PerfettoKey::begin},
                              KeyName{"end_ns", PerfettoKey::end},
                              KeyName{"tid", PerfettoKey::thread},
                              KeyName{"workgroup_size", PerfettoKey::block},
                              KeyName{"grid_size", PerfettoKey::grid}};

bool is_decimal(char c) noexcept { return c >= '0' && c <= '9'; }

std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max() : product;
}

// The number that follows a word, with nothing but a few signs between them: QUEUE [3], Queue 3
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view word) noexcept {
  const auto is_same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
  const auto found = std::search(text.begin(), text.end(), word.begin(), word.end(), is_same);
  if (found == text.end()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(found - text.begin()) + word.size());
  const std::size_t digit = text.find_first_not_of(" [\"(:-");
  if (digit == std::string_view::npos || !is_decimal(text[digit])) return std::nullopt;
  text = text.substr(digit);
  return number_in<std::uint64_t>(text.substr(0, text.find_first_not_of("0123456789")));
}

// As in the names MEMORY_COPY_HOST_TO_DEVICE, numbered as rocprofiler does.
enum class CopyDirection : std::uint8_t { unknown, host_to_host, host_to_device, device_to_host, device_to_device };
CopyDirection direction_of(std::string_view name) noexcept {
  if (name.find("HOST_TO_HOST") != std::string_view::npos) return CopyDirection::host_to_host;
  if (name.find("HOST_TO_DEVICE") != std::string_view::npos) return CopyDirection::host_to_device;
  if (name.find("DEVICE_TO_HOST") != std::string_view::npos) return CopyDirection::device_to_host;
  if (name.find("DEVICE_TO_DEVICE") != std::string_view::npos) return CopyDirection::device_to_device;
  return CopyDirection::unknown;
}

}  // namespace

bool is_of_system_profiler(std::string_view category) noexcept { return category.starts_with(kSystemPrefix); }

PerfettoCategory perfetto_category(std::string_view name) noexcept {
  if (is_of_system_profiler(name)) name.remove_prefix(kSystemPrefix.size());
  for (const CategoryName& known : kCategories)
    if (known.name == name) return known.category;
  return PerfettoCategory::other;
}

PerfettoKey perfetto_key(std::string_view name) noexcept {
  for (const KeyName& known : kKeys)
    if (known.name == name) return known.key;
  return PerfettoKey::none;
}

void PerfettoSlice::set(PerfettoKey key, std::string_view text) noexcept {
  if (key == PerfettoKey::block || key == PerfettoKey::grid) {
    std::uint64_t product = 1;
    bool has_number = false;
    while (true) {
      const std::size_t digit = text.find_first_of("0123456789");
      if (digit == std::string_view::npos) break;
      text.remove_prefix(digit);
      const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
      const auto number = number_in<std::uint64_t>(text.substr(0, end));
      if (!number) return;
      product = saturating_product(product, *number);
      has_number = true;
      text.remove_prefix(end);
    }
    if (has_number) set(key, product);
    return;
  }
  has_gpu_number = has_gpu_number || text.starts_with("GPU");
  const std::size_t before = text.find_last_not_of("0123456789");
  if (const auto number = number_in<std::uint64_t>(text.substr(before == std::string_view::npos ? 0 : before + 1)))
    set(key, *number);
}

std::optional<std::int64_t> PerfettoSlice::noted_length() const noexcept {
  const auto begin = get(PerfettoKey::begin), end = get(PerfettoKey::end);
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!begin || !end || *end < *begin || *end - *begin > kMost) return std::nullopt;
  return static_cast<std::int64_t>(*end - *begin);
}

void PerfettoTrack::set_name(std::string_view name) noexcept {
  stream = number_after(name, "STREAM");
  queue = number_after(name, "QUEUE");
  for (const char* word : {"AGENT", "DISPATCH", "GPU"})
    if (!agent) agent = number_after(name, word);
}

void PerfettoTimeline::describe(std::uint64_t track, const PerfettoTrack& description) {
  const auto [at, is_new] = tracks_.insert_or_assign(track, description);
  if (is_new) to_.charge(sizeof(*at) * 2);
}

void PerfettoTimeline::leave_out(std::string_view category) {
  if (category.empty()) category = "(none)";
  category = category.substr(0, kLongestCategory);
  if (const auto found = left_out_.find(category); found != left_out_.end())
    ++found->second;
  else
    ++left_out_[left_out_.size() < kMaxCategories ? std::string(category) : "(others)"];
}

const PerfettoTrack& PerfettoTimeline::track_of(std::uint64_t track) const {
  static const PerfettoTrack kUnknown;
  const auto found = tracks_.find(track);
  return found != tracks_.end() ? found->second : kUnknown;
}

std::uint16_t PerfettoTimeline::process_of(std::uint64_t track) {
  // Parents may form a circle, as nobody checked them.
  for (int depth = 0; depth < kDeepestTrack; ++depth) {
    const PerfettoTrack& description = track_of(track);
    if (description.process_id) {
      if (const auto found = processes_.find(*description.process_id); found != processes_.end()) return found->second;
      const auto count = processes_.size();
      const std::uint16_t process =
          count == 0 ? file_.process
                     : to_.add_process(static_cast<int>(count),
                                       fmt::format("{}, process {}", file_.name, *description.process_id));
      to_.charge(sizeof(*processes_.begin()) * 2);
      return processes_.emplace(*description.process_id, process).first->second;
    }
    if (description.parent == track || description.parent == 0) break;
    track = description.parent;
  }
  return file_.process;
}

void PerfettoTimeline::add(const PerfettoSlice& slice) {
  const std::uint16_t process = process_of(slice.track);
  switch (slice.category) {
    case PerfettoCategory::kernel:
      return add_kernel(slice, process);
    case PerfettoCategory::copy:
      to_.charge(sizeof(Copy) * 2);
      copies_.push_back({slice, process});
      return;
    case PerfettoCategory::call: {
      const PerfettoTrack& track = track_of(slice.track);
      const std::uint64_t thread =
          slice.get(PerfettoKey::thread)
              .value_or(track.thread_id ? static_cast<std::uint64_t>(*track.thread_id) : slice.track);
      ++calls_;
      to_.add({slice.name, static_cast<std::uint32_t>(thread ^ thread >> 32),
               slice.get(PerfettoKey::correlation).value_or(slice.flow), process, CallKind::other, slice.started_ns,
               slice.ended_ns},
              slice.at);
      return;
    }
    case PerfettoCategory::range:
      if (slice.ended_ns > slice.started_ns && ++ranges_ <= kMaxRanges)
        to_.add(TraceRange{slice.name, process, slice.started_ns, slice.ended_ns});
      return;
    case PerfettoCategory::other:
      return;
  }
}

void PerfettoTimeline::add_kernel(const PerfettoSlice& slice, std::uint16_t process) {
  const PerfettoTrack& track = track_of(slice.track);
  const auto agent = static_cast<std::int64_t>(slice.get(PerfettoKey::agent).value_or(track.agent.value_or(0)));
  TraceCommand command;
  command.kind = SpanKind::kernel;
  const std::uint64_t threads = slice.get(PerfettoKey::block).value_or(0);
  if (threads > 0 && threads <= std::numeric_limits<std::uint16_t>::max()) {
    command.threads = static_cast<std::uint16_t>(threads);
    // The grid is counted in threads.
    const std::uint64_t grid = slice.get(PerfettoKey::grid).value_or(0);
    const std::uint64_t blocks = grid / threads + (grid % threads != 0 ? 1 : 0);
    command.blocks =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, std::numeric_limits<std::uint32_t>::max()));
  }
  if (const auto stream = slice.get(PerfettoKey::stream)) {
    const auto [at, is_new] = stream_users_.try_emplace(*stream, StreamUser{agent, true});
    if (is_new) to_.charge(sizeof(*at) * 2);
    at->second.is_only = at->second.is_only && at->second.device == agent;
  }
  if (kernel_devices_.size() < kMaxAgent || kernel_devices_.contains(agent)) ++kernel_devices_[agent];
  add_command(slice, process, agent, command);
}

// The side of a copy that is a GPU. The system profiler numbers GPUs for kernels, and all agents, CPUs first, for
// copies.
std::int64_t PerfettoTimeline::device_of_copy(const Copy& copy) {
  const PerfettoSlice& slice = copy.slice;
  const CopyDirection direction =
      slice.name == kNoName ? CopyDirection::unknown : direction_of(to_.name_of(slice.name));
  const auto target = slice.get(PerfettoKey::target_agent), source = slice.get(PerfettoKey::source_agent);
  const auto runs_kernels = [&](const std::optional<std::uint64_t>& agent) {
    return agent && kernel_devices_.contains(static_cast<std::int64_t>(*agent));
  };
  const bool is_from = direction == CopyDirection::device_to_host ||
                       (direction == CopyDirection::unknown && !runs_kernels(target) && runs_kernels(source));
  const auto agent = is_from && source ? source : target ? target : track_of(slice.track).agent;
  if (!slice.is_of_system_profiler) return static_cast<std::int64_t>(agent.value_or(0));
  if (const auto stream = slice.get(PerfettoKey::stream)) {
    const auto user = stream_users_.find(*stream);
    if (user != stream_users_.end() && user->second.is_only) return user->second.device;
  }
  if (kernel_devices_.size() == 1) return kernel_devices_.begin()->first;
  if (!agent || *agent > kMaxAgent || *agent < cpus_) return static_cast<std::int64_t>(agent.value_or(0));
  to_.note("copies on streams without kernels are on the GPU that the order of agents suggests");
  return static_cast<std::int64_t>(*agent - cpus_);
}

void PerfettoTimeline::add_copy(const Copy& copy) {
  TraceCommand command;
  command.kind = SpanKind::copy;
  command.bytes = copy.slice.get(PerfettoKey::bytes).value_or(0);
  add_command(copy.slice, copy.process, device_of_copy(copy), command);
}

void PerfettoTimeline::add_command(const PerfettoSlice& slice, std::uint16_t process, std::int64_t device,
                                   TraceCommand command) {
  const PerfettoTrack& track = track_of(slice.track);
  const auto queue = slice.get(PerfettoKey::queue) ? slice.get(PerfettoKey::queue) : track.queue;
  auto stream = slice.get(PerfettoKey::stream) ? slice.get(PerfettoKey::stream) : track.stream;
  if (!stream) {
    stream = queue.value_or(0);
    to_.note("this trace does not name streams: hardware queues stand for them");
  }
  const bool is_numbered = slice.is_of_system_profiler || slice.has_gpu_number;
  const auto lane =
      to_.lane(process, device, *stream, slice.at, fmt::format("{} {}", is_numbered ? "GPU" : "agent", device));
  if (!lane) return;
  const bool is_copy = command.kind == SpanKind::copy;
  if (queue) {
    command.queue = to_.queue(lane->device, *queue);
  } else if (is_copy) {
    const CopyDirection direction =
        slice.name == kNoName ? CopyDirection::unknown : direction_of(to_.name_of(slice.name));
    command.queue = to_.queue(lane->device, static_cast<std::uint64_t>(direction), true);
    to_.note("the trace does not say which copy engine ran a copy: copies have one lane for each direction");
  }
  command.process = process;
  command.stream = lane->stream;
  command.name = slice.name;
  command.correlation = slice.get(PerfettoKey::correlation).value_or(slice.flow);
  command.started_ns = slice.started_ns;
  command.ended_ns = slice.ended_ns;
  command.at = slice.at;
  if (to_.add(command)) ++commands_;
}

// "812 of 'host', 3 of 'mpi'", the most frequent first.
std::string PerfettoTimeline::left_out_text() const {
  std::vector<std::pair<std::uint64_t, std::string>> counts;
  for (const auto& [category, count] : left_out_) counts.emplace_back(count, category);
  std::sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> parts;
  for (const auto& [count, category] : counts) {
    if (parts.size() == 5) {
      parts.push_back(fmt::format("and of {} more", counts.size() - 5));
      break;
    }
    parts.push_back(fmt::format("{} of '{}'", count, category));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void PerfettoTimeline::finish(const std::string& what_else) {
  for (const Copy& copy : copies_) {
    if (copy.slice.name == kNoName) continue;
    const CopyDirection direction = direction_of(to_.name_of(copy.slice.name));
    const auto cpu = direction == CopyDirection::host_to_device   ? copy.slice.get(PerfettoKey::source_agent)
                     : direction == CopyDirection::device_to_host ? copy.slice.get(PerfettoKey::target_agent)
                                                                  : std::nullopt;
    if (cpu && *cpu <= kMaxAgent) cpus_ = std::max(cpus_, *cpu + 1);
  }
  for (const Copy& copy : copies_) add_copy(copy);
  if (ranges_ > kMaxRanges)
    to_.note(fmt::format("{} markers beyond the first {} were left out", ranges_ - kMaxRanges, kMaxRanges));
  if (!left_out_.empty())
    to_.note(fmt::format("slices that are neither commands, calls nor markers were left out, by category: {}",
                         left_out_text()));
  if (commands_ > 0 || calls_ > 0 || ranges_ > 0) return;
  reject(
      fmt::format("{}: nothing in this Perfetto trace is known as work of a GPU or as calls of its driver ({}; {})",
                  file_.name, left_out_.empty() ? "no slices" : "slices by category: " + left_out_text(), what_else),
      "Categories that are known: kernel_dispatch, memory_copy, hip_api, hsa_api, rccl_api, marker_api, and the same "
      "with rocm_ before them. rocprofv3 --output-format pftrace writes them, with --runtime-trace.");
}

}  // namespace weir
