// The manifest of a capture: what is written is read again, and what is wrong or hostile is rejected by file and key.
#include "amd/capture/manifest.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>

#include "base/error.h"

namespace weir::amd {
namespace {

namespace fs = std::filesystem;

class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "weir_manifest_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }

 private:
  fs::path path_;
};

CaptureManifest full() {
  CaptureManifest manifest;
  manifest.command = {"./train", "--steps", "3"};
  manifest.started_at = "2026-01-31T12:00:00Z";
  manifest.weir = "0.8.0 (abc)";
  manifest.started_ns = 177'770'000'000'123;
  manifest.ended_ns = 177'775'000'000'456;
  manifest.exit_code = 137;
  manifest.kernel_release = "5.10.134";
  manifest.trace_clock = "mono";
  manifest.environment = {{"AMD_LOG_LEVEL", "4"}, {"AMD_LOG_MASK", "0x1099b"}};
  manifest.processes = {{{3934101, 157868, 17}, "python3"}, {{3934102}, "worker \x1b[31m"}};
  manifest.parts = {{"log", {"log", "log_3934101"}, "", ""}, {"ftrace", {}, "Operation not permitted", "Run as root."}};
  manifest.snapshots = {{"before", "snapshots/before", 177'769'000'000'000}, {"after", "snapshots/after", 2}};
  return manifest;
}

// The message of a rejection; empty where there was none.
template <class Body>
std::string rejection(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_FALSE(error.hint.empty()) << error.what();
    return error.what();
  }
  return "";
}

// The manifest with one value replaced ("/parts/0/files/0"), as text.
std::string with(const std::string& pointer, const Json& value) {
  Json json = to_json(full());
  Json* place = &json;
  std::istringstream names(pointer.substr(1));
  for (std::string name; std::getline(names, name, '/');)
    place = place->is_array() ? &place->at(std::stoul(name)) : &(*place)[name];
  *place = value;
  return to_text(json);
}

TEST(Manifest, is_read_as_it_was_written) {
  const CaptureManifest written = full();
  const CaptureManifest read = parse_manifest(to_text(to_json(written)), "manifest.json");
  EXPECT_EQ(to_text(to_json(read)), to_text(to_json(written)));
  EXPECT_EQ(read.command, written.command);
  EXPECT_EQ(read.started_ns, written.started_ns);
  EXPECT_EQ(read.ended_ns, written.ended_ns);
  EXPECT_EQ(read.exit_code, 137);
  EXPECT_EQ(read.trace_clock, "mono");
  EXPECT_EQ(read.environment, written.environment);
  ASSERT_EQ(read.processes.size(), 2U);
  EXPECT_EQ(read.processes[0].pids, (std::vector<int>{3934101, 157868, 17}));
  EXPECT_EQ(read.processes[1].name, "worker \x1b[31m");
  ASSERT_EQ(read.parts.size(), 2U);
  EXPECT_EQ(read.parts[0].files, (std::vector<std::string>{"log", "log_3934101"}));
  EXPECT_EQ(read.parts[1].reason, "Operation not permitted");
  ASSERT_EQ(read.snapshots.size(), 2U);
  EXPECT_EQ(read.snapshots[0].folder, "snapshots/before");
  EXPECT_EQ(read.snapshots[1].taken_ns, 2);
}

TEST(Manifest, keeps_what_ran_already) {
  CaptureManifest manifest = full();
  manifest.target = CaptureTarget{std::nullopt, "web", std::string(64, 'a'), "podman"};
  const CaptureManifest read = parse_manifest(to_text(to_json(manifest)), "m");
  ASSERT_TRUE(read.target);
  EXPECT_FALSE(read.target->pid);
  EXPECT_EQ(read.target->container, "web");
  EXPECT_EQ(read.target->container_id, std::string(64, 'a'));
  EXPECT_EQ(read.target->runtime, "podman");
  EXPECT_NE(rejection([] { parse_manifest(with("/target", Json::object()), "m"); }), "");
}

TEST(Manifest, has_null_where_there_is_nothing) {
  CaptureManifest manifest = full();
  manifest.exit_code.reset();
  manifest.trace_clock.clear();
  const Json json = to_json(manifest);
  EXPECT_TRUE(json["exit_code"].is_null());
  EXPECT_TRUE(json["trace_clock"].is_null());
  EXPECT_TRUE(json["parts"][0]["reason"].is_null());
  const CaptureManifest read = parse_manifest(to_text(json), "m");
  EXPECT_FALSE(read.exit_code);
  EXPECT_EQ(read.trace_clock, "");
}

TEST(Manifest, names_the_key_that_is_missing) {
  const Json whole = to_json(full());
  for (const auto& [key, value] : whole.items()) {
    Json json = whole;
    json.erase(key);
    if (key == "target" || key == "queue_events") {  // manifests of before have none
      EXPECT_FALSE(parse_manifest(to_text(json), "m").target);
      continue;
    }
    const std::string message = rejection([&] { parse_manifest(to_text(json), "dir/manifest.json"); });
    EXPECT_TRUE(message.starts_with("dir/manifest.json: ")) << key << ": " << message;
    EXPECT_NE(message.find(key), std::string::npos) << message;
    EXPECT_NE(message.find("missing"), std::string::npos) << message;
  }
}

TEST(Manifest, names_the_key_of_a_wrong_type) {
  const std::vector<std::pair<std::string, std::string>> places = {
      {"/schema", "schema"},
      {"/command", "command"},
      {"/command/1", "command[1]"},
      {"/started_ns", "started_ns"},
      {"/exit_code", "exit_code"},
      {"/trace_clock", "trace_clock"},
      {"/environment/0/value", "environment[0].value"},
      {"/processes/0/pids", "processes[0].pids"},
      {"/processes/0/pids/1", "processes[0].pids[1]"},
      {"/processes/1/name", "processes[1].name"},
      {"/parts/1", "parts[1]"},
      {"/parts/0/files", "parts[0].files"},
      {"/parts/0/files/0", "parts[0].files[0]"},
      {"/parts/0/reason", "parts[0].reason"},
      {"/snapshots/0/folder", "snapshots[0].folder"},
      {"/snapshots/1/taken_ns", "snapshots[1].taken_ns"},
  };
  for (const auto& [pointer, key] : places) {
    const std::string message = rejection([&, p = pointer] { parse_manifest(with(p, true), "m.json"); });
    EXPECT_TRUE(message.starts_with("m.json: " + key + ": ")) << pointer << ": " << message;
  }
}

TEST(Manifest, rejects_numbers_that_are_no_numbers_of_that_kind) {
  for (const char* number :
       {"18446744073709551615", "9223372036854775808", "-1", "1e300", "99999999999999999999999", "1.5", "\"1\""}) {
    const std::string message = rejection([&] { parse_manifest(with("/started_ns", Json::parse(number)), "m.json"); });
    EXPECT_TRUE(message.starts_with("m.json: started_ns: ")) << number << ": " << message;
  }
  EXPECT_NE(rejection([] { parse_manifest(with("/exit_code", 256), "m"); }), "");
  EXPECT_NE(rejection([] { parse_manifest(with("/processes/0/pids/0", 4294967297), "m"); }), "");
  EXPECT_NE(rejection([] { parse_manifest(with("/processes/0/pids", Json::array()), "m"); }), "");
  EXPECT_NE(rejection([] { parse_manifest(with("/processes/0/pids", Json(std::vector<int>(34, 1))), "m"); }), "");
  EXPECT_NE(rejection([] { parse_manifest(with("/ended_ns", 1), "m"); }).find("before started_ns"), std::string::npos);
}

TEST(Manifest, rejects_paths_that_leave_the_folder) {
  for (const char* path :
       {"/etc/passwd", "..", "../x", "a/../../x", "a/..", "a/../b", "", ".", "./a", "a//b", "a/", "a\nb", "\x1b[2J"}) {
    for (const char* pointer : {"/parts/0/files/0", "/snapshots/0/folder"}) {
      const std::string message = rejection([&] { parse_manifest(with(pointer, path), "m.json"); });
      EXPECT_TRUE(message.starts_with("m.json: ")) << path << ": " << message;
      EXPECT_EQ(message.find('\x1b'), std::string::npos);
    }
  }
  EXPECT_NE(rejection([] { parse_manifest(with("/parts/0/files/0", std::string("a\0b", 3)), "m"); }), "");
  EXPECT_EQ(rejection([] { parse_manifest(with("/parts/0/files/0", "..a/b..c/..."), "m"); }), "");
}

TEST(Manifest, rejects_a_part_that_is_there_twice) {
  EXPECT_NE(rejection([] { parse_manifest(with("/parts/1/name", "log"), "m"); }).find("parts[1].name"),
            std::string::npos);
}

TEST(Manifest, rejects_what_is_none) {
  for (const char* text : {"", "{", "[]", "null", "{}",
                           "\x7f"
                           "ELF\x02\x01",
                           "{\"schema\": \"weir.result/2\"}"}) {
    std::string message;
    try {
      parse_manifest(text, "m.json");
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_TRUE(message.starts_with("m.json: ")) << text << ": " << message;
  }
}

TEST(Manifest, is_loaded_from_its_folder) {
  const Scratch folder;
  EXPECT_NE(rejection([&] { load_manifest(folder.path()); }).find("manifest.json"), std::string::npos);
  EXPECT_NE(rejection([&] { load_manifest(folder.path() / "none"); }).find("does not exist"), std::string::npos);
  folder.write("manifest.json", to_text(to_json(full())));
  EXPECT_EQ(load_manifest(folder.path()).command, full().command);
  EXPECT_NE(rejection([&] { load_manifest(folder.path() / "manifest.json"); }).find("not a folder"), std::string::npos);
}

TEST(Manifest, rejects_links_that_leave_the_folder) {
  const Scratch folder, elsewhere;
  folder.write("manifest.json", to_text(to_json(full())));
  folder.write("other", "x");
  fs::create_symlink("other", folder.path() / "log");
  EXPECT_EQ(rejection([&] { load_manifest(folder.path()); }), "") << "a link within the folder is fine";
  fs::remove(folder.path() / "log");
  elsewhere.write("secret", "x");
  fs::create_symlink(elsewhere.path() / "secret", folder.path() / "log");
  EXPECT_NE(rejection([&] { load_manifest(folder.path()); }).find("'log' is a link that leaves"), std::string::npos);
  fs::remove(folder.path() / "log");
  fs::create_directory_symlink(elsewhere.path(), folder.path() / "snapshots");
  EXPECT_NE(rejection([&] { load_manifest(folder.path()); }).find("'snapshots/before' is a link"), std::string::npos);
  fs::remove(folder.path() / "snapshots");
  fs::create_symlink("log", folder.path() / "log");
  EXPECT_NE(rejection([&] { load_manifest(folder.path()); }), "") << "a link to itself";
}

TEST(Manifest, is_never_read_from_a_pipe_nor_without_end) {
  const Scratch folder;
  ASSERT_EQ(::mkfifo((folder.path() / "manifest.json").c_str(), 0600), 0);
  EXPECT_NE(rejection([&] { load_manifest(folder.path()); }).find("not a plain file"), std::string::npos);
  fs::remove(folder.path() / "manifest.json");
  folder.write("manifest.json", "");
  fs::resize_file(folder.path() / "manifest.json", std::uintmax_t{1} << 40);
  EXPECT_NE(rejection([&] { load_manifest(folder.path()); }).find("larger than any manifest"), std::string::npos);
}

}  // namespace
}  // namespace weir::amd
