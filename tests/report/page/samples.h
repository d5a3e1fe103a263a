// Documents for tests of the report's page, as the program writes them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/page/page.h"

namespace weir::testing {

struct ResultShape {
  std::string workload = "tiny";
  int streams = 4;
  std::string submit = "inline";
  std::string device = "sim:h200", model = "NVIDIA H200 (simulated)";
  double latency_ns = 1000;
  std::size_t count = 20;  // samples: latency_ns, latency_ns + 1, ...; no multiple of 7
  double throughput = 100;
};

Json result_document(const ResultShape& shape = {});
// A run that ended badly.
Json failed_document(const ResultShape& shape, const std::string& why);
Json sweep_document(const std::vector<Json>& results);
// One test file with one pair of this verdict and ratio of latencies.
Json comparison_document(const std::string& verdict, double ratio);

// The document of a report on these files and folders, as `weir report --json` makes it.
Json report_on(const std::vector<std::filesystem::path>& paths);

// A new folder below the system's for temporary files; gone with the object.
class PageFolder {
 public:
  PageFolder();
  ~PageFolder();
  PageFolder(const PageFolder&) = delete;
  PageFolder& operator=(const PageFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path put(const std::string& name, const std::string& text) const;
  std::filesystem::path put(const std::string& name, const Json& document) const;

 private:
  std::filesystem::path path_;
};

}  // namespace weir::testing
