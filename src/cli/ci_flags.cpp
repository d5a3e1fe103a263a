#include "cli/ci_flags.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/console.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/process.h"
#include "report/figures/judgement.h"

namespace weir::cli {
namespace {

// Appends to the file that `variable` names, if it is set; other steps, and this one earlier, may have written to it.
// `text` gets the space left below `most`, and may return nothing.
void append_to(const char* variable, std::size_t most, const std::function<std::string(std::size_t room)>& text) {
  const auto path = environment_variable(variable);
  if (!path || path->empty()) return;
  const auto print_warning = [&](const std::string& why) { print_err("weir: {} {}: {}\n", variable, *path, why); };
  Descriptor file;
  try {
    file = open_to_append(*path, 0666);
  } catch (const Error& error) {
    return print_warning(error.what());
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return print_warning(std::strerror(errno));
  const auto taken = static_cast<std::size_t>(S_ISREG(status.st_mode) ? status.st_size : 0);
  const std::size_t room = taken < most ? most - taken : 0;
  const std::string whole = text(room);
  // GitHub drops a summary that is too long entirely, including what others wrote.
  if (whole.size() > room)
    return print_warning(fmt::format("no room: GitHub takes {} bytes, and {} are already used", most, taken));
  if (!write_all(file.get(), whole)) print_warning(std::strerror(errno));
}

}  // namespace

void CiFlags::add_to(CommandSyntax syntax) {
  syntax.add("--github", is_github, "annotate for GitHub Actions; append to $GITHUB_STEP_SUMMARY and $GITHUB_OUTPUT");
  syntax.add("--junit PATH", junit, "write the verdicts as JUnit XML to this file");
}

void CiFlags::check(bool is_forced, bool prints_json) const {
  if (is_github) expect_runner(true);  // annotations make the output one for GitHub, wherever this runs
  if (!junit.empty()) check_writable(junit, is_forced);
  if (is_github && prints_json)
    reject("--github: annotations go to standard output, and so would the JSON document",
           "Write the document to a file with --output FILE.");
}

void CiFlags::report(const Judged& judged, const std::function<std::string(std::size_t)>& markdown,
                     bool is_forced) const {
  if (is_github) {
    write_raw_out(github_annotations(judged));
    append_to("GITHUB_STEP_SUMMARY", kMaxSummary,
              [&](std::size_t room) { return markdown(room == 0 ? 0 : room - 1) + "\n"; });
    append_to("GITHUB_OUTPUT", kMaxSummary, [&](std::size_t) { return github_outputs(judged); });
  }
  if (!junit.empty()) write_file(junit, junit_xml(judged), is_forced);
}

}  // namespace weir::cli
