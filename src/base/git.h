// Asks git about a repository that may be anybody's: nothing that its configuration names is run. Knows no document.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace weir {

struct GitAnswer {
  int code = -1;
  std::string out, error_text;

  bool is_success() const { return code == 0; }
  std::string first_line() const { return out.substr(0, out.find('\n')); }
  // "not a git repository (or any of the parent directories): .git"
  std::string first_error_line() const;
};

struct GitLimits {
  std::size_t output_bytes = 64 * 1024;
  std::int64_t ns = 10'000'000'000;
};

// Runs git with hooks, monitors, pagers and transports off. Only for subcommands that neither read the files of the
// working folder, which runs filters, nor print patches, which runs converters. Throws StartError if git cannot be
// started, and rejects an answer that exceeds the limits.
GitAnswer ask_git(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                  const GitLimits& limits = {});

// The commit that is checked out in `folder`; nothing where there is no git, no repository or no commit.
struct GitHead {
  std::string commit;
  std::optional<std::string> branch;
};
std::optional<GitHead> git_head(const std::filesystem::path& folder = ".");

// True if tracked files differ from that commit; nothing if git cannot say. Reads all of them that were touched, and
// takes those that a filter changes (LFS) for changed where they were.
std::optional<bool> has_git_changes(const std::filesystem::path& folder = ".");

}  // namespace weir
