// One case of a host part. Checks what setup() declares before anything is allocated by it.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/units.h"
#include "device/cpu/host.h"
#include "lab/kernels/package/host_part.h"
#include "lab/kernels/package/numbers.h"
#include "lab/kernels/package/text.h"

namespace weir::package {
namespace {

constexpr std::uint32_t kMaxBuffers = 1024;
constexpr std::uint64_t kMaxCaseBytes = std::uint64_t{1} << 56;  // larger than any address, and far from overflow
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string precisions_in(std::uint32_t bits) {
  std::string names;
  for (const Precision precision : kPrecisions)
    if ((bits & bit_of(precision)) != 0) names += (names.empty() ? "" : ", ") + std::string(name_of(precision));
  return names;
}

// 0 means: not given.
std::optional<double> reported(const HostPart& part, const char* what, double value) {
  if (!std::isfinite(value) || value < 0)
    reject(fmt::format("{}: setup() says {} = {:g}", part.name(), what, value), "Give 0 where it is not known.");
  if (value == 0) return std::nullopt;
  return value;
}

// Shows whether bytes have changed without keeping them: a change of one word is always detected, because every step is
// reversible. Four chains, so that it keeps up with memory.
std::uint64_t digest_of(const std::byte* bytes, std::uint64_t size) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15U;
  std::uint64_t chains[4] = {1, 2, 3, 4}, words[4];
  const auto take = [&](std::uint64_t count) {
    std::memcpy(words, bytes, count);
    bytes += count;
    for (int i = 0; i < 4; ++i) {
      chains[i] = (chains[i] ^ words[i]) * kFactor;
      chains[i] ^= chains[i] >> 32;
    }
  };
  for (; size >= sizeof words; size -= sizeof words) take(sizeof words);
  std::fill(std::begin(words), std::end(words), 0);
  take(size);
  std::uint64_t digest = 0;
  for (const std::uint64_t chain : chains) {
    digest = (digest ^ chain) * kFactor;
    digest ^= digest >> 32;
  }
  return digest;
}

class Teardown {
 public:
  Teardown(const WeirKernel& table, void* state) : table_(table), state_(state) {}
  ~Teardown() {
    if (is_wanted_) table_.teardown(state_);
  }
  Teardown(const Teardown&) = delete;
  Teardown& operator=(const Teardown&) = delete;
  void release() { is_wanted_ = false; }

 private:
  const WeirKernel& table_;
  void* state_;
  bool is_wanted_ = true;
};

}  // namespace

HostCase::HostCase(const HostPart& part, const Case& wanted, int threads)
    : part_(part), precision_(wanted.precision), seed_(wanted.seed) {
  const WeirKernel& table = part.table();
  if ((table.backends & bit_of(wanted.backend)) == 0)
    reject(fmt::format("{}: the kernel says that it does not serve {}", part.name(), name_of(wanted.backend)));
  if ((table.precisions & bit_of(wanted.precision)) == 0)
    reject(fmt::format("{}: the kernel has no {}", part.name(), name_of(wanted.precision)),
           fmt::format("It has {}.", precisions_in(table.precisions)));
  const Problem full = complete_problem(part.name(), part.defaults(), wanted.problem);
  std::vector<WeirParameter> parameters;
  for (const Setting& setting : full)
    parameters.push_back(
        {setting.name.c_str(), static_cast<std::uint32_t>(setting.values.size()), setting.values.data()});
  WeirProblem problem{};
  problem.size = sizeof problem;
  problem.backend = bit_of(wanted.backend);
  problem.precision = bit_of(wanted.precision);
  problem.threads = static_cast<std::uint32_t>(std::max(1, threads));
  problem.seed = wanted.seed;
  problem.parameter_count = static_cast<std::uint32_t>(parameters.size());
  problem.parameters = parameters.data();

  WeirSetup setup{};
  setup.size = sizeof setup;
  part.call("setup", [&] { return table.setup(&problem, &setup, &state_); });
  Teardown undo(table, state_);
  check_declared(setup, wanted.backend);
  undo.release();
}

HostCase::~HostCase() { part_.table().teardown(state_); }

std::string HostCase::place(std::size_t index) const {
  return fmt::format("{}: buffer '{}'", part_.name(), names_[index]);
}

void HostCase::check_declared(const WeirSetup& setup, Backend backend) {
  const std::string& name = part_.name();
  if (setup.buffer_count > kMaxBuffers || (setup.buffer_count > 0 && setup.buffers == nullptr))
    reject(fmt::format("{}: setup() declares {} buffers{}", name, setup.buffer_count,
                       setup.buffers == nullptr ? " by a null pointer" : ""),
           fmt::format("At most {} are taken.", kMaxBuffers));
  buffers_.assign(setup.buffers, setup.buffers + setup.buffer_count);
  names_.reserve(buffers_.size());
  std::set<std::string> seen;
  std::uint64_t total = 0, largest = 0;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    WeirBuffer& buffer = buffers_[i];
    if (!is_name(buffer.name)) reject(fmt::format("{}: buffer {} has no name of printable characters", name, i));
    names_.emplace_back(buffer.name);
    buffer.name = names_.back().c_str();
    if (!seen.insert(names_.back()).second) reject(fmt::format("{}: declared twice", place(i)));
    if (buffer.role > WEIR_SCRATCH)
      reject(fmt::format("{} has the unknown role {}", place(i), buffer.role), "See WEIR_INPUT in weir/kernel.h.");
    if (buffer.type > WEIR_U8)
      reject(fmt::format("{} has the unknown type {}", place(i), buffer.type), "See WEIR_REAL in weir/kernel.h.");
    if (buffer.count == 0) reject(fmt::format("{} has no elements", place(i)));
    const Number number = number_of(buffer.type, precision_);
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(buffer.count, size_of(number), &bytes) || __builtin_add_overflow(total, bytes, &total) ||
        total > kMaxCaseBytes)
      reject(fmt::format("{} has {} elements: more than any memory", place(i), buffer.count));
    largest = std::max(largest, bytes);
    if (buffer.role != WEIR_INPUT) continue;
    if (const std::string trouble = trouble_with_fill(buffer, number); !trouble.empty())
      reject(fmt::format("{} {}", place(i), trouble));
    if (buffer.fill == WEIR_OWN && part_.table().fill == nullptr)
      reject(fmt::format("{} is to be filled by the kernel, which has no fill()", place(i)));
  }
  check_precision();
  // Except on the CPU, one buffer at a time passes through host memory.
  const std::uint64_t needed = backend == Backend::cpu ? total : largest;
  if (const auto available = cpu::available_memory_bytes({}); available && needed > *available)
    reject(fmt::format("{}: the buffers of this problem take {}, and {} of memory are available", name,
                       format_bytes(needed), format_bytes(*available)),
           "Choose a smaller problem_size.");
  work_.flop = reported(part_, "flop", setup.flop);
  work_.bytes = reported(part_, "bytes", setup.bytes);
  work_.items = reported(part_, "items", setup.items);
  work_.item_name = printable(setup.item_name, 100);
}

// Without a buffer of WEIR_REAL the precision changes nothing and would be a mere label. That is accepted if the kernel
// supports only one precision and its reals are of that type.
void HostCase::check_precision() const {
  if (buffers_.empty()) return;
  const Number real = number_of(WEIR_REAL, precision_);
  bool is_label = !std::has_single_bit(part_.table().precisions & kPrecisionBits);
  for (const WeirBuffer& buffer : buffers_) {
    if (buffer.type == WEIR_REAL) return;
    const Number number = number_of(buffer.type, precision_);
    is_label |= !is_whole(number) && number != real;
  }
  if (is_label)
    reject(fmt::format("{}: no buffer is of type WEIR_REAL, so {} would be a mere label", part_.name(),
                       name_of(precision_)),
           "Declare the buffers whose type is the precision as WEIR_REAL, or name one precision in the table.");
}

std::uint64_t HostCase::bytes(std::size_t index) const {
  return buffers_[index].count * size_of(number_of(buffers_[index].type, precision_));
}

std::uint64_t HostCase::total_bytes() const {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < buffers_.size(); ++i) total += bytes(i);
  return total;
}

void HostCase::write_initial(std::size_t index, std::byte* to) const {
  const WeirBuffer& buffer = buffers_[index];
  const Number number = number_of(buffer.type, precision_);
  if (buffer.role != WEIR_INPUT) {
    std::memset(to, static_cast<int>(kPoison), bytes(index));
    return;
  }
  const auto own_index = static_cast<std::uint32_t>(index);
  if (buffer.fill != WEIR_OWN) {
    draw_all(buffer, own_index, seed_, number, to);
    digests_[index] = digest_of(to, bytes(index));
    return;
  }
  std::vector<double> values(buffer.count, kNaN);
  part_.call("fill", [&] { return part_.table().fill(state_, own_index, seed_, values.data()); });
  const auto empty = std::find_if(values.begin(), values.end(), [](double value) { return std::isnan(value); });
  if (empty != values.end())
    fail(fmt::format("{}: fill() left element {} unwritten, or NaN", place(index), empty - values.begin()));
  if (const std::size_t misfit = encode(number, values, to); misfit < values.size())
    fail(fmt::format("{}: fill() put {:g} into element {}, which its type cannot hold", place(index), values[misfit],
                     misfit));
  digests_[index] = digest_of(to, bytes(index));
}

std::vector<std::byte> HostCase::initial(std::size_t index) const {
  std::vector<std::byte> result(bytes(index));
  write_initial(index, result.data());
  return result;
}

std::vector<double> HostCase::decode(std::size_t index, const std::byte* bytes) const {
  std::vector<double> values(buffers_[index].count);
  package::decode(number_of(buffers_[index].type, precision_), bytes, values);
  return values;
}

bool HostCase::is_initial(std::size_t index, const std::vector<std::byte>& now) const {
  const auto found = digests_.find(index);
  return found == digests_.end() ? now == initial(index) : digest_of(now.data(), now.size()) == found->second;
}

std::vector<std::vector<double>> HostCase::expected(const std::vector<std::vector<std::byte>>& after,
                                                    std::string& reason) const {
  if (part_.table().reference == nullptr) {
    reason = "the kernel has no reference";
    return std::vector<std::vector<double>>(buffers_.size());
  }
  if (expected_) return *expected_;
  std::vector<std::vector<double>> inputs(buffers_.size()), outputs(buffers_.size());
  std::vector<const double*> from(buffers_.size());
  std::vector<double*> to(buffers_.size());
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].role == WEIR_INPUT)
      inputs[i] = is_initial(i, after[i]) ? decode(i, after[i].data()) : decode(i, initial(i).data());
    if (buffers_[i].role == WEIR_OUTPUT) outputs[i].assign(buffers_[i].count, kNaN);
    from[i] = inputs[i].empty() ? nullptr : inputs[i].data();
    to[i] = outputs[i].empty() ? nullptr : outputs[i].data();
  }
  part_.call("reference", [&] { return part_.table().reference(state_, from.data(), to.data()); });
  expected_ = outputs;
  return outputs;
}

std::uint64_t HostCase::kept_bytes() const {
  std::uint64_t bytes = 0;
  if (expected_)
    for (const std::vector<double>& values : *expected_) bytes += values.size() * sizeof(double);
  return bytes;
}

Checked HostCase::compare(const std::vector<std::vector<std::byte>>& after) const {
  Checked checked;
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i].role != WEIR_SCRATCH && after[i].size() != bytes(i))
      fail(fmt::format("{}: read {} of {} bytes", place(i), after[i].size(), bytes(i)));
  std::vector<std::vector<double>> wanted = expected(after, checked.reason);
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const WeirBuffer& buffer = buffers_[i];
    if (buffer.role == WEIR_SCRATCH) continue;
    if (buffer.role == WEIR_INPUT) {
      if (!is_initial(i, after[i])) checked.faults.push_back(fmt::format("wrote to its input '{}'", buffer.name));
      continue;
    }
    const Number number = number_of(buffer.type, precision_);
    const std::size_t size = size_of(number);
    CheckedOutput output{buffer.name, decode(i, after[i].data()), std::move(wanted[i]), is_whole(number)};
    const std::vector<std::byte> poison(size, kPoison);
    std::uint64_t unwritten = 0, not_numbers = 0, unknown = 0;
    for (std::uint64_t k = 0; k < buffer.count; ++k) {
      const bool is_poison = std::memcmp(after[i].data() + k * size, poison.data(), size) == 0;
      // An integer that looks like poison may be a result; then the reference has the same value.
      const bool may_be_result = output.is_whole && (output.expected.empty() || output.expected[k] == output.actual[k]);
      if (is_poison && !may_be_result) {
        ++unwritten;
      } else if (std::isnan(output.actual[k])) {
        ++not_numbers;
      }
      if (!output.expected.empty() && std::isnan(output.expected[k])) ++unknown;
    }
    const auto add_fault = [&](std::uint64_t count, const char* what) {
      if (count > 0)
        checked.faults.push_back(
            fmt::format("output {}: {} of {} elements {}", buffer.name, count, buffer.count, what));
    };
    add_fault(unwritten, "were never written");
    add_fault(not_numbers, "are NaN");
    add_fault(unknown, "are NaN in the reference, or it never wrote them");
    checked.outputs.push_back(std::move(output));
  }
  if (checked.outputs.empty() && checked.reason.empty()) checked.reason = "the kernel declares no output";
  return checked;
}

}  // namespace weir::package
