// Where a step runs. The cold interface of every device: facts, preparation, and a session crossed once per batch.
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
#include "measure/timeline.h"
#include "step/step.h"

namespace weir {

class Communicator;

// Which stream each command goes to. Computed by src/submit; a device only obeys it.
struct Placement {
  std::string name;
  int stream_count = 1;
  std::vector<StreamId> stream_of;  // by command
};

// A fact that may be unknown, with the reason.
template <class T>
struct Known {
  std::optional<T> value;
  std::string reason;  // why there is no value, or where it comes from
};

// Whether a device can do something, and why not where it cannot.
struct Capability {
  bool is_offered = true;
  std::string reason;  // why not
  explicit operator bool() const { return is_offered; }
};
inline Capability lacking(std::string reason) { return {false, std::move(reason)}; }

// What the host calls, as timelines name it: the driver's functions where there is a driver.
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
  std::string driver;  // versions, empty where there is none
  bool is_gpu = false;
  bool computes = true;       // false: there is no output to check
  bool is_virtual = false;    // time is simulated: its clock is Session::now_ns()
  Capability graphs;          // --submit graph
  Capability priorities;      // commands of urgent streams come first
  Capability host_functions;  // commands of kind `host`, in stream order
  Capability host_memory;     // kernels use host memory, also while the host does: what probes need
  Capability kernel_clock;    // kernels can read a clock: spin, stamp, hold
  Capability compute_units = {false, "streams cannot be confined to a part of this device"};  // --compute-units
  Capability command_ends;  // while it runs, each command's end can be seen: --schedule
  // That each stream is confined to, as the driver rounds what was asked for; 0: none is. Of one session and stream:
  // Session::compute_units().
  int stream_compute_units = 0;
  int asked_compute_units = 0;  // before rounding
  std::vector<Precision> precisions;
  int lowest_priority = 0, highest_priority = 0;  // as of Command::priority: higher is more urgent
  Known<int> hardware_queues;
  // How their number is chosen: by a variable that the driver reads once, or by --hw-queues where that is empty.
  std::string queue_variable;
  int most_hardware_queues = 0;  // that may be asked for; 0: it cannot be chosen
  Known<int> multiprocessors;
  Known<int> copy_engines;
  Known<std::uint64_t> memory_bytes;
  CallNames calls;

  // As a user would type it: "CUDA_DEVICE_MAX_CONNECTIONS=32", "--hw-queues 32".
  std::string queue_setting(int queues) const {
    return queue_variable.empty() ? "--hw-queues " + std::to_string(queues)
                                  : queue_variable + "=" + std::to_string(queues);
  }
  // False: nothing takes any time there, so there is nothing to measure but the cost of submitting.
  bool runs() const { return computes || is_virtual; }
};

// State of the hardware at one moment; what the device cannot tell is empty.
struct Telemetry {
  std::optional<double> clock_mhz;
  std::optional<double> max_clock_mhz;
  std::optional<double> temperature_c;
  std::optional<double> power_w;
  std::optional<double> energy_j;      // since some fixed moment
  std::vector<std::string> throttle;   // reasons in force, in words
  std::optional<double> utilisation;   // of the time lately in which some kernel ran, whoever's: 0 to 1
  std::optional<int> other_processes;  // that compute on this device besides the one that asks
};

struct MemoryUse {
  std::optional<std::uint64_t> allocated_bytes;  // by the step's buffers
  std::optional<std::uint64_t> reserved_bytes;   // taken from the device for this session, everything included
  std::optional<std::uint64_t> peak_bytes;
  std::string reason;  // why something above is empty
};

enum class SubmitMode : std::uint8_t {
  eager,  // each command goes to its stream by itself
  graph,  // each segment of the step is recorded once and launched as one
};

struct SessionOptions {
  SubmitMode mode = SubmitMode::eager;
  int host_threads = 1;       // that will submit, each its own streams: stream s belongs to thread s % host_threads
  bool is_pipelined = false;  // iterations may overlap: order them where the data asks for it
  bool is_traced = false;     // keep a timeline (perturbs)
  // take_spans() will be asked. GPUs then put events around each stream's part of an iteration, and the one behind it
  // holds a shared hardware queue up until the stream is done.
  bool marks_iterations = true;
  int trace_iterations = 0;  // how many iterations the timeline must hold
  // GPUs: by events around each command, also where a profiler could do better: as another pass that could not.
  bool traces_by_events = false;
  // progress() will be asked for and shall be exact. GPUs then note the end of every command, which costs each a write.
  bool follows_progress = false;
};

// First start and last end of one iteration's commands, on the device's clock.
struct IterationSpan {
  std::int64_t started_ns = kNoTime;
  std::int64_t ended_ns = kNoTime;
};

// How far a stream has come. A stream's commands end in the order of their ids, iteration after iteration, so counts
// say which one it is at.
struct StreamProgress {
  std::uint64_t submitted = 0;  // commands since the session began
  std::uint64_t ended = 0;      // of these: all that are known to have
  bool is_exact = false;        // false: some that came after `ended` may have ended as well
};

// How much of the device one launch takes.
struct Footprint {
  std::uint32_t blocks = 1;
  std::uint32_t blocks_per_multiprocessor = 1;  // that fit on one at a time
};

// A step prepared on a device: everything allocated, resolved and initialised.
class Session {
 public:
  virtual ~Session() = default;

  // Opens the next iteration. Called by one thread while nobody submits. May wait when too many iterations are in
  // flight.
  virtual void begin_iteration() noexcept = 0;
  // Gives commands to their streams, in the order of the span. Several threads may call it at once if no stream is
  // shared between them and every predecessor of a command was submitted before. In graph mode the span is the whole
  // step.
  virtual void submit(std::span<const CommandId> commands) noexcept = 0;
  // Waits until everything submitted has ended; throws what went wrong since the last call.
  virtual void finish() = 0;

  // One entry per iteration begun since the last call, oldest first; empty where the device has no clock.
  // Call after finish().
  virtual std::vector<IterationSpan> take_spans() = 0;
  // The traced pass so far. Call after finish().
  virtual Timeline timeline() = 0;

  // Sets every buffer to its initial contents. Call while nothing runs.
  virtual void reset() = 0;
  // Copies a buffer to host memory. Call while nothing runs.
  virtual void read(BufferId buffer, std::span<std::byte> bytes) = 0;
  virtual MemoryUse memory() const = 0;

  // The host's clock as this session lives it: virtual where the device is simulated.
  virtual std::int64_t now_ns() noexcept { return weir::now_ns(); }
  // Lets about that much time pass while commands run.
  virtual void pause(std::int64_t ns) noexcept;
  // Asks how far a stream is, as programs do: some drivers notice only then that something has ended.
  virtual void poll(StreamId) noexcept {}
  // A buffer in host memory, which probe kernels and the host may use while commands run. Aligned to 64 bytes.
  virtual std::span<std::byte> host_memory(BufferId buffer);
  // By stream: for whoever watches a run that does not go on. From any thread, at any time; empty where the device does
  // not know.
  virtual std::vector<StreamProgress> progress() noexcept { return {}; }
  // How many of a stream's commands have ended since the session began, for who lets only so many go at a time: without
  // an allocation, by the thread that submits, in a session that follows progress. Nothing where the device does not
  // tell. After a failure kAllEnded, so that nobody waits for what will not come.
  virtual std::optional<std::uint64_t> ended(StreamId) noexcept { return std::nullopt; }
  static constexpr std::uint64_t kAllEnded = UINT64_MAX;  // whatever was submitted
  // Lets a moment pass between two looks at ended(): the `spins`-th in a row at which nothing had.
  virtual void relax(int spins) noexcept;
  // What carries the step's collectives, in words: "MPI on host memory", "NCCL 2.28"; empty where it has none.
  virtual std::string collectives() const { return {}; }
  // Compute units that a stream is confined to; 0: all of the device's are open to it.
  virtual int compute_units(StreamId) const { return 0; }
  // What a kernel takes of the device; nothing for other commands and where the device does not tell.
  virtual std::optional<Footprint> footprint(CommandId) const { return std::nullopt; }
};

// Memory outside of any session, for what travels to and from the device. Any thread may call it; it keeps what it
// needs of the device alive.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Aligned to 64 bytes at least. Null: there is none left.
  virtual std::byte* allocate(std::size_t bytes) noexcept = 0;
  virtual void release(std::byte* memory) noexcept = 0;
  virtual bool is_host_accessible() const noexcept { return true; }
  virtual bool is_pinned() const noexcept { return false; }  // the host's, and the device's engines reach it
  // Copies and waits. For memory that the host cannot touch, and for tests.
  virtual void write(std::byte* to, std::span<const std::byte> from) { std::copy(from.begin(), from.end(), to); }
  virtual void read(const std::byte* from, std::span<std::byte> to) { std::copy_n(from, to.size(), to.begin()); }
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceInfo info() const = 0;
  virtual Telemetry telemetry() { return {}; }
  // Memory of the device, or of the host where the device's engines reach it. Devices that have none of their own (cpu,
  // null, sim) give plain host memory for both.
  virtual std::unique_ptr<DeviceMemory> memory(Place place);
  // The step and the placement must outlive the session.
  virtual std::unique_ptr<Session> prepare(const Step& step, const Placement& placement,
                                           const SessionOptions& options) = 0;
};

// Settings of devices that users can choose; a device ignores what does not concern it.
struct DeviceOptions {
  int hardware_queues = 0;  // cpu: 0 = its default
  int workers = 0;          // cpu: 0 = one per core
  int compute_units = 0;    // that each stream is confined to, where the device can do that; 0 = all of them
  // With compute_units: this stream of a session gets all units that no other stream has; -1: none does. So two streams
  // share nothing: {.compute_units = 16, .rest_stream = 0} gives stream 1 its 16 and stream 0 the others.
  int rest_stream = -1;
  // What an environment variable says, for settings that drivers read by themselves; null: nobody asked.
  std::optional<std::string> (*variable)(const char* name) = nullptr;
  std::vector<std::pair<std::string, std::string>> sim;  // sim: settings that replace the profile's
  bool stages_collectives = false;  // GPUs: through host memory and the communicator, whatever the vendor's library can
  Communicator* communicator = nullptr;  // what collectives go through; outlives the device

  // A variable that holds a whole number; 0 where it is not set or none.
  int number(const char* name) const;
};

// One kind of device in the list. Nothing is touched until `find` or `open` is called.
struct DeviceType {
  std::string name;  // the part before the colon: cuda
  std::string summary;
  // Names that `open` takes on this machine, best first; or why there are none.
  struct Found {
    std::vector<std::string> names;
    std::string reason;
    bool are_numbered = true;        // alike, so that ranks may take one each
    std::size_t gpus = 0;            // of the names, the first ones: what `auto` may take
    std::vector<std::string> notes;  // about what is there and cannot be used
  };
  Found (*find)();
  // `which` is the part after the colon, empty where there is none. Rejects what is not there.
  std::unique_ptr<Device> (*open)(const std::string& which, const DeviceOptions& options);
};

// For devices that are numbered: `which` as a number, 0 where it is empty. Rejects anything else.
int device_number(const std::string& type, const std::string& which);

std::span<const DeviceType> device_types();
// Opens "cpu", "null", "cuda:1", "sim:h200" or "auto" (the first GPU found, else cpu). Rejects anything else, saying
// what there is.
std::unique_ptr<Device> open_device(const std::string& name, const DeviceOptions& options);

}  // namespace weir
