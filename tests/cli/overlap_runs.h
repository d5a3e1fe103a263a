// What tests of `weir overlap` share: small runs on the cpu device, and what they leave behind.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/program.h"

namespace weir::testing {

// One of config/, by its name.
std::string config_file(const std::string& name);

// The arguments of a run of a few tiny steps on the cpu device; `more` may say otherwise.
std::vector<std::string> tiny_overlap(const std::string& config, std::initializer_list<std::string> more = {});

std::string file_content(const std::string& path);
void write_text(const std::string& path, const std::string& text);
// One document per line.
std::vector<Json> json_lines(const std::string& path);

// Why several ranks cannot be tested here; empty where they can.
std::string why_no_ranks();

}  // namespace weir::testing

#define NEEDS_RANKS() \
  if (const std::string reason = ::weir::testing::why_no_ranks(); !reason.empty()) GTEST_SKIP() << reason
