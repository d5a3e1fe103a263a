#include "cli/fleet_nodes.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/schemas.h"
#include "report/history/fleet_nodes.h"

namespace weir::cli {
namespace {

void take_folder(const std::string& path, std::vector<fleet::NodeReport>& nodes) {
  const std::size_t before = nodes.size();
  for (const std::filesystem::path& file : files_in(path, ".json").files)
    if (schemas::at_start(start_of_file(file, 256)) == schemas::fleet_probe)
      nodes.push_back(fleet::read_node(read_json(file), file.string()));
  if (nodes.size() == before)
    reject(fmt::format("{}: has no document of `weir fleet probe`", path),
           "`weir fleet probe -o FOLDER` writes one for each node.");
}

void take_history(const std::string& path, const std::string& since, std::vector<fleet::NodeReport>& nodes) {
  history::Store store(path, history::DatabaseAccess::read);
  std::vector<fleet::NodeReport> found = history::newest_nodes(store, since);
  if (found.empty())
    reject(fmt::format("{}: has no probe of a node{}", store.name(), since.empty() ? "" : " since " + since),
           "`weir history add` puts documents of `weir fleet probe` into a history.");
  nodes.insert(nodes.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
}

}  // namespace

bool is_history(const std::string& path) {
  using namespace std::string_view_literals;
  constexpr std::string_view kStart = "SQLite format 3\0"sv;
  if (history::is_postgres(path)) return true;
  std::error_code status;
  return std::filesystem::is_regular_file(path, status) && start_of_file(path, kStart.size()) == kStart;
}

std::vector<fleet::NodeReport> read_nodes(const std::vector<std::string>& paths, const std::string& since) {
  std::vector<fleet::NodeReport> nodes;
  for (const std::string& path : paths) {
    std::error_code status;
    if (is_history(path))
      take_history(path, since, nodes);
    else if (std::filesystem::is_directory(path, status))
      take_folder(path, nodes);
    else
      nodes.push_back(fleet::read_node(read_json(path), path));
  }
  return nodes;
}

std::vector<fleet::Finding> changes_of(const std::vector<std::string>& paths, const std::string& since,
                                       double threshold) {
  std::vector<fleet::Finding> findings;
  for (const std::string& path : paths) {
    if (!is_history(path)) continue;
    history::Store store(path, history::DatabaseAccess::read);
    ChangeOptions options;
    options.threshold = threshold;
    for (const history::DeviceChange& change : history::device_changes(store, since, options)) {
      fleet::Finding finding;
      finding.kind = fleet::FindingKind::changed;
      finding.node = change.node;
      finding.device = change.device;
      finding.serial = change.serial;
      finding.figure = change.figure;
      finding.to = change.to;
      finding.effect = change.ratio - 1;
      finding.p = change.p;
      finding.sentence = change.sentence;
      finding.is_unfit = false;
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

}  // namespace weir::cli
