// The flags of `weir channel`, and the settings of a run that follow from them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "lab/channels/channel_results.h"
#include "lab/channels/channel_selection.h"

namespace weir::cli {

// As typed. Numbers are kept as text, so that messages can show the flag and the word.
struct ChannelFlags {
  std::vector<std::string> groups;
  std::string channels;
  std::string save_baseline, baseline, baseline_dir = ".weir/channel";
  std::string processes, samples, cores = "auto", capacity = "1024", device = "cpu", seed = "1", limit = "20";
  std::string threshold = "5%";
  std::string output, format = "text";
  std::string child;  // set in a child of Weir: the file with its request
  bool is_only = false, is_list = false, is_quick = false, is_calibration = false;
  bool is_json = false, is_quiet = false, is_strict = false, is_forced = false;

  void add_to(CommandSyntax syntax);
  // Rejects bad values, naming the flag.
  ChannelWords words() const;
  ChannelSettings settings() const;
  std::size_t capacity_asked() const;
  // Nanoseconds that a benchmark may take: the value of --limit, or more where its samples alone take long.
  std::int64_t limit_ns(const channel_bench::Conditions& conditions) const;
  // Rejects contradictory flags and files that could not be written.
  void check() const;
};

}  // namespace weir::cli
