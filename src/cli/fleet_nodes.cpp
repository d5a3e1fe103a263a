#include "cli/fleet_nodes.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/schemas.h"

namespace weir::cli {

std::vector<fleet::NodeReport> read_nodes(const std::vector<std::string>& paths) {
  std::vector<fleet::NodeReport> nodes;
  for (const std::string& path : paths) {
    std::error_code status;
    if (!std::filesystem::is_directory(path, status)) {
      nodes.push_back(fleet::read_node(read_json(path), path));
      continue;
    }
    const std::size_t before = nodes.size();
    for (const std::filesystem::path& file : files_in(path, ".json").files)
      if (schemas::at_start(start_of_file(file, 256)) == schemas::fleet_probe)
        nodes.push_back(fleet::read_node(read_json(file), file.string()));
    if (nodes.size() == before)
      reject(fmt::format("{}: has no document of `weir fleet probe`", path),
             "`weir fleet probe -o FOLDER` writes one for each node.");
  }
  return nodes;
}

}  // namespace weir::cli
