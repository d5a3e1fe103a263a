#include "trace/import/xplane_events.h"

#include "trace/import/json_text.h"
#include "trace/import/protobuf_reader.h"

namespace weir {
namespace {

struct XStatName {
  std::string_view name;
  XStat stat;
};
constexpr std::array kXStats = {XStatName{"correlation_id", XStat::correlation},
                                XStatName{"kernel_details", XStat::kernel},
                                XStatName{"memcpy_details", XStat::copy},
                                XStatName{"memset_details", XStat::memset},
                                XStatName{"Memset_details", XStat::memset},
                                XStatName{"memalloc_details", XStat::allocation},
                                XStatName{"MemFree_details", XStat::allocation},
                                XStatName{"MemoryResidency_details", XStat::allocation},
                                XStatName{"hlo_op", XStat::hlo_op},
                                XStatName{"hlo_module", XStat::hlo_module},
                                XStatName{"tf_op", XStat::tf_op},
                                XStatName{"name", XStat::name},
                                XStatName{"step_num", XStat::step},
                                XStatName{"device_vendor", XStat::vendor},
                                XStatName{"device_type_string", XStat::device_type},
                                XStatName{"core_count", XStat::cores},
                                XStatName{"profile_start_time", XStat::start_time}};

// Rounded down, below zero too.
std::int64_t whole_nanoseconds(std::int64_t ps) noexcept { return ps / 1000 - (ps % 1000 < 0 ? 1 : 0); }

}  // namespace

void XStats::set(XStat stat, std::uint64_t number, std::string_view text) noexcept {
  const auto at = static_cast<std::size_t>(stat);
  known_ |= 1U << at;
  numbers_[at] = number;
  texts_[at] = text;
}

// XPlane { name = 2; lines = 3; map event_metadata = 4; map stat_metadata = 5; stats = 6 }; an entry of a map is
// { key = 1; value = 2 }
XPlane::XPlane(std::string_view bytes, std::uint64_t at, TimelineBuilder& to) : to_(to), at_(at) {
  ProtobufMessage message(bytes);
  while (message.next()) {
    const ProtobufField& field = message.field();
    if (field.type != ProtobufType::bytes) continue;
    if (field.number == 2) name_ = field.bytes;
    if (field.number == 3) keep(lines_, field.bytes);
    if (field.number == 6) keep(stats_, field.bytes);
    if (field.number != 4 && field.number != 5) continue;
    std::uint64_t id = 0;
    std::string_view value;
    for (ProtobufMessage entry(field.bytes); entry.next();) {
      if (entry.field().is(1, ProtobufType::varint)) id = entry.field().value;
      if (entry.field().is(2, ProtobufType::bytes)) value = entry.field().bytes;
    }
    if (field.number == 4)
      name_event(id, value);
    else
      name_stat(id, value);
  }
  if (message.is_damaged()) to_.drop("plane that is damaged, used in part", at_);
}

void XPlane::keep(std::vector<std::string_view>& all, std::string_view bytes) {
  to_.charge(2 * sizeof(bytes));
  all.push_back(bytes);
}

// XEventMetadata { id = 1; name = 2; stats = 5 }
void XPlane::name_event(std::uint64_t id, std::string_view bytes) {
  EventName made;
  for (ProtobufMessage message(bytes); message.next();) {
    if (message.field().is(2, ProtobufType::bytes)) made.name = message.field().bytes;
    if (message.field().is(5, ProtobufType::bytes)) keep(made.stats, message.field().bytes);
  }
  to_.charge(sizeof(EventName) + 64);
  event_names_.insert_or_assign(id, std::move(made));
}

// XStatMetadata { id = 1; name = 2 }
void XPlane::name_stat(std::uint64_t id, std::string_view bytes) {
  StatName made;
  for (ProtobufMessage message(bytes); message.next();)
    if (message.field().is(2, ProtobufType::bytes)) made.name = message.field().bytes;
  for (const XStatName& known : kXStats)
    if (known.name == made.name) made.stat = known.stat;
  to_.charge(sizeof(StatName) + 64);
  stat_names_.insert_or_assign(id, made);
}

// XStat { metadata_id = 1; uint64 = 3; int64 = 4; str = 5; ref = 7 }; a reference is to the name of a statistic, which
// serves as a text.
void XPlane::use_stat(std::string_view bytes, XStats& stats) const {
  XStat stat = XStat::none;
  std::uint64_t number = 0;
  std::string_view text;
  for (ProtobufMessage message(bytes); message.next();) {
    const ProtobufField& field = message.field();
    if (field.is(1, ProtobufType::varint) || field.is(7, ProtobufType::varint)) {
      const auto found = stat_names_.find(field.value);
      if (found == stat_names_.end()) continue;
      if (field.number == 1)
        stat = found->second.stat;
      else
        text = found->second.name;
    } else if (field.is(3, ProtobufType::varint) || field.is(4, ProtobufType::varint)) {
      number = field.value;
    } else if (field.is(5, ProtobufType::bytes)) {
      text = field.bytes;
    }
  }
  if (stat == XStat::none) return;
  // Annotations of a program are texts, numbers among them too.
  if (!text.empty()) number = number_in<std::uint64_t>(text).value_or(number);
  stats.set(stat, number, text);
}

XStats XPlane::stats() const {
  XStats found;
  for (const std::string_view bytes : stats_) use_stat(bytes, found);
  return found;
}

std::size_t XPlane::count_events() const noexcept {
  std::size_t count = 0;
  for (const std::string_view line : lines_)
    for (ProtobufMessage message(line); message.next();) count += message.field().is(4, ProtobufType::bytes) ? 1 : 0;
  return count;
}

// XLine { id = 1; name = 2; timestamp_ns = 3; events = 4 }
void XPlane::events(const std::function<bool(const XLine&)>& is_wanted,
                    const std::function<void(const XLine&, const XEvent&)>& use) const {
  for (const std::string_view bytes : lines_) {
    XLine line;
    ProtobufMessage head(bytes);
    while (head.next()) {
      const ProtobufField& field = head.field();
      if (field.is(1, ProtobufType::varint)) line.id = field.value;
      if (field.is(2, ProtobufType::bytes)) line.name = field.bytes;
      if (field.is(3, ProtobufType::varint)) line.start_ns = field.signed_value();
    }
    if (head.is_damaged()) to_.drop("line that is damaged, used in part", at_);
    if (!is_wanted(line)) continue;
    for (ProtobufMessage body(bytes); body.next();) {
      XEvent event;
      if (body.field().is(4, ProtobufType::bytes) && read_event(line, body.field().bytes, event)) use(line, event);
    }
  }
}

// XEvent { metadata_id = 1; offset_ps = 2; duration_ps = 3; stats = 4; num_occurrences = 5 }
bool XPlane::read_event(const XLine& line, std::string_view bytes, XEvent& event) const {
  std::int64_t offset_ps = 0, duration_ps = 0, end_ps = 0;
  bool is_sum = false;
  ProtobufMessage message(bytes);
  while (message.next()) {
    const ProtobufField& field = message.field();
    if (field.is(1, ProtobufType::varint)) event.name_id = field.value;
    if (field.is(2, ProtobufType::varint)) offset_ps = field.signed_value();
    if (field.is(3, ProtobufType::varint)) duration_ps = field.signed_value();
    if (field.is(5, ProtobufType::varint)) is_sum = true;
  }
  const char* problem = nullptr;
  if (message.is_damaged())
    problem = "damaged event";
  else if (is_sum)
    problem = "sum of several events, without a time";
  else if (duration_ps < 0)
    problem = "event of negative duration";
  else if (__builtin_add_overflow(offset_ps, duration_ps, &end_ps) ||
           __builtin_add_overflow(line.start_ns, whole_nanoseconds(offset_ps), &event.started_ns) ||
           __builtin_add_overflow(line.start_ns, whole_nanoseconds(end_ps), &event.ended_ns))
    problem = "event whose time is out of range";
  if (problem != nullptr) {
    to_.drop(problem, at_);
    return false;
  }
  // Those of the name first: the event's own count.
  if (const auto found = event_names_.find(event.name_id); found != event_names_.end()) {
    event.name = found->second.name;
    for (const std::string_view stat : found->second.stats) use_stat(stat, event.stats);
  }
  for (ProtobufMessage again(bytes); again.next();)
    if (again.field().is(4, ProtobufType::bytes)) use_stat(again.field().bytes, event.stats);
  return true;
}

}  // namespace weir
