// weir amd hqd: hardware queues of AMD GPUs from KFD's debugfs files, current or saved earlier.
#include <fmt/format.h>

#include <filesystem>

#include "amd/kfd/document.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/document_output.h"
#include "cli/list.h"
#include "report/text/documents.h"
#include "trace/import/byte_source.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestDump = std::size_t{256} << 20;

struct AmdHqdFlags : DocumentOutput {
  std::vector<std::string> files;
  std::string debugfs, sysfs;
  bool is_live = false, is_full = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("files FILE|FOLDER", files,
               "text of hqds, mqds and rls, .gz too, recognised by content; or a folder of them");
    syntax.add("--live", is_live, "read the running kernel, as root");
    syntax.add("--debugfs PATH", debugfs, "live: where debugfs is mounted (default: /sys/kernel/debug)");
    syntax.add("--sysfs PATH", sysfs, "live: where sysfs is mounted (default: /sys)");
    syntax.add("--full", is_full, "all queues, their slots with VMIDs and pointers, and all GPUs");
    DocumentOutput::add_to(syntax);
    syntax.footer("Exit code: 0 fine, 1 the running kernel shows nothing, 2 bad input.");
  }
};

std::string content_of(const std::string& path) {
  const auto source = open_bytes(path);
  std::string text;
  while (true) {
    const std::size_t held = text.size();
    text.resize(held + std::max<std::size_t>(held, 1 << 16));
    const std::size_t got = source->read(text.data() + held, text.size() - held);
    text.resize(held + got);
    if (text.size() > kLargestDump)
      reject(fmt::format("{}: more than {} MiB, which no file of KFD has", path, kLargestDump >> 20),
             "Give text of /sys/kernel/debug/kfd/hqds, mqds or rls.");
    if (got == 0) return text;
  }
}

// No file of debugfs could be read: the first error explains why, the others would only repeat it.
[[noreturn]] void fail_for(const kfd::Snapshot& snapshot) {
  const kfd::MissingPart& first = snapshot.missing.front();
  fail(fmt::format("{}: {}", first.path, first.reason), first.hint);
}

kfd::Snapshot live(const AmdHqdFlags& flags) {
  kfd::Roots roots;
  if (!flags.debugfs.empty()) roots.debugfs = flags.debugfs;
  if (!flags.sysfs.empty()) roots.sysfs = flags.sysfs;
  kfd::Snapshot snapshot = kfd::read_snapshot(roots);
  if (!snapshot.hqds && !snapshot.mqds && !snapshot.runlists) fail_for(snapshot);
  return snapshot;
}

kfd::Snapshot folder(const fs::path& path) {
  kfd::Snapshot snapshot = kfd::load_snapshot(path);
  if (!snapshot.hqds && !snapshot.mqds && !snapshot.runlists) {
    for (const kfd::MissingPart& part : snapshot.missing) {
      if (part.reason != kfd::kNotInFolder) reject(fmt::format("{}: {}", part.path, part.reason), part.hint);
    }
    std::error_code ignored;
    const bool is_capture = fs::exists(path / "manifest.json", ignored);
    reject(
        fmt::format("{}: has no hqds, mqds or rls", path.string()),
        is_capture
            ? "This is a whole capture: give one of the folders that its manifest.json lists under snapshots."
            : "Their names are hqds, mqds and rls, with or without .txt. Files of other names are given one by one.");
  }
  return snapshot;
}

kfd::Snapshot files(const AmdHqdFlags& flags) {
  kfd::Snapshot snapshot;
  for (const std::string& path : flags.files) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      if (flags.files.size() > 1)
        reject(fmt::format("{}: a folder cannot be combined with other files", path), "Give files, or one folder.");
      return folder(path);
    }
    kfd::add_file(snapshot, content_of(path), path);
  }
  return snapshot;
}

int execute_amd_hqd(const AmdHqdFlags& flags) {
  const bool is_live = flags.is_live || !flags.debugfs.empty() || !flags.sysfs.empty();
  if (is_live && !flags.files.empty())
    reject("--live, --debugfs and --sysfs read a running kernel and cannot be combined with files",
           "Give one of them.");
  if (!is_live && flags.files.empty())
    reject("no file to read", "Give hqds, mqds or rls (text of /sys/kernel/debug/kfd), a folder of them, or --live.");
  flags.check_output();
  const Json document = kfd::hqd_document(is_live ? live(flags) : files(flags));
  flags.print(document, amd_hqd_report(document, flags.is_full));
  return 0;
}

}  // namespace

CliCommand amd_hqd() {
  return command("hqd", "hardware queues from KFD's debugfs: state, backlog, preemption, oversubscription",
                 execute_amd_hqd);
}

}  // namespace weir::cli
