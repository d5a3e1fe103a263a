// How `--help` is laid out: 80 columns, whatever a description's length, and lines to type at the end.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace weir::cli {

class HelpLayout : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace weir::cli
