// Where profiles are written: names of trace files, and the exporter for them. Knows formats by their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/json.h"
#include "measure/timeline.h"

namespace weir {

inline constexpr std::size_t kManyCommands = 200'000;  // some 200 MB of JSON

struct ProfileOutput {
  std::string format = "kineto";  // or csv
  std::filesystem::path path;
  bool overwrites = false;
  std::function<void()> progress = {};  // called for every megabyte; may throw to stop
  bool is_default = false;              // the user gave no name

  // trace.json -> trace.rank3.json, trace.csv.gz -> trace.rank3.csv.gz; `word` may be empty. A default name gets .gz
  // where there are kManyCommands.
  std::filesystem::path named(const std::string& word, std::size_t commands) const;
  // Rejects files that could not be written, for any number of commands.
  void check(const std::string& word = {}) const;
  // Writes one process of the timeline (CSV: all of it) and adds the file to the document's list.
  void write(const Timeline& timeline, std::uint16_t process, std::int64_t process_id, int world_size,
             const Json& device_properties, const std::filesystem::path& to, Json& document) const;
};

}  // namespace weir
