#include "amd/compare/case_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/schemas.h"
#include "trace/import/byte_source.h"
#include "trace/import/importer.h"

namespace weir::amd {
namespace {

// {"schema": "weir.amd_log/2", ...
// The schema name of a document whose text begins with it; otherwise empty.
std::string schema_of(std::string_view start) {
  constexpr std::string_view kKey = "\"schema\"";
  const std::size_t brace = start.find_first_not_of(" \t\r\n");
  if (brace == std::string_view::npos || start[brace] != '{') return {};
  const std::size_t key = start.find_first_not_of(" \t\r\n", brace + 1);
  if (key == std::string_view::npos || start.substr(key, kKey.size()) != kKey) return {};
  const std::size_t open = start.find('"', key + kKey.size());
  const std::size_t close = open == std::string_view::npos ? open : start.find('"', open + 1);
  return close == std::string_view::npos ? std::string() : std::string(start.substr(open + 1, close - open - 1));
}

CaseSide load(const std::filesystem::path& path, const CaseLoadOptions& options) {
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) return side_of_capture(path, options.stop);
  std::string start;
  {
    const std::unique_ptr<ByteSource> bytes = open_bytes(path);
    start = std::string(bytes->peek(kSniffBytes));
  }
  const std::string schema = schema_of(start);
  if (schemas::are_alike(schema, schemas::amd_log)) return side_of_log_report(read_json(path), path.string());
  if (schema.starts_with("weir."))
    reject(fmt::format("{}: a document {}, which does not list single launches", path.string(), schema),
           "`weir profile WORKLOAD -o FILE.json` writes a timeline that can be compared.");
  if (!looks_like_trace(start)) return side_of_log(path, options.stop);
  const std::vector<ImportedTrace> traces = import_traces({path}, options.import);
  return side_of_timeline(traces.at(0).timeline, path.string());
}

}  // namespace

CaseSide load_case(const std::filesystem::path& path, const CaseLoadOptions& options) {
  CaseSide side = load(path, options);
  std::error_code status;
  const std::filesystem::path canonical = std::filesystem::canonical(path, status);
  if (!status) side.identity = canonical.string();
  return side;
}

}  // namespace weir::amd
