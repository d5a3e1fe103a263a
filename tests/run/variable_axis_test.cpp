// Variables as what is varied: what is accepted, what is refused with which advice, and all combinations.
#include "run/variable_axis.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weir {
namespace {

std::string refusal(const std::vector<std::string>& texts) {
  try {
    parse_variable_axes(texts);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_FALSE(error.hint.empty()) << error.what();
    return error.what();
  }
  return "accepted";
}

TEST(VariableAxis, AnEmptyItemIsUnset) {
  const auto axes = parse_variable_axes({"NCCL_ALGO=Ring,Tree,", R"(LIST=a\,b,c=d)"});
  ASSERT_EQ(axes.size(), 2u);
  EXPECT_EQ(axes[0].values, (std::vector<std::optional<std::string>>{"a,b", "c=d"}));
  EXPECT_EQ(axes[1].name, "NCCL_ALGO");
  EXPECT_EQ(axes[1].values, (std::vector<std::optional<std::string>>{"Ring", "Tree", std::nullopt}));
}

TEST(VariableAxis, RefusesWhatCannotBeVaried) {
  for (const char* const text : {"", "=1", "NAME", "1A=2", "A B=1", "A-B=1", "A\n=1"})
    EXPECT_NE(refusal({text}), "accepted") << text;
  for (const char* const name : {"LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "CUDA_INJECTION64_PATH", "NCCL_NET_PLUGIN",
                                 "CXX", "HOME", "XDG_CACHE_HOME", "OPAL_PREFIX", "PRTE_PREFIX", "HWLOC_PLUGINS_PATH",
                                 "UCX_MODULE_DIR", "PMIX_INSTALL_PREFIX", "NCCL_CONF_FILE"})
    EXPECT_NE(refusal({name + std::string("=x")}).find("decides which code runs"), std::string::npos) << name;
  for (const char* const name : {"TMPDIR", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "WEIR_TERMINAL"})
    EXPECT_NE(refusal({name + std::string("=x")}).find("set by Weir or by the launcher"), std::string::npos) << name;
  EXPECT_NE(refusal({"HF_TOKEN=abc"}).find("secret"), std::string::npos);
  EXPECT_NE(refusal({"PROXY=https://user:word@host/"}).find("secret"), std::string::npos);
  EXPECT_EQ(refusal({"HF_TOKEN=abc"}).find("abc=abc"), std::string::npos);
  EXPECT_NE(refusal({"A=1,2,1"}).find("twice"), std::string::npos);
  EXPECT_NE(refusal({"A=,1,"}).find("twice"), std::string::npos);
  EXPECT_NE(refusal({"A=1", "A=2"}).find("given twice"), std::string::npos);
  EXPECT_NE(refusal({"A=1\t"}).find("control character"), std::string::npos);
  EXPECT_NE(refusal({"A=" + std::string(5000, 'x')}).find("5000 characters"), std::string::npos);
}

TEST(VariableAxis, CombinesTheLastFastest) {
  const auto settings = variable_settings(parse_variable_axes({"A=1,2", "B=x,"}));
  ASSERT_EQ(settings.size(), 4u);
  EXPECT_EQ(words_for(settings[0]), "A=1 B=x");
  EXPECT_EQ(words_for(settings[1]), "A=1 B unset");
  EXPECT_EQ(words_for(settings[3]), "A=2 B unset");
  EXPECT_EQ(to_json(settings[1]).dump(), R"({"A":"1","B":null})");
  EXPECT_EQ(variable_settings({}).size(), 1u);
  EXPECT_EQ(words_for(variable_settings({})[0]), "");
}

TEST(VariableAxis, TheOrderOfTheFlagsMeansNothing) {
  const auto settings = variable_settings(parse_variable_axes({"B=x,y", "A=1,2"}));
  ASSERT_EQ(settings.size(), 4u);
  EXPECT_EQ(settings, variable_settings(parse_variable_axes({"A=1,2", "B=x,y"})));
}

TEST(VariableAxis, RefusesTooManyPoints) {
  std::string values;
  for (int i = 0; i < 100; ++i) values += (i == 0 ? "" : ",") + std::to_string(i);
  const auto axes = parse_variable_axes({"A=" + values, "B=" + values.substr(0, 19)});
  EXPECT_EQ(variable_settings(axes).size(), 1000u);
  EXPECT_THROW(variable_settings(axes, 2), Error);
  EXPECT_THROW(variable_settings(parse_variable_axes({"A=" + values, "B=" + values})), Error);
}

TEST(VariableAxis, TellsAChildWhatIsSetAndWhatIsNot) {
  ChildRequest child;
  apply({{"A", "1"}, {"B", std::nullopt}}, child);
  EXPECT_EQ(child.variables, (Variables{{"A", "1"}}));
  EXPECT_EQ(child.absent, std::vector<std::string>{"B"});
}

}  // namespace
}  // namespace weir
