// Reads Perfetto's protobuf traces (.pftrace) in one pass: packets, what they leave to those before them on their
// sequence, and slices of their begins and ends. perfetto_timeline knows what slices mean, perfetto_clocks the times.
#include <fmt/format.h>

#include <limits>

#include "base/error.h"
#include "trace/import/list.h"
#include "trace/import/perfetto_clocks.h"
#include "trace/import/perfetto_timeline.h"
#include "trace/import/protobuf_reader.h"

namespace weir {
namespace {

// Numbers of fields, from the schema that Perfetto publishes (protos/perfetto/trace).
constexpr std::uint32_t kPacket = 1;  // of Trace
namespace packet_field {
constexpr std::uint32_t kTimestamp = 8, kClock = 58, kSequence = 10, kFlags = 13, kCleared = 41, kDropped = 42,
                        kInterned = 12, kDefaults = 59, kClockSnapshot = 6, kTrack = 60, kEvent = 11, kCompressed = 50,
                        kZstdCompressed = 133;
constexpr std::uint64_t kStateCleared = 1, kNeedsState = 2;  // bits of kFlags
}  // namespace packet_field
namespace track_field {
constexpr std::uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kStaticName = 10;
}  // namespace track_field
namespace event_field {
constexpr std::uint32_t kCategoryId = 3, kAnnotation = 4, kType = 9, kNameId = 10, kTrack = 11, kCategory = 22,
                        kName = 23, kOldFlow = 36, kFlow = 47;
constexpr std::uint64_t kBegin = 1, kEnd = 2;  // values of kType
}  // namespace event_field
namespace interned_field {
constexpr std::uint32_t kCategories = 1, kNames = 2, kAnnotations = 3, kStrings = 29;
}  // namespace interned_field
namespace annotation_field {
constexpr std::uint32_t kNameId = 1, kUnsigned = 3, kSigned = 4, kString = 6, kPointer = 7, kName = 10, kStringId = 17;
}  // namespace annotation_field

constexpr std::size_t kMostOpenSlices = 20'000;  // slices
constexpr std::size_t kMostAtOnce = 64;          // slices of a track that overlap without one being in the other
constexpr std::size_t kLongestPackets = 16 << 20;

// What packets of a sequence leave to later ones.
struct PerfettoSequence {
  struct Category {
    std::string name;
    PerfettoCategory category = PerfettoCategory::other;
  };
  std::unordered_map<std::uint64_t, std::string> names, strings;
  std::unordered_map<std::uint64_t, Category> categories;
  std::unordered_map<std::uint64_t, PerfettoKey> annotations;
  std::uint64_t track = 0;
  std::uint32_t clock = 0;
  bool is_valid = false;  // nothing of it was lost
};

struct PerfettoPacket {
  std::uint64_t at = 0;
  std::optional<std::uint64_t> time;
  std::uint32_t clock = 0, sequence = 0;
  std::uint64_t flags = 0;
  bool follows_loss = false;
  std::string_view interned, defaults, clocks, track, event;
  bool has_defaults = false, has_track = false, has_event = false;
};

class PerfettoFile {
 public:
  PerfettoFile(const TraceFile& file, TimelineBuilder& to) : file_(file), to_(to), timeline_(file, to) {}

  void read() {
    ProtobufFile trace(*file_.bytes, [&](std::size_t bytes) { to_.charge(bytes); });
    while (trace.next()) {
      if (file_.progress && ++packets_ % 65536 == 0) file_.progress();
      if (!trace.field().is(kPacket, ProtobufType::bytes)) {
        ++strangers_;
        continue;
      }
      const std::string_view bytes = trace.read();
      if (bytes.size() == trace.field().value) packet(bytes, trace.at(), true);
    }
    if (!trace.problem().empty()) to_.drop(trace.problem(), trace.at());
    if (strangers_ > 0) to_.drop("field that is no packet", 0, strangers_);
    close_all();
    if (clocks_.has_loose_clock())
      to_.note("some times are on a clock that the trace does not relate to its own: they were taken as they are");
    timeline_.finish(fmt::format("{} events, {} track descriptions", events_, track_count_));
    to_.set_source("Perfetto");
  }

 private:
  void packet(std::string_view bytes, std::uint64_t at, bool may_unpack) {
    PerfettoPacket found;
    found.at = at;
    ProtobufMessage message(bytes);
    while (message.next()) {
      const ProtobufField& field = message.field();
      if (field.type == ProtobufType::varint) {
        if (field.number == packet_field::kTimestamp) found.time = field.value;
        if (field.number == packet_field::kClock) found.clock = static_cast<std::uint32_t>(field.value);
        if (field.number == packet_field::kSequence) found.sequence = static_cast<std::uint32_t>(field.value);
        if (field.number == packet_field::kFlags) found.flags |= field.value;
        if (field.number == packet_field::kCleared && field.value != 0) found.flags |= packet_field::kStateCleared;
        if (field.number == packet_field::kDropped) found.follows_loss = field.value != 0;
      } else if (field.type == ProtobufType::bytes) {
        switch (field.number) {
          case packet_field::kInterned:
            found.interned = field.bytes;
            break;
          case packet_field::kDefaults:
            found.defaults = field.bytes;
            found.has_defaults = true;
            break;
          case packet_field::kClockSnapshot:
            found.clocks = field.bytes;
            break;
          case packet_field::kTrack:
            found.track = field.bytes;
            found.has_track = true;
            break;
          case packet_field::kEvent:
            found.event = field.bytes;
            found.has_event = true;
            break;
          case packet_field::kCompressed:
          case packet_field::kZstdCompressed:
            if (may_unpack) compressed(field.bytes, at);
            break;
          default:
            break;
        }
      }
    }
    if (message.is_damaged()) return to_.drop("damaged packet", at);
    use(found);
  }

  void compressed(std::string_view bytes, std::uint64_t at) {
    const std::optional<std::string> packets = unpacked_bytes(bytes, kLongestPackets);
    if (!packets) return to_.drop("compressed packets that are damaged or too long", at);
    ProtobufMessage message(*packets);
    while (message.next())
      if (message.field().is(kPacket, ProtobufType::bytes)) packet(message.field().bytes, at, false);
    if (message.is_damaged()) to_.drop("compressed packets that are damaged or too long", at);
  }

  void use(const PerfettoPacket& found) {
    const auto [place, is_new] = sequences_.try_emplace(found.sequence);
    if (is_new) to_.charge(sizeof(*place) * 2);
    PerfettoSequence& sequence = place->second;
    if (found.follows_loss) sequence.is_valid = false;
    if ((found.flags & packet_field::kStateCleared) != 0) {
      sequence = PerfettoSequence();
      sequence.is_valid = true;
    }
    if (found.has_defaults) defaults(found.defaults, sequence);
    if (!found.interned.empty()) intern(found.interned, sequence, found.at);
    if (!found.clocks.empty()) snapshot(found);
    if (found.has_track) describe(found.track, found.at);
    std::optional<std::int64_t> time;
    if (found.time) time = clocks_.time(found.sequence, found.clock != 0 ? found.clock : sequence.clock, *found.time);
    if (!found.has_event) return;
    ++events_;
    if ((found.flags & packet_field::kNeedsState) != 0 && !sequence.is_valid)
      return to_.drop("event that needs packets which were lost", found.at);
    if (!time)
      return to_.drop(found.time ? "event whose time is out of range, or on an unknown clock" : "event without a time",
                      found.at);
    slice(found, sequence, *time);
  }

  // TracePacketDefaults { timestamp_clock_id = 58; track_event_defaults = 11 { track_uuid = 11 } }
  static void defaults(std::string_view bytes, PerfettoSequence& sequence) {
    for (ProtobufMessage message(bytes); message.next();) {
      const ProtobufField& field = message.field();
      if (field.is(packet_field::kClock, ProtobufType::varint))
        sequence.clock = static_cast<std::uint32_t>(field.value);
      if (!field.is(packet_field::kEvent, ProtobufType::bytes)) continue;
      for (ProtobufMessage inner(field.bytes); inner.next();)
        if (inner.field().is(event_field::kTrack, ProtobufType::varint)) sequence.track = inner.field().value;
    }
  }

  // Each entry is { iid = 1; name = 2 }, whatever it names.
  void intern(std::string_view bytes, PerfettoSequence& sequence, std::uint64_t at) {
    ProtobufMessage message(bytes);
    while (message.next()) {
      const ProtobufField& field = message.field();
      if (field.type != ProtobufType::bytes) continue;
      std::uint64_t id = 0;
      std::string_view text;
      ProtobufMessage entry(field.bytes);
      while (entry.next()) {
        if (entry.field().is(1, ProtobufType::varint)) id = entry.field().value;
        if (entry.field().is(2, ProtobufType::bytes)) text = entry.field().bytes;
      }
      if (entry.is_damaged() || id == 0) continue;
      constexpr std::size_t kEntry = 96;
      to_.charge(kEntry + text.size());
      if (field.number == interned_field::kCategories)
        sequence.categories[id] = {std::string(text), perfetto_category(text)};
      else if (field.number == interned_field::kNames)
        sequence.names[id] = text;
      else if (field.number == interned_field::kAnnotations)
        sequence.annotations[id] = perfetto_key(text);
      else if (field.number == interned_field::kStrings)
        sequence.strings[id] = text;
    }
    if (message.is_damaged()) to_.drop("damaged packet", at);
  }

  // ClockSnapshot { clocks = 1 { clock_id = 1; timestamp = 2; is_incremental = 3; unit_multiplier_ns = 4 };
  // primary_trace_clock = 2 }
  void snapshot(const PerfettoPacket& found) {
    std::vector<PerfettoClocks::Reading> readings;
    for (ProtobufMessage message(found.clocks); message.next();) {
      const ProtobufField& field = message.field();
      if (field.is(2, ProtobufType::varint) && field.value != 0)
        clocks_.set_trace_clock(static_cast<std::uint32_t>(field.value));
      if (!field.is(1, ProtobufType::bytes)) continue;
      PerfettoClocks::Reading reading;
      for (ProtobufMessage inner(field.bytes); inner.next();) {
        if (inner.field().is(1, ProtobufType::varint)) reading.clock = static_cast<std::uint32_t>(inner.field().value);
        if (inner.field().is(2, ProtobufType::varint)) reading.time = inner.field().value;
        if (inner.field().is(3, ProtobufType::varint)) reading.is_incremental = inner.field().value != 0;
        if (inner.field().is(4, ProtobufType::varint) && inner.field().value != 0)
          reading.unit_ns = inner.field().value;
      }
      if (reading.clock != 0) readings.push_back(reading);
    }
    const std::size_t had = clocks_.size();
    if (!clocks_.add(found.sequence, readings)) to_.drop("clock whose time is out of range", found.at);
    to_.charge((clocks_.size() - had) * 96);
  }

  // TrackDescriptor { uuid = 1; name = 2; process = 3 { pid = 1 }; thread = 4 { pid = 1; tid = 2 }; parent_uuid = 5 }
  void describe(std::string_view bytes, std::uint64_t at) {
    std::uint64_t uuid = 0;
    PerfettoTrack track;
    ProtobufMessage message(bytes);
    while (message.next()) {
      const ProtobufField& field = message.field();
      if (field.is(track_field::kUuid, ProtobufType::varint)) uuid = field.value;
      if (field.is(track_field::kParent, ProtobufType::varint)) track.parent = field.value;
      if (field.is(track_field::kName, ProtobufType::bytes) || field.is(track_field::kStaticName, ProtobufType::bytes))
        track.set_name(field.bytes);
      const bool is_process = field.is(track_field::kProcess, ProtobufType::bytes);
      if (!is_process && !field.is(track_field::kThread, ProtobufType::bytes)) continue;
      for (ProtobufMessage inner(field.bytes); inner.next();) {
        if (inner.field().is(1, ProtobufType::varint)) track.process_id = inner.field().signed_value();
        if (!is_process && inner.field().is(2, ProtobufType::varint)) track.thread_id = inner.field().signed_value();
      }
    }
    if (message.is_damaged()) return to_.drop("damaged packet", at);
    ++track_count_;
    timeline_.describe(uuid, track);
  }

  void slice(const PerfettoPacket& found, const PerfettoSequence& sequence, std::int64_t time) {
    std::uint64_t type = 0;
    PerfettoSlice made;
    made.track = sequence.track;
    std::string_view category, name;
    bool is_lost = false;  // it names something that no packet defined
    ProtobufMessage message(found.event);
    while (message.next()) {
      const ProtobufField& field = message.field();
      if (field.is(event_field::kType, ProtobufType::varint)) type = field.value;
      if (field.is(event_field::kTrack, ProtobufType::varint)) made.track = field.value;
      if (field.is(event_field::kCategory, ProtobufType::bytes))
        use_category(field.bytes, perfetto_category(field.bytes), made, category);
      if (field.is(event_field::kCategoryId, ProtobufType::varint)) {
        const auto known = sequence.categories.find(field.value);
        if (known != sequence.categories.end())
          use_category(known->second.name, known->second.category, made, category);
        else
          is_lost = true;
      }
      if (field.is(event_field::kName, ProtobufType::bytes)) name = field.bytes;
      if (field.is(event_field::kNameId, ProtobufType::varint)) {
        const auto known = sequence.names.find(field.value);
        if (known != sequence.names.end())
          name = known->second;
        else
          is_lost = true;
      }
      if (field.is(event_field::kFlow, ProtobufType::fixed64) || field.is(event_field::kOldFlow, ProtobufType::varint))
        if (made.flow == 0) made.flow = field.value;
      if (field.is(event_field::kAnnotation, ProtobufType::bytes)) annotate(field.bytes, sequence, made);
    }
    if (message.is_damaged()) return to_.drop("damaged packet", found.at);
    if (type == event_field::kEnd) return end(made, time, found.at);
    if (type != event_field::kBegin) return;  // instants, counters, Chrome's own events
    made.at = found.at;
    made.started_ns = time;
    made.is_of_system_profiler = is_of_system_profiler(category);
    if (is_lost) to_.drop("name or category of an event that no packet defines", found.at);
    if (made.category == PerfettoCategory::other)
      timeline_.leave_out(category);
    else if (!name.empty())
      made.name = to_.name(name);
    begin(made);
  }

  // An event may have several categories.
  static void use_category(std::string_view text, PerfettoCategory meaning, PerfettoSlice& made,
                           std::string_view& category) {
    if (made.category != PerfettoCategory::other) return;
    made.category = meaning;
    if (meaning != PerfettoCategory::other || category.empty()) category = text;
  }

  static void annotate(std::string_view bytes, const PerfettoSequence& sequence, PerfettoSlice& made) {
    PerfettoKey key = PerfettoKey::none;
    std::optional<std::uint64_t> number;
    std::string_view text;
    for (ProtobufMessage message(bytes); message.next();) {
      const ProtobufField& field = message.field();
      if (field.is(annotation_field::kNameId, ProtobufType::varint)) {
        const auto known = sequence.annotations.find(field.value);
        if (known != sequence.annotations.end()) key = known->second;
      } else if (field.is(annotation_field::kName, ProtobufType::bytes)) {
        key = perfetto_key(field.bytes);
      } else if (field.is(annotation_field::kUnsigned, ProtobufType::varint) ||
                 field.is(annotation_field::kPointer, ProtobufType::varint)) {
        number = field.value;
      } else if (field.is(annotation_field::kSigned, ProtobufType::varint)) {
        if (field.signed_value() >= 0) number = field.value;
      } else if (field.is(annotation_field::kString, ProtobufType::bytes)) {
        text = field.bytes;
      } else if (field.is(annotation_field::kStringId, ProtobufType::varint)) {
        const auto known = sequence.strings.find(field.value);
        if (known != sequence.strings.end()) text = known->second;
      }
    }
    if (key == PerfettoKey::none) return;
    if (number)
      made.set(key, *number);
    else if (!text.empty())
      made.set(key, text);
  }

  void begin(const PerfettoSlice& made) {
    if (open_count_ == kMostOpenSlices) return to_.drop("slice that begins while too many others are open", made.at);
    ++open_count_;
    if (open_count_ > open_charged_) {
      to_.charge(sizeof(PerfettoSlice) * 2);
      open_charged_ = open_count_;
    }
    open_[made.track].push_back(made);
  }

  // The latest open slice of the track ends. rocprofv3 writes each slice's end right after its begin, whatever overlaps
  // it; where others sorted events by time, ends are of slices whose annotations say so.
  void end(const PerfettoSlice& by, std::int64_t time, std::uint64_t at) {
    const auto found = open_.find(by.track);
    if (found == open_.end()) return to_.drop("slice that ends and never began", at);
    std::vector<PerfettoSlice>& open = found->second;
    auto ending = open.end() - 1;
    const auto is_due = [&](const PerfettoSlice& slice) {
      const auto length = slice.noted_length();
      std::int64_t expected = 0;
      return !length || (!__builtin_add_overflow(slice.started_ns, *length, &expected) && expected == time);
    };
    if (!is_due(*ending))
      for (std::size_t back = 2; back <= std::min(open.size(), kMostAtOnce); ++back)
        if (const auto other = open.end() - static_cast<std::ptrdiff_t>(back);
            other->noted_length() && is_due(*other)) {
          ending = other;
          break;
        }
    PerfettoSlice whole = *ending;
    open.erase(ending);
    --open_count_;
    if (open.empty()) open_.erase(found);
    // Annotations of the end belong to the slice too.
    for (std::size_t key = 0; key < by.values.size(); ++key)
      if (const auto value = by.get(static_cast<PerfettoKey>(key))) whole.set(static_cast<PerfettoKey>(key), *value);
    whole.ended_ns = time;
    timeline_.add(whole);
  }

  // The file ends before some slices do.
  void close_all() {
    for (auto& [track, slices] : open_) {
      for (PerfettoSlice& slice : slices) {
        if (slice.category == PerfettoCategory::other) continue;
        const auto length = slice.noted_length();
        if (!length || __builtin_add_overflow(slice.started_ns, *length, &slice.ended_ns))
          to_.drop("slice that begins and never ends", slice.at);
        else
          timeline_.add(slice);
      }
    }
    open_.clear();
  }

  const TraceFile& file_;
  TimelineBuilder& to_;
  PerfettoTimeline timeline_;
  PerfettoClocks clocks_;
  std::unordered_map<std::uint32_t, PerfettoSequence> sequences_;
  std::unordered_map<std::uint64_t, std::vector<PerfettoSlice>> open_;  // by track
  std::size_t open_count_ = 0, open_charged_ = 0;
  std::uint64_t packets_ = 0, events_ = 0, track_count_ = 0, strangers_ = 0;
};

// Packets, the first of them whole if it is short: nothing else begins with three or more of them by chance.
bool sniff_perfetto(std::string_view start) {
  constexpr int kEnough = 3;
  const bool is_whole = start.size() < kSniffBytes;
  int packets = 0, known = 0;
  ProtobufMessage trace(start);
  while (packets < 32 && trace.next()) {
    if (!trace.field().is(kPacket, ProtobufType::bytes)) return false;
    ++packets;
    ProtobufMessage message(trace.field().bytes);
    while (message.next()) {
      const std::uint32_t number = message.field().number;
      if (number == 0 || number > 2000) return false;
      // A time, a sequence and what kind of packet it is: all have one of these.
      if (message.field().is(packet_field::kTimestamp, ProtobufType::varint) ||
          message.field().is(packet_field::kSequence, ProtobufType::varint) ||
          message.field().is(packet_field::kTrack, ProtobufType::bytes) ||
          message.field().is(packet_field::kClockSnapshot, ProtobufType::bytes))
        ++known;
    }
    if (message.is_damaged()) return false;
  }
  return known > 0 && (packets >= kEnough || (is_whole && packets > 0));
}

void read_perfetto(const TraceFile& file, TimelineBuilder& to) { PerfettoFile(file, to).read(); }

}  // namespace

Importer importer_list::perfetto() {
  return {"perfetto", "Perfetto's protobuf traces (.pftrace) of rocprofv3 and rocprof-sys", sniff_perfetto,
          read_perfetto};
}

}  // namespace weir
