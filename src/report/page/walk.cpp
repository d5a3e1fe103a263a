#include "report/page/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace weir::page {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 8;
constexpr std::size_t kMostEntries = 50'000;  // of one path, whatever they are
constexpr std::size_t kMostFiles = 5'000;     // of all

class Walker {
 public:
  void start(const fs::path& path) {
    std::error_code status;
    const fs::file_status kind = fs::status(path, status);
    if (!fs::exists(kind)) {
      leave(path, "there is no such file or folder. Check the path.");
    } else if (fs::is_directory(kind)) {
      root_ = fs::weakly_canonical(path, status);
      entries_ = 0;
      const std::size_t before = walk.files.size() + walk.left.size();
      descend(path, 0);
      if (walk.files.size() + walk.left.size() == before)
        leave(path, "the folder is empty. Give the folder that `weir run -o`, `weir sweep -o` or `weir bench` wrote.");
    } else if (!fs::is_regular_file(kind)) {
      leave(path, "is neither a file nor a folder.");
    } else {
      keep(path, true);
    }
  }

  Walk walk;

 private:
  void leave(const fs::path& path, std::string reason) { walk.left.push_back({path.string(), std::move(reason)}); }

  void keep(const fs::path& path, bool is_named) {
    std::error_code status;
    if (!seen_.insert(fs::weakly_canonical(path, status)).second) return;
    if (walk.files.size() < kMostFiles) {
      walk.files.push_back({path, is_named});
    } else if (!is_full_) {
      is_full_ = true;
      leave(path,
            fmt::format("this and all that follow: a report reads {} files at most. Give fewer of them.", kMostFiles));
    }
  }

  // A link may lead anywhere; what lies in the folder is met on the way anyhow.
  bool leads_out(const fs::path& path) const {
    std::error_code status;
    const fs::path target = fs::weakly_canonical(path, status);
    return status || std::mismatch(root_.begin(), root_.end(), target.begin(), target.end()).first != root_.end();
  }

  void descend(const fs::path& folder, int depth) {
    if (depth > kDeepest) return leave(folder, fmt::format("lies more than {} folders deep.", kDeepest));
    std::error_code status;
    std::vector<fs::directory_entry> entries;
    for (fs::directory_iterator entry(folder, status); !status && entry != fs::directory_iterator();
         entry.increment(status)) {
      if (++entries_ > kMostEntries) {
        if (entries_ == kMostEntries + 1)
          leave(folder, fmt::format("has more than {} entries: the others were not looked at.", kMostEntries));
        break;
      }
      entries.push_back(*entry);
    }
    if (status) leave(folder, fmt::format("cannot be read: {}.", status.message()));
    std::sort(entries.begin(), entries.end());
    for (const fs::directory_entry& entry : entries) {
      std::error_code ignored;
      if (entry.path().filename().string().starts_with(".")) continue;
      if (entry.is_symlink(ignored) && (entry.is_directory(ignored) || leads_out(entry.path()))) {
        leave(entry.path(), "is a link, which is not followed. Name what it leads to.");
      } else if (entry.is_directory(ignored)) {
        descend(entry.path(), depth + 1);
      } else if (entry.is_regular_file(ignored)) {
        keep(entry.path(), false);
      }
    }
  }

  fs::path root_;
  std::size_t entries_ = 0;
  std::set<fs::path> seen_;
  bool is_full_ = false;
};

}  // namespace

Walk walk_paths(const std::vector<fs::path>& paths) {
  Walker walker;
  for (const fs::path& path : paths) walker.start(path);
  return std::move(walker.walk);
}

}  // namespace weir::page
