// Reads earlier results of `weir channel`. Files may come from anywhere: whatever they contain, the result is a run, or
// the file is rejected by name. Compares nothing.
#pragma once

#include <filesystem>
#include <string>

#include "lab/channels/channel_results.h"

namespace weir {

// Parses a weir.channel/2 document; `name` is the file's name in messages.
ChannelRun parse_channel_run(const Json& json, const std::string& name);
ChannelRun load_channel_run(const std::filesystem::path& file);

// The path of the baseline with that name. Rejects names that are no plain file names.
std::filesystem::path baseline_file(const std::filesystem::path& folder, const std::string& flag,
                                    const std::string& name);

}  // namespace weir
