// Sentences from numbers: what latency follows, whether a mechanism does anything, what to use. Knows no device's name,
// and of a mechanism only what it is called.
#pragma once

#include <span>
#include <string>

namespace weir::preempt {

struct Curve;
struct Alone;

// Fills fit, follows and the sentence. `none` is the curve without a mechanism, null where it was not observed.
void judge(Curve& curve, const Curve* none);
// What to use here, and what it costs.
std::string overall_verdict(std::span<const Curve> curves, const Alone& alone);

}  // namespace weir::preempt
