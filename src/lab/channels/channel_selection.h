// Which benchmarks `weir channel` runs, and on which cores: interprets the user's words. Runs nothing.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lab/channels/channel_results.h"
#include "lab/channels/loops/benchmark.h"

namespace weir {

struct ChannelWords {
  std::vector<std::string> wanted;       // GROUP, GROUP/NAME or GROUP/NAME/CONTESTANT; empty: all
  std::vector<std::string> contestants;  // empty: all
  bool is_only = false;                  // without floors or competitors
  std::vector<std::string> skipped{};    // like `wanted`
};

// In the order of the list. Includes the floors that a selected group is compared with. Rejects unknown names with a
// suggestion, and a selection that leaves nothing. A benchmark that is wanted with its contestant comes with what it is
// compared with, like those of --channel.
std::vector<channel_bench::Benchmark> choose_benchmarks(std::span<const channel_bench::Group> groups,
                                                        const ChannelWords& words,
                                                        const channel_bench::Conditions& conditions);
// What the groups of these benchmarks offer on this machine, for --list.
Json describe_groups(const std::vector<channel_bench::Benchmark>& chosen);
ChannelResult result_for(const channel_bench::Benchmark& benchmark);

// --cores: "none" binds nothing, "auto" is all usable cores, "0,2" these. Rejects cores that this process may not use.
std::vector<int> cores_named(const std::string& text, const std::vector<int>& usable,
                             const std::filesystem::path& root = "/");
// Orders usable cores so that the first ones are neighbours that do not share a core: one hardware thread of each core
// of the first package, then of the others, then the rest.
std::vector<int> ordered_cores(const std::vector<int>& usable, const std::filesystem::path& root);

}  // namespace weir
