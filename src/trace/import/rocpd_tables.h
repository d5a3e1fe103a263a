// The tables that rocprofv3 --output-format rocpd writes into a SQLite file. Knows their two layouts; rocmProfileData's
// own tables are rpd.cpp's.
#pragma once

#include "trace/import/importer.h"
#include "trace/import/sqlite_file.h"

namespace weir {

// False where the database has none of them.
bool read_rocpd_tables(const TraceFile& file, TimelineBuilder& to, SqliteFile& database);

}  // namespace weir
