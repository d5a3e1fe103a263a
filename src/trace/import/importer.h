// One reader of one trace format: descriptor, sniff and reader. Knows no other format.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "trace/import/byte_source.h"
#include "trace/timeline_builder.h"

namespace weir {

// What a reader reads. `path` is empty for members of archives, for packed files and for memory.
struct TraceFile {
  std::string name;  // for messages
  std::filesystem::path path;
  ByteSource* bytes = nullptr;
  std::uint16_t process = 0;  // of the builder: commands of this file are this process's unless the file says otherwise
  std::function<void()> progress;  // may be empty; called now and then, may throw to stop
};

struct Importer {
  const char* name;     // as --format names it
  const char* summary;  // one line for people
  // Whether the first bytes (up to 64 KiB, unpacked) look like this format.
  bool (*sniff)(std::string_view start);
  // Fills the builder. Rejects what is not this format at all; counts and passes over what is broken in it.
  void (*read)(const TraceFile& file, TimelineBuilder& to);
  // For formats that spread one process over several files: what the names of those have in common. Null: each file is
  // a capture of its own.
  std::string (*capture_of)(const std::filesystem::path& path) = nullptr;
};

inline constexpr std::size_t kSniffBytes = 65536;

}  // namespace weir
