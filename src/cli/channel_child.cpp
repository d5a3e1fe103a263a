#include "cli/channel_child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "cli/descriptor.h"
#include "lab/channels/channel_results.h"
#include "lab/channels/loops/benchmark.h"

namespace weir::cli {
namespace {

using channel_bench::Benchmark;
using channel_bench::Conditions;
using channel_bench::Group;
using channel_bench::Measurement;

void tell(const Descriptor& parent, const Json& line) {
  const std::string text = line.dump() + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(parent.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("the process that wanted results is gone");
    done += static_cast<std::size_t>(written);
  }
}

Measurement run_one(const Benchmark& benchmark, const Conditions& conditions) {
  Measurement failed;
  if (!benchmark.unavailable.empty()) {
    failed.failure = benchmark.unavailable;
    return failed;
  }
  try {
    return benchmark.run(conditions);
  } catch (const std::exception& error) {
    failed.failure = error.what();
  }
  return failed;
}

}  // namespace

int run_channel_child(const std::string& file) {
  const Json request = read_json(file);
  if (!request.is_object() || !request.contains("benchmarks") || !request["benchmarks"].is_array() ||
      !request.contains("conditions"))
    reject(fmt::format("--child {}: is no request of weir channel", file));
  const Conditions conditions = conditions_from(request["conditions"], file);
  // The pipe is ours alone: what libraries print goes where errors go.
  const Descriptor parent(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (parent.get() < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) fail("cannot take over standard output");

  std::map<std::string, std::vector<Benchmark>> made;  // by group; only those that are asked for
  for (const Json& wanted : request["benchmarks"]) {
    const std::string id = wanted.is_string() ? wanted.get<std::string>() : "";
    const std::string name = id.substr(0, id.find('/'));
    tell(parent, {{"begins", id}});  // before its group is made: that may fail as well
    const Benchmark* chosen = nullptr;
    for (const Group& group : channel_bench::groups()) {
      if (group.name != name) continue;
      if (!made.contains(name)) made[name] = group.benchmarks(conditions);
      for (const Benchmark& benchmark : made[name])
        if (benchmark.id() == id) chosen = &benchmark;
    }
    if (chosen == nullptr) reject(fmt::format("--child {}: there is no benchmark '{}'", file, id));
    tell(parent, {{"ends", id}, {"measurement", to_json(run_one(*chosen, conditions))}});
  }
  return 0;
}

}  // namespace weir::cli
