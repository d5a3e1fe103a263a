// Compares a device's results with the CPU reference, command by command, on the device's own inputs. Trusts the step's
// description, not the device.
#pragma once

#include <string>

#include "base/json.h"
#include "device/device.h"
#include "run/hang_watch.h"
#include "submit/submitter.h"

namespace weir {

struct CheckReport {
  enum class Status { passed, failed, skipped };
  Status status = Status::skipped;
  std::string reason;       // why skipped, or what is wrong: buffer, element, values
  std::size_t buffers = 0;  // compared: all that the step writes
  std::size_t outputs = 0;  // outputs of commands, each compared separately
  double worst_error = 0;   // relative, over all outputs
  double worst_share = 0;   // error / tolerance of the output that came closest to failing
  double seconds = 0;

  Json to_json() const;
};

// Compares every buffer that the step writes. The session must hold the result of whole iterations: any number if the
// step is repeatable, exactly one after reset() otherwise. If the step has collectives, all ranks call it at the same
// time, with their communicator.
CheckReport check_outputs(const Step& step, Session& session, Communicator* communicator = nullptr);

// Checks the iterations that ran if the step is repeatable; otherwise resets and checks one new iteration.
CheckReport check_run(const Step& step, Session& session, Submitter& submitter, Communicator* communicator,
                      SessionWatch& watch);

}  // namespace weir
