// weir conformance: runs one table of cases on devices, and reports what each lacks and what it does wrong.
#include "lab/conformance/conformance.h"

#include <fmt/format.h>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/run_flags.h"
#include "lab/conformance/conformance_document.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

struct ConformanceFlags {
  std::vector<std::string> devices, filters;
  DocumentFile document;
  bool takes_all = false, is_list = false, is_quiet = false, is_forced = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("--device NAME", devices, "cpu, cuda:0, hip:0, sim:h200 ..., with commas, repeatable (default: auto)");
    syntax.add("--all", takes_all, "every device that is found");
    syntax.add("--filter PATTERN", filters, "cases whose name has this in it, or matches it with * and ?; repeatable");
    syntax.add("--list", is_list, "show the cases and run none");
    document.add_to(syntax, "write the result (weir.conformance/2) to this file (-: standard output)");
    syntax.add("--quiet,-q", is_quiet, "print nothing but errors");
    syntax.add("--force,-f", is_forced, "replace an existing output file");
    syntax.footer(
        "Exit code: 0 nothing failed, 1 a case failed or a device was lost, 2 bad input,\n"
        "130 interrupted.");
  }
};

// The devices found on this machine; the reasons why others are missing go into `run`.
std::vector<std::string> all_devices(ConformanceRun& run) {
  std::vector<std::string> names;
  for (const DeviceType& type : device_types()) {
    const DeviceType::Found found = type.find();
    names.insert(names.end(), found.names.begin(), found.names.end());
    if (found.names.empty()) run.not_opened.push_back({type.name, found.reason});
    for (const std::string& note : found.notes) run.not_opened.push_back({type.name, note});
  }
  return names;
}

std::unique_ptr<Device> open_or_note(const std::string& name, const ConformanceFlags& flags, ConformanceRun& run) {
  try {
    return open_device(name, device_options("", {}));
  } catch (const Error& error) {
    if (!flags.takes_all) throw;
    run.not_opened.push_back({name, in_terms_of_flags(error)});
    return nullptr;
  }
}

conformance::ConformanceResults examine(const std::string& name, Device& device,
                                        std::span<const conformance::ConformanceCase* const> cases, bool is_quiet) {
  const auto cpu = open_device("cpu", device_options("", {}));
  conformance::Subject subject{device, device.info(), nullptr, {}};
  if (subject.info.backend != "cpu") subject.cpu = cpu.get();
  subject.open_again = [&](const DeviceOptions& wanted) {
    DeviceOptions options = device_options("", {});
    options.compute_units = wanted.compute_units;
    options.rest_stream = wanted.rest_stream;
    return open_device(name, options);
  };
  ProgressLine progress(is_quiet);
  conformance::Control control;
  control.stop = &catch_interrupts();
  control.progress = [&](const conformance::ConformanceCase& each, int done, int total) {
    progress.show(fmt::format("{} {}", name, each.group), done, total);
  };
  return conformance::examine(subject, cases, control);
}

int execute_conformance(const ConformanceFlags& flags) {
  const auto chosen = conformance::matching(conformance::cases(), flags.filters);
  if (chosen.empty())
    reject(fmt::format("--filter {}: no case has such a name", flags.filters.front()),
           "`weir conformance --list` shows all of them.");
  if (flags.is_list) {
    if (flags.document.prints_json()) reject("--json: a list of cases has no document", "Leave out --list, or --json.");
    for (const conformance::ConformanceCase* const each : chosen) print_out("{}\n", each->full_name());
    return 0;
  }
  if (flags.takes_all && !flags.devices.empty()) reject("--all: cannot be combined with --device", "Use one of them.");
  const std::string output = flags.document.path();
  const bool is_quiet = flags.is_quiet || flags.document.prints_json();
  if (!output.empty()) check_writable(output, flags.is_forced);

  ConformanceRun run;
  run.filters = flags.filters;
  std::vector<std::string> names = flags.takes_all ? all_devices(run) : std::vector<std::string>();
  for (const std::string& each : flags.devices)
    for (std::string& name : parse_names("--device", each)) names.push_back(std::move(name));
  if (names.empty()) names = {"auto"};
  const RunContext context = run_context();
  std::optional<SavedFile> file;
  if (!output.empty()) file.emplace(output, flags.is_forced);
  bool has_passed = true;
  for (const std::string& name : names) {
    const auto device = open_or_note(name, flags, run);
    if (device == nullptr) continue;
    run.reports.push_back(examine(name, *device, chosen, flags.is_quiet));
    has_passed = has_passed && run.reports.back().has_passed();
    run.is_interrupted = run.reports.back().is_interrupted;
    const Json document = conformance_document(run, context);
    if (file) file->save(to_text(document));
    if (!is_quiet)
      print_out("{}{}", run.reports.size() > 1 ? "\n" : "", describe_conformance(document["devices"].back()));
    flush_out();
    if (run.is_interrupted) break;
  }
  if (flags.document.prints_json()) {
    write_json(to_text(conformance_document(run, context)));
  } else if (!flags.is_quiet) {
    print_out("{}", conformance_summary(conformance_document(run, context)));
    if (file && !run.reports.empty()) print_out("\nWritten to {}\n", output);
  }
  if (run.is_interrupted) return kExitInterrupted;
  return has_passed ? 0 : 1;
}

}  // namespace

CliCommand conformance() {
  return command("conformance", "examine devices: one table of cases, compared with cpu", execute_conformance);
}

}  // namespace weir::cli
