// The join as a document, weir.amd_join/1. Knows the join and its parts; writes no files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "amd/join/join.h"
#include "base/json.h"

namespace weir::amd {

// A part of the capture, and what became of it.
struct JoinPart {
  std::string name;                // "log", "ftrace", "snapshot"
  std::vector<std::string> files;  // as the user would name them
  bool is_read = false;
  std::string reason, hint;  // why it is missing, broken, or less than it should be
  Json facts = nullptr;      // what a pass over it says of the file
};

struct JoinAbout {
  std::string folder;  // empty where files were named one by one
  std::vector<std::string> command;
  std::vector<JoinPart> parts;
};

Json join_document(const JoinInput& input, const Join& join, const JoinAbout& about);

std::string_view name_of(ProcessBasis basis);
std::string_view name_of(OffsetBasis basis);
std::string_view name_of(QueueRole role);
std::string_view name_of(MatchKey key);
std::string_view name_of(MatchSide side);
std::string address_text(std::uint64_t address);  // 0x7f41b5200000

// What the join says in sentences; each holds for what was read, and says what it rests on.
std::vector<std::string> join_verdicts(const JoinInput& input, const Join& join);

}  // namespace weir::amd
