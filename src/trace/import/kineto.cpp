// Reads Kineto's JSON (PyTorch's profiler; Weir's own exports) in one pass: finds the events and the fields beside
// them, and resumes after damage. Knows the outer structure; kineto_event reads events, kineto_timeline interprets
// them.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "trace/import/json_reader.h"
#include "trace/import/json_text.h"
#include "trace/import/kineto_event.h"
#include "trace/import/kineto_timeline.h"
#include "trace/import/list.h"

namespace weir {
namespace {

using In = JsonReader::In;

constexpr std::size_t kLongestSource = 200;

bool contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != std::string_view::npos;
}

class KinetoFile {
 public:
  KinetoFile(const TraceFile& file, TimelineBuilder& to)
      : file_(file), to_(to), reader_(*file.bytes, file.progress), timeline_(file, to) {
    reader_.set_guard(is_kineto_event);
  }

  void read() {
    if (reader_.peek() == '\xEF') reader_.scalar(In::array);  // a byte order mark
    // {"schemaVersion": 1, ..., "traceEvents": [{...}, ...], ...}, or the array alone
    is_bare_ = reader_.take('[');
    if (is_bare_)
      events();
    else if (reader_.take('{'))
      outermost();
    else
      reader_.break_here("text before the trace");
    while (reader_.is_broken()) go_on();
    if (!has_events_)
      reject(fmt::format("{}: is not a Kineto trace: it has no \"traceEvents\"", file_.name),
             "Choose the right --input-format, or leave it out.");
    if (!reader_.is_at_end()) {
      to_.drop("text after the end of the trace", reader_.position());
      reader_.recover([](std::string_view) { return false; });
    }
    timeline_.finish();
    add_base();
    to_.set_source(source_.empty() ? "Kineto" : source_);
  }

 private:
  void outermost() {
    std::string_view found;
    while (reader_.next_key(&found)) {
      const std::string key(found);  // take() may move the window
      if (key == "traceEvents" && reader_.take('[')) {
        events();
      } else if (key == "deviceProperties" && reader_.take('[')) {
        devices();
      } else if (key == "distributedInfo" && reader_.take('{')) {
        ranks();
      } else if (key == "weir" && reader_.take('{')) {
        own();
      } else if (key == "baseTimeNanoseconds") {
        const std::uint64_t at = reader_.position();
        // Only the first is used: a file can repeat it any number of times.
        const auto base = signed_of(reader_.value());
        if (!base && !reader_.is_broken()) to_.drop("baseTimeNanoseconds that is not a number", at);
        if (!base_ns_) base_ns_ = base;
      } else {
        reader_.skip(In::object);
      }
      if (reader_.is_broken()) return;
    }
  }

  void events() {
    has_events_ = true;
    while (reader_.next_element()) {
      const std::uint64_t at = reader_.position();
      if (!reader_.take('{')) {
        reader_.break_here("text between events");
        return;
      }
      event(at);
      if (reader_.is_broken()) return;
    }
  }

  void event(std::uint64_t at) {
    reset(at);
    is_in_event_ = true;
    if (read_kineto_event(reader_, event_, to_.wants_operations())) timeline_.add(event_);
    if (!reader_.is_broken()) is_in_event_ = false;
  }

  // Keeps the memory of the name, and does not touch fields that were not written.
  void reset(std::uint64_t at) {
    event_.at = at;
    event_.phase = 0;
    event_.category = KinetoCategory::unknown;
    event_.has_name = event_.has_bad_time = false;
    event_.name.clear();
    event_.process_id = event_.thread_id = 0;
    event_.lane.reset();
    event_.device.reset();
    event_.started_ns = event_.duration_ns = kNoTime;
    if (event_.has_arguments) {
      event_.arguments = {};
      event_.inputs.clear();
    }
    event_.has_arguments = false;
  }

  // [{"id": 0, "name": "NVIDIA A100", "numSms": 108, "maxThreadsPerMultiprocessor": 2048, ...}, ...], with "rank": 3 in
  // Weir's own exports of several ranks
  void devices() {
    while (reader_.next_object()) {
      std::optional<std::int64_t> id, rank;
      KinetoTimeline::DeviceFacts facts;
      const auto count = [&](std::uint32_t& to) {
        to = static_cast<std::uint32_t>(std::min<std::uint64_t>(unsigned_of(reader_.value()).value_or(0), UINT32_MAX));
      };
      reader_.members(JsonKey{"id", [&] { id = signed_of(reader_.value()); }},
                      JsonKey{"name", [&] { facts.name = decoded(reader_.value()); }},
                      JsonKey{"numSms", [&] { count(facts.multiprocessors); }},
                      JsonKey{"maxThreadsPerMultiprocessor", [&] { count(facts.resident_threads); }},
                      JsonKey{"rank", [&] { rank = signed_of(reader_.value()); }});
      if (id) timeline_.set_device(rank, *id, std::move(facts));
    }
  }

  // {"backend": "nccl", "rank": 3, "world_size": 8, ...}
  void ranks() {
    reader_.members(JsonKey{"rank", [&] {
                              if (const auto rank = signed_of(reader_.value())) timeline_.set_rank(*rank);
                            }});
  }

  // "weir": {"source": "...", "has_exact_gaps": true, "has_dependencies": true, ...}: in a step without waits, no event
  // shows that waits are recorded.
  void own() {
    timeline_.set_exact_gaps(false);
    bool has_dependencies = false, is_one_clock = false;
    reader_.members(JsonKey{"has_dependencies", [&] { has_dependencies |= reader_.value() == "true"; }},
                    JsonKey{"is_one_clock", [&] { is_one_clock |= reader_.value() == "true"; }},
                    JsonKey{"has_exact_gaps", [&] { timeline_.set_exact_gaps(reader_.value() == "true"); }},
                    JsonKey{"source", [&] { source_ = decoded(reader_.value()).substr(0, kLongestSource); }});
    if (has_dependencies) to_.knows_dependencies();
    if (is_one_clock) timeline_.set_one_clock();
  }

  // Kineto has written microseconds since "baseTimeNanoseconds" since mid-2024, and since 1970 before that.
  void add_base() {
    constexpr std::int64_t kSince1970 = 100'000'000'000'000'000;  // 1973; no machine runs that long
    if (!base_ns_) return;
    if (to_.file_start() != kNoTime && to_.file_start() >= kSince1970)
      to_.note("baseTimeNanoseconds was not added: times count from 1970 without it");
    else if (to_.shift_file(*base_ns_))
      to_.note("times are nanoseconds since 1970: baseTimeNanoseconds was added");
    else
      to_.drop("baseTimeNanoseconds beyond all clocks", 0);
  }

  // The reader is broken: counts that, and finds where to resume.
  void go_on() {
    if (is_in_event_) {
      const bool is_used = timeline_.add(event_, true);
      to_.drop(reader_.is_cut_off()
                   ? (is_used ? "event cut off by the file's end, used in part" : "event cut off by the file's end")
                   : (is_used ? "damaged event, used in part" : "damaged event"),
               event_.at);
    } else if (!reader_.is_cut_off()) {
      to_.drop(reader_.problem(), reader_.position());
    } else if (!is_bare_) {  // a bare array need not be closed
      to_.drop("trace without its end", reader_.position());
    }
    is_in_event_ = false;
    if (!reader_.recover(is_kineto_mark)) return;
    if (reader_.peek() == '{') {
      events();
      if (reader_.is_broken() || is_bare_) return;
    }
    outermost();
  }

  const TraceFile& file_;
  TimelineBuilder& to_;
  JsonReader reader_;
  KinetoTimeline timeline_;
  KinetoEvent event_;
  std::string source_;  // how the times were taken, in Weir's own exports
  std::optional<std::int64_t> base_ns_;
  bool is_bare_ = false;     // only the array of events
  bool has_events_ = false;  // there was an array of events, empty or not
  bool is_in_event_ = false;
};

bool sniff_kineto(std::string_view start) {
  if (start.substr(0, 3) == "\xEF\xBB\xBF") start.remove_prefix(3);
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || (start[first] != '{' && start[first] != '[')) return false;
  if (start[first] == '[') return contains(start, "\"ph\"");
  for (const std::string_view key : {"\"traceEvents\"", "\"deviceProperties\"", "\"distributedInfo\""})
    if (contains(start, key)) return true;
  return false;
}

void read_kineto(const TraceFile& file, TimelineBuilder& to) { KinetoFile(file, to).read(); }

}  // namespace

Importer importer_list::kineto() {
  return {"kineto", "PyTorch's profiler (Kineto), Chrome trace JSON, weir profile's export", sniff_kineto, read_kineto};
}

}  // namespace weir
