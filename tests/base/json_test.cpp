#include "base/json.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <limits>

#include "base/error.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

class JsonFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("weir_json_" + std::to_string(::getpid()) + "_" +
                                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  static std::string message(const fs::path& path) {
    try {
      read_json(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::input);
      return error.what();
    }
    return {};
  }
  fs::path folder_;
};

TEST_F(JsonFile, SaysWhatIsWrongAndWhere) {
  EXPECT_NE(message(folder_ / "absent.json").find("No such file"), std::string::npos);
  EXPECT_NE(message(folder_).find("folder"), std::string::npos);
  EXPECT_NE(message(write("empty.json", "")).find("empty"), std::string::npos);
  EXPECT_NE(message(write("cut.json", "{\"a\": [1, 2")).find("truncated"), std::string::npos);
  EXPECT_NE(message(write("bad.json", "{\n  \"a\": nope\n}")).find("line 2"), std::string::npos);
  EXPECT_NE(message(write("deep.json", std::string(100'000, '['))).find("100 levels"), std::string::npos);
  EXPECT_EQ(read_json(write("good.json", "{\"a\": 1}"))["a"], 1);
}

TEST_F(JsonFile, NeverReplacesWithoutLeave) {
  const fs::path path = write("kept.json", "old");
  EXPECT_THROW(write_file(path, "new", false), Error);
  std::string text;
  std::getline(std::ifstream(path), text);
  EXPECT_EQ(text, "old");
  write_file(path, "new", true);
  std::getline(std::ifstream(path), text);
  EXPECT_EQ(text, "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}), 1) << "a temporary file was left";
}

TEST_F(JsonFile, ChecksBeforeWork) {
  EXPECT_THROW(check_writable(folder_ / "absent" / "x.json", false), Error);
  EXPECT_THROW(check_writable(folder_, true), Error);
  EXPECT_NO_THROW(check_writable(folder_ / "x.json", false));
}

TEST_F(JsonFile, NoDataIsNull) {
  EXPECT_TRUE(number_or_null(std::nullopt).is_null());
  EXPECT_TRUE(number_or_null(std::numeric_limits<double>::quiet_NaN()).is_null());
  EXPECT_TRUE(number_or_null(std::numeric_limits<double>::infinity()).is_null());
  EXPECT_EQ(number_or_null(0.0), 0.0);
}

TEST_F(JsonFile, NothingIsNull) {
  EXPECT_EQ(or_null(std::optional(3)), 3);
  EXPECT_TRUE(or_null(std::optional<int>()).is_null());
  EXPECT_EQ(text_or_null("a"), "a");
  EXPECT_TRUE(text_or_null("").is_null());
}

TEST(JsonPath, LeadsToAValueOrToNull) {
  const Json json = {{"a", {{"b", 1500}}}, {"null", nullptr}};
  EXPECT_EQ(member(json, "a"), json["a"]);
  EXPECT_TRUE(member(json, "b").is_null());
  EXPECT_TRUE(member(json["null"], "a").is_null());
  EXPECT_EQ(at_path(json, {}), json);
  EXPECT_EQ(at_path(json, {"a", "b"}), 1500);
  EXPECT_TRUE(at_path(json, {"a", "b", "c"}).is_null());
}

}  // namespace
}  // namespace weir
