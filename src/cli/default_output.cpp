#include "cli/default_output.h"

#include <fmt/format.h>

#include "base/file.h"

namespace weir::cli {

namespace fs = std::filesystem;

Earlier earlier_output(bool is_forced, bool resumes) {
  return resumes ? Earlier::is_continued : is_forced ? Earlier::is_replaced : Earlier::stays;
}

fs::path default_output(const std::string& stem, const std::string& suffix, Earlier earlier,
                        const std::function<bool(const fs::path&)>& is_taken) {
  fs::path path = stem + suffix, newest = path;
  if (earlier == Earlier::is_replaced) return path;
  std::error_code ignored;
  const auto exists = [&] {
    // Another run that has not saved anything yet.
    const bool is_begun = earlier == Earlier::stays && is_locked(path);
    return is_begun || (is_taken ? is_taken(path) : fs::exists(fs::symlink_status(path, ignored)));
  };
  int number = 1;
  for (; exists(); path = fmt::format("{}-{}{}", stem, ++number, suffix))
    if (fs::last_write_time(path, ignored) >= fs::last_write_time(newest, ignored)) newest = path;
  return earlier == Earlier::is_continued && number > 1 ? newest : path;
}

}  // namespace weir::cli
