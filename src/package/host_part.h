// The host half of a package: its table, and one case set up through it, with inputs drawn from the seed and rounded as
// the kernel will see them. Backends add where buffers lie and how a run gets there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "package/package.h"
#include "package/ready_kernel.h"
#include "weir/kernel.h"

namespace weir::package {

// An opened library with a table that was checked: version, size, functions that must be there. Never closed.
class HostPart {
 public:
  // `name` stands for the package in messages. Rejects a file that is no library, one without weir_kernel, one of
  // another ABI version.
  HostPart(const std::filesystem::path& library, std::string name);
  const WeirKernel& table() const { return *table_; }
  const std::string& name() const { return name_; }
  Problem defaults() const;
  // What the kernel says after a failed call of `function`: "softmax: setup failed with 3: rows must be positive".
  [[noreturn]] void fail_with(const char* function, int result) const;

 private:
  std::string name_;
  const WeirKernel* table_ = nullptr;
};

// One case between setup() and teardown().
class HostCase {
 public:
  HostCase(const HostPart& part, const Case& wanted, int threads);
  ~HostCase();
  HostCase(const HostCase&) = delete;
  HostCase& operator=(const HostCase&) = delete;

  const HostPart& part() const { return part_; }
  void* state() const { return state_; }
  const Work& work() const { return work_; }
  std::size_t buffer_count() const { return setup_.buffer_count; }
  const WeirBuffer& buffer(std::size_t index) const { return setup_.buffers[index]; }
  std::uint64_t bytes(std::size_t index) const;
  std::uint64_t total_bytes() const;

  // The bytes of an input in its own type; of outputs and scratch: poison (NaN; -1 for integers, 0xff for u8).
  std::vector<std::byte> initial(std::size_t index) const;
  // Bytes of a buffer as doubles.
  std::vector<double> decode(std::size_t index, const std::byte* bytes) const;
  // What must be in each output, from the inputs as given. Empty vectors for others. `reason` where there is no
  // reference.
  std::vector<std::vector<double>> expected(std::string& reason) const;
  // Compares: outputs as read from the backend, inputs as they are after the run (a changed input is a fault).
  Checked compare(const std::vector<std::vector<std::byte>>& after) const;

 private:
  const HostPart& part_;
  Precision precision_;
  std::uint64_t seed_;
  WeirSetup setup_{};
  Work work_;
  void* state_ = nullptr;
};

}  // namespace weir::package
