// The folder that `weir bench` fills: env.json, kernel_manifest.json, kernels/NAME.json, summary.json, summary.md,
// regressions.md. Replaces reports of its own and nothing else. Knows documents as text.
#pragma once

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/json.h"

namespace weir::cli {

class BenchFolder {
 public:
  // Rejects a folder that cannot be made or written to, and one where a file of ours would replace somebody else's,
  // unless `is_forced`. Makes it.
  BenchFolder(std::filesystem::path folder, bool is_forced);

  // Whole or not at all. Where that fails (a full disk), it is remembered, and the run goes on: what was measured can
  // still be printed.
  void write(const std::string& name, const std::string& text);
  void write(const std::string& name, const Json& document) { write(name, to_text(document)); }
  void write_kernel(const std::string& package, const Json& document);
  bool has(const std::string& name) const;

  const std::filesystem::path& path() const { return folder_; }
  // Fails where something could not be written.
  void check() const;

 private:
  std::filesystem::path folder_;
  std::string failure_;
};

}  // namespace weir::cli
