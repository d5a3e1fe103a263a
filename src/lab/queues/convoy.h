// Measures how long small kernels take alone, beside large ones on other queues, or behind them on their own queue: one
// case per call, on the device as it is; and computes the indices from all three. The caller chooses the queue count
// that makes each case.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "device/device.h"

namespace weir {

enum class ConvoyCase : std::uint8_t { alone, beside, behind };
std::string_view name_of(ConvoyCase which);
std::optional<ConvoyCase> convoy_case_named(std::string_view name);

struct ConvoyRequest {
  ConvoyCase which = ConvoyCase::alone;
  int streams = 8;  // half of them, rounded down, have large kernels
  int iterations = 100;
  std::int64_t large_ns = 500'000, small_ns = 5'000;
  int large_blocks = 0;  // 0: chosen so that all large kernels that run at once take half of the device

  int large_streams() const { return streams / 2; }
  int small_streams() const { return streams - streams / 2; }
};

struct ConvoyMeasurement {
  std::vector<double> latency_ns;     // from submission to end of each small kernel, in the order of submission
  std::string reason;                 // why there are no latencies
  int large_blocks = 0;               // of each large kernel; 0 without large kernels
  std::optional<std::size_t> shared;  // small kernels with a large one on their queue; nothing if unknown
  std::string source;                 // where the times come from
  double clock_error_ns = 0;          // error of the device's clock against the host's
};

// Each iteration submits two large kernels to every large stream, one stream after the other, then one small kernel to
// every small stream, and waits for all. A stream's second large kernel waits for the first at the head of its queue,
// so everything behind it must wait, too.
ConvoyMeasurement measure_convoy(Device& device, const ConvoyRequest& request);

// One case: {case, latency_ns, samples_ns, ...}. Latencies are null, with a reason, if the device cannot measure them.
Json to_json(const ConvoyRequest& request, const ConvoyMeasurement& measurement);

// Computes convoy.convoy_index (beside p99 / alone p99), convoy.head_of_line_index (behind p99 / beside p99) and the
// sentence from convoy.cases; adds their limitations to the document's warnings and "unavailable".
void judge_convoy(Json& document);

}  // namespace weir
