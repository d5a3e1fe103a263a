// A recording (trace/record_format.h) of a program that may still run: its header, streams and threads, and the entries
// that are new, without reading all of it. Asks the library in the program for what the format allows. Trusts nothing
// in the file. Knows no diagnosis and no trace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "trace/recording.h"

namespace weir {

// What a recording says of its program at one moment. Streams and threads: used ones.
struct RecordedState {
  record::Header header{};
  std::vector<record::Stream> streams;
  std::vector<record::Thread> threads;
  std::uint64_t file_bytes = 0;

  record::State state() const noexcept { return static_cast<record::State>(header.state); }
  std::uint64_t calls() const noexcept;     // by all threads
  std::uint64_t commands() const noexcept;  // by all threads
  std::uint64_t outstanding() const noexcept;
  // When the newest known end of a command was seen; 0: none.
  std::int64_t last_end_ns() const noexcept;
};

class LiveRecording {
 public:
  explicit LiveRecording(std::filesystem::path file) : file_(std::move(file)) {}

  const std::filesystem::path& file() const noexcept { return file_; }
  // Empty, with the reason, where the file cannot be read or is no recording of this version.
  std::optional<RecordedState> read(std::string& reason) const;
  // Empty where there is no such text.
  std::string text(const record::Header& header, std::uint32_t number) const;
  std::vector<std::string> command(const record::Header& header) const;
  // When the oldest entry that is kept ended; 0: not known.
  std::int64_t oldest_ns(const record::Header& header) const;

  // What the program has appended since the last call: by thread in order. Without `thread`, which no caller needs more
  // than as a number.
  std::vector<RecordedEntry> news(const record::Header& header);

  // Asks for something in the mapped file; false, with errno, where it cannot be written.
  bool want_off(bool is_off) const noexcept;
  bool want_stacks(std::uint32_t request) const noexcept;

 private:
  struct Chunk {
    std::uint64_t sequence = 0;
    std::uint32_t count = 0;  // entries that were read
  };

  std::filesystem::path file_;
  std::uint64_t claimed_ = 0;                // what the last news() saw of the header's
  std::map<std::uint32_t, Chunk> followed_;  // by place: chunks that may still grow
};

// Whether the process of that recording exists: a later one with the same id does not count.
bool is_alive(const record::Header& header);

}  // namespace weir
