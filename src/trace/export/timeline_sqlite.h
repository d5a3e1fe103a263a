// Timelines as one SQLite file, for queries: sqlite3, DuckDB, pandas. Its tables are described in docs/traces.md. Knows
// no device.
#pragma once

#include <filesystem>
#include <functional>

#include "measure/timeline.h"

namespace weir {

// Rejects an existing file unless `overwrite`, and everything where this build has no SQLite. The file is made in
// memory and appears under its name only when complete. `progress` is called now and then and may throw to stop.
void write_timeline_sqlite(const Timeline& timeline, const std::filesystem::path& path, bool overwrite,
                           const std::function<void()>& progress = {});

// Rejects where this build has no SQLite, before any work is done.
void check_sqlite_export(const std::filesystem::path& path);

}  // namespace weir
