// weir.queues/2, limits: a device's limits on queues, copies and priorities.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/queues_text.h"

namespace weir {
namespace {

using namespace queues_text;

// "8; the device says 8", or the reason why it is not known.
std::string found_and_reported(const Json& document, const Json& found, const Json& reported, const std::string& name) {
  std::string words = found.is_null() ? "not known" : fields::text(found, {});
  if (found.is_null())
    if (const std::string why = reason(document, name); !why.empty()) words += " (" + why + ")";
  words += reported.is_null() ? "; the device does not say" : "; the device says " + fields::text(reported, {});
  return words;
}

std::string depth_words(const Json& document, const Json& depth) {
  if (at(depth, {"value"}).is_null()) return reason(document, "limits.queue_depth");
  return fmt::format("{} launches wait behind a held kernel; with one more the host waits (it did for {})",
                     text(depth, {"value"}), duration(depth, {"waited_ns"}));
}

std::string resident_words(const Json& document, const Json& resident) {
  const Json& value = at(resident, {"value"});
  const std::string length = duration(resident, {"duration_ns"});
  std::string evidence;
  for (const Json& point : at(resident, {"points"})) {
    const int kernels = static_cast<int>(number(point, {"kernels"}).value_or(0));
    const int limit = value.is_number() ? value.get<int>() : kernels;
    if (kernels == limit || kernels == limit + 1)
      evidence += fmt::format("{}{} take {}", evidence.empty() ? "" : ", ", kernels, duration(point, {"makespan_ns"}));
  }
  const std::string words =
      value.is_null() ? reason(document, "limits.resident_kernels") : fields::text(value, {}) + " at once";
  if (at(resident, {"is_in_graph"}) == Json(true))
    return fmt::format("{} in a graph (one block of {} each); on streams each queue runs one kernel at a time", words,
                       length);
  return fmt::format("{} (one block of {} on a stream each: {})", words, length, evidence);
}

std::string short_name(const std::string& direction) {
  if (direction == "host_to_device") return "H>D";
  if (direction == "device_to_host") return "D>H";
  return direction == "device_to_device" ? "D>D" : direction;
}

std::string rate_words(const Json& copy) {
  const auto rate = number(copy, {"bytes_per_s"});
  return rate ? fmt::format("{:>9.1f} GB/s", *rate / 1e9) : std::string("   cannot tell");
}

void add_copies(std::string& out, const Json& document, const Json& copies) {
  line(out, "copy engines",
       fmt::format("at least {}, by what overlaps; {}", text(copies, {"engines_at_least"}),
                   at(copies, {"engines_told"}).is_null()
                       ? "the device does not say: " + reason(document, "limits.copies.engines_told")
                       : "the device says " + text(copies, {"engines_told"})));
  if (at(copies, {"alone"}).empty()) return line(out, "copies", reason(document, "limits.copies"));
  out += "\n  copies              size        time          rate\n";
  for (const Json& copy : at(copies, {"alone"}))
    out += fmt::format("    {:<13}{:>11}  {:>10}  {}\n", short_name(text(copy, {"direction"})) + " alone",
                       format_bytes(static_cast<std::uint64_t>(number(copy, {"size_bytes"}).value_or(0))),
                       duration(copy, {"time_ns"}), rate_words(copy));
  out += "\n  together               time   hidden (1: all but the longest; 0: nothing)\n";
  for (const Json& set : at(copies, {"together"})) {
    std::string names;
    for (const Json& direction : at(set, {"directions"}))
      names += (names.empty() ? "" : "+") + short_name(direction.is_string() ? fields::text(direction, {}) : "?");
    const auto known = number(set, {"overlap"});
    const double overlap = std::clamp(known.value_or(0), 0.0, 1.0);
    out += fmt::format("    {:<13}{:>10}     {} {}\n", names, duration(set, {"time_ns"}),
                       known ? fmt::format("{:.2f}", overlap) : "cannot tell",
                       std::string(static_cast<std::size_t>(std::lround(overlap * 20)), '#'));
  }
}

void add_priorities(std::string& out, const Json& document, const Json& priorities) {
  const Json& value = at(priorities, {"value"});
  const std::string range = fmt::format("{} to {}", text(priorities, {"lowest"}), text(priorities, {"highest"}));
  line(out, "priority levels",
       value.is_null()
           ? fmt::format("not known of {}: {}", range, reason(document, "limits.priorities"))
           : fmt::format("{} that make a difference; the device offers {}", fields::text(value, {}), range));
  if (at(priorities, {"pairs"}).empty()) return;
  out +=
      "\n  a small kernel that comes while a large one runs starts after this share of\n"
      "  the large one's blocks:\n"
      "    large  small         equal   small higher\n";
  for (const Json& pair : at(priorities, {"pairs"})) {
    const Json& differs = at(pair, {"differs"});
    out += fmt::format("    {:>5}  {:>5}  {:>10.0f} %  {:>10.0f} %   {}\n", text(pair, {"lower"}),
                       text(pair, {"higher"}), 100 * number(pair, {"passed_equal"}).value_or(NAN),
                       100 * number(pair, {"passed_higher"}).value_or(NAN),
                       differs.is_null()     ? "cannot tell"
                       : differs.get<bool>() ? "differ"
                                             : "the same level");
  }
}

}  // namespace

std::string describe_limits(const Json& document) {
  std::string out = heading(document);
  const Json& limits = at(document, {"limits"});
  line(out, "hardware queues",
       found_and_reported(document, at(limits, {"hardware_queues", "value"}), at(limits, {"hardware_queues", "told"}),
                          "limits.hardware_queues"));
  line(out, "queue depth", depth_words(document, at(limits, {"queue_depth"})));
  line(out, "resident kernels", resident_words(document, at(limits, {"resident_kernels"})));
  add_copies(out, document, at(limits, {"copies"}));
  out += '\n';
  add_priorities(out, document, at(limits, {"priorities"}));
  warnings(out, document);
  return out;
}

}  // namespace weir
