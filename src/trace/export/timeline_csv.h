// Timelines as CSV (RFC 4180), one row per command, for spreadsheets and data frames. Knows no device.
#pragma once

#include <filesystem>
#include <functional>

#include "measure/timeline.h"

namespace weir {

// `progress` is called for every megabyte and may throw to stop. Columns: rank, device, stream, queue, kind, name,
// iteration, enqueued_ns ... seen_ns, bytes. Empty where unknown.
void write_timeline_csv(const Timeline& timeline, const std::filesystem::path& path, bool overwrite,
                        const std::function<void()>& progress = {});

}  // namespace weir
