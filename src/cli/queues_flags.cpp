#include "cli/queues_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "cli/run_flags.h"

namespace weir::cli {

void QueuesFlags::add_to(CommandSyntax syntax) {
  syntax.add("--device NAME", device, "auto, cpu, cuda:0, hip:0, opencl:0, sim:h200 (auto: the first GPU, else cpu)");
  syntax.add("--hw-queues N", hardware_queues, "hardware queues of the devices cpu (default 8) and sim");
  syntax.add("--compute-units N", compute_units, "compute units that each stream is confined to (AMD and NVIDIA GPUs)");
  syntax.add("--sim NAME=VALUE", sim, "name=value, repeatable: a setting of the simulated device (docs/sim.md)");
  document.add_to(syntax, "write the result (weir.queues/2) to this file (-: standard output)");
  syntax.add("--quiet,-q", is_quiet, "print nothing but errors");
  syntax.add("--force,-f", is_forced, "replace existing output files");
}

std::unique_ptr<Device> QueuesFlags::open(int streams) const {
  DeviceOptions options = device_options(hardware_queues, sim);
  // The worker of a held stream sleeps; other streams need workers to run on.
  options.workers = std::max(static_cast<int>(std::thread::hardware_concurrency()), streams + 2);
  options.compute_units = one_unit_count(compute_units);
  auto opened = open_able(device, options);
  if (const DeviceInfo info = opened->info(); !info.computes && !info.is_virtual)
    reject(fmt::format("--device {}: it runs nothing, so its queues cannot be probed", device),
           "Use --device cpu, sim or a GPU.");
  return opened;
}

std::unique_ptr<Device> QueuesFlags::open_as_usual() const {
  DeviceOptions options = device_options(hardware_queues, sim);
  options.compute_units = one_unit_count(compute_units);
  return open_able(device, options);
}

void QueuesFlags::pass_on(std::vector<std::string>& arguments) const {
  for (const std::string& setting : sim) arguments.push_back("--sim=" + setting);
  if (!compute_units.empty()) arguments.push_back("--compute-units=" + compute_units);
}

void QueuesFlags::check_output() const {
  if (const std::string path = document.path(); !path.empty()) check_writable(path, is_forced);
}

void QueuesFlags::deliver(const Json& made, const std::string& text) const {
  const std::string path = document.path();
  if (!path.empty()) write_file(path, to_text(made), is_forced);
  if (document.prints_json()) return write_json(to_text(made));
  if (is_quiet) return;
  write_out(text);
  if (!path.empty()) print_out("\nWritten to {}\n", path);
}

}  // namespace weir::cli
