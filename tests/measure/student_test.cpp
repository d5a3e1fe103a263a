#include "measure/student.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Student, agrees_with_printed_tables) {
  EXPECT_NEAR(student_limit(0.01, 4), 3.7469, 1e-4);
  EXPECT_NEAR(student_limit(0.05, 1), 6.3138, 1e-4);
  EXPECT_NEAR(student_limit(0.025, 30), 2.0423, 1e-4);
  EXPECT_NEAR(student_limit(0.975, 30), -2.0423, 1e-4);
  EXPECT_NEAR(student_above(0, 7), 0.5, 1e-12);
  EXPECT_NEAR(student_above(1, 1), 0.25, 1e-12);
  EXPECT_NEAR(student_above(-1, 1), 0.75, 1e-12);
  EXPECT_LT(student_above(1e6, 8), 1e-40);
}

}  // namespace
}  // namespace weir
