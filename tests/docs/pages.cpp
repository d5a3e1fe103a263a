#include "docs/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "docs/page.h"
#include "docs/stage.h"

namespace weir::testing {

namespace fs = std::filesystem;

std::vector<std::string> user_pages() {
  std::vector<std::string> pages = {"README.md", "kernels/README.md"};
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(WEIR_SOURCE_DIR) / "docs")) {
    if (entry.path().extension() == ".md") pages.push_back("docs/" + entry.path().filename().string());
  }
  std::sort(pages.begin(), pages.end());
  return pages;
}

std::string page_text(const std::string& page) {
  std::ostringstream text;
  text << std::ifstream(fs::path(WEIR_SOURCE_DIR) / page).rdbuf();
  return text.str();
}

std::string page_test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.size() - 3);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

void try_page(const std::string& page, const std::string& here) {
  const Page read = read_page(page_text(page));
  if (read.commands.empty()) return;
  Stage stage;
  std::map<std::string, int> counts;
  for (const CommandLine& command : read.commands) {
    std::string why;
    const auto begin = std::chrono::steady_clock::now();
    const Tried tried = stage.tries(command, here, why);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (took.count() > 5) fmt::print("{}:{} took {:.0f} s: {}\n", page, command.line, took.count(), command.text);
    if (tried == Tried::failed) ADD_FAILURE() << page << ":" << command.line << "\n" << why;
    switch (tried) {
      case Tried::ran:
        ++counts["run"];
        break;
      case Tried::refused:
        ++counts["parsed up to the missing " + (command.need.empty() ? "part of the build" : command.need)];
        break;
      case Tried::failed:
        ++counts["failed"];
        break;
      case Tried::checked:
        ++counts[command.trial == Trial::build ? "of a build, targets checked" : "synopses, flags checked"];
        break;
    }
  }
  std::string why;
  if (!stage.ends(why)) ADD_FAILURE() << page << ": " << why;
  int total = 0;
  std::string printed;
  for (const auto& [how, count] : counts) {
    total += count;
    printed += fmt::format(", {} {}", count, how);
  }
  fmt::print("{}: {} command lines{}, 0 untested\n", page, total, printed);
}

}  // namespace weir::testing
