// A GPU made of nothing: fills the function table with streams that run on nobody's clock but in the most awkward order
// that events allow, so that a missing wait shows. Knows CUDA's rules of streams, events and capture. Ranks may be
// threads, each with a device that it opened: contexts of one GPU know nothing of each other, as those of processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/gpu/api.h"

namespace weir::fake_gpu {

struct Settings {
  std::uint64_t seed = 1;                  // of the order in which streams advance
  std::uint64_t memory_bytes = 256 << 20;  // of the device
  int device_count = 1;
  bool has_graphs = true;
  bool has_blas = true;
  bool has_host_functions = true;
  bool has_writes = true;  // by streams into host memory
  bool has_waits = true;   // of streams for words in host memory
  int multiprocessors = 4;
  int part_step = 2;       // parts have a multiple of so many multiprocessors; 0: there are none
  bool has_masks = false;  // streams take masks of compute units
  int fail_part = -1;      // making this part (counted from 0) fails for lack of memory
  bool has_collectives = true;
  bool has_activity = false;
  bool has_recording = false;  // products can be read back from captures: two kernels each
  int activity_error = 0;      // the profiler does not start
  int drop_record = -1;        // this record (counted from 0) is dropped ...
  bool counts_dropped = true;  // ... and counted
  int incomplete_record = -1;  // this record has no times, and comes by force only
  bool swaps_kinds = false;    // copies are reported as kernels
  int fail_launch = -1;        // this launch (counted from 0) is refused ...
  int fail_run = -1;           // this kernel (counted from 0) fails while it runs, and everything after it ...
  int error = 700;             // ... with this number
};

// Starts over. Everything made before must be gone.
void reset(const Settings& settings);
const GpuApi& api();

// Things made and not given back, in words; empty if there are none.
std::string leaks();
// Kernel launches accepted so far.
int launches();
// Calls of the fake collectives since reset(), in order: "all_reduce 12 of type 7 by 0 on 1"; the last two numbers are
// the communicator's and the stream's, counted from 0 as they were made.
const std::vector<std::string>& collective_calls();
// How often the profiler was started and stopped.
int activity_starts();
int activity_stops();
// Graphs launched so far.
int graph_launches();
// Priorities of the streams made since reset(), in order; masked ones have none.
const std::vector<int>& priorities();
// Multiprocessors of the confined streams made since reset(), one bit each, in order.
const std::vector<std::uint64_t>& confined_to();

}  // namespace weir::fake_gpu
