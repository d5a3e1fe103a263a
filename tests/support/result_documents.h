// Small documents as weir writes them, for tests of what reads them.
#pragma once

#include "base/json.h"

namespace weir::testing {

Json result_document();   // weir.result/1: moe on 8 streams of sim:h200
Json bench_document();    // weir.bench/1: softmax was measured, fft crashed
Json overlap_document();  // weir.overlap/1
Json preempt_document();  // weir.preempt/1: one mechanism, one victim

}  // namespace weir::testing
