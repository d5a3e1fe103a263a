// Which graph each captured call belongs to, and what a launch of that graph touches, while a log is read. Knows
// streams and handles; reads no file.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lab/race/log.h"

namespace weir::race {

class Captures {
 public:
  explicit Captures(Log& log) : log_(log) {}

  void begin(std::uint32_t stream) { capture_of_stream_[stream] = ++last_; }
  // What was captured is a graph now. False if nothing was being captured on that stream.
  bool end(std::uint32_t stream, std::uint64_t graph);
  void make(std::uint64_t executable, std::uint64_t graph);

  // Says which capture a call of a stream belongs to, and follows the events that bring other streams into it. False
  // for a captured call of a stream that is in none.
  bool assign(Call& call);
  // The ranges of all commands in the graph. False for a graph that was not captured.
  bool fill(Call& launch) const;

 private:
  struct Part {
    std::uint32_t first = 0, count = 0;  // in the log's ranges
  };
  Part unite(std::vector<Range> ranges);

  Log& log_;
  std::uint32_t last_ = 0;
  std::unordered_map<std::uint32_t, std::uint32_t> capture_of_stream_;
  std::unordered_map<std::uint64_t, std::uint32_t> capture_of_event_;
  std::unordered_map<std::uint32_t, std::vector<Range>> ranges_of_capture_;
  std::unordered_map<std::uint64_t, Part> graphs_, executables_;
};

}  // namespace weir::race
