// Turns numbers into sentences: what latency follows, whether a mechanism has an effect, what to use. Knows no device's
// name, and only the names of mechanisms.
#pragma once

#include <span>
#include <string>

namespace weir::preempt {

struct Curve;
struct Alone;

// Fills fit, follows and the sentence. `none` is the curve without a mechanism, or null if it was not observed.
void judge(Curve& curve, const Curve* none);
// What to use here, and its cost.
std::string overall_verdict(std::span<const Curve> curves, const Alone& alone);

}  // namespace weir::preempt
