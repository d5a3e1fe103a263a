// Settings of the machine in a node's report.
#include <algorithm>
#include <set>
#include <string>

#include "base/file.h"
#include "lab/fleet/probe/probe.h"
#include "measure/environment.h"
#include "measure/recorded_variables.h"

namespace weir::fleet {
namespace {

std::string first_line_of(const std::string& path) {
  std::string text = read_kernel_file(path, 4096);
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

// "always [madvise] never"
std::string chosen_in(const std::string& choices) {
  const std::size_t begin = choices.find('['), end = choices.find(']');
  return begin == std::string::npos || end == std::string::npos || end < begin
             ? ""
             : choices.substr(begin + 1, end - begin - 1);
}

// Of the whole machine, and of what this process may use.
std::string numa_words(const std::string& root) {
  const std::string online = first_line_of(root + "sys/devices/system/node/online");
  const std::string status = read_kernel_file(root + "proc/self/status", 1 << 16);
  constexpr std::string_view kKey = "Mems_allowed_list:\t";
  const std::size_t at = status.find(kKey);
  if (online.empty() || at == std::string::npos) return online;
  const std::size_t begin = at + kKey.size();
  return status.substr(begin, status.find('\n', begin) - begin) + " of " + online;
}

}  // namespace

void describe_node(NodeReport& node, const std::string& root) {
  const auto add = [&](const char* name, std::string text) {
    if (!text.empty()) node.facts[name] = std::move(text);
  };
  const auto of_environment = [&](const char* name) {
    const Json& value = member(node.environment, name);
    return value.is_string() ? value.string() : std::string();
  };
  add("governor", of_environment("governor"));
  add("kernel", of_environment("kernel"));
  add("system", of_environment("system"));
  if (const Json& cpus = member(node.environment, "cpus"); cpus.is_number()) add("cpus", cpus.dump());
  add("cpus_allowed", std::to_string(usable_cores().size()));
  add("huge_pages", chosen_in(first_line_of(root + "sys/kernel/mm/transparent_hugepage/enabled")));
  add("reserved_huge_pages", first_line_of(root + "proc/sys/vm/nr_hugepages"));
  add("numa_balancing", first_line_of(root + "proc/sys/kernel/numa_balancing"));
  add("numa", numa_words(root));
  // Drivers read them once, and programs of one node may have others than those of the next.
  for (const char* const name : {"CUDA_DEVICE_MAX_CONNECTIONS", "GPU_MAX_HW_QUEUES"}) node.facts[name] = "not set";
  if (const Json& variables = member(node.environment, "variables"); variables.is_object())
    for (const auto& [name, value] : variables.items())
      if (value.is_string() && value.string() != kNotRecorded && !name.ends_with("RANK"))
        node.facts[name] = value.string();
}

}  // namespace weir::fleet
