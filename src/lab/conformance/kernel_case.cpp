#include "lab/conformance/kernel_case.h"

#include <fmt/format.h>

#include "lab/conformance/checks.h"

namespace weir::conformance {
namespace {

BufferId buffer_of(StepBuilder& builder, ElementType type, Place place, std::uint64_t count, bool is_output,
                   const OperandContents& contents) {
  using enum OperandContents::Kind;
  const float scale = type == ElementType::i32 ? 1'000 : contents.value;
  if (place == Place::host) return builder.host(type, count, is_output ? Init::poison : Init::uniform, scale);
  if (is_output) return builder.output(type, count);
  switch (contents.kind) {
    case integers:
      return builder.integers(count, static_cast<std::int64_t>(contents.value));
    case constant:
      return builder.constant(type, count, contents.value);
    case indices:
      return builder.indices(count);
    case ramp:
      return builder.ramp(type, count, contents.value);
    case uniform:
      break;
  }
  return builder.uniform(type, count, scale, contents.offset);
}

}  // namespace

Step step_of(const KernelCase& kernel_case, int launches) {
  const Kernel& body = kernel(kernel_named(kernel_case.kernel));
  const auto extents = body.extents(kernel_case.shape);
  const std::string_view modes = body.operands(kernel_case.shape);
  StepBuilder builder(11);
  std::vector<Operand> operands;
  std::size_t given = 0;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const auto count = static_cast<std::uint64_t>(extents[i]);
    const bool is_output = modes[i] == 'w';
    OperandContents contents;
    if (!is_output && given < kernel_case.contents.size()) contents = kernel_case.contents[given];
    if (!is_output) ++given;
    const BufferId buffer =
        buffer_of(builder, body.type_of(kernel_case.shape, i), body.is_host_only ? Place::host : Place::device,
                  count + 2 * kernel_case.margin, is_output, contents);
    operands.push_back({buffer, kernel_case.margin, count});
  }
  for (int i = 0; i < launches; ++i) {
    if (body.is_host_only) {
      builder.launch_on_host(kernel_case.kernel, {}, kernel_case.shape, operands);
    } else {
      builder.launch(kernel_case.kernel, {}, kernel_case.shape, operands);
    }
  }
  return std::move(builder).seal(1);
}

std::string name_of(const KernelCase& kernel_case) {
  const KernelShape& shape = kernel_case.shape;
  std::string name = fmt::format("{}/{}", kernel_case.kernel, name_of(shape.type));
  if (shape.precision == Precision::tf32 || is_fp8(shape.precision))
    name += fmt::format("/{}", name_of(shape.precision));
  std::string sizes = kernel_case.sizes;
  if (sizes.empty()) {
    std::size_t used = shape.dims.size();
    while (used > 1 && shape.dims[used - 1] == 0) --used;
    for (std::size_t i = 0; i < used; ++i) sizes += (i == 0 ? "" : "x") + std::to_string(shape.dims[i]);
  }
  return name + "/" + sizes + (kernel_case.margin > 0 ? fmt::format("+{}", kernel_case.margin) : "");
}

ConformanceCase conformance_case(std::string group, KernelCase kernel_case) {
  ConformanceCase each;
  const Kernel& body = kernel(kernel_named(kernel_case.kernel));
  each.group = std::move(group);
  each.name = name_of(kernel_case);
  each.kernel = body.name;
  each.type = kernel_case.shape.type;
  each.needs.results = true;
  each.needs.host_functions = body.is_host_only;
  each.needs.kernel_clock = body.lasts != Lasts::by_work;
  if (!body.is_host_only) each.needs.precision = kernel_case.shape.precision;
  each.examine = [kernel_case = std::move(kernel_case)](Subject& subject) {
    return same_as_reference(subject, step_of(kernel_case));
  };
  return each;
}

}  // namespace weir::conformance
