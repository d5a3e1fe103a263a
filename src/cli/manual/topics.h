// Pages of `weir help` on topics that several commands share. Plain text of at most 80 columns; each names the docs
// with more detail. Knows no command's flags.
#pragma once

#include <span>
#include <string_view>

namespace weir::cli {

struct Topic {
  std::string_view name;     // as typed after `weir help`
  std::string_view summary;  // one line
  std::string_view text;
};

std::span<const Topic> topics();
// Null where there is none.
const Topic* topic_named(std::string_view name);

}  // namespace weir::cli
