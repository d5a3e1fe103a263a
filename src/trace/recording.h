// What a recorder's file (trace/record_format.h) holds at this moment, copied while the program may still write it: as
// consistent as that allows. Trusts nothing in the file. Knows no importer and no diagnosis.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/record_format.h"

namespace weir {

struct RecordedEntry : record::Entry {
  std::uint32_t thread = record::kNone;  // place in `threads`
};

struct Recording {
  record::Header header{};
  // All places, used or not. Names end in \0, every stream is valid or kNone, every kind is known; other numbers are as
  // in the file.
  std::vector<record::Thread> threads;
  std::vector<record::Stream> streams;
  std::vector<RecordedEntry> entries;  // by ended_ns, then as recorded; every stream, thread and kind is valid or kNone
  std::string texts;
  std::vector<std::pair<std::string, std::uint64_t>> dropped;  // what could not be read: reason, how many

  // Empty for an unknown text.
  std::string_view text(std::uint32_t number) const noexcept;
  std::string_view function(std::uint32_t number) const noexcept;
  std::vector<std::string> command() const;  // words
};

// A copy of the file of a running program, of one moment: what was overwritten while it was copied is marked as unused.
std::string copy_recording(const std::filesystem::path& file, std::uint64_t most_bytes);

// Rejects what is not a recording, or of another version, with the file's name. `contents`: a whole file.
Recording read_recording(std::string_view contents, const std::string& name);
// The file of a running program is read piece by piece, and what it overwrites meanwhile is left out.
Recording read_recording(const std::filesystem::path& file);

}  // namespace weir
