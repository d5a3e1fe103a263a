// Reads rocprofv3's CSV files: kernels, copies, HIP and HSA calls, markers. The header shows which of these a file
// holds. One process writes several files; they are read one by one into the same process.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>

#include "base/error.h"
#include "trace/import/csv_reader.h"
#include "trace/import/json_text.h"
#include "trace/import/list.h"

namespace weir::importer_list {
namespace {

// Columns under all names that they have had, ignoring case, quotes, '_', '-' and ' '.
// rocprofv3 "Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name",
//           "Correlation_Id","Start_Timestamp","End_Timestamp", ...    before ROCm 6.4 without Stream_Id
// rocprofv2 Dispatch_ID,GPU_ID,Queue_ID,PID,TID,...,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID
// rocprof   "Index","KernelName","gpu-id","queue-id",...,"BeginNs","EndNs"
enum Column : std::size_t {
  kKernel,
  kFunction,
  kDirection,
  kStart,
  kEnd,
  kAgent,
  kSource,
  kDestination,
  kQueue,
  kStream,
  kThread,
  kCorrelation,
  kDomain,
  kColumns
};

constexpr std::array<std::pair<std::string_view, Column>, 20> kNames = {{
    {"kernelname", kKernel},
    {"function", kFunction},
    {"direction", kDirection},
    {"starttimestamp", kStart},
    {"beginns", kStart},
    {"startns", kStart},
    {"endtimestamp", kEnd},
    {"endns", kEnd},
    {"agentid", kAgent},
    {"gpuid", kAgent},
    {"sourceagentid", kSource},
    {"destinationagentid", kDestination},
    {"queueid", kQueue},
    {"streamid", kStream},
    {"threadid", kThread},
    {"tid", kThread},
    {"correlationid", kCorrelation},
    {"domain", kDomain},
    {"sourceagent", kSource},
    {"destinationagent", kDestination},
}};

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return number_in<Number>(text);
}

// "Agent 4", "GPU 0", "4"
std::optional<std::int64_t> agent_of(std::string_view text) {
  const std::size_t last = text.find_last_not_of("0123456789");
  return number_of<std::int64_t>(last == std::string_view::npos ? text : text.substr(last + 1));
}

struct Columns {
  std::array<std::optional<std::size_t>, kColumns> at;
  bool has(Column column) const noexcept { return at[column].has_value(); }
};

Columns columns_of(const CsvReader& header) {
  Columns columns;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const std::string title = plain(header[i]);
    for (const auto& [name, column] : kNames)
      if (title == name && !columns.has(column)) columns.at[column] = i;
  }
  return columns;
}

// The columns that are missing to read such rows.
std::vector<std::string_view> missing(const Columns& columns) {
  std::vector<std::string_view> names;
  if (!columns.has(kKernel) && !columns.has(kDirection) && !columns.has(kFunction))
    names.emplace_back("Kernel_Name (or Direction of copies, or Function of calls)");
  if (!columns.has(kStart)) names.emplace_back("Start_Timestamp");
  if (!columns.has(kEnd)) names.emplace_back("End_Timestamp");
  if (columns.has(kKernel) && !columns.has(kAgent)) names.emplace_back("Agent_Id");
  if (columns.has(kDirection) && !columns.has(kSource)) names.emplace_back("Source_Agent_Id");
  if (columns.has(kDirection) && !columns.has(kDestination)) names.emplace_back("Destination_Agent_Id");
  return names;
}

class RocprofCsvReader {
 public:
  RocprofCsvReader(const TraceFile& file, TimelineBuilder& to) : file_(file), to_(to), csv_(*file.bytes) {}

  void read() {
    const CsvReader::Row header = csv_.next();
    if (header == CsvReader::Row::whole) columns_ = columns_of(csv_);
    if (const auto names = missing(columns_); header != CsvReader::Row::whole || !names.empty())
      reject(fmt::format("{}: the first line is not a header of rocprofv3's CSV: it lacks {}", file_.name,
                         fmt::join(names, ", ")),
             "Read are *_kernel_trace.csv, *_memory_copy_trace.csv, *_hip_api_trace.csv, *_hsa_api_trace.csv and "
             "*_marker_api_trace.csv.");
    to_.begin_file(file_.name, "line");
    to_.set_source("rocprofv3 (CSV)");
    header_size_ = csv_.size();
    if (columns_.has(kKernel) && !columns_.has(kStream) && columns_.has(kQueue))
      to_.note("the file names no streams, as rocprofv3 before ROCm 6.4 did not: hardware queues stand in for them");
    for (auto row = csv_.next(); row != CsvReader::Row::none; row = csv_.next()) {
      if (file_.progress && (++rows_ & 4095) == 0) file_.progress();
      if (row == CsvReader::Row::too_long)
        to_.drop("row longer than 1 MiB", csv_.line());
      else if (row == CsvReader::Row::unended)
        to_.drop("row that the file ends within", csv_.line());
      else
        use_row();
    }
    if (ranges_ > kMaxRanges)
      to_.note(fmt::format("{} markers beyond the first {} were left out", ranges_ - kMaxRanges, kMaxRanges));
  }

 private:
  std::string_view field(Column column) const { return columns_.has(column) ? csv_[*columns_.at[column]] : ""; }

  void use_row() {
    if (csv_.size() != header_size_) return to_.drop("row with more or fewer columns than the header", csv_.line());
    const auto start = number_of<std::int64_t>(field(kStart)), end = number_of<std::int64_t>(field(kEnd));
    if (!start || !end) return to_.drop("row without a number as start or end", csv_.line());
    if (columns_.has(kKernel)) return use_kernel(*start, *end);
    if (columns_.has(kDirection)) return use_copy(*start, *end);
    use_call(*start, *end);
  }

  void add(TraceCommand command, std::int64_t agent, std::uint64_t stream, std::optional<std::uint64_t> queue) {
    const auto lane = to_.lane(file_.process, agent, stream, csv_.line());
    if (!lane) return;
    command.process = file_.process;
    command.stream = lane->stream;
    if (queue) command.queue = to_.queue(lane->device, *queue);
    command.correlation = number_of<std::uint64_t>(field(kCorrelation)).value_or(0);
    command.at = csv_.line();
    to_.add(command);
  }

  void use_kernel(std::int64_t start, std::int64_t end) {
    const auto agent = agent_of(field(kAgent));
    if (!agent) return to_.drop("row without an agent", csv_.line());
    const auto queue = number_of<std::uint64_t>(field(kQueue)), stream = number_of<std::uint64_t>(field(kStream));
    TraceCommand command;
    command.name = to_.name(field(kKernel));
    command.started_ns = start;
    command.ended_ns = end;
    add(command, *agent, stream ? *stream : queue.value_or(0), queue);
  }

  // MEMORY_COPY_HOST_TO_DEVICE, or without the prefix
  void use_copy(std::int64_t start, std::int64_t end) {
    const std::string_view direction = field(kDirection);
    // The device of a copy is the side that is a GPU; of two GPUs, the one that it reads from.
    const bool is_from_host = direction.find("HOST_TO_") != std::string_view::npos;
    const auto agent = agent_of(field(is_from_host ? kDestination : kSource));
    if (!agent) return to_.drop("row without an agent", csv_.line());
    TraceCommand command;
    command.kind = SpanKind::copy;
    command.name = to_.name(direction);
    command.started_ns = start;
    command.ended_ns = end;
    add(command, *agent, number_of<std::uint64_t>(field(kStream)).value_or(0), std::nullopt);
  }

  void use_call(std::int64_t start, std::int64_t end) {
    // MARKER_CORE_API, MARKER_CORE_RANGE_API: the function is the text of a range, or a point
    if (field(kDomain).starts_with("MARKER")) {
      if (end > start && ++ranges_ <= kMaxRanges)
        to_.add(TraceRange{to_.name(field(kFunction)), file_.process, start, end});
      return;
    }
    to_.add(
        {to_.name(field(kFunction)), static_cast<std::uint32_t>(number_of<std::uint64_t>(field(kThread)).value_or(0)),
         number_of<std::uint64_t>(field(kCorrelation)).value_or(0), file_.process, CallKind::other, start, end},
        csv_.line());
  }

  const TraceFile& file_;
  TimelineBuilder& to_;
  CsvReader csv_;
  Columns columns_;
  std::size_t header_size_ = 0, ranges_ = 0;
  std::uint64_t rows_ = 0;
};

bool sniff_rocprof_csv(std::string_view start) {
  start = start.substr(0, start.find('\n'));
  if (start.find(',') == std::string_view::npos) return false;
  const auto bytes = bytes_of(start);
  CsvReader csv(*bytes);
  return csv.next() == CsvReader::Row::whole && missing(columns_of(csv)).empty();
}

// out/123_kernel_trace.csv and out/123_hip_api_trace.csv -> out/123
std::string capture_of(const std::filesystem::path& path) {
  const std::string whole = path.filename().string();
  std::string_view name = whole;
  for (const std::string_view suffix : {".gz", ".zst", ".xz", ".bz2", ".lz4", ".csv", "_trace"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  for (const std::string_view kind :
       {"kernel", "memory_copy", "hip_api", "hsa_api", "hip", "hsa", "marker_api", "marker", "rccl_api"}) {
    if (!name.ends_with(kind)) continue;
    name.remove_suffix(kind.size());
    if (name.ends_with('_')) name.remove_suffix(1);
    return (path.parent_path() / name).string();
  }
  return path.string();
}

}  // namespace

Importer rocprof_csv() {
  return {"rocprof_csv", "rocprofv3's CSV", sniff_rocprof_csv,
          [](const TraceFile& file, TimelineBuilder& to) { RocprofCsvReader(file, to).read(); }, capture_of};
}

}  // namespace weir::importer_list
