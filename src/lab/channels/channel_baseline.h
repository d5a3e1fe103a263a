// Reads what `weir channel` wrote earlier. Files come from anywhere: whatever they hold, a run comes out or is rejected
// by name. Compares nothing.
#pragma once

#include <filesystem>
#include <string>

#include "lab/channels/channel_results.h"

namespace weir {

// A weir.channel/1 document; `name` stands for the file in messages.
ChannelRun parse_channel_run(const Json& json, const std::string& name);
ChannelRun load_channel_run(const std::filesystem::path& file);

// Where the baseline of that name lies. Rejects names that are no plain file names.
std::filesystem::path baseline_file(const std::filesystem::path& folder, const std::string& flag,
                                    const std::string& name);

}  // namespace weir
