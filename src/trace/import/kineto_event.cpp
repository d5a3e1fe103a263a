#include "trace/import/kineto_event.h"

#include <algorithm>
#include <array>
#include <limits>

#include "trace/import/json_text.h"
#include "trace/timeline_builder.h"

namespace weir {
namespace {

using In = JsonReader::In;

KinetoCategory category_of(std::string_view text) {
  // The common categories in today's spelling.
  if (text == "cpu_op") return KinetoCategory::operation;
  if (text == "python_function") return KinetoCategory::python;
  if (text == "ac2g" || text == "fwdbwd") return KinetoCategory::other;
  if (text == "kernel") return KinetoCategory::kernel;
  if (text == "cuda_runtime") return KinetoCategory::call;
  const std::string name = plain(text);  // files use "gpu_memcpy", "Memcpy", "Kernel" and "Gpu Memcpy"
  if (name == "kernel" || name == "gpukernel" || name == "concurrentkernel") return KinetoCategory::kernel;
  if (name == "gpumemcpy" || name == "memcpy") return KinetoCategory::copy;
  if (name == "gpumemset" || name == "memset") return KinetoCategory::memset;
  if (name == "hostfunction") return KinetoCategory::host_function;
  if (name == "cudasync" || name == "hipsync") return KinetoCategory::synchronization;
  if (name == "useranno" || name == "userannotation") return KinetoCategory::annotation;
  if (name == "operator" || name == "cpuop") return KinetoCategory::operation;
  if (name == "cpuinstantevent") return KinetoCategory::instant;
  return name.ends_with("runtime") || name.ends_with("driver") ? KinetoCategory::call : KinetoCategory::other;
}

KinetoSync sync_of(std::string_view text) {
  const std::string name = plain(text);
  if (name.starts_with("streamwait")) return KinetoSync::stream_wait;
  if (name.starts_with("streamsync")) return KinetoSync::stream;
  if (name.starts_with("eventsync")) return KinetoSync::event;
  if (name.starts_with("contextsync") || name.starts_with("devicesync")) return KinetoSync::context;
  return KinetoSync::none;
}

// "Float", "BFloat16", "c10::BFloat16", "long int", "Float8_e4m3fn"
std::uint32_t element_bytes_of(std::string_view type) {
  const std::string name = plain(type);
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (has("complexdouble") || has("complex128")) return 16;
  if (has("complex")) return 8;
  if (has("float8") || has("char") || has("byte") || has("bool") || has("int8")) return 1;
  if (has("16") || has("half") || has("short")) return 2;
  if (has("double") || has("long") || has("64")) return 8;
  return has("float") || has("int") ? 4 : 0;
}

CollectiveKind collective_of(std::string_view text) {
  // nccl:all_reduce, nccl:send 0->1, nccl:_all_gather_base, allreduce
  if (text.starts_with("nccl:")) text.remove_prefix(5);
  return collective_kind_of(text.substr(0, std::min(text.find(' '), std::size_t{64})));
}

bool is_profiler_step(std::string_view name) noexcept { return name.starts_with("ProfilerStep#"); }

bool is_collective_operation(std::string_view name) noexcept {
  return name == "record_param_comms" || name.starts_with("nccl:");
}

std::uint32_t small(const std::optional<std::uint64_t>& value) noexcept {
  return value && *value <= std::numeric_limits<std::uint32_t>::max() ? static_cast<std::uint32_t>(*value) : 0;
}

class EventReader {
 public:
  EventReader(JsonReader& reader, KinetoEvent& event, bool wants_operations)
      : reader_(reader), event_(event), inputs_(reader, event.inputs), wants_operations_(wants_operations) {}

  bool read() {
    std::string_view key;
    // The beginning of nearly every event in every version of Kineto.
    if (reader_.take_text("\"ph\": \"X\", \"cat\": ")) {
      event_.phase = 'X';
      event_.category = category_of(reader_.value());
      if (!is_wanted()) {
        reader_.skip_rest();
        return false;
      }
    }
    while (reader_.next_key(&key)) {
      if (key == "ph") {
        const std::string_view phase = reader_.value();
        event_.phase = phase.size() == 1 ? phase[0] : '?';
      } else if (key == "cat") {
        event_.category = category_of(reader_.value());
      } else if (key == "name") {
        event_.name.assign(reader_.value());  // a copy, because the window moves on
        event_.has_name = !reader_.is_broken();
        if (event_.category == KinetoCategory::python && !is_telling_frame(event_.name)) {
          reader_.skip_rest();
          return false;
        }
      } else if (key == "ts") {
        event_.started_ns = time();
      } else if (key == "dur") {
        event_.duration_ns = time();
      } else if (key == "pid") {
        process();
      } else if (key == "tid") {
        thread();
      } else if (key == "args") {
        arguments();
      } else {
        reader_.skip(In::object);
      }
      if (!is_wanted()) {
        reader_.skip_rest();
        return false;
      }
    }
    if (event_.has_name && event_.name.find('\\') != std::string::npos) event_.name = decoded(event_.name);
    return !reader_.is_broken();
  }

 private:
  // As far as can be judged from the keys read so far.
  bool is_wanted() const noexcept {
    if (event_.phase == 0) return true;
    if (event_.phase == 'B' || event_.phase == 'E') return true;
    // {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 5, "tid": 6, "ts": 1.5, "args":
    // {...}}
    if (event_.phase == 'i')
      return (event_.category == KinetoCategory::instant || event_.category == KinetoCategory::unknown) &&
             (!event_.has_name || event_.name == kMemoryEvent);
    if (event_.phase != 'X' || event_.category == KinetoCategory::other) return false;
    if (wants_operations_) return true;
    if (event_.category == KinetoCategory::python) return false;
    return event_.category != KinetoCategory::operation || !event_.has_name || is_collective_operation(event_.name) ||
           is_profiler_step(event_.name);
  }

  // Microseconds: 1106964728033.929
  std::int64_t time() {
    if (std::int64_t plain = 0; reader_.plain_number(3, &plain)) return plain;
    const auto ns = scaled_of(reader_.value(), 3);
    if (!ns && !reader_.is_broken()) event_.has_bad_time = true;
    return ns.value_or(kNoTime);
  }

  template <class Number>
  std::optional<Number> counted(std::string_view text, std::optional<Number> number) {
    if (!number && is_number(text)) ++event_.arguments.out_of_range;
    return number;
  }
  std::optional<std::uint64_t> whole() {
    if (std::int64_t plain = 0; reader_.plain_number(0, &plain)) return static_cast<std::uint64_t>(plain);
    const std::string_view text = reader_.value();
    // -1: none
    if (text == "-1") return std::nullopt;
    return counted(text, unsigned_of(text));
  }
  std::optional<std::int64_t> number() {
    if (std::int64_t plain = 0; reader_.plain_number(0, &plain)) return plain;
    const std::string_view text = reader_.value();
    return counted(text, signed_of(text));
  }
  std::int64_t hop() { return scaled_of(reader_.value(), 3).value_or(kNoTime); }

  static std::int64_t folded(std::string_view text) noexcept {
    return static_cast<std::int64_t>(std::hash<std::string_view>()(text));
  }

  void process() {
    if (reader_.plain_number(0, &event_.process_id)) {
      event_.device = event_.process_id;
      return;
    }
    const std::string_view text = reader_.value();
    event_.device = signed_of(text);
    event_.process_id = event_.device ? *event_.device : folded(text);
  }

  void thread() {
    if (reader_.plain_number(0, &event_.thread_id)) {
      event_.lane = static_cast<std::uint64_t>(event_.thread_id);
      return;
    }
    const std::string_view text = reader_.value();
    const auto number = signed_of(text);
    event_.thread_id = number ? *number : folded(text);
    if (number && *number >= 0)
      event_.lane = static_cast<std::uint64_t>(*number);
    else if (!number)
      event_.lane = unsigned_of(text.starts_with("stream ") ? text.substr(7) : text);
  }

  void arguments() {
    if (reader_.peek() != '{') return reader_.skip(In::object);
    reader_.take('{');
    event_.has_arguments = true;
    std::string_view key;
    while (reader_.next_key(&key)) argument(key);
  }

  void argument(std::string_view key) {
    KinetoArguments& found = event_.arguments;
    switch (key.size()) {
      case 3:
        if (key == "Seq") return void(found.sequence = whole());
        break;
      case 4:
        if (key == "rank") return void(found.rank = number());
        if (key == "seen") return void(found.seen_ns = hop());
        // in calls: "size": "2560"
        if (key == "size") return void(found.bytes = whole().value_or(0));
        if (key == "grid") return extents(found.grid);
        if (key == "kind") return void(found.has_kind = !reader_.value().empty());
        break;
      case 5:
        if (key == "queue") return void(found.queue = whole());
        if (key == "block") return extents(found.block);
        if (key == "bytes") return void(found.bytes = whole().value_or(0));
        if (key == "Bytes") return void(found.memory_bytes = number());
        if (key == "dtype") return void(found.element_bytes = element_bytes_of(reader_.value()));
        break;
      case 6:
        if (key == "device") return void(found.device = number());
        if (key == "stream") return void(found.stream = number());
        break;
      case 7:
        if (key == "command") return void(found.command = whole());
        if (key == "channel") return void(found.channel = whole());
        break;
      case 8:
        if (key == "enqueued") return void(found.enqueued_ns = hop());
        if (key == "priority") return void(found.priority = number());
        if (key == "accepted") return void(found.accepted_ns = hop());
        if (key == "launched") return void(found.launched_ns = hop());
        break;
      case 9:
        if (key == "submitted") return void(found.submitted_ns = hop());
        if (key == "iteration") return void(found.iteration = small(whole()));
        if (key == "hsa_queue") return void(found.hsa_queue = whole());
        if (key == "Device Id") return void(found.memory_device = number());
        break;
      case 10:
        if (key == "Group size") return void(found.ranks = small(whole()));
        if (key == "Input Dims" && is_collective_operation(event_.name)) return first_dimensions();
        if (key == "Input type" && is_collective_operation(event_.name)) return first_type();
        if (key == "Input Dims" && wants_inputs()) return inputs_.dimensions();
        if (key == "Input type" && wants_inputs()) return inputs_.types();
        break;
      case 11:
        if (key == "correlation") return void(found.correlation = whole());
        if (key == "External id" || key == "external id") return void(found.external = whole());
        if (key == "copy engine") return void(found.is_copy_engine = reader_.value() == "true");
        break;
      case 12:
        if (key == "channel_type") return void(found.channel_type = whole());
        if (key == "engine_index") return void(found.engine_index = whole());
        break;
      case 13:
        if (key == "In msg nelems") return void(found.in_elements = whole().value_or(0));
        if (key == "Fwd thread id" && wants_inputs()) return void(found.forward_thread = number().value_or(0));
        if (key == "after command") return void(found.after = whole());
        break;
      case 14:
        if (key == "cuda_sync_kind") return void(found.sync = sync_of(reader_.value()));
        if (key == "engine_ordinal") return void(found.engine_ordinal = whole());
        if (key == "wait_on_stream") return void(found.wait_on_stream = number());
        if (key == "Out msg nelems") return void(found.out_elements = whole().value_or(0));
        if (key == "before command") return void(found.before = whole());
        if (key == "Total Reserved") return void(found.reserved_bytes = whole());
        break;
      case 15:
        if (key == "Collective name") {
          found.is_collective = true;
          found.collective = collective_of(reader_.value());
          return;
        }
        if (key == "Total Allocated") return void(found.allocated_bytes = whole());
        if (key == "Sequence number" && wants_inputs()) return void(found.sequence_number = whole());
        if (key == "Concrete Inputs" && wants_inputs() && KinetoInputReader::needs_values(event_.name))
          return inputs_.values();
        break;
      case 18:
        if (key == "Process Group Name") return void(found.group = decoded(reader_.value()));
        break;
      case 33:
        if (key == "wait_on_cuda_event_record_corr_id") return void(found.record_correlation = whole());
        break;
      default:
        break;
    }
    reader_.skip(In::object);
  }

  // [64, 8, 1]; anything but positive numbers makes all of them unknown
  void extents(std::array<std::uint32_t, 3>& found) {
    if (reader_.peek() != '[') return reader_.skip(In::object);
    reader_.take('[');
    found = {1, 1, 1};
    std::size_t read = 0;
    bool is_known = true;
    for (; reader_.next_element(); ++read) {
      std::int64_t extent = 0;
      if (const char next = reader_.peek(); next == '[' || next == '{')
        reader_.skip(In::array);
      else if (!reader_.plain_number(0, &extent))
        extent = signed_of(reader_.scalar(In::array)).value_or(0);
      is_known = is_known && extent > 0;
      if (read < found.size()) found[read] = static_cast<std::uint32_t>(std::min<std::int64_t>(extent, UINT32_MAX));
    }
    if (!is_known || read == 0) found = {};
  }

  bool wants_inputs() const noexcept { return wants_operations_ && event_.category == KinetoCategory::operation; }

  // [[2873320]] or [[[53120, 2]], [], ...]: the number of elements of the first tensor
  void first_dimensions() {
    if (reader_.peek() != '[') return reader_.skip(In::object);
    constexpr int kMaxLevels = 4;
    int levels = 0;
    while (levels < kMaxLevels && reader_.take('[')) ++levels;
    std::uint64_t elements = 1;
    bool has_any = false;
    while (reader_.next_element()) {
      if (const char next = reader_.peek(); next == '[' || next == '{') {
        reader_.skip(In::array);
        continue;
      }
      const auto length = unsigned_of(reader_.scalar(In::array));
      has_any = length.has_value();
      if (!length || __builtin_mul_overflow(elements, *length, &elements)) elements = 0;
    }
    if (has_any) event_.arguments.input_elements = elements;
    for (; levels > 1; --levels) reader_.skip_rest();
  }

  // ["float", "Scalar", ...]
  void first_type() {
    if (!reader_.take('[')) return reader_.skip(In::object);
    if (!reader_.next_element()) return;
    if (reader_.peek() == '"' && event_.arguments.element_bytes == 0)
      event_.arguments.element_bytes = element_bytes_of(reader_.scalar(In::array));
    reader_.skip_rest();
  }

  JsonReader& reader_;
  KinetoEvent& event_;
  KinetoInputReader inputs_;
  bool wants_operations_;
};

// Reads keys and values at the beginning of an event without consuming them.
class KeyScanner {
 public:
  explicit KeyScanner(std::string_view text) : left_(text) {}

  bool take(char c) noexcept {
    while (!left_.empty() && static_cast<unsigned char>(left_[0]) <= ' ') left_.remove_prefix(1);
    if (left_.empty() || left_[0] != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  // First letter of a key, without consuming it; '"' where there is none.
  char first_letter() noexcept {
    while (!left_.empty() && static_cast<unsigned char>(left_[0]) <= ' ') left_.remove_prefix(1);
    return left_.size() > 1 && left_[0] == '"' ? left_[1] : '"';
  }
  // "key":
  std::string_view key() noexcept {
    if (!take('"')) return {};
    const std::size_t end = left_.find('"');
    if (end == std::string_view::npos) return {};
    const std::string_view found = left_.substr(0, end);
    left_.remove_prefix(end + 1);
    return take(':') ? found : std::string_view();
  }
  void value() noexcept {
    const bool is_text = take('"');
    const std::size_t end = left_.find_first_of(is_text ? "\"" : ",}{[]");
    left_.remove_prefix(end == std::string_view::npos ? left_.size() : end + (is_text ? 1 : 0));
  }

 private:
  std::string_view left_;
};

template <std::size_t N>
bool is_any(std::string_view text, const std::array<std::string_view, N>& of) noexcept {
  return std::find(of.begin(), of.end(), text) != of.end();
}

}  // namespace

bool read_kineto_event(JsonReader& reader, KinetoEvent& event, bool wants_operations) {
  return EventReader(reader, event, wants_operations).read();
}

bool is_kineto_event(std::string_view ahead) noexcept {
  static constexpr std::array<std::string_view, 7> kFirst = {"name", "pid", "tid", "ts", "dur", "id", "args"};
  static constexpr std::array<std::string_view, 5> kSecond = {"ph", "cat", "ts", "pid", "tid"};
  KeyScanner scanner(ahead);
  if (!scanner.take('{')) return false;
  // One letter is enough to distinguish most objects from events.
  static constexpr std::uint32_t kLetters = 1U << ('p' - 'a') | 1U << ('c' - 'a') | 1U << ('n' - 'a') |
                                            1U << ('t' - 'a') | 1U << ('d' - 'a') | 1U << ('i' - 'a') | 1U;
  const char letter = scanner.first_letter();
  if (letter < 'a' || letter > 'z' || (kLetters >> (letter - 'a') & 1U) == 0) return false;
  const std::string_view first = scanner.key();
  if (first == "ph" || first == "cat") return true;
  // Other kinds of objects have names and ids as well, so the second key decides.
  if (!is_any(first, kFirst)) return false;
  scanner.value();
  return scanner.take(',') && is_any(scanner.key(), kSecond);
}

bool is_kineto_mark(std::string_view ahead) noexcept {
  static constexpr std::array<std::string_view, 8> kTop = {
      "traceEvents",         "deviceProperties", "distributedInfo", "schemaVersion",
      "baseTimeNanoseconds", "traceName",        "displayTimeUnit", "weir"};
  return is_kineto_event(ahead) || is_any(KeyScanner(ahead).key(), kTop);
}

}  // namespace weir
