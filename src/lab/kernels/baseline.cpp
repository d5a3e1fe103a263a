// Finds the summary that `weir bench --baseline` names: a file, a folder of reports, or a version in git. Compares
// nothing.
#include <fmt/format.h>

#include "base/error.h"
#include "base/git.h"
#include "base/process.h"
#include "base/upgrade.h"
#include "lab/kernels/folder.h"

namespace weir::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "summary.json";
constexpr std::size_t kMaxGitOutput = std::size_t{256} << 20;
constexpr std::int64_t kLimitNs = 60'000'000'000;
constexpr std::size_t kLongestRef = 250;

GitAnswer ask(const std::string& what, const fs::path& folder, const std::vector<std::string>& arguments) {
  try {
    return ask_git(folder, arguments, {.output_bytes = kMaxGitOutput, .ns = kLimitNs});
  } catch (const StartError&) {
    reject(fmt::format("--baseline {}: no such file, and git, which could look for a ref of that name, cannot "
                       "be started",
                       what),
           "Name the summary.json of the baseline, or install git.");
  } catch (const Error& error) {
    reject(fmt::format("--baseline {}: {}", what, error.what()), "Name the summary.json of the baseline instead.");
  }
}

// What git allows, except anything that could be an option, a path or a range: no ':', no '..', no blanks.
void check_ref(const std::string& what) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/@{}~^+-#=%";
  const bool is_plain = !what.empty() && what.size() <= kLongestRef && what.front() != '-' &&
                        what.find_first_not_of(kAllowed) == std::string::npos && what.find("..") == std::string::npos;
  if (!is_plain)
    reject(fmt::format("--baseline '{}': neither a file nor the name of a git ref", what.substr(0, kLongestRef)),
           "Name a summary.json, a folder of reports, or a branch, tag or commit.");
}

// For a path that may not exist yet. Made absolute first: otherwise a nonexistent one stays relative and has no parent.
fs::path real_path(const fs::path& path) {
  std::error_code status;
  const fs::path whole = fs::absolute(path, status);
  fs::path real = fs::weakly_canonical(whole, status);
  return status ? whole.lexically_normal() : real;
}

fs::path nearest_existing(fs::path folder) {
  std::error_code status;
  while (!fs::is_directory(folder, status) && folder.has_parent_path() && folder != folder.parent_path())
    folder = folder.parent_path();
  return folder;
}

std::string without_newline(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

// The commit of a name; empty where git knows none.
std::string commit_of(const std::string& ref, const fs::path& folder, const std::string& name) {
  const GitAnswer commit = ask(ref, folder, {"rev-parse", "--verify", "--quiet", name + "^{commit}"});
  const std::string id = without_newline(commit.out);
  return commit.code == 0 && id.find_first_not_of("0123456789abcdef") == std::string::npos ? id : "";
}

Json from_ref(const std::string& ref, const fs::path& output_dir) {
  check_ref(ref);
  const fs::path reports = real_path(output_dir), folder = nearest_existing(reports);
  const GitAnswer root = ask(ref, folder, {"rev-parse", "--show-toplevel"});
  if (root.code != 0 || without_newline(root.out).empty())
    reject(fmt::format("--baseline {}: no such file, and {} is not in a git repository that could have a ref of "
                       "that name: {}",
                       ref, folder.string(), root.first_error_line()),
           "Name the summary.json of the baseline, or with -o a folder inside of the repository.");
  const fs::path top = real_path(without_newline(root.out));
  const fs::path file = reports.lexically_relative(top) / kFile;
  if (*file.begin() == "..")
    reject(fmt::format("--baseline {}: {} is outside of the repository {}", ref, output_dir.string(), top.string()),
           "Name the summary.json of the baseline, or with -o a folder inside of the repository.");
  // Checkouts of CI have no branch of their own, but perhaps the one of the server.
  std::string id = commit_of(ref, folder, ref);
  if (id.empty()) id = commit_of(ref, folder, "refs/remotes/origin/" + ref);
  if (id.empty()) {
    const bool is_shallow = without_newline(ask(ref, folder, {"rev-parse", "--is-shallow-repository"}).out) == "true";
    reject(fmt::format("--baseline {}: neither a file nor a folder, nor a branch, tag or commit of {}{}", ref,
                       top.string(), is_shallow ? ", which is a shallow checkout" : ""),
           fmt::format("Fetch it first (weir opens no connection): git fetch --depth 1 origin "
                       "+{0}:refs/remotes/origin/{0}. Or name a summary.json.",
                       ref));
  }
  const std::string path = file.lexically_normal().generic_string();
  // Not `git show`, which may run the repository's own converters.
  const GitAnswer content = ask(ref, folder, {"cat-file", "blob", fmt::format("{}:{}", id, path)});
  if (content.code != 0)
    reject(fmt::format("--baseline {}: {} has no {}: {}", ref, id.substr(0, 12), path, content.first_error_line()),
           "Commit the reports there first (is the folder in .gitignore?), or name a file that was kept elsewhere.");
  Json document = parse_json(content.out, fmt::format("{}:{}", ref, path));
  upgrade(document);
  return document;
}

}  // namespace

Json load_baseline(const std::string& what, const fs::path& output_dir) {
  std::error_code status;
  if (fs::is_directory(what, status)) {
    const fs::path file = fs::path(what) / kFile;
    if (!fs::is_regular_file(file, status))
      reject(fmt::format("--baseline {}: the folder has no {}", what, kFile),
             fmt::format("Name a folder that 'weir bench' wrote. A git ref of that name is refs/heads/{}.", what));
    return read_json(file);
  }
  if (!what.empty() && fs::exists(what, status)) return read_json(what);
  return from_ref(what, output_dir);
}

}  // namespace weir::bench
