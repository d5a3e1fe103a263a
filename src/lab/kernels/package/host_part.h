// The host half of a package: its table, and one case set up through it, with inputs generated from the seed and
// rounded as the kernel will see them. Backends add buffers and how to run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/kernels/package/package.h"
#include "lab/kernels/package/ready_kernel.h"
#include "lab/kernels/package/text.h"
#include "weir/kernel.h"

namespace weir::package {

// All parameters of a kernel in its order, with the requested values where given. Rejects unknown names and values of
// another length.
Problem complete_problem(const std::string& kernel, Problem defaults, const Problem& wanted);

// An opened library with a checked table: version, size, required functions. Never closed.
class HostPart {
 public:
  // `name` is the package's name in messages. Rejects a file that is no library, one without weir_kernel, one of
  // another ABI version.
  HostPart(const std::filesystem::path& library, std::string name);
  const WeirKernel& table() const { return *table_; }
  const std::string& name() const { return name_; }
  Problem defaults() const;
  // Fails with the kernel's message after a failed call of `function`: "softmax: setup failed with 3: rows must be
  // positive".
  [[noreturn]] void fail_with(const char* function, int result) const;
  // Calls a function of the table that returns 0 for success; on failure throws its message, or what it threw.
  template <class Call>
  void call(const char* function, Call&& call) const {
    int result = 0;
    try {
      result = call();
    } catch (...) {
      fail_with_exception(function);
    }
    if (result != 0) fail_with(function, result);
  }
  // To be called in a handler: turns the exception of `function` into an Error.
  [[noreturn]] void fail_with_exception(const char* function) const;

 private:
  std::string name_;
  const WeirKernel* table_ = nullptr;
};

// An opened package that answers from its table.
class HostPackage : public OpenPackage {
 public:
  std::uint32_t backends() const override { return part_->table().backends; }
  std::uint32_t precisions() const override { return part_->table().precisions; }
  const std::string& summary() const override { return summary_; }
  Problem defaults() const override { return part_->defaults(); }

 protected:
  explicit HostPackage(std::shared_ptr<const HostPart> part)
      : part_(std::move(part)), summary_(printable(part_->table().summary, 500)) {}
  const std::shared_ptr<const HostPart>& part() const { return part_; }

 private:
  std::shared_ptr<const HostPart> part_;
  std::string summary_;
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
  std::size_t buffer_count() const { return buffers_.size(); }
  const WeirBuffer& buffer(std::size_t index) const { return buffers_[index]; }
  std::uint64_t bytes(std::size_t index) const;
  std::uint64_t total_bytes() const;

  // The bytes of an input in its own type; for outputs and scratch: poison (NaN; -1 for integers, 0xff for u8).
  std::vector<std::byte> initial(std::size_t index) const;
  // The same, written to memory of bytes(index) bytes.
  void write_initial(std::size_t index, std::byte* to) const;
  // Bytes of a buffer as doubles.
  std::vector<double> decode(std::size_t index, const std::byte* bytes) const;
  // Compares outputs as read from the backend, and inputs as they are after the run (a changed input is a fault). One
  // entry per buffer; scratch may be empty.
  Checked compare(const std::vector<std::vector<std::byte>>& after) const;
  // Bytes held for later comparisons.
  std::uint64_t kept_bytes() const;

 private:
  void check_precision() const;
  void check_declared(const WeirSetup& setup, Backend backend);
  std::string place(std::size_t index) const;
  // Whether an input still has its initial contents.
  bool is_initial(std::size_t index, const std::vector<std::byte>& now) const;
  // The expected contents of each output, from the inputs as filled; empty vectors for other buffers. `reason` explains
  // a missing reference.
  std::vector<std::vector<double>> expected(const std::vector<std::vector<std::byte>>& after,
                                            std::string& reason) const;

  const HostPart& part_;
  Precision precision_;
  std::uint64_t seed_;
  // Copies: a kernel that passes the address of a local variable is faulty, but must not crash the harness.
  std::vector<std::string> names_;
  std::vector<WeirBuffer> buffers_;
  Work work_;
  void* state_ = nullptr;
  // Digests of inputs, by index, after they were filled. Generating inputs again takes longer than most measurements,
  // and keeping them takes as much memory again.
  mutable std::map<std::size_t, std::uint64_t> digests_;
  // Computed once: a reference may take longer than the whole measurement.
  mutable std::optional<std::vector<std::vector<double>>> expected_;
};

}  // namespace weir::package
