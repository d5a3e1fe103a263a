#include "cli/overlap_runs.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace weir::testing {

std::string config_file(const std::string& name) { return WEIR_SOURCE_DIR "/config/" + name + ".yaml"; }

std::vector<std::string> tiny_overlap(const std::string& config, std::initializer_list<std::string> more) {
  std::vector<std::string> arguments = {"overlap", config};
  for (const char* const setting :
       {"run.device=cpu", "run.scale=tiny", "run.iterations=3", "run.traced=2", "run.warmup=1"})
    arguments.insert(arguments.end(), {"--set", setting});
  arguments.insert(arguments.end(), more);
  return arguments;
}

std::string file_content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::vector<Json> json_lines(const std::string& path) {
  std::vector<Json> documents;
  std::istringstream lines(file_content(path));
  for (std::string line; std::getline(lines, line);) documents.push_back(Json::parse(line));
  return documents;
}

std::string why_no_ranks() {
  if (!std::filesystem::exists(std::filesystem::path(WEIR_BINARY).parent_path() / "libweir_mpi.so"))
    return "libweir_mpi.so was not built: no MPI";
  return run_program({"mpirun", "--version"}).code == 0 ? "" : "there is no mpirun";
}

}  // namespace weir::testing
