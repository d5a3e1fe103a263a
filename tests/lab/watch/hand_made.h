// Samples as no source made them, for tests of what is done with samples.
#pragma once

#include <fmt/format.h>

#include <cstddef>

#include "lab/watch/sample.h"

namespace weir::watch::testing {

inline Row row_named(std::string key, std::string label) {
  Row row;
  row.key = std::move(key);
  row.label = std::move(label);
  row.device = "gpu f7bc";
  row.kind = "compute";
  for (SampleValue* figure :
       {&row.backlog, &row.most_backlog, &row.priority, &row.streams, &row.kernels_per_s, &row.commands_per_s,
        &row.packets_per_s, &row.busy, &row.kernels, &row.commands, &row.packets})
    *figure = unknown("not in this test");
  row.active_reason = "not in this test";
  return row;
}

// A busy queue whose rate is a bound, one that is preempted, one of which nothing is known.
inline Sample kfd_sample() {
  Sample sample;
  sample.source = "kfd";
  sample.unit = Unit::packets;
  sample.number = 7;
  sample.taken_ns = 1'000;
  sample.window_ns = 1'000'000'000;
  Row busy = row_named("f7bc/4000/compute/1000", "f7bc pid 4000 #1");
  busy.pid = 4000;
  busy.is_active = busy.is_mapped = true;
  busy.is_preempted = false;
  busy.backlog = known(12);
  busy.priority = known(7);
  busy.priority_text = "7 medium";
  busy.packets_per_s = at_least(317, "may have wrapped");
  busy.packets = at_least(634, "may have wrapped");
  Row saved = row_named("f7bc/4000/compute/2000", "f7bc pid 4000 #2");
  saved.pid = 4000;
  saved.is_active = saved.is_mapped = false;
  saved.is_preempted = true;
  saved.backlog = known(0);
  saved.priority = known(11);
  saved.priority_text = "11 high";
  saved.packets_per_s = known(4210);
  sample.rows = {busy, saved, row_named("f7bc/4001/compute/3000", "f7bc pid 4001 #0")};
  return sample;
}

inline Sample many_rows(std::size_t count) {
  Sample sample;
  sample.source = "device";
  sample.device = "cpu";
  sample.model = "a processor";
  sample.workload = "w";
  for (std::size_t i = 0; i < count; ++i) {
    Row row = row_named(fmt::format("cpu/queue/{}", i), fmt::format("queue {}", i));
    row.is_active = true;
    row.kernels_per_s = known(static_cast<double>(i));
    sample.rows.push_back(std::move(row));
  }
  return sample;
}

}  // namespace weir::watch::testing
