// What the commands below `weir record` have in common: where recordings are, and which are meant.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/command.h"
#include "run/record_folders.h"

namespace weir::cli {

// Of this user, from the environment.
std::vector<std::filesystem::path> own_record_roots();

// Recordings as users name them: process ids, files, folders.
struct RecordingFlags {
  std::vector<std::string> words;

  void add_to(CommandSyntax syntax);
  std::vector<RecordFile> files() const { return find_recordings(own_record_roots(), words); }
};

// `weir record on` and `off`: switches the recordings, and waits until the programs have obeyed.
int switch_recordings(const RecordingFlags& flags, bool is_off);

}  // namespace weir::cli
