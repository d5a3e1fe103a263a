// The one function table over a GPU vendor's libraries. cuda.cpp and hip.cpp fill it; only gpu.cpp and its parts call
// it. CUDA's driver API and HIP share the ABI of most entries; for the others, the filler adapts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"

namespace weir {

using GpuContext = struct GpuContextHandle*;
using GpuStream = struct GpuStreamHandle*;
using GpuPart = struct GpuPartHandle*;
using GpuEvent = struct GpuEventHandle*;
using GpuModule = struct GpuModuleHandle*;
using GpuFunction = struct GpuFunctionHandle*;
using GpuGraph = struct GpuGraphHandle*;
using GpuGraphExec = struct GpuGraphExecHandle*;
using GpuBlasHandle = struct GpuBlasHandleHandle*;
using GpuComm = struct GpuCommHandle*;
using GpuPointer = unsigned long long;

struct GpuActivity;  // activity.h
struct GpuCompiler;  // compiler.h
struct GpuFp8;       // below

// Same values in CUDA and HIP.
inline constexpr unsigned kGpuStreamNonBlocking = 1;
inline constexpr unsigned kGpuEventTiming = 0;
inline constexpr unsigned kGpuEventNoTiming = 2;
inline constexpr unsigned kGpuWaitAtLeast = 0;  // for stream_wait_value
inline constexpr unsigned kGpuHostPortable = 1;
inline constexpr int kGpuCaptureRelaxed = 2;
inline constexpr int kGpuMaxSharedBytes =
    8;  // for function_attribute: requests more than 48 KiB of dynamic shared memory

// Constant facts about one device.
struct GpuFacts {
  std::string model;
  std::string bus_id;  // PCI, as the management library expects it
  int multiprocessors = 0;
  int copy_engines = 0;
  std::uint64_t memory_bytes = 0;
  bool has_tf32 = false, has_fp16 = false, has_bf16 = false;
  bool has_fp8_e4m3 = false;             // matrix units that multiply it
  std::size_t blas_workspace_bytes = 0;  // per stream, as the vendor recommends
  std::string architecture;              // as compilers name it: sm_90; empty: they detect it
  std::uint64_t cache_bytes = 0;         // of the last cache before memory; 0: not reported
};

// C = alpha * op(A) * op(B) + beta * C, all matrices row-major and dense; op(A) is m x k, op(B) is k x n. The matrices
// of a batch are contiguous.
struct GpuGemm {
  ElementType type = ElementType::f32;
  Precision precision = Precision::fp32;
  bool transposes_a = false, transposes_b = false;
  int m = 0, n = 0, k = 0;
  int batch = 1;
  float alpha = 1, beta = 0;
  GpuPointer a = 0, b = 0, c = 0;
};

// C = alpha * A B' + beta * C with operands that are rounded to e4m3 already, as [batch][m][k] and [batch][n][k], and a
// bf16 C, as [batch][m][n]. k and n are multiples of 16.
struct GpuFp8Product {
  int m = 0, n = 0, k = 0;
  int batch = 1;
  float alpha = 1, beta = 0;
  GpuPointer a = 0, b = 0;
  GpuPointer a_scale = 0, b_scale = 0;  // a float each, on the device: what the operand is multiplied by
  GpuPointer c = 0;
  GpuPointer workspace = 0;
  std::size_t workspace_bytes = 0;
};

// Products of fp8. One handle serves one context; products are planned once and launched often.
struct GpuFp8 {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*plan)(void* handle, const GpuFp8Product& product, void** plan);
  void (*drop)(void* plan);
  int (*run)(const void* plan, GpuStream stream);
  std::string (*describe)(int result);
};

// A kernel launch made by a library, as stored in a captured graph. Points into the graph, which must outlive it.
struct GpuRecordedKernel {
  GpuFunction function = nullptr;
  std::array<unsigned, 3> grid{}, block{}, cluster{};
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
};

// Matrix products; one handle serves one stream.
struct GpuBlas {
  int (*create)(GpuBlasHandle* handle);
  int (*destroy)(GpuBlasHandle handle);
  // Set the stream first: setting it resets the workspace.
  int (*set_stream)(GpuBlasHandle handle, GpuStream stream);
  int (*set_workspace)(GpuBlasHandle handle, GpuPointer workspace, std::size_t bytes);  // optional
  int (*gemm)(GpuBlasHandle handle, const GpuGemm& gemm);
  std::string (*describe)(int result);
  std::string version;
};

// Identifies a communicator that is being created; all its ranks need the same. Passed by value, as ncclUniqueId.
struct GpuCommId {
  char bytes[128];
};

// Collectives between devices; NCCL and RCCL share this ABI. `type` is a value of nccl_type(); the only `op` is a sum.
struct GpuCollectives {
  int (*get_unique_id)(GpuCommId* id);
  int (*comm_init_rank)(GpuComm* comm, int ranks, GpuCommId id, int rank);  // returns when all ranks have called it
  int (*comm_destroy)(GpuComm comm);
  int (*comm_abort)(GpuComm comm);
  int (*all_gather)(const void* from, void* to, std::size_t count, int type, GpuComm comm, GpuStream stream);
  int (*reduce_scatter)(const void* from, void* to, std::size_t count, int type, int op, GpuComm comm,
                        GpuStream stream);
  int (*all_reduce)(const void* from, void* to, std::size_t count, int type, int op, GpuComm comm, GpuStream stream);
  int (*send)(const void* from, std::size_t count, int type, int peer, GpuComm comm, GpuStream stream);
  int (*recv)(void* to, std::size_t count, int type, int peer, GpuComm comm, GpuStream stream);
  int (*group_start)();
  int (*group_end)();
  std::string (*describe)(int result);
  std::string version;
};

// Telemetry of the board. `find` returns null for a board that the library does not know.
struct GpuManagement {
  void* (*find)(const char* bus_id);
  Telemetry (*read)(void* board);
  // Optional: only the energy counter. A full reading takes about 5 ms on an H200 (driver 580, November 2026).
  std::optional<double> (*read_energy_j)(void* board);
  DeviceBoard (*read_board)(void* board);
  std::string driver_version;
};

// A host function that a stream calls in order. Passed as a pointer, so it must not move; nothing is allocated per
// launch.
struct GpuHostCall {
  void (*body)(GpuHostCall& call) = nullptr;  // must not call the table
};

// A device divided into parts that share no multiprocessor.
struct GpuDivision {
  std::vector<GpuPart> parts;  // as many as fit, all of the same size
  int units = 0;               // multiprocessors of each: as requested, or more if the driver rounds up
  GpuPart rest = nullptr;      // everything left; null if nothing is, or if it was not requested
  int rest_units = 0;
};

// Results are 0 for success, else the vendor's error number. Entries marked optional are null if the library lacks
// them: check the entry, never a version.
struct GpuApi {
  const char* backend = "";        // cuda, hip: the part of a device's name before the colon
  const char* vendor_name = "";    // for messages: CUDA
  const char* queues_reason = "";  // what determines the number of hardware queues
  const char* queue_variable = "";
  int default_hardware_queues = 0;  // if the variable is not set
  int max_hardware_queues = 0;
  const char* code_hint = "";  // if the device code cannot be loaded
  const char* lost_hint = "";  // if a device is lost: where to find more information
  std::string parts_reason;    // if the entries are missing: why streams cannot be confined
  CallNames calls;
  // The embedded device code for module_load; lives as long as the program. Null with a reason.
  const void* (*device_code)(std::string* reason) = nullptr;

  // Device facts and versions.
  int (*device_count)(int* count) = nullptr;
  int (*driver_version)(int* version) = nullptr;
  int (*facts)(int device, GpuFacts* facts) = nullptr;
  std::string (*describe)(int result) = nullptr;  // number, name and text of an error
  bool (*is_lost)(int result) = nullptr;          // after this error nothing works until the process ends
  std::string (*format_version)(int version) = nullptr;

  // Context: one per device and process, current per thread.
  int (*context_retain)(GpuContext* context, int device) = nullptr;
  int (*context_release)(int device) = nullptr;
  int (*context_set_current)(GpuContext context) = nullptr;
  int (*priority_range)(int* least, int* greatest) = nullptr;  // smaller is more urgent

  // Memory.
  int (*memory_info)(std::size_t* free_bytes, std::size_t* total_bytes) = nullptr;
  int (*memory_allocate)(GpuPointer* pointer, std::size_t bytes) = nullptr;
  int (*memory_free)(GpuPointer pointer) = nullptr;
  int (*host_allocate)(void** pointer, std::size_t bytes, unsigned flags) = nullptr;
  int (*host_free)(void* pointer) = nullptr;
  int (*copy_to_device)(GpuPointer to, const void* from, std::size_t bytes, GpuStream stream) = nullptr;
  int (*copy_to_host)(void* to, GpuPointer from, std::size_t bytes, GpuStream stream) = nullptr;
  int (*copy_on_device)(GpuPointer to, GpuPointer from, std::size_t bytes, GpuStream stream) = nullptr;
  int (*copy_any)(GpuPointer to, GpuPointer from, std::size_t bytes, GpuStream stream) = nullptr;
  int (*set_16)(GpuPointer to, unsigned short value, std::size_t count, GpuStream stream) = nullptr;
  int (*set_32)(GpuPointer to, unsigned value, std::size_t count, GpuStream stream) = nullptr;

  // Streams and events.
  int (*stream_create)(GpuStream* stream, unsigned flags, int priority) = nullptr;
  // Optional: a stream of normal priority on the compute units whose bits are set.
  int (*stream_create_masked)(GpuStream* stream, unsigned words, const unsigned* mask) = nullptr;
  // Optional, all four or none. How many multiprocessors a part of at least `wanted` gets; 0 if no such part is
  // possible.
  int (*part_units)(int device, int wanted, int* units) = nullptr;
  // Makes up to `count` such parts and, if requested, one of the rest. On failure nothing is left over.
  int (*divide)(int device, int wanted, int count, bool makes_rest, GpuDivision* division) = nullptr;
  int (*part_destroy)(GpuPart part) = nullptr;  // after its streams
  int (*part_stream)(GpuStream* stream, GpuPart part, unsigned flags, int priority) = nullptr;
  int (*stream_destroy)(GpuStream stream) = nullptr;
  int (*stream_synchronize)(GpuStream stream) = nullptr;
  int (*stream_query)(GpuStream stream) = nullptr;  // optional; 0 if everything has ended
  int (*synchronize)() = nullptr;                   // everything in the current context
  int (*stream_wait)(GpuStream stream, GpuEvent event, unsigned flags) = nullptr;
  // Optional: the stream writes a value into pinned host memory when everything before it in the stream has ended.
  int (*stream_write)(GpuStream stream, GpuPointer to, std::uint32_t value, unsigned flags) = nullptr;
  // Optional: the stream waits until a word in pinned host memory is at least `value`, compared as a wrapping distance.
  int (*stream_wait_value)(GpuStream stream, GpuPointer at, std::uint32_t value, unsigned flags) = nullptr;
  int (*event_create)(GpuEvent* event, unsigned flags) = nullptr;
  int (*event_destroy)(GpuEvent event) = nullptr;
  int (*event_record)(GpuEvent event, GpuStream stream) = nullptr;
  int (*event_synchronize)(GpuEvent event) = nullptr;
  int (*event_elapsed)(float* milliseconds, GpuEvent from, GpuEvent to) = nullptr;

  // Modules and launches.
  int (*module_load)(GpuModule* module, const void* image) = nullptr;
  int (*module_unload)(GpuModule module) = nullptr;
  int (*function_get)(GpuFunction* function, GpuModule module, const char* name) = nullptr;
  int (*function_load)(GpuFunction function) = nullptr;  // optional: loads lazily loaded code onto the device
  // Optional: offset and size of a parameter; fails after the last one.
  int (*function_parameter)(GpuFunction function, std::size_t index, std::size_t* offset, std::size_t* size) = nullptr;
  int (*function_attribute)(GpuFunction function, int attribute, int value) = nullptr;  // optional
  int (*launch)(GpuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, GpuStream stream, void** parameters,
                void** extra) = nullptr;
  // Optional: how many blocks of a launch fit on one multiprocessor at a time.
  int (*occupancy)(int* blocks, GpuFunction function, int threads, std::size_t shared_bytes) = nullptr;
  // Optional: calls the body on a driver thread, in stream order.
  int (*launch_host)(GpuStream stream, GpuHostCall* call) = nullptr;

  // Graphs; `capture_begin` is null if they are not supported.
  int (*capture_begin)(GpuStream stream, int mode) = nullptr;
  int (*capture_end)(GpuStream stream, GpuGraph* graph) = nullptr;
  int (*graph_instantiate)(GpuGraphExec* exec, GpuGraph graph, unsigned long long flags) = nullptr;
  int (*graph_upload)(GpuGraphExec exec, GpuStream stream) = nullptr;  // optional
  int (*graph_launch)(GpuGraphExec exec, GpuStream stream) = nullptr;
  int (*graph_exec_destroy)(GpuGraphExec exec) = nullptr;
  int (*graph_destroy)(GpuGraph graph) = nullptr;

  // Reads a library's kernel launches from a capture and repeats them; optional, both or neither. Accepts only a chain
  // of kernels.
  int (*graph_kernels)(GpuGraph graph, std::vector<GpuRecordedKernel>* kernels) = nullptr;
  int (*launch_recorded)(const GpuRecordedKernel& kernel, GpuStream stream) = nullptr;
  int (*graph_size)(GpuGraph graph, std::size_t* nodes) = nullptr;  // optional

  // Further libraries, opened on the first call. Null with a reason if not available.
  const GpuBlas* (*blas)(std::string* reason) = nullptr;
  const GpuFp8* (*fp8)(std::string* reason) = nullptr;  // optional
  const GpuManagement* (*management)(std::string* reason) = nullptr;
  const GpuCollectives* (*collectives)(std::string* reason) = nullptr;
  const GpuActivity* (*activity)(std::string* reason) = nullptr;  // optional
  const GpuCompiler* (*compiler)(std::string* reason) = nullptr;  // optional
};

}  // namespace weir
