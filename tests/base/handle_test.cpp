#include "base/handle.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

bool is_open(int file) { return ::fcntl(file, F_GETFD) >= 0; }

TEST(Descriptor, ClosesOnceWhatItOwns) {
  Descriptor none;
  EXPECT_FALSE(none);
  Descriptor first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(first);
  const int file = first.get();
  Descriptor second(std::move(first));
  EXPECT_FALSE(first);
  EXPECT_EQ(second.get(), file);
  first = std::move(second);
  EXPECT_TRUE(is_open(file));
  first.reset();
  EXPECT_FALSE(first);
  EXPECT_FALSE(is_open(file));

  Descriptor given(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int released = given.release();
  given.reset();
  EXPECT_TRUE(is_open(released));
  ::close(released);
}

}  // namespace
}  // namespace weir
