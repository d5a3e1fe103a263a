// The reports of `weir bench`: the folder that they go to, the machine that they describe, and those of a baseline.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"

namespace weir::bench {

// The output folder: env.json, kernel_manifest.json, kernels/NAME.json, summary.json, summary.md, regressions.md.
// Knows documents as text.
class BenchFolder {
 public:
  // Creates the folder. Rejects one that cannot be created or written to, and one that has a report already, unless
  // `is_forced`.
  BenchFolder(std::filesystem::path folder, bool is_forced);

  // Writes the whole file or nothing. A failure (a full disk) is remembered and the run continues, so that measurements
  // can still be printed.
  void write(const std::string& name, const std::string& text);
  void write(const std::string& name, const Json& document) { write(name, to_text(document)); }
  void write_kernel(const std::string& package, const Json& document);
  bool has(const std::string& name) const;

  const std::filesystem::path& path() const { return folder_; }
  // Throws where something could not be written.
  void check() const;

 private:
  std::filesystem::path folder_;
  std::optional<FileLock> lock_;  // two runs would mix their reports
  std::string failure_;
};

// weir.bench_environment/1: `machine`, which every result contains (measure/environment.h), and "cpu_model", "devices",
// "compilers", "python", "git". `facts` is as in facts.h. With `asks_changes`, git looks at every tracked file.
Json bench_environment(const Json& machine, const Json& facts, const std::string& compiler, bool asks_changes);

// The summary that `weir bench --baseline` names (baseline.cpp). `what`: an existing file; an existing folder with
// summary.json; else a branch, tag or commit, from which OUTPUT_DIR/summary.json is read as committed. Rejects each
// case of a missing baseline with its own message.
Json load_baseline(const std::string& what, const std::filesystem::path& output_dir);

}  // namespace weir::bench
