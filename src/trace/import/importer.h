// One reader of one trace format: descriptor, sniff and reader. Knows no other format.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "trace/import/byte_source.h"
#include "trace/timeline_builder.h"

namespace weir {

// The input of a reader. `path` is empty for members of archives, for compressed files and for memory.
struct TraceFile {
  std::string name;  // for messages
  std::filesystem::path path;
  ByteSource* bytes = nullptr;
  std::uint16_t process = 0;       // in the builder; commands of this file belong to it unless the file says otherwise
  std::function<void()> progress;  // may be empty; called now and then, may throw to stop
};

struct Importer {
  const char* name;     // as given to --input-format
  const char* summary;  // one line for the user
  // Whether the first bytes (up to 64 KiB, unpacked) look like this format.
  bool (*sniff)(std::string_view start);
  // Fills the builder. Rejects input that is not this format at all; counts and skips damaged parts.
  void (*read)(const TraceFile& file, TimelineBuilder& to);
  // For formats that spread one process over several files: the common part of their names. Null: each file is a
  // separate capture.
  std::string (*capture_of)(const std::filesystem::path& path) = nullptr;
};

inline constexpr std::size_t kSniffBytes = 65536;
inline constexpr std::size_t kMaxRanges = 10'000;  // markers of a program that are kept, per file

}  // namespace weir
