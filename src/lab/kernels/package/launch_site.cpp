#include "lab/kernels/package/launch_site.h"

#include <fmt/format.h>

#include <cstring>
#include <exception>

#include "lab/kernels/package/text.h"

namespace weir::package {
namespace {

template <class T>
PackedArgument packed(T value) {
  static_assert(sizeof value <= sizeof(std::uint64_t));
  PackedArgument result{0, sizeof value};
  std::memcpy(&result.word, &value, sizeof value);
  return result;
}

}  // namespace

PackedArgument pack(const WeirArgument& argument, std::span<void* const> buffers) {
  switch (argument.kind) {
    case WEIR_ARGUMENT_I32:
      return packed(argument.value.i32);
    case WEIR_ARGUMENT_I64:
      return packed(argument.value.i64);
    case WEIR_ARGUMENT_F32:
      return packed(argument.value.f32);
    case WEIR_ARGUMENT_F64:
      return packed(argument.value.f64);
    default:
      return packed(buffers[argument.buffer]);
  }
}

const char* launch_fault(const WeirLaunch& launch, std::size_t buffer_count) noexcept {
  if (launch.function == nullptr || *launch.function == '\0') return "has no name";
  if (launch.argument_count > kMaxArguments) return "has more than 64 arguments";
  if (launch.argument_count > 0 && launch.arguments == nullptr) return "has arguments, but the pointer to them is null";
  for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
    const WeirArgument& argument = launch.arguments[i];
    if (argument.kind > WEIR_ARGUMENT_F64) return "has an argument of a kind that weir/kernel.h does not have";
    if (argument.kind == WEIR_ARGUMENT_BUFFER && argument.buffer >= buffer_count)
      return "has an argument that names a buffer which setup() did not declare";
  }
  return nullptr;
}

LaunchSite::LaunchSite(Backend backend, Precision precision, void* native, std::vector<void*> buffers,
                       std::string where, bool launches_itself)
    : buffers_(std::move(buffers)), where_(std::move(where)) {
  stream_.size = sizeof stream_;
  stream_.backend = bit_of(backend);
  stream_.precision = bit_of(precision);
  stream_.native = native;
  stream_.buffers = buffers_.data();
  stream_.launch = launches_itself ? nullptr : launch_entry;
  stream_.harness = this;
}

int LaunchSite::launch_entry(WeirStream* stream, const WeirLaunch* launch) noexcept {
  auto& self = *static_cast<LaunchSite*>(stream->harness);
  try {
    if (const char* const fault = launch_fault(*launch, self.buffers_.size()); fault != nullptr)
      return self.refuse(launch->function, fault);
    const int result = self.launch(*launch);
    if (result == 0) ++self.count_;
    return result;
  } catch (const std::exception& error) {  // kernels are C: no exception may pass through them
    return self.refuse(launch->function, error.what());
  }
}

int LaunchSite::refuse(const char* function, const std::string& what, int result) {
  if (trouble_.empty()) trouble_ = fmt::format("{}: function '{}' {}", where_, printable(function, 200), what);
  return result;
}

// Compares the text as well: a kernel may write another name into the same memory.
std::size_t LaunchSite::find(const char* name) noexcept {
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (names_[i].pointer == name && names_[i].text == name) return i;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].text != name) continue;
    names_[i].pointer = name;
    return i;
  }
  return kUnknown;
}

std::size_t LaunchSite::add(const char* name) {
  names_.push_back({name, name});
  return names_.size() - 1;
}

}  // namespace weir::package
