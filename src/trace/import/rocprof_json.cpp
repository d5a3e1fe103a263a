// rocprofv3's JSON (rocprofiler-sdk-tool), in one pass: dispatches with stream and queue, copies, calls. Knows the
// tool's layout; the JSON itself is json_reader's.
#include <fmt/format.h>
#include <string.h>

#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "trace/import/json_reader.h"
#include "trace/import/json_text.h"
#include "trace/import/list.h"

namespace weir {
namespace {

using In = JsonReader::In;

constexpr int kGpuAgent = 2;

enum class Family : std::uint8_t { none, dispatch, copy, call };

struct Agent {
  std::int64_t type = 0;
  std::optional<std::int64_t> ordinal;  // among the GPUs
  std::string name;
};

// A record of any family; each has some of these.
struct Record {
  std::uint64_t at = 0;
  std::optional<std::uint64_t> kind, operation, thread, correlation, stream, queue, agent, source, target, kernel;
  std::optional<std::uint64_t> started, ended;
  std::uint64_t bytes = 0;
};

Family family_of(std::string_view key) noexcept {
  if (key == "kernel_dispatch") return Family::dispatch;
  if (key == "memory_copy") return Family::copy;
  if (key == "hip_api" || key == "hsa_api" || key == "rccl_api") return Family::call;
  return Family::none;
}

// {"size":184,"kind":11, ... and {"kind":11, ...: the beginning of a record; also keys of the objects that hold
// records.
bool is_mark(std::string_view ahead) noexcept {
  const auto take = [&](std::string_view part) {
    while (!ahead.empty() && static_cast<unsigned char>(ahead[0]) <= ' ') ahead.remove_prefix(1);
    const bool is_there = ahead.substr(0, part.size()) == part;
    if (is_there) ahead.remove_prefix(part.size());
    return is_there;
  };
  if (take("{")) {
    if (take("\"size\"") && take(":")) {
      while (!ahead.empty() && ahead[0] >= '0' && ahead[0] <= '9') ahead.remove_prefix(1);
      take(",");
    }
    // Objects that list the names of kinds begin the same way.
    return take("\"kind\"") && take(":") && !take("\"");
  }
  for (const std::string_view key : {"\"kernel_dispatch\"", "\"memory_copy\"", "\"hip_api\"", "\"hsa_api\"",
                                     "\"rccl_api\"", "\"kernel_symbols\"", "\"agents\"", "\"buffer_records\""})
    if (take(key)) return take(":");
  return false;
}

class RocprofFile {
 public:
  RocprofFile(const TraceFile& file, TimelineBuilder& to)
      : file_(file), to_(to), reader_(*file.bytes, file.progress), process_(file.process) {
    reader_.set_guard(is_mark);
  }

  void read() {
    // {"rocprofiler-sdk-tool":[{"metadata":...,"agents":[...],...,"buffer_records":{"kernel_dispatch":[...],...}}]}
    bool is_ours = false;
    std::string_view key;
    if (!reader_.take('{')) reader_.break_here("text before the trace");
    while (reader_.next_key(&key)) {
      const bool is_tool = key == "rocprofiler-sdk-tool";
      if (!is_tool || !reader_.take('[')) {
        reader_.skip(In::object);
        continue;
      }
      is_ours = true;
      processes();
    }
    if (!is_ours)
      reject(fmt::format("{}: is not rocprofv3's JSON: it has no \"rocprofiler-sdk-tool\"", file_.name),
             "Choose the right --input-format, or leave it out.");
    while (reader_.is_broken()) go_on();
    end_process();
    to_.set_source("rocprofv3");
  }

 private:
  void processes() {
    while (reader_.next_object()) {
      if (count_++ > 0) {
        end_process();
        process_ = to_.add_process(static_cast<int>(count_ - 1), fmt::format("{} #{}", file_.name, count_));
      }
      process();
    }
  }

  void process() {
    std::string_view found;
    while (reader_.next_key(&found)) {
      const std::string key(found);  // take() may move the window
      if (key == "agents" && reader_.take('[')) {
        while (reader_.next_object()) agent();
      } else if (key == "strings" && reader_.take('{')) {
        strings();
      } else if (key == "kernel_symbols" && reader_.take('[')) {
        while (reader_.next_object()) symbol();
      } else if (key == "buffer_records" && reader_.take('{')) {
        records();
      } else if (family_of(key) != Family::none) {
        // Found again after damage, inside the object of records.
        family(key);
        records();
      } else {
        reader_.skip(In::object);
      }
    }
  }

  std::optional<std::uint64_t> number() {
    if (std::int64_t plain = 0; reader_.plain_number(0, &plain)) return static_cast<std::uint64_t>(plain);
    return unsigned_of(reader_.value());
  }

  // {"handle":37946}, or the number itself; {"internal":1,"external":0}
  std::optional<std::uint64_t> identity(std::string_view member = "handle") {
    if (!reader_.take('{')) return number();
    std::optional<std::uint64_t> found;
    reader_.members(JsonKey{member, [&] { found = number(); }});
    return found;
  }

  void agent() {
    Agent made;
    std::optional<std::uint64_t> handle;
    reader_.members(JsonKey{"id", [&] { handle = identity(); }},
                    JsonKey{"type", [&] { made.type = signed_of(reader_.value()).value_or(0); }},
                    JsonKey{"logical_node_type_id", [&] { made.ordinal = signed_of(reader_.value()); }},
                    JsonKey{"product_name", [&] { made.name = decoded(reader_.value()); }},
                    JsonKey{"name", [&] {
                              std::string name = decoded(reader_.value());
                              if (made.name.empty()) made.name = std::move(name);
                            }});
    to_.charge(made.name.size() + sizeof(Agent));
    if (agents_.size() >= kMaxNames) return reader_.break_here("too many agents");
    if (handle) agents_.insert_or_assign(*handle, std::move(made));
  }

  // "buffer_records":[{"kind":"NONE","operations":[]},{"kind":"HSA_CORE_API","operations":["hsa_init",...]},...]
  void strings() {
    std::string_view found;
    while (reader_.next_key(&found)) {
      const bool is_names = found == "buffer_records";
      if (!is_names || !reader_.take('[')) {
        reader_.skip(In::object);
        continue;
      }
      operations_.clear();
      while (reader_.next_object()) {
        std::vector<std::string> names;
        std::string_view key;
        while (reader_.next_key(&key)) {
          const bool is_list = key == "operations";
          if (!is_list || !reader_.take('[')) {
            reader_.skip(In::object);
            continue;
          }
          while (reader_.next_element()) {
            const char next = reader_.peek();
            if (next == '{' || next == '[') reader_.skip(In::array);
            names.push_back(next == '{' || next == '[' ? "" : decoded(reader_.scalar(In::array)));
            to_.charge(names.back().size() + sizeof(std::string));
            if (++name_count_ > kMaxNames) return reader_.break_here("too many names of operations");
          }
        }
        operations_.push_back(std::move(names));
        if (++name_count_ > kMaxNames) return reader_.break_here("too many names of operations");
      }
    }
  }

  void symbol() {
    std::optional<std::uint64_t> id;
    std::string best, plain;
    reader_.members(JsonKey{"kernel_id", [&] { id = number(); }},
                    JsonKey{"formatted_kernel_name", [&] { best = decoded(reader_.value()); }},
                    JsonKey{"demangled_kernel_name",
                            [&] {
                              std::string name = decoded(reader_.value());
                              if (best.empty()) best = std::move(name);
                            }},
                    JsonKey{"kernel_name", [&] { plain = decoded(reader_.value()); }});
    if (best.empty()) best = plain;
    if (symbols_.size() >= kMaxSymbols) return reader_.break_here("too many kernels");
    if (id && !best.empty()) symbols_.insert_or_assign(*id, to_.name(best));
  }

  void records() {
    std::string_view key;
    while (reader_.next_key(&key)) {
      if (family_of(key) == Family::none)
        reader_.skip(In::object);
      else
        family(std::string(key));
    }
  }

  void family(const std::string& key) {
    family_ = family_of(key);
    if (!reader_.take('[')) return reader_.skip(In::object);
    family_records();
  }

  void family_records() {
    while (reader_.next_element()) {
      record_ = {};
      record_.at = reader_.position();
      if (!reader_.take('{')) return reader_.break_here("text between records");
      is_in_record_ = true;
      fields();
      if (reader_.is_broken()) return;
      is_in_record_ = false;
      use();
    }
  }

  // Fields of a record and of its "dispatch_info".
  void fields(bool is_inner = false) {
    const auto read_kind = [&] {
      const auto kind = number();
      if (!is_inner) record_.kind = kind;
    };
    const auto read_inner = [&] {
      if (!is_inner && reader_.take('{'))
        fields(true);
      else
        reader_.skip(In::object);
    };
    reader_.members(JsonKey{"start_timestamp", [&] { record_.started = number(); }},
                    JsonKey{"end_timestamp", [&] { record_.ended = number(); }},
                    JsonKey{"correlation_id", [&] { record_.correlation = identity("internal"); }},
                    JsonKey{"stream_id", [&] { record_.stream = identity(); }},
                    JsonKey{"queue_id", [&] { record_.queue = identity(); }},
                    JsonKey{"agent_id", [&] { record_.agent = identity(); }},
                    JsonKey{"src_agent_id", [&] { record_.source = identity(); }},
                    JsonKey{"dst_agent_id", [&] { record_.target = identity(); }},
                    JsonKey{"kernel_id", [&] { record_.kernel = number(); }}, JsonKey{"kind", read_kind},
                    JsonKey{"operation", [&] { record_.operation = number(); }},
                    JsonKey{"thread_id", [&] { record_.thread = number(); }},
                    JsonKey{"bytes", [&] { record_.bytes = number().value_or(0); }},
                    JsonKey{"dispatch_info", read_inner});
  }

  void use() {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!record_.started || !record_.ended || *record_.started > kMax || *record_.ended > kMax)
      return to_.drop("record without a start or an end", record_.at);
    if (family_ == Family::call)
      call();
    else
      command();
  }

  std::uint32_t operation_name() {
    if (record_.kind && record_.operation && *record_.kind < operations_.size() &&
        *record_.operation < operations_[*record_.kind].size())
      return to_.name(operations_[*record_.kind][*record_.operation]);
    return to_.name(family_ == Family::copy ? "MEMORY_COPY" : "call");
  }

  void call() {
    const std::uint64_t thread = record_.thread.value_or(0);
    to_.add({operation_name(), static_cast<std::uint32_t>(thread ^ thread >> 32), record_.correlation.value_or(0),
             process_, CallKind::other, static_cast<std::int64_t>(*record_.started),
             static_cast<std::int64_t>(*record_.ended)});
  }

  bool is_gpu(const std::optional<std::uint64_t>& handle) const {
    if (!handle) return false;
    const auto found = agents_.find(*handle);
    return found != agents_.end() && found->second.type == kGpuAgent;
  }

  std::optional<std::uint16_t> device_of(std::uint64_t handle) {
    if (const auto found = devices_.find(handle); found != devices_.end()) return found->second;
    const auto agent = agents_.find(handle);
    const bool is_known = agent != agents_.end() && agent->second.ordinal;
    const auto id = is_known ? *agent->second.ordinal : static_cast<std::int64_t>(handle);
    const auto device = to_.device(process_, id);
    if (device) devices_.emplace(handle, *device);
    return device;
  }

  void command() {
    const bool is_copy = family_ == Family::copy;
    auto agent = record_.agent;
    if (is_copy && !agent) agent = is_gpu(record_.target) || !is_gpu(record_.source) ? record_.target : record_.source;
    const auto device = device_of(agent.value_or(0));
    if (!device) return to_.drop("command beyond 65,535 devices", record_.at);
    auto lane = record_.stream;
    if (!lane) {
      // rocprofv3 before 7.0 does not record streams.
      lane = record_.queue.value_or(0);
      to_.note("this trace does not name streams: hardware queues stand for them");
    }
    const auto stream = to_.stream(*device, *lane);
    if (!stream) return to_.drop("command beyond 65,535 streams", record_.at);
    TraceCommand made;
    made.kind = is_copy ? SpanKind::copy : SpanKind::kernel;
    made.process = process_;
    made.stream = *stream;
    made.correlation = record_.correlation.value_or(0);
    made.bytes = record_.bytes;
    made.started_ns = static_cast<std::int64_t>(*record_.started);
    made.ended_ns = static_cast<std::int64_t>(*record_.ended);
    made.at = record_.at;
    if (record_.queue) {
      made.queue = to_.queue(*device, *record_.queue);
    } else if (is_copy) {
      made.queue = to_.queue(*device, record_.operation.value_or(0), true);
      to_.note("rocprofv3 does not say which copy engine ran a copy: copies have one lane for each direction");
    }
    std::optional<std::uint64_t> unnamed;
    if (is_copy) {
      made.name = operation_name();
    } else if (record_.kernel) {
      if (const auto symbol = symbols_.find(*record_.kernel); symbol != symbols_.end())
        made.name = symbol->second;
      else
        unnamed = record_.kernel;
    }
    const auto number = to_.add(made);
    if (number && unnamed) unnamed_.emplace_back(*number, *unnamed);
  }

  // Fills in names that came after the commands they belong to.
  void end_process() {
    for (const auto& [command, kernel] : unnamed_) {
      const auto symbol = symbols_.find(kernel);
      to_.set_name(command, symbol != symbols_.end() ? symbol->second : to_.name(fmt::format("kernel {}", kernel)));
    }
    for (const auto& [handle, device] : devices_)
      if (const auto agent = agents_.find(handle); agent != agents_.end() && !agent->second.name.empty())
        to_.label_device(device,
                         fmt::format("GPU {}: {}", agent->second.ordinal.value_or(static_cast<std::int64_t>(handle)),
                                     agent->second.name));
    unnamed_.clear();
    symbols_.clear();
    agents_.clear();
    devices_.clear();
    operations_.clear();
  }

  // The reader is broken: counts that, and finds where to resume.
  void go_on() {
    if (is_in_record_)
      to_.drop(reader_.is_cut_off() ? "record cut off by the file's end" : "damaged record", record_.at);
    else
      to_.drop(reader_.is_cut_off() ? "trace without its end" : reader_.problem(), reader_.position());
    is_in_record_ = false;
    if (!reader_.recover(is_mark)) return;
    if (reader_.peek() == '{') {
      if (family_ == Family::none) {
        reader_.skip(In::array);
        return reader_.break_here("records of no known kind");
      }
      family_records();
      if (!reader_.is_broken()) records();
    }
    if (!reader_.is_broken()) process();
    if (!reader_.is_broken()) processes();
  }

  // Limits for memory that the builder does not count.
  static constexpr std::size_t kMaxNames = 1'000'000, kMaxSymbols = 4'000'000;

  const TraceFile& file_;
  TimelineBuilder& to_;
  JsonReader reader_;
  std::uint16_t process_;
  std::size_t count_ = 0;
  std::unordered_map<std::uint64_t, Agent> agents_;           // by handle
  std::unordered_map<std::uint64_t, std::uint16_t> devices_;  // by handle
  std::unordered_map<std::uint64_t, std::uint32_t> symbols_;  // by kernel id
  std::vector<std::vector<std::string>> operations_;          // by kind
  std::size_t name_count_ = 0;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> unnamed_;  // commands and their kernels
  Family family_ = Family::none;
  Record record_;
  bool is_in_record_ = false;
};

bool sniff_rocprof_json(std::string_view start) {
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || start[first] != '{') return false;
  // Not find(), which stops at every quote: JSON of other formats is full of them, and every file is checked.
  constexpr std::string_view kKey = "\"rocprofiler-sdk-tool\"";
  return memmem(start.data(), start.size(), kKey.data(), kKey.size()) != nullptr;
}

void read_rocprof_json(const TraceFile& file, TimelineBuilder& to) { RocprofFile(file, to).read(); }

}  // namespace

Importer importer_list::rocprof_json() {
  return {"rocprof_json", "rocprofv3's JSON (rocprofiler-sdk-tool)", sniff_rocprof_json, read_rocprof_json};
}

}  // namespace weir
