// What a recording (trace/recording.h) says about the times of commands where the device's own are not known: now and
// then how far a stream had come, so groups of commands between two such moments, and their names. Builds no timeline.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "measure/timeline.h"
#include "trace/recording.h"

namespace weir {

// A place in the table of streams serves one stream after another; each of them is a life of the place, in which
// commands are numbered from 1.
class RecordedLives {
 public:
  struct Life {
    std::uint32_t place = 0;
    std::uint32_t context = record::kNone;
    bool is_described = false;  // the table describes this one, and not the stream that followed or preceded it
  };

  explicit RecordedLives(const Recording& recording);
  // An index; kNone for an entry without a stream. By the time at which a call began or a mark was reached.
  std::uint32_t of(const RecordedEntry& entry) const noexcept;
  std::size_t size() const noexcept { return lives_.size(); }
  const Life& operator[](std::uint32_t life) const noexcept { return lives_[life]; }

 private:
  std::vector<std::vector<std::int64_t>> cuts_;  // by place: when a stream there was destroyed, in order
  std::vector<std::uint32_t> first_;             // by place: its first life
  std::vector<Life> lives_;
};

// The device's records describe a stream's commands up to this one.
struct RecordedReach {
  bool is_known = false;
  std::uint32_t number = 0;
  std::int64_t ended_ns = 0;
};

struct RecordedGroup {
  std::uint32_t life = 0;
  // Entries of its first and last command that are kept; kNone where none is.
  std::uint32_t first = record::kNone, last = record::kNone;
  std::uint64_t commands = 0;  // that it stands for, kept or not
  std::int64_t started_ns = 0;
  std::int64_t ended_ns = 0;  // not known where has_ended is false: nothing of it is known to have ended
  bool has_ended = true;
};

struct RecordedGroups {
  std::vector<RecordedGroup> groups;     // by life, then in order
  std::vector<std::uint32_t> errors_ns;  // of the marks' times
  std::uint64_t odd_marks = 0;           // that cannot be of their stream
};

// `reached`: by life.
RecordedGroups group_commands(const Recording& recording, const RecordedLives& lives,
                              const std::vector<RecordedReach>& reached);

// "Memcpy HtoD" for cuMemcpyHtoDAsync_v2; only some functions say the direction: cuMemcpyAsync does not.
std::string_view recorded_copy_name(std::string_view function) noexcept;
// A group has the name of its last command: "gemm and 17 before it".
std::string group_name(const Recording& recording, const RecordedGroup& group);
SpanKind group_kind(const Recording& recording, const RecordedGroup& group);

}  // namespace weir
