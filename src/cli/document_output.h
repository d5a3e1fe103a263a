// The flags for printing a command's document: --report, --output, --force, --quiet. Knows no document.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "cli/command.h"
#include "report/text/sections.h"

namespace weir::cli {

struct DocumentOutput {
  std::string report = "text", output;
  bool is_forced = false, is_quiet = false;

  void add_to(CommandSyntax syntax);
  // Rejects an output file that could not be written, before any work is done.
  void check_output() const;
  // Prints the document, or writes it to `output`: as JSON, or in the form that one of the two functions makes.
  void print(const Json& document, const std::function<std::string()>& text,
             const std::function<std::string()>& markdown) const;
  void print(const Json& document, const TextReport& report) const;
  void write(const std::string& path, const std::string& text) const;
  void report_written(const std::string& path) const;
};

}  // namespace weir::cli
