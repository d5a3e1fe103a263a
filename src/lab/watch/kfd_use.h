// Adds to a sample of KFD how busy its GPUs are and what each process takes: memory, compute units, engines, evictions.
// Knows what amd/kfd reads; no registers and no terminal.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "amd/kfd/gpu_use.h"
#include "amd/kfd/smi_events.h"
#include "lab/watch/sample.h"

namespace weir::watch {

class KfdUse {
 public:
  explicit KfdUse(kfd::Roots roots) : roots_(std::move(roots)) {}
  // Call it once for each sample, in order of time; the sample has its window already.
  void add_to(Sample& sample, const kfd::Snapshot& snapshot);

 private:
  void listen(const kfd::SysfsState& state);
  void add_process(Sample& sample, const kfd::SysfsProcess& process, const kfd::SysfsState& state);

  kfd::Roots roots_;
  std::unique_ptr<kfd::SmiListener> events_;
  using OfProcess = std::pair<int, std::uint32_t>;  // process and GPU
  std::map<OfProcess, std::uint64_t> evictions_;
  std::map<OfProcess, std::map<std::string, std::uint64_t>> engine_ns_;  // of the sample before
};

}  // namespace weir::watch
