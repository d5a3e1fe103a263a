// The functions of the CUDA driver that matter here: what each does, and where among its arguments its stream and
// its object are. One table for all that follows calls.
#pragma once

#include <cupti.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "trace/record_format.h"

namespace weir::inject {

struct CudaFunction {
  // How the stream is found.
  enum class Stream : std::uint8_t {
    none,
    argument,
    config,    // in the CUlaunchConfig that the argument points to
    list,      // in the first element of the list that the argument points to
    implicit,  // the default stream
  };
  enum class Object : std::uint8_t {
    none,
    handle,   // an event, a graph, or an address
    made,     // what the argument points to when the call has returned
    bytes,    // a size_t
    words16,  // a number of words of 2 or 4 bytes
    words32,
  };
  enum class Role : std::uint8_t {
    plain,
    capture_begins,
    capture_ends,
    stream_ends,  // the stream's handle may belong to another one from now on
    names_end,    // a module is unloaded: the addresses of its names may be reused
    context_ends,
    graph_made,     // an executable graph, of a graph
    graph_changes,  // an executable graph differs from what it was made of
    graph_ends,
    may_wait,  // of interest to those who ask where a program hangs
    touches,   // memory, streams that are made, and questions: to those who ask which commands touch the same memory
  };
  std::uint16_t id = 0;
  bool is_followed = false;
  bool is_per_thread = false;  // the meaning of the null stream in it
  record::Kind kind = record::Kind::other;
  Stream stream = Stream::none;
  Object object = Object::none;
  Role role = Role::plain;
  std::uint16_t stream_at = 0, object_at = 0;
  const char* name = nullptr;
};

constexpr bool ends_context(const CudaFunction& function) noexcept {
  return function.role == CudaFunction::Role::context_ends;
}
constexpr bool is_about_graphs(const CudaFunction& function) noexcept {
  return function.role == CudaFunction::Role::graph_made || function.role == CudaFunction::Role::graph_changes ||
         function.role == CudaFunction::Role::graph_ends;
}
constexpr bool is_about_touches(const CudaFunction& function) noexcept {
  return function.role == CudaFunction::Role::touches;
}
// Commands that the driver enqueues without waiting.
constexpr bool is_launch(const CudaFunction& function) noexcept {
  return record::is_command(function.kind) && function.kind != record::Kind::synchronous_copy;
}

inline constexpr std::size_t kMaxCudaFunctions = record::kFunctions;

// By number; unknown ones are not followed.
const std::array<CudaFunction, kMaxCudaFunctions>& cuda_functions() noexcept;

// Which stream a call is about, from its arguments; never null for a function whose Stream is not none: the default
// streams have handles of their own.
CUstream stream_of(const CudaFunction& function, const void* arguments) noexcept;
// Null streams are replaced by CU_STREAM_LEGACY or CU_STREAM_PER_THREAD.
std::uint64_t object_of(const CudaFunction& function, const void* arguments, bool is_entry) noexcept;

}  // namespace weir::inject
