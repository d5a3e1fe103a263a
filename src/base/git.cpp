#include "base/git.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxErrorBytes = 4096;
constexpr std::size_t kMaxFilters = 1000;

using Settings = std::vector<std::pair<std::string, std::string>>;

GitAnswer run_git(const fs::path& folder, const std::vector<std::string>& arguments, Settings settings,
                  const GitLimits& limits) {
  // Nothing else that a configuration can name is run by the subcommands that are used.
  ProcessOptions options;
  options.command = {"git", "--no-pager", "--no-optional-locks", "-C", folder.string()};
  settings.insert(settings.end(), {{"core.fsmonitor", "false"}, {"core.hooksPath", "/dev/null"}});
  for (const auto& [name, value] : settings)
    options.command.insert(options.command.end(), {"-c", fmt::format("{}={}", name, value)});
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  // No transport is allowed, so that a partial clone fetches nothing: a fetch runs what the remote's settings name.
  options.variables = {
      {"LC_ALL", "C"}, {"GIT_TERMINAL_PROMPT", "0"}, {"GIT_ALLOW_PROTOCOL", ""}, {"GIT_NO_LAZY_FETCH", "1"}};
  options.out = ProcessOptions::Output::read;
  options.first_bytes = kMaxErrorBytes;
  options.core_bytes = 0;
  Process git(std::move(options));
  const std::int64_t begun = now_ns();
  while (git.listen(100, limits.output_bytes)) {
    if (git.unread().size() > limits.output_bytes)
      reject(fmt::format("git {} printed more than {} bytes", arguments[0], limits.output_bytes));
    if (now_ns() - begun > limits.ns) reject(fmt::format("git did not answer within {} s", limits.ns / 1'000'000'000));
  }
  return {git.end().code(), std::move(git.unread()), git.output().text()};
}

// Settings that switch off all filters, whoever configured them.
std::optional<Settings> filters_off(const fs::path& folder) {
  // filter.lfs.clean\0filter.lfs.smudge\0
  const GitAnswer found = run_git(folder, {"config", "-z", "--name-only", "--get-regexp", "^filter\\."}, {}, {});
  if (found.code > 1) return std::nullopt;  // 1: there are none
  Settings settings;
  for (std::size_t begin = 0; begin < found.out.size();) {
    const std::size_t end = std::min(found.out.find('\0', begin), found.out.size());
    const std::string name = found.out.substr(begin, end - begin);
    settings.emplace_back(name, name.ends_with(".required") ? "false" : "");
    // -c splits at the first '='.
    if (settings.size() > kMaxFilters || name.find('=') != std::string::npos) return std::nullopt;
    begin = end + 1;
  }
  return settings;
}

}  // namespace

std::string GitAnswer::first_error_line() const {
  std::string line = error_text.substr(0, error_text.find('\n'));
  if (line.starts_with("fatal: ")) line.erase(0, 7);
  return line.empty() ? fmt::format("git ended with status {}", code) : line;
}

GitAnswer ask_git(const fs::path& folder, const std::vector<std::string>& arguments, const GitLimits& limits) {
  return run_git(folder, arguments, {}, limits);
}

std::optional<GitHead> git_head(const fs::path& folder) {
  try {
    const GitAnswer commit = ask_git(folder, {"rev-parse", "--verify", "--quiet", "HEAD"});
    const std::string id = commit.first_line();
    if (!commit.is_success() || id.empty() || id.find_first_not_of("0123456789abcdef") != std::string::npos)
      return std::nullopt;
    const GitAnswer branch = ask_git(folder, {"rev-parse", "--abbrev-ref", "HEAD"});
    return GitHead{id, branch.is_success() ? std::optional(branch.first_line()) : std::nullopt};
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<bool> has_git_changes(const fs::path& folder) {
  try {
    const auto settings = filters_off(folder);
    if (!settings) return std::nullopt;
    // Submodules are left out: git would run itself in each of them, with that one's configuration.
    const GitAnswer status =
        run_git(folder, {"status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all", "--no-renames"},
                *settings, {.output_bytes = std::size_t{64} << 20, .ns = 60'000'000'000});
    if (!status.is_success()) return std::nullopt;
    return !status.out.empty();
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace weir
