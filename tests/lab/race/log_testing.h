// Logs written by hand, call by call, as a program would make them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lab/race/log.h"

namespace weir::race {

class LogBuilder {
 public:
  // `streams` of them that no rule of the legacy default stream concerns.
  explicit LogBuilder(int streams = 4) {
    for (int i = 0; i < streams; ++i) log.streams.push_back({"stream " + std::to_string(i), false, false, 0});
  }
  std::uint32_t stream(bool is_blocking, bool is_legacy, std::uint16_t device = 0) {
    log.streams.push_back({"made", is_blocking, is_legacy, device});
    return static_cast<std::uint32_t>(log.streams.size() - 1);
  }
  LogBuilder& by(std::uint32_t thread) {
    thread_ = thread;
    return *this;
  }
  LogBuilder& captured(std::uint32_t capture) {
    capture_ = capture;
    return *this;
  }

  // Each returns the call's index.
  std::uint32_t kernel(std::uint32_t stream, std::vector<Range> ranges = {}, const std::string& label = "kernel") {
    return command(Kind::kernel, stream, std::move(ranges), label);
  }
  std::uint32_t command(Kind kind, std::uint32_t stream, std::vector<Range> ranges, const std::string& label = "") {
    Call& call = add(kind, stream);
    call.name.sequence = ++sequence_;
    call.label = label_of(label);
    add_ranges(ranges);
    return last();
  }
  std::uint32_t synchronous(Kind kind, std::uint32_t stream, std::vector<Range> ranges = {}) {
    const std::uint32_t index = command(kind, stream, std::move(ranges));
    log.calls[index].is_synchronous = true;
    return index;
  }
  std::uint32_t record(std::uint64_t event, std::uint32_t stream) {
    return event_call(Kind::event_record, event, stream);
  }
  std::uint32_t wait(std::uint64_t event, std::uint32_t stream) {
    return event_call(Kind::stream_wait_event, event, stream);
  }
  std::uint32_t wait_in_host(std::uint64_t event) { return event_call(Kind::event_synchronize, event, kNoStream); }
  std::uint32_t synchronize(std::uint32_t stream) { return event_call(Kind::stream_synchronize, 0, stream); }
  std::uint32_t synchronize_device(std::uint16_t device = 0) {
    add(Kind::context_synchronize, kNoStream).device = device;
    return last();
  }
  std::uint32_t checkpoint() { return event_call(Kind::checkpoint, 0, kNoStream); }
  std::uint32_t allocate(std::uint64_t begin, std::uint64_t bytes, std::uint32_t stream = kNoStream,
                         bool is_host = false) {
    add(Kind::allocate, stream).is_host = is_host;
    add_ranges({{begin, begin + bytes, false, true, true}});
    return last();
  }
  std::uint32_t release(std::uint64_t begin, std::uint64_t bytes, std::uint32_t stream = kNoStream) {
    add(Kind::release, stream);
    add_ranges({{begin, begin + bytes, false, true, true}});
    return last();
  }

  Log log;

 private:
  std::uint32_t last() const { return static_cast<std::uint32_t>(log.calls.size() - 1); }
  Call& add(Kind kind, std::uint32_t stream) {
    Call& call = log.calls.emplace_back();
    call.kind = kind;
    call.stream = stream;
    call.name.thread = thread_;
    call.capture = capture_;
    call.is_captured = capture_ != 0;
    call.time_ns = static_cast<std::int64_t>(1000 * log.calls.size());
    call.first_range = static_cast<std::uint32_t>(log.ranges.size());
    return call;
  }
  std::uint32_t event_call(Kind kind, std::uint64_t event, std::uint32_t stream) {
    add(kind, stream).object = event;
    return last();
  }
  void add_ranges(const std::vector<Range>& ranges) {
    log.ranges.insert(log.ranges.end(), ranges.begin(), ranges.end());
    log.calls.back().range_count = static_cast<std::uint32_t>(ranges.size());
  }
  std::uint32_t label_of(const std::string& label) {
    for (std::uint32_t i = 0; i < log.texts.size(); ++i)
      if (log.texts[i] == label) return i;
    log.texts.push_back(label);
    return static_cast<std::uint32_t>(log.texts.size() - 1);
  }

  std::uint32_t thread_ = 1, sequence_ = 0, capture_ = 0;
};

inline Range reads(std::uint64_t begin, std::uint64_t bytes) { return {begin, begin + bytes, true, false, true}; }
inline Range writes(std::uint64_t begin, std::uint64_t bytes) { return {begin, begin + bytes, false, true, true}; }
// A kernel's pointer; `bytes`: to the end of its allocation.
inline Range pointer(std::uint64_t begin, std::uint64_t bytes) { return {begin, begin + bytes, true, true, false}; }

}  // namespace weir::race
