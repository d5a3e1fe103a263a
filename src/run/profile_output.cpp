#include "run/profile_output.h"

#include <fmt/format.h>

#include "trace/export/chrome_json.h"
#include "trace/export/timeline_csv.h"
#include "weir_build.h"

namespace weir {

namespace fs = std::filesystem;

fs::path ProfileOutput::named(const std::string& word, std::size_t commands) const {
  const char* const packing = is_default && commands >= kManyCommands && WEIR_HAVE_ZLIB != 0 ? ".gz" : "";
  if (word.empty()) return path.string() + packing;
  fs::path stem = path.filename();
  fs::path extension = stem.extension();
  stem = stem.stem();
  if (extension == ".gz") {
    extension = stem.extension().string() + ".gz";
    stem = stem.stem();
  }
  return path.parent_path() / fmt::format("{}.{}{}{}", stem.string(), word, extension.string(), packing);
}

void ProfileOutput::check(const std::string& word) const {
  check_writable(named(word, 0), overwrites);
  check_writable(named(word, kManyCommands), overwrites);
}

void ProfileOutput::write(const Timeline& timeline, std::uint16_t process, std::int64_t process_id, int world_size,
                          const Json& device_properties, const fs::path& to, Json& document) const {
  if (format == "csv") {
    write_timeline_csv(timeline, to, overwrites, progress);
  } else {
    ChromeExport options;
    options.process = process;
    options.progress = progress;
    options.process_id = process_id;
    options.world_size = world_size;
    options.device_properties = device_properties;
    options.about = {{"version", WEIR_VERSION}};
    for (const char* key : {"created", "command_line", "workload", "program", "run", "tracing"})
      if (document.contains(key) && !document[key].is_null()) options.about[key] = document[key];
    write_chrome_json(timeline, options, to, overwrites);
  }
  std::error_code ignored;
  if (!fs::is_regular_file(to, ignored)) return;  // a pipe has no size
  document["files"].push_back({{"path", to.string()}, {"bytes", fs::file_size(to, ignored)}});
}

}  // namespace weir
