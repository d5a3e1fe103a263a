// The cold interface of every device: facts, preparation, and a session that is called once per batch of commands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "device/board.h"
#include "measure/timeline.h"
#include "step/step.h"

namespace weir {

class Communicator;

// Which stream each command goes to. Computed by src/submit; a device only follows it.
struct Placement {
  std::string name;
  int stream_count = 1;
  std::vector<StreamId> stream_of;  // by command
};

// A command in one iteration of a trace, without times.
inline Span untimed_span(const Step& step, const Placement& placement, CommandId id, std::uint64_t iteration) {
  Span span;
  span.command = id;
  span.iteration = static_cast<std::uint32_t>(iteration);
  span.stream = placement.stream_of[id];
  span.role = step.commands()[id].role;
  return span;
}

// A fact that may be unknown, with the reason.
template <class T>
struct Known {
  std::optional<T> value;
  std::string reason;  // why there is no value, or where it comes from
};

// Whether a device can do something and, if not, why.
struct Capability {
  bool is_offered = true;
  std::string reason;  // why not
  explicit operator bool() const { return is_offered; }
};
inline Capability lacking(std::string reason) { return {false, std::move(reason)}; }

// The names of host calls in timelines: those of the driver's functions if there is a driver.
struct CallNames {
  std::string launch_kernel = "launch kernel";
  std::string launch_copy = "launch copy";
  std::string launch_host = "launch host function";
  std::string launch_graph = "launch graph";
  std::string wait = "wait for all";
};

struct DeviceInfo {
  std::string name;     // as the user names it: cuda:0
  std::string backend;  // cuda, hip, opencl, cpu, null, ...
  std::string model;
  std::string driver;  // versions; empty without a driver
  bool is_gpu = false;
  bool computes = true;       // false: there is no output to check
  bool is_virtual = false;    // time is simulated: its clock is Session::now_ns()
  Capability graphs;          // --submit graph
  Capability priorities;      // commands of urgent streams go first
  Capability host_functions;  // commands of kind `host`, in stream order
  Capability host_memory;     // kernels can use host memory even while the host does; probes need this
  Capability kernel_clock;    // kernels can read a clock: spin, stamp, hold, toil
  Capability compute_units = {false, "streams cannot be confined to a part of this device"};  // --compute-units
  Capability command_ends;  // each command's end is visible while the step runs: --schedule
  // Compute units that each stream is confined to, after the driver's rounding; 0: not confined. For one stream of a
  // session see Session::compute_units().
  int stream_compute_units = 0;
  int asked_compute_units = 0;  // requested, before rounding
  std::vector<Precision> precisions;
  int lowest_priority = 0, highest_priority = 0;  // on the scale of Command::priority: higher is more urgent
  Known<int> hardware_queues;
  // The environment variable that sets the number of queues and that the driver reads once; empty: --hw-queues sets it.
  std::string queue_variable;
  int max_hardware_queues = 0;  // largest number that can be requested; 0: it cannot be chosen
  Known<int> multiprocessors;
  Known<int> copy_engines;
  Known<std::uint64_t> memory_bytes;
  CallNames calls;

  // As a user would type it: "CUDA_DEVICE_MAX_CONNECTIONS=32", "--hw-queues 32".
  std::string queue_setting(int queues) const {
    return queue_variable.empty() ? "--hw-queues " + std::to_string(queues)
                                  : queue_variable + "=" + std::to_string(queues);
  }
  // False: commands take no time on this device, so only the cost of submitting can be measured.
  bool runs() const { return computes || is_virtual; }
};

// State of the hardware at one moment; values that the device does not report are empty.
struct Telemetry {
  std::optional<double> clock_mhz;
  std::optional<double> max_clock_mhz;
  std::optional<double> temperature_c;
  std::optional<double> power_w;
  std::optional<double> energy_j;      // since some fixed moment
  std::vector<std::string> throttle;   // active reasons, in words
  std::optional<double> utilisation;   // share of recent time in which any process's kernel ran: 0 to 1
  std::optional<int> other_processes;  // other processes that compute on this device
};

struct MemoryUse {
  std::optional<std::uint64_t> allocated_bytes;  // by the step's buffers
  std::optional<std::uint64_t> reserved_bytes;   // taken from the device for this session, in total
  std::optional<std::uint64_t> peak_bytes;
  std::string reason;  // why something above is empty
};

enum class SubmitMode : std::uint8_t {
  eager,  // each command is submitted to its stream separately
  graph,  // each segment of the step is recorded once and launched as a whole
};

// What is wrong with a session on purpose, to see whether it is found (weir race).
struct Disturbance {
  // Holds a command up at the head of its stream.
  struct Delay {
    CommandId command = 0;
    std::int64_t ns = 0;
    // cpu: no longer than until this command has ended, in the iteration that comes so many later; `ns` is the most
    // then. sim, whose time costs nothing, always takes all of it.
    std::optional<CommandId> until;
    std::uint32_t iterations_later = 0;
    std::optional<std::uint32_t> iteration;  // of the session, from 0; nothing: each
  };
  std::vector<std::uint32_t> missing_waits;  // left out: numbers in StepPlan::waits
  std::vector<Delay> delays;                 // cpu and sim, without graphs; at most one per command
};

struct SessionOptions {
  SubmitMode mode = SubmitMode::eager;
  int host_threads = 1;       // threads that submit: thread s % host_threads owns stream s
  bool is_pipelined = false;  // iterations may overlap and are ordered only by their data
  bool is_traced = false;     // keep a timeline (this perturbs the run)
  // take_spans() will be called. GPUs then put events around each stream's part of an iteration; the closing event
  // blocks a shared hardware queue until the stream is done.
  bool marks_iterations = true;
  int trace_iterations = 0;  // how many iterations the timeline must hold
  // GPUs: trace by events around each command even if there is a profiler, to match a pass that had to use events.
  bool traces_by_events = false;
  // progress() will be called and must be exact. GPUs then record each command's end, at the cost of a write each.
  bool follows_progress = false;
  Disturbance disturbance;
};

// First start and last end of one iteration's commands, on the device's clock.
struct IterationSpan {
  std::int64_t started_ns = kNoTime;
  std::int64_t ended_ns = kNoTime;
};

// A stream's position. Its commands end in the order of their ids, iteration after iteration, so the counts identify
// the current command.
struct StreamProgress {
  std::uint64_t submitted = 0;  // commands since the session began
  std::uint64_t ended = 0;      // those known to have ended
  bool is_exact = false;        // false: some later commands may have ended as well
};

// How much of the device one launch takes.
struct Footprint {
  std::uint32_t blocks = 1;
  std::uint32_t blocks_per_multiprocessor = 1;  // that fit on one multiprocessor at a time
};

// How a session's element-wise regions (kernel/region.h) became kernels: compiled, or found in a cache.
struct Compilation {
  std::string compiler;     // with its version; empty if there is none
  std::size_t regions = 0;  // different ones, each counted once below
  std::size_t compiled = 0, from_disk = 0, from_memory = 0, uncompiled = 0;
  std::optional<std::int64_t> compile_ns;  // host time that prepare() spent on them
  std::string reason;                      // why there is no time, or why some are not compiled
  std::string hint;                        // what can be done about it; may be empty
};

// A step prepared on a device: everything is allocated, resolved and initialised.
class Session {
 public:
  virtual ~Session() = default;

  // Opens the next iteration. Called by one thread while no thread submits. May wait if too many iterations are in
  // flight.
  virtual void begin_iteration() noexcept = 0;
  // Submits commands to their streams, in the order of the span. Several threads may call it at once if they share no
  // stream and every predecessor of a command has been submitted before. In graph mode the span is the whole step.
  virtual void submit(std::span<const CommandId> commands) noexcept = 0;
  // Waits until everything submitted has ended; throws the first failure since the last call.
  virtual void finish() = 0;

  // One entry per iteration begun since the last call, oldest first; empty if the device has no clock.
  // Call after finish().
  virtual std::vector<IterationSpan> take_spans() = 0;
  // The traced pass so far. Call after finish().
  virtual Timeline timeline() = 0;

  // Sets every buffer to its initial contents. Call while nothing runs.
  virtual void reset() = 0;
  // Copies a buffer to host memory. Call while nothing runs.
  virtual void read(BufferId buffer, std::span<std::byte> bytes) = 0;
  virtual MemoryUse memory() const = 0;

  // The host's clock as seen by this session: virtual if the device is simulated.
  virtual std::int64_t now_ns() noexcept { return weir::now_ns(); }
  // Waits for about that long while commands run.
  virtual void pause(std::int64_t ns) noexcept;
  // Queries a stream's progress, as programs do: some drivers notice only then that a command has ended.
  virtual void poll(StreamId) noexcept {}
  // A buffer in host memory, which probe kernels and the host may use while commands run. Aligned to 64 bytes.
  virtual std::span<std::byte> host_memory(BufferId buffer);
  // Progress by stream, for watching a run that may hang. May be called from any thread at any time; empty if the
  // device does not know.
  virtual std::vector<StreamProgress> progress() noexcept { return {}; }
  // How many of a stream's commands have ended since the session began, to limit how many are in flight. Called by the
  // submitting thread of a session with follows_progress; allocates nothing. Empty if the device does not report it.
  // Returns kAllEnded after a failure, so that no caller waits for ever.
  virtual std::optional<std::uint64_t> ended(StreamId) noexcept { return std::nullopt; }
  static constexpr std::uint64_t kAllEnded = UINT64_MAX;  // regardless of what was submitted
  // Waits a moment between two calls of ended(); `spins` counts the calls in a row that saw no change.
  virtual void relax(int spins) noexcept;
  // The transport of the step's collectives, in words: "MPI on host memory", "NCCL 2.28"; empty if there are none.
  virtual std::string collectives() const { return {}; }
  // Compute units that a stream is confined to; 0: it may use all of them.
  virtual int compute_units(StreamId) const { return 0; }
  // How much of the device a kernel takes; empty for other commands and if the device does not report it.
  virtual std::optional<Footprint> footprint(CommandId) const { return std::nullopt; }
  // How its regions were compiled. Empty for a step without any, and for a device that compiles nothing.
  virtual std::optional<Compilation> compilation() const { return std::nullopt; }
};

// Memory outside of any session, for data that travels to and from the device. Any thread may call it; it keeps alive
// what it needs of the device.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Aligned to at least 64 bytes. Returns null if no memory is left.
  virtual std::byte* allocate(std::size_t bytes) noexcept = 0;
  virtual void release(std::byte* memory) noexcept = 0;
  virtual bool is_host_accessible() const noexcept { return true; }
  virtual bool is_pinned() const noexcept { return false; }  // host memory that the device's engines can reach
  // Copy and wait. For memory that the host cannot access, and for tests.
  virtual void write(std::byte* to, std::span<const std::byte> from) { std::copy(from.begin(), from.end(), to); }
  virtual void read(const std::byte* from, std::span<std::byte> to) { std::copy_n(from, to.size(), to.begin()); }
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceInfo info() const = 0;
  virtual Telemetry telemetry() { return {}; }
  virtual DeviceBoard board() { return {}; }  // of devices that are boards
  // Memory of the device, or host memory that the device's engines can reach. Devices without memory of their own (cpu,
  // null, sim) return plain host memory for both.
  virtual std::unique_ptr<DeviceMemory> memory(Place place);
  // The step and the placement must outlive the session.
  virtual std::unique_ptr<Session> prepare(const Step& step, const Placement& placement,
                                           const SessionOptions& options) = 0;
};

// Device settings that users can choose; a device ignores those that do not apply to it.
struct DeviceOptions {
  int hardware_queues = 0;  // cpu: 0 = its default
  int workers = 0;          // cpu: 0 = one per core
  int compute_units = 0;    // that each stream is confined to, if the device supports it; 0 = all of them
  // With compute_units: this stream of a session gets all units that no other stream has; -1: no stream does.
  // {.compute_units = 16, .rest_stream = 0} gives stream 1 its 16 units and stream 0 the others, so they share none.
  int rest_stream = -1;
  // Reads an environment variable, for settings that drivers read by themselves; null: do not look.
  std::optional<std::string> (*variable)(const char* name) = nullptr;
  std::vector<std::pair<std::string, std::string>> sim;  // sim: settings that replace the profile's
  bool stages_collectives = false;                       // GPUs: always go through host memory and the communicator
  Communicator* communicator = nullptr;                  // carries collectives; outlives the device

  // The value of a variable as a whole number; 0 if it is unset or not a number.
  int number(const char* name) const;
};

// One kind of device in the list. Nothing is touched until `find` or `open` is called.
struct DeviceType {
  std::string name;  // the part before the colon: cuda
  std::string summary;
  // Names that `open` accepts on this machine, best first; or why there are none.
  struct Found {
    std::vector<std::string> names;
    std::string reason;
    bool are_numbered = true;        // interchangeable, so that each rank may take one
    std::size_t gpus = 0;            // how many of the first names are GPUs, for `auto`
    std::vector<std::string> notes;  // about devices that were found but cannot be used
  };
  Found (*find)();
  // `which` is the part after the colon, possibly empty. Rejects unknown devices.
  std::unique_ptr<Device> (*open)(const std::string& which, const DeviceOptions& options);
};

// For numbered devices: `which` as a number, 0 if it is empty. Rejects anything else.
int device_number(const std::string& type, const std::string& which);

std::span<const DeviceType> device_types();
// Opens "cpu", "null", "cuda:1", "sim:h200" or "auto" (the first GPU found, else cpu). Rejects anything else with a
// list of the known devices.
std::unique_ptr<Device> open_device(const std::string& name, const DeviceOptions& options);
// The same, and rejects options that the device does not support: settings of a simulation, or a part of its units.
std::unique_ptr<Device> open_able(const std::string& name, const DeviceOptions& options);

}  // namespace weir
