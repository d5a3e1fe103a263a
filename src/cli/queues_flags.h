// The flags that all experiments of `weir queues` share, and their output: a table for people, a document for programs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command.h"
#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "device/device.h"

namespace weir::cli {

struct QueuesFlags {
  std::string device = "auto";
  std::string hardware_queues;
  std::string compute_units;
  std::vector<std::string> sim;
  DocumentFile document;
  bool is_quiet = false;
  bool is_forced = false;

  void add_to(CommandSyntax syntax);
  // `streams` held streams must not occupy all workers of the cpu device.
  std::unique_ptr<Device> open(int streams) const;
  // As `weir run` opens it.
  std::unique_ptr<Device> open_as_usual() const;
  // Adds the arguments that a child of the same kind needs to see the same device, except for its queue count.
  void pass_on(std::vector<std::string>& arguments) const;
  // Rejects an output file that could not be written, before any work is done.
  void check_output() const;
  // Writes the document (weir.queues/2) to the requested file, and prints it or `text`.
  void deliver(const Json& made, const std::string& text) const;
};

}  // namespace weir::cli
