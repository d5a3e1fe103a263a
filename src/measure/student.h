// Student's t distribution: the significance of a difference of few, roughly normal values. Knows only numbers.
#pragma once

namespace weir {

// P(T > t); `degrees` > 0, whole or not. NaN for NaN.
double student_above(double t, double degrees);
// The t that is exceeded with probability `above`, 0 < above < 1.
double student_limit(double above, double degrees);

}  // namespace weir
