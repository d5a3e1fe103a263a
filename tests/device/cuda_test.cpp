// The cuda entry of the list on any machine: it is there or says why not, and never crashes.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/vendor_library.h"
#include "device/gpu/libraries.h"
#include "device/list.h"

namespace weir {
namespace {

TEST(Cuda, is_found_or_says_why_not) {
  const DeviceType type = device_list::cuda();
  EXPECT_EQ(type.name, "cuda");
  const DeviceType::Found found = type.find();
  EXPECT_NE(found.names.empty(), found.reason.empty()) << found.reason;
  for (std::size_t i = 0; i < found.names.size(); ++i) EXPECT_EQ(found.names[i], "cuda:" + std::to_string(i));
}

TEST(Cuda, refuses_what_is_not_there) {
  const DeviceType type = device_list::cuda();
  try {
    type.open("1000", {});
    FAIL() << "opened cuda:1000";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    const std::string message = error.what();
    EXPECT_NE(message.find("device cuda:1000: "), std::string::npos) << message;
    const std::string reason = type.find().reason;
    EXPECT_NE(message.find(reason), std::string::npos) << message;
  }
}

TEST(Cuda, other_libraries_are_there_or_say_why_not) {
  std::string reason;
  const bool has_nvml = open_nvml(&reason) != nullptr;
  EXPECT_EQ(has_nvml, reason.empty()) << reason;
  reason.clear();
  const bool has_cublas = open_cublas(&reason) != nullptr;
  EXPECT_EQ(has_cublas, reason.empty()) << reason;
}

TEST(VendorLibrary, names_what_is_missing) {
  VendorLibrary absent({"libweir_does_not_exist.so.1", "libweir_nor_this.so"});
  EXPECT_FALSE(absent.is_open());
  EXPECT_NE(absent.error().find("libweir_does_not_exist.so.1"), std::string::npos) << absent.error();

  VendorLibrary libc({"libweir_does_not_exist.so.1", "libc.so.6"});
  ASSERT_TRUE(libc.is_open());
  EXPECT_EQ(libc.error(), "");
  int (*const absolute)(int) = libc.need("abs");
  ASSERT_NE(absolute, nullptr);
  EXPECT_EQ(absolute(-3), 3);
  void (*const optional)() = libc.want("weir_is_not_in_libc");
  EXPECT_EQ(optional, nullptr);
  EXPECT_EQ(libc.missing(), "");
  void (*const required)() = libc.need("weir_is_not_in_libc_either");
  EXPECT_EQ(required, nullptr);
  EXPECT_EQ(libc.missing(), "weir_is_not_in_libc_either");
}

}  // namespace
}  // namespace weir
