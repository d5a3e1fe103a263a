// Writes the last seconds of a recording as a trace, while its program runs or after its death. Knows the importer and
// the exporters by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "run/profile_output.h"
#include "run/record_folders.h"

namespace weir {

inline constexpr std::int64_t kDumpedNs = 30'000'000'000;

struct RecordDump {
  std::filesystem::path path;
  std::uint64_t pid = 0;
  std::uint64_t commands = 0;  // that the program submitted in that time
  std::int64_t covered_ns = 0;
  bool is_cut = false;           // what came before in the wanted time was overwritten
  std::uint64_t lost_bytes = 0;  // entries that found no place, since the program began

  std::string words() const;  // one line
};

// `output` gives the name for `word` (process4711, or empty). Empty where nothing was recorded. Throws where the file
// is no recording, or the trace cannot be written.
std::optional<RecordDump> dump_recording(const RecordFile& file, std::int64_t last_ns, const ProfileOutput& output,
                                         const std::string& word);

}  // namespace weir
