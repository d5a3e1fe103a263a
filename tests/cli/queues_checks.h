// What every document and every text of `weir queues` and `weir channel` must be.
#pragma once

#include <string>

#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {

// Against docs/schema/weir.queues.2.json.
void expect_valid(const std::string& file);
// Within 80 columns, but for paths, which are as long as they are.
void expect_narrow(const std::string& text);

}  // namespace weir::testing
