#include "trace/outline.h"

#include <algorithm>
#include <array>

#include "trace/device_spans.h"
#include "trace/rank_collectives.h"

namespace weir {
namespace {

// The commands of a device that are first or last, as far as an analysis may ask.
struct Extremes {
  std::uint32_t any = UINT32_MAX;
  std::array<std::uint32_t, 3> first{UINT32_MAX, UINT32_MAX, UINT32_MAX};  // started, timed, device work
  std::array<std::uint32_t, 3> last{UINT32_MAX, UINT32_MAX, UINT32_MAX};   // ended, timed, device work
};

void add_to_extremes(const std::vector<Span>& spans, std::uint32_t index, Extremes& to) {
  const Span& span = spans[index];
  if (to.any == UINT32_MAX) to.any = index;
  const std::array<bool, 3> may_be_first = {span.started_ns != kNoTime, is_timed(span), is_device_work(span)};
  const std::array<bool, 3> may_be_last = {span.ended_ns != kNoTime, is_timed(span), is_device_work(span)};
  for (std::size_t k = 0; k < 3; ++k) {
    if (may_be_first[k] && (to.first[k] == UINT32_MAX || span.started_ns < spans[to.first[k]].started_ns))
      to.first[k] = index;
    if (may_be_last[k] && (to.last[k] == UINT32_MAX || span.ended_ns > spans[to.last[k]].ended_ns)) to.last[k] = index;
  }
}

// Gives names their numbers in the outline, in the order that they had.
class OutlineNames {
 public:
  explicit OutlineNames(const Timeline& whole) : whole_(whole), number_(whole.names.size(), kNoName) {}
  void use(std::uint32_t name) {
    if (name < number_.size()) number_[name] = 0;
  }
  std::vector<std::string> take() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < number_.size(); ++i) {
      if (number_[i] == kNoName) continue;
      number_[i] = static_cast<std::uint32_t>(names.size());
      names.push_back(whole_.names[i]);
    }
    return names;
  }
  std::uint32_t of(std::uint32_t name) const { return name < number_.size() ? number_[name] : kNoName; }

 private:
  const Timeline& whole_;
  std::vector<std::uint32_t> number_;
};

}  // namespace

Timeline outline(const Timeline& whole) {
  Timeline to;
  to.source = whole.source;
  to.has_exact_gaps = whole.has_exact_gaps;
  to.clock_error_ns = whole.clock_error_ns;
  to.processes = whole.processes;
  to.devices = whole.devices;
  to.has_dependencies = whole.has_dependencies;
  to.has_operations = whole.has_operations;
  to.dropped = whole.dropped;
  to.notes = whole.notes;

  // Commands without a lane count as those of one more device.
  const auto device_of = [&](const Span& span) -> std::size_t {
    return span.stream < whole.streams.size() ? whole.streams[span.stream].device : whole.devices.size();
  };
  std::vector<Extremes> extremes(whole.devices.size() + 1);
  for (std::uint32_t i = 0; i < whole.spans.size(); ++i)
    add_to_extremes(whole.spans, i, extremes[device_of(whole.spans[i])]);
  std::vector<bool> is_kept(whole.spans.size(), false);
  for (const Extremes& each : extremes) {
    if (each.any != UINT32_MAX) is_kept[each.any] = true;
    for (const auto& all : {each.first, each.last})
      for (const std::uint32_t index : all)
        if (index != UINT32_MAX) is_kept[index] = true;
  }
  OutlineNames names(whole);
  for (const CollectiveFacts& facts : whole.collectives) {
    if (facts.kind == CollectiveKind::unknown || facts.span >= whole.spans.size()) continue;
    is_kept[facts.span] = true;
    names.use(facts.group);
    names.use(whole.spans[facts.span].name);
  }
  to.names = names.take();

  std::vector<std::uint16_t> stream_of(whole.devices.size() + 1, 0);
  if (!whole.streams.empty()) {
    for (std::size_t device = 0; device < extremes.size(); ++device) {
      stream_of[device] = static_cast<std::uint16_t>(to.streams.size());
      if (device < whole.devices.size() && extremes[device].any != UINT32_MAX)
        to.streams.push_back({static_cast<std::uint16_t>(device), 0, {}, {}});
    }
  }
  const std::vector<std::uint32_t> places = slice_places(whole);
  std::vector<std::uint32_t> span_at(whole.spans.size(), UINT32_MAX);
  for (std::uint32_t i = 0; i < whole.spans.size(); ++i) {
    if (!is_kept[i]) continue;
    const Span& span = whole.spans[i];
    span_at[i] = static_cast<std::uint32_t>(to.spans.size());
    Span& kept = to.spans.emplace_back();
    kept.command = places[i];
    kept.name = names.of(span.name);
    kept.kind = span.kind;
    kept.stream = whole.streams.empty() ? span.stream : stream_of[device_of(span)];
    kept.started_ns = span.started_ns;
    kept.ended_ns = span.ended_ns;
  }
  for (CollectiveFacts facts : whole.collectives) {
    if (facts.kind == CollectiveKind::unknown || facts.span >= whole.spans.size()) continue;
    facts.span = span_at[facts.span];
    facts.group = names.of(facts.group);
    to.collectives.push_back(facts);
  }
  return to;
}

}  // namespace weir
