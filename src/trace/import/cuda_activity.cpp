#include "trace/import/cuda_activity.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "trace/capture_format.h"

namespace weir {
namespace {

std::uint64_t context_key(std::uint16_t process, std::uint32_t context) noexcept {
  return std::uint64_t{process} << 32 | context;
}

}  // namespace

std::string_view cuda_copy_name(std::int64_t kind) noexcept {
  constexpr std::string_view kNames[] = {"Memcpy",      "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA",
                                         "Memcpy AtoH", "Memcpy AtoA", "Memcpy AtoD", "Memcpy DtoA",
                                         "Memcpy DtoD", "Memcpy HtoH", "Memcpy PtoP"};
  return kind >= 0 && kind < std::int64_t{std::size(kNames)} ? kNames[kind] : kNames[0];
}

std::string_view without_version(std::string_view function) noexcept {
  for (const std::string_view thread_mode : {"_ptsz", "_ptds"})
    if (function.size() > thread_mode.size() && function.ends_with(thread_mode))
      function.remove_suffix(thread_mode.size());
  const std::size_t last = function.find_last_not_of("0123456789");
  if (last == std::string_view::npos || last + 1 == function.size() || last < 2) return function;
  return function[last] == 'v' && function[last - 1] == '_' ? function.substr(0, last - 1) : function;
}

std::optional<CudaActivity::Lane> CudaActivity::lane(std::uint16_t process, std::int64_t device, std::uint32_t context,
                                                     std::uint64_t stream, std::uint64_t at) {
  const auto label = labels_.find(device);
  const auto device_lane = to_.device(process, device, label == labels_.end() ? std::string_view() : label->second);
  Context& owner = context_of(process, context, device);
  // A context has one device. Where records disagree, their streams are distinguished by device only.
  const bool is_own = owner.device == device;
  if (is_own && device_lane) {
    const auto known = owner.streams.find(stream);
    if (known != owner.streams.end()) return Lane{*device_lane, known->second};
    if (owner.streams.empty())
      owner.place = static_cast<std::uint16_t>(std::min<std::size_t>(counts_[{process, device}]++, UINT16_MAX));
  }
  const auto stream_lane =
      device_lane ? to_.stream(*device_lane, stream, is_own ? owner.place : std::uint16_t{0}) : std::nullopt;
  if (!stream_lane) {
    to_.drop("command on one device or stream too many", at);
    return std::nullopt;
  }
  if (is_own) {
    to_.charge(64);
    owner.streams.emplace(stream, *stream_lane);
    if (owner.place > 0) to_.label_stream(*stream_lane, fmt::format("stream {} of context {}", stream, context));
  }
  return Lane{*device_lane, *stream_lane};
}

CudaActivity::Context& CudaActivity::context_of(std::uint16_t process, std::uint32_t context, std::int64_t device) {
  const auto [at, is_new] = contexts_.try_emplace(context_key(process, context));
  if (is_new) {
    to_.charge(256);
    at->second.device = device;
  }
  return at->second;
}

bool CudaActivity::has_times(std::int64_t started_ns, std::int64_t ended_ns, std::uint64_t at) {
  if (started_ns != 0 || ended_ns != 0) return true;
  to_.drop("command whose times CUPTI could not take", at);
  return false;
}

void CudaActivity::add(std::int64_t type, const Waited& waited, std::int64_t started_ns, std::int64_t ended_ns) {
  using capture::SyncType;
  if (type == static_cast<std::int64_t>(SyncType::stream_wait_event)) return keep(waits_, waited);
  // When the host waits for an event, the rest of its stream may still be running.
  const bool is_stream = type == static_cast<std::int64_t>(SyncType::stream_synchronize);
  if (!is_stream && type != static_cast<std::int64_t>(SyncType::context_synchronize)) return;
  keep(host_waits_,
       {waited.process, waited.context, is_stream ? std::optional(waited.stream) : std::nullopt, started_ns, ended_ns});
}

std::optional<std::uint16_t> CudaActivity::stream_of(std::uint16_t process, std::uint32_t context,
                                                     std::uint64_t stream) const {
  // Nsight Systems 2026.2 writes device 0 into every wait, so only the context identifies the device.
  const auto owner = contexts_.find(context_key(process, context));
  if (owner == contexts_.end()) return std::nullopt;
  const auto found = owner->second.streams.find(stream);
  return found == owner->second.streams.end() ? std::nullopt : std::optional(found->second);
}

void CudaActivity::resolve(std::string_view how_to) {
  std::unordered_map<std::uint16_t, std::size_t> active;  // contexts that ran something, by process
  for (const auto& [key, context] : contexts_)
    if (!context.streams.empty()) ++active[static_cast<std::uint16_t>(key >> 32)];
  for (const HostWaited& waited : host_waits_) {
    TraceSync sync{waited.process, std::nullopt, waited.started_ns, waited.ended_ns};
    if (!waited.stream && active[waited.process] > 1) {
      // Other contexts, often on other devices, continued meanwhile.
      const auto owner = contexts_.find(context_key(waited.process, waited.context));
      if (owner == contexts_.end()) continue;
      for (const auto& [id, stream] : owner->second.streams) {
        sync.stream = stream;
        to_.add(sync);
      }
      continue;
    }
    if (waited.stream) {
      sync.stream = stream_of(waited.process, waited.context, *waited.stream);
      if (!sync.stream) continue;  // nothing ran on it, so nothing was waited for
    }
    to_.add(sync);
  }
  if (records_.empty() && !waits_.empty()) {
    to_.note(
        fmt::format("streams waited {} times for events, but which streams recorded them is not in the file{}: "
                    "dependencies are not known",
                    waits_.size(), how_to));
    return;
  }
  if (knows_waits_ || !records_.empty()) to_.knows_dependencies();
  const auto order = [](const Recorded& a, const Recorded& b) {
    return std::tie(a.process, a.event, a.correlation) < std::tie(b.process, b.event, b.correlation);
  };
  std::sort(records_.begin(), records_.end(), order);
  for (const Waited& wait : waits_) {
    // A wait is for the last record of its event that precedes it.
    auto at = std::lower_bound(records_.begin(), records_.end(), static_cast<const Recorded&>(wait), order);
    const Recorded* record = nullptr;
    if (at != records_.begin() && (at - 1)->process == wait.process && (at - 1)->event == wait.event)
      record = &*(at - 1);
    if (record == nullptr || (wait.sync != 0 && record->sync != 0 && wait.sync != record->sync)) {
      to_.drop("wait for an event that was not recorded within the trace", wait.at);
      continue;
    }
    const auto stream = stream_of(wait.process, wait.context, wait.stream);
    const auto on_stream = stream_of(wait.process, record->context, record->stream);
    if (!stream || !on_stream) continue;  // nothing ran there, so nothing waited or was waited for
    to_.add(TraceWait{wait.process, *stream, *on_stream, wait.correlation, record->correlation});
  }
}

}  // namespace weir
