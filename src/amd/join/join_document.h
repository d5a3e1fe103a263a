// The join as a document, weir.amd_join/1. Knows the join and its parts; writes no files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "amd/join/join.h"
#include "base/json.h"

namespace weir::amd {

// A part of the capture, and how reading it went.
struct JoinPart {
  std::string name;                // "log", "ftrace", "snapshot"
  std::vector<std::string> files;  // with the names a user would use
  bool is_read = false;
  std::string reason, hint;  // why it is missing, broken or incomplete, and advice
  Json facts = nullptr;      // facts about the file from reading it
};

struct JoinAbout {
  std::string folder;  // empty if files were named individually
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

// The join's findings as sentences; each holds for the parts that were read, and states its basis.
std::vector<std::string> join_verdicts(const JoinInput& input, const Join& join);

}  // namespace weir::amd
