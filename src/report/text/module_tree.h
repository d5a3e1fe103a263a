// The modules of a model in weir.analysis/2 as people read them: modules of one class below the same parent are one
// row ("DecoderLayer x28"). The terminal and the page show the same rows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace weir::analysis {

struct ModuleRow {
  std::string name;                   // of the module, or of the class of several
  std::size_t modules = 0;            // how many they are
  std::optional<std::size_t> parent;  // an earlier row
  std::size_t depth = 0;
  double commands = 0, total_ns = 0, own_ns = 0, backward_ns = 0;
  std::string words() const;  // "DecoderLayer x28"
};

struct ModuleRows {
  std::vector<ModuleRow> rows;  // parents before their parts, else most time first
  std::size_t left_out = 0;     // rows that are too small, too deep or too many; their parts are not counted
  double left_out_ns = 0;       // of these, with their parts
};

// `modules` is "model.modules" of a device; `all_ns` is the sum of all its commands.
ModuleRows module_rows(const Json& modules, double all_ns, std::size_t most);

}  // namespace weir::analysis
