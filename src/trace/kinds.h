// What names reveal: which kernels are collectives or copies, and what a driver call does; also the names of kinds.
// Knows no file format.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "measure/timeline.h"

namespace weir {

// The letters of a function's name, lower case: "vllm::cross_device_reduce_1stage<float>(x)" and
// "_ZN4vllm26cross_device_reduce_1stageIfEEvx" both contain "crossdevicereducestage". What stands in angle brackets or
// parentheses is left out: arguments do not say what a function does.
std::string letters_of(std::string_view name, bool has_digits = false);

// A part of the names of kernels that communicate. Case, digits and punctuation do not count, so that mangled names
// and all versions match.
struct CollectiveName {
  std::string_view part;
  CollectiveKind kind;      // unknown: the rest of the name says it, if anything does
  std::string_view source;  // whose kernels have this name
};
std::span<const CollectiveName> collective_names();

// Whether a kernel of this name communicates, and what it does. Only the function's name counts, not its template
// arguments and parameters.
bool is_collective_name(std::string_view name);
CollectiveKind collective_kind_of(std::string_view name);
// Whether the name of a kernel that is in no list speaks of communication: "triton_poi_fused_add_all_reduce_0".
bool looks_like_collective(std::string_view name);
// Whether a user's pattern occurs in a name; `*` stands for any text: "myAllReduce", "comm::*::push".
bool matches_pattern(std::string_view pattern, std::string_view name);
// The kind of a kernel of this name: a collective, a copy or memset that a runtime does with its own kernels, or else a
// kernel.
SpanKind kernel_kind_of(std::string_view name);
const char* to_string(CollectiveKind kind) noexcept;
const char* to_string(SpanKind kind) noexcept;
// What a driver function does, by its name: cudaLaunchKernel, cuMemcpyAsync, hipStreamWaitEvent ...
CallKind call_kind_of(std::string_view name) noexcept;
// Whether it waits for all streams: cudaDeviceSynchronize, cuCtxSynchronize.
bool waits_for_everything(std::string_view name) noexcept;

}  // namespace weir
