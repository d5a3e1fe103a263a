// Reads XLA's profiles (xplane.pb of JAX, TensorFlow and PyTorch/XLA): streams of GPUs, the driver calls that filled
// them, and which operation of which program each kernel is of. A plane is held in memory, because names follow the
// events.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "trace/import/json_text.h"
#include "trace/import/list.h"
#include "trace/import/protobuf_reader.h"
#include "trace/import/xla_scope.h"
#include "trace/import/xplane_events.h"

namespace weir {
namespace {

constexpr std::string_view kGpuPlane = "/device:GPU:";
constexpr std::string_view kStreamLine = "Stream #";
constexpr std::size_t kMaxWarnings = 5;
constexpr std::size_t kLongestWarning = 300;

// "kind_src:device kind_dst:pinned size:4096 dest:0 async:1": the text after "size:"; empty where there is none
std::string_view detail(std::string_view text, std::string_view key) noexcept {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const bool is_whole = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\n';
    if (!is_whole) continue;
    text.remove_prefix(at + key.size());
    return text.substr(0, text.find_first_of(" \n"));
  }
  return {};
}

// "16,2,1": 32, at most what fits
std::uint64_t product_of_extents(std::string_view extents) noexcept {
  std::uint64_t product = extents.empty() ? 0 : 1;
  while (!extents.empty()) {
    const std::size_t comma = std::min(extents.find(','), extents.size());
    const auto extent = number_in<std::uint64_t>(extents.substr(0, comma));
    if (!extent) return 0;
    if (__builtin_mul_overflow(product, *extent, &product)) product = std::numeric_limits<std::uint64_t>::max();
    extents.remove_prefix(std::min(comma + 1, extents.size()));
  }
  return product;
}

class XSpaceFile {
 public:
  XSpaceFile(const TraceFile& file, TimelineBuilder& to) : file_(file), to_(to), scopes_(to) {}

  // XSpace { planes = 1; errors = 2; warnings = 3; hostnames = 4 }
  void read() {
    ProtobufFile space(*file_.bytes, [&](std::size_t bytes) { to_.charge(bytes); });
    while (space.next()) {
      if (space.field().type != ProtobufType::bytes) continue;
      const std::uint32_t number = space.field().number;
      if (number != 1 && number != 2 && number != 3) continue;
      const std::string_view bytes = space.read();
      // What is there of a plane that was cut off has no names, which are at its end.
      if (bytes.size() < space.field().value) continue;
      if (number == 1)
        plane(bytes, space.at());
      else if (warnings_++ < kMaxWarnings)
        to_.note(fmt::format("XLA's profiler says: {}", bytes.substr(0, kLongestWarning)));
    }
    if (!space.problem().empty()) to_.drop(space.problem(), space.at());
    finish();
  }

 private:
  void plane(std::string_view bytes, std::uint64_t at) {
    at_ = at;
    const XPlane plane(bytes, at, to_);
    if (file_.progress) file_.progress();
    const std::string_view name = plane.name();
    if (name.starts_with(kGpuPlane)) return gpu(plane);
    if (name == "Task Environment") return environment(plane);
    if (name == "/host:CPU" || name == "/host:CUPTI" || name == "/host:ROCTRACER") return host(plane);
    if (plane.has_lines() && others_.size() < kMaxWarnings) others_.emplace_back(name.substr(0, 80));
  }

  void gpu(const XPlane& plane) {
    const auto ordinal = number_in<std::int64_t>(plane.name().substr(kGpuPlane.size()));
    if (!ordinal) return to_.drop("plane of a GPU without a number", at_);
    ++gpus_;
    const auto device = to_.device(file_.process, *ordinal);
    if (!device) return to_.drop("command beyond 65,535 devices", at_);
    const XStats facts = plane.stats();
    const std::string_view model = facts.text(XStat::device_type).substr(0, 80);
    if (!model.empty()) to_.label_device(*device, fmt::format("GPU {}: {}", *ordinal, model));
    to_.describe_device(*device, std::string(model), saturated<std::uint32_t>(facts.number(XStat::cores)), 0);
    // CUPTI's times are the device's own; those of ROCm's tracers are not known to be.
    are_times_exact_ = are_times_exact_ && facts.text(XStat::vendor) == "Nvidia";
    to_.expect(plane.count_events(), 0);
    std::optional<std::uint16_t> stream;
    const auto is_stream = [&](const XLine& line) {
      // "Stream #20(Compute,MemcpyH2D)". Other lines repeat the same time in other words: "XLA Ops", "Steps".
      if (!line.name.starts_with(kStreamLine)) {
        ++derived_lines_;
        return false;
      }
      const std::string_view number = line.name.substr(kStreamLine.size());
      const std::size_t end = std::min(number.find_first_not_of("0123456789"), number.size());
      stream = to_.stream(*device, number_in<std::uint64_t>(number.substr(0, end)).value_or(line.id));
      if (!stream) to_.drop("command beyond 65,535 streams", at_);
      return stream.has_value();
    };
    plane.events(is_stream, [&](const XLine&, const XEvent& event) { command(*stream, event); });
  }

  void command(std::uint16_t stream, const XEvent& event) {
    const XStats& stats = event.stats;
    if (stats.has(XStat::allocation)) return;  // bookkeeping
    TraceCommand made;
    made.process = file_.process;
    made.stream = stream;
    made.correlation = stats.number(XStat::correlation);
    made.started_ns = event.started_ns;
    made.ended_ns = event.ended_ns;
    made.at = at_;
    made.name = event.name.empty() ? to_.name(fmt::format("kernel {}", event.name_id)) : to_.name(event.name);
    if (stats.has(XStat::copy) || event.name.starts_with("Memcpy")) {
      made.kind = SpanKind::copy;
      made.bytes = product_of_extents(detail(stats.text(XStat::copy), "size:"));
    } else if (stats.has(XStat::memset) || event.name == "Memset") {
      made.kind = SpanKind::memset;
      made.bytes = product_of_extents(detail(stats.text(XStat::memset), "num_bytes:"));
    } else {
      // " regs:32 static_shared:0 dynamic_shared:16384 grid:2,1,1 block:32,1,1 occ_pct:100"
      const std::string_view details = stats.text(XStat::kernel);
      made.kind = SpanKind::kernel;
      made.blocks = saturated<std::uint32_t>(product_of_extents(detail(details, "grid:")));
      made.threads = saturated<std::uint16_t>(product_of_extents(detail(details, "block:")));
    }
    if (!to_.add(made)) return;
    ++commands_;
    if (!to_.wants_operations() || made.correlation == 0 || stats.text(XStat::hlo_op).empty()) return;
    const XlaOperation operation{stats.text(XStat::hlo_op), stats.text(XStat::hlo_module), path_of(stats)};
    scopes_.add(made.correlation, operation);
  }

  template <class Number>
  static Number saturated(std::uint64_t value) noexcept {
    return static_cast<Number>(std::min<std::uint64_t>(value, std::numeric_limits<Number>::max()));
  }

  // Where the program has the operation: "jit(step)/jvp(MLP)/Dense_0/dot_general". Under an annotation for the whole
  // program, "XlaModule:", the statistic `name` has it.
  static std::string_view path_of(const XStats& stats) noexcept {
    const std::string_view outer = stats.text(XStat::tf_op);
    return outer.empty() || outer.starts_with("XlaModule") ? stats.text(XStat::name) : outer;
  }

  // Threads: calls have a correlation, steps a number.
  void host(const XPlane& plane) {
    const auto use = [&](const XLine& line, const XEvent& event) {
      if (event.stats.has(XStat::step) && event.ended_ns > event.started_ns && ++steps_ <= kMaxRanges)
        to_.add(TraceRange{to_.name(fmt::format("step {}", event.stats.number(XStat::step))), file_.process,
                           event.started_ns, event.ended_ns});
      if (!event.stats.has(XStat::correlation) || event.name.empty()) return;
      HostCall call;
      call.name = to_.name(event.name);
      call.thread = static_cast<std::uint32_t>(line.id ^ line.id >> 32);
      call.correlation = event.stats.number(XStat::correlation);
      call.process = file_.process;
      call.started_ns = event.started_ns;
      call.ended_ns = event.ended_ns;
      to_.add(call, at_);
    };
    to_.expect(0, plane.count_events());
    plane.events([](const XLine&) { return true; }, use);
  }

  void environment(const XPlane& plane) {
    const XStats stats = plane.stats();
    if (stats.has(XStat::start_time) && stats.number(XStat::start_time) <= INT64_MAX)
      base_ns_ = static_cast<std::int64_t>(stats.number(XStat::start_time));
  }

  void finish() {
    for (HostCall& call : to_.file_calls()) {
      call.operation = scopes_.of(call.correlation);
      call.is_first_of_operation = call.operation != kNoOperation;
    }
    if (steps_ > kMaxRanges)
      to_.note(fmt::format("{} steps beyond the first {} were left out", steps_ - kMaxRanges, kMaxRanges));
    if (commands_ == 0 && to_.file_calls().empty()) reject_empty();
    // Lines count from the profile's start. Files of several hosts are of one job, and lie side by side by the real
    // time.
    constexpr std::int64_t kSince1970 = 100'000'000'000'000'000;  // 1973; no machine runs that long
    if (base_ns_ && to_.file_start() != kNoTime && to_.file_start() < kSince1970) {
      if (to_.shift_file(*base_ns_))
        to_.note("times are nanoseconds since 1970: profile_start_time was added");
      else
        to_.drop("profile_start_time beyond all clocks", 0);
    }
    if (are_times_exact_ && commands_ > 0) to_.trust_gaps();
    to_.set_source("XLA profiler");
  }

  [[noreturn]] void reject_empty() const {
    if (gpus_ == 0)
      reject(
          fmt::format("{}: this XLA profile has no plane of a GPU{}", file_.name,
                      others_.empty() ? "" : fmt::format("; the planes that it has: {}", fmt::join(others_, ", "))),
          "Profiles of TPUs and CPUs are not read. On a GPU, profile while the device works: jax.profiler.trace(...) "
          "around a few steps, with block_until_ready at their end.");
    reject(
        fmt::format("{}: the GPUs of this XLA profile have no streams with commands ({} GPUs, {} lines that only sum "
                    "up others)",
                    file_.name, gpus_, derived_lines_),
        "The profiler could not trace the device: look for warnings about CUPTI or rocprofiler where it ran.");
  }

  const TraceFile& file_;
  TimelineBuilder& to_;
  XlaScopes scopes_;
  std::uint64_t at_ = 0;             // of the plane
  std::vector<std::string> others_;  // planes that are not read
  std::optional<std::int64_t> base_ns_;
  bool are_times_exact_ = true;
  std::size_t commands_ = 0, steps_ = 0, gpus_ = 0, derived_lines_ = 0, warnings_ = 0;
};

// A plane comes first, whose number, if it is not 0, and name come first in it. Its length is that of most of the file.
bool sniff_xplane(std::string_view start) {
  if (start.empty() || start[0] != '\x0a') return false;
  std::size_t at = 1;
  while (at < start.size() && at < 10 && (static_cast<unsigned char>(start[at]) & 0x80U) != 0) ++at;
  ++at;
  // 08 NUMBER 12 LENGTH NAME
  if (at < start.size() && start[at] == '\x08') {
    ++at;
    while (at < start.size() && (static_cast<unsigned char>(start[at]) & 0x80U) != 0) ++at;
    ++at;
  }
  if (at + 2 >= start.size() || start[at] != '\x12') return false;
  const std::string_view name = start.substr(at + 2, static_cast<unsigned char>(start[at + 1]));
  return name.starts_with("/host:") || name.starts_with("/device:") || name == "Task Environment";
}

void read_xplane(const TraceFile& file, TimelineBuilder& to) { XSpaceFile(file, to).read(); }

}  // namespace

Importer importer_list::xplane() {
  return {"xplane", "XLA's profiles (xplane.pb) of JAX and TensorFlow on GPUs", sniff_xplane, read_xplane};
}

}  // namespace weir
