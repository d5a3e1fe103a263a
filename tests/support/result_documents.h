// Small documents as weir writes them, for tests of what reads them.
#pragma once

#include "base/json.h"

namespace weir::testing {

Json result_document();   // weir.result/2: moe on 8 streams of sim:h200
Json bench_document();    // weir.bench/2: softmax was measured, fft crashed
Json overlap_document();  // weir.overlap/2
Json preempt_document();  // weir.preempt/2: one mechanism, one victim

}  // namespace weir::testing
