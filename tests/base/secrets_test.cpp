#include "base/secrets.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/redact.h"

namespace weir {
namespace {

using Words = std::vector<std::string>;

TEST(Secrets, names_are_recognised_in_any_case_and_form) {
  for (const char* name :
       {"NVIDIA_API_KEY", "SLURM_JWT", "TORCH_TOKEN", "aws_secret_access_key", "MyPassword", "PGPASSWORD",
        "NCCL_PASSPHRASE", "GOOGLE_APPLICATION_CREDENTIALS", "--api-key", "--hf-token", "X-Auth", "Authorization",
        "COOKIE", "db.pwd", "apiKey", "HF_TOKEN", "--session-id", "SLACK_WEBHOOK_URL", "DOCKER_AUTH_CONFIG"})
    EXPECT_TRUE(is_secret_name(name)) << name;
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "GPU_MAX_HW_QUEUES", "--tokenizer", "TOKENIZERS_PARALLELISM", "PWD",
                           "--author", "--streams", "NCCL_ALGO", "", "-o"})
    EXPECT_FALSE(is_secret_name(name)) << name;
}

TEST(Secrets, values_of_variables) {
  EXPECT_EQ(recorded_value("NVIDIA_API_KEY", "x"), "(redacted)");
  EXPECT_EQ(recorded_value("NVIDIA_API_KEY", ""), "");
  EXPECT_EQ(recorded_value("CUDA_VISIBLE_DEVICES", "0,1"), "0,1");
  EXPECT_EQ(recorded_value("UCX_TLS", "https://me:hunter2@host/x"), "https://(redacted)@host/x");
  EXPECT_EQ(recorded_value("NCCL_DEBUG", "ghp_" + std::string(36, 'a')), "(redacted)");
}

TEST(Secrets, command_lines_keep_what_is_no_secret) {
  const Words harmless = {"weir",
                          "run",
                          "moe",
                          "--streams",
                          "8",
                          "--device",
                          "sim:h200",
                          "-o",
                          "a=b.json",
                          "--max-tokens",
                          "512",
                          "--tokens=1024",
                          "name",
                          "a::key::b",
                          "git@github.com:a/b",
                          "https://host/path",
                          "ssh://git@host/x"};
  EXPECT_EQ(recorded_command(harmless), harmless);
}

TEST(Secrets, command_lines_lose_secrets_in_every_form) {
  const std::vector<Words> forms = {
      {"p", "--api-key", "hunter2"},
      {"p", "--api_key=hunter2"},
      {"p", "--token", "hunter2", "--verbose"},
      {"p", "--password", "-hunter2"},
      {"p", "hf.token=hunter2"},
      {"env", "PASSWORD=hunter2", "p"},
      {"env", "PASSWORD=two words hunter2", "p"},
      {"docker", "run", "-e", "HF_TOKEN=hunter2", "x"},
      {"weir", "try", "--env=HF_TOKEN=hunter2,other hunter2"},
      {"sh", "-c", "cd x; PASSWORD=hunter2 p --token hunter2 --key='hunter2 x' --secret \"hunter2 y\" -v"},
      {"curl", "-H", "Authorization: Bearer hunter2", "https://host"},
      {"sh", "-c", "curl -H 'X-Api-Key: hunter2' https://host"},
      {"sh", "-c", "curl -H \"Authorization: Basic hunter2\" https://host"},
      {"p", "{\"api_key\": \"hunter2\", \"n\": 1}"},
      {"p", "--config", "{api_key: hunter2}"},
      {"sh", "-c", "p '{\\\"token\\\": \\\"hunter2\\\"}'"},
      {"p", "https://user:hunter2@host/x"},
      {"p", "https://hunter2@host"},
      {"p", "postgres://u:p@hunter2@host/db"},
      {"p", "https://host/?a=1&access_token=hunter2&b=2"},
      {"aws", "configure", "set", "aws_secret_access_key", "hunter2"},
      {"p", "--TOKEN", "hunter2"},
      {"p", "-token", "hunter2"},
      {"p", "--key", "12345hunter2"},
      {"p", "--auth", "user:hunter2"},
  };
  for (const Words& form : forms) {
    const Words clean = recorded_command(form);
    std::string all;
    for (const std::string& word : clean) all += word + " ";
    EXPECT_EQ(all.find("hunter2"), std::string::npos) << all;
    EXPECT_NE(all.find("(redacted)"), std::string::npos) << all;
    EXPECT_EQ(clean.size(), form.size());
    EXPECT_EQ(recorded_command(clean), clean) << all;  // a second time changes nothing
  }
  EXPECT_EQ(recorded_command({"p", "--token", "a", "--verbose"}), (Words{"p", "--token", "(redacted)", "--verbose"}));
  EXPECT_EQ(recorded_command({"p", "--use-token", "--verbose"}), (Words{"p", "--use-token", "--verbose"}));
}

// Documents of other versions and of other people have them anywhere.
TEST(Secrets, documents_are_cleaned_where_they_hold_commands_and_variables) {
  const Json document = {
      {"command_line", {"weir", "--token", "hunter2"}},
      {"environment", {{"variables", {{"NVIDIA_API_KEY", "hunter2"}, {"NCCL_ALGO", "Ring"}}}}},
      {"results", Json::array({Json{{"environment", Json::array({Json{{"name", "SLURM_JWT"}, {"value", "hunter2"}}})},
                                    {"command", "p --password hunter2"}}})},
      {"plan", {{"commands", Json::array({Json::array({"p", "--key=hunter2"})})}}},
      {"factors", Json::array({Json{{"name", "HF_TOKEN"}, {"values", {"hunter2", nullptr}}}})},
      {"page", {{"variables", Json::array({Json::array({"TORCH_TOKEN", "hunter2"})})}}},
      {"samples", {1, 2, 3}},
      {"name", "tokens"}};
  EXPECT_TRUE(has_secrets(document));
  const std::string text = to_text(document);
  EXPECT_EQ(text.find("hunter2"), std::string::npos) << text;
  EXPECT_NE(text.find("\"NCCL_ALGO\": \"Ring\""), std::string::npos) << text;
  const Json clean = Json::parse(text);
  EXPECT_FALSE(has_secrets(clean));
  EXPECT_EQ(clean["samples"], document["samples"]);
}

TEST(Secrets, shared_documents_name_no_home_folder) {
  Json document = {{"a", "/home/ann/x.json"},
                   {"b", {"/Users/ann", "-I/home/ann/include:/root/lib", "/srv/people/ann/y", "/homework/x"}},
                   {"c", "/srv/people/anna /roots https://host/home/x file:///home/ann/x"}};
  make_shareable(document, "/srv/people/ann");
  EXPECT_EQ(document["a"], "~/x.json");
  EXPECT_EQ(document["b"], Json::array({"~", "-I~/include:~/lib", "~/y", "/homework/x"}));
  EXPECT_EQ(document["c"], "/srv/people/anna /roots https://host/home/x file://~/x");
}

}  // namespace
}  // namespace weir
