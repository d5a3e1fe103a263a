// Small documents as weir writes them, for tests of what reads them.
#pragma once

#include "base/json.h"

namespace weir::testing {

Json result_document();   // weir.result/2: moe on 8 streams of sim:h200
Json bench_document();    // weir.bench/2: softmax was measured, fft crashed
Json overlap_document();  // weir.overlap/2
Json preempt_document();  // weir.preempt/2: one mechanism, one victim

// weir.fleet_probe/1: of n1, cuda:0 has a figure of each unit and cuda:1 computes wrongly.
Json fleet_probe_document();
Json fleet_document();  // weir.fleet/1: of n1 and n2 one device is slow and one wrong, and a link is slow

}  // namespace weir::testing
