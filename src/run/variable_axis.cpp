#include "run/variable_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/secrets.h"
#include "base/yaml.h"

namespace weir {
namespace {

constexpr std::size_t kMaxAxes = 16;
constexpr std::size_t kLongestValue = 4096;

bool is_variable_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && is_letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// A config may come from somebody else: it must not choose the code that runs.
bool chooses_code(std::string_view name) {
  for (const std::string_view each :
       {"PATH", "GCONV_PATH", "LOCPATH", "NLSPATH", "GLIBC_TUNABLES", "HSA_TOOLS_LIB", "ROCP_TOOL_LIB",
        "ROCPROFILER_REGISTER_LIBRARY", "CUDA_INJECTION32_PATH", "CUDA_INJECTION64_PATH", "OCL_ICD_FILENAMES",
        "OCL_ICD_VENDORS", "OPENCL_LAYERS", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "BASH_ENV", "ENV", "IFS"})
    if (name == each) return true;
  // A compiler, a configuration that names libraries, and folders that hold compiled code.
  for (const std::string_view each :
       {"CXX", "NCCL_CONF_FILE", "HOME", "XDG_CACHE_HOME", "UCX_MODULE_DIR", "PMIX_INSTALL_PREFIX"})
    if (name == each) return true;
  for (const std::string_view start : {"LD_", "DYLD_", "OMPI_MCA_", "OPAL_", "PMIX_MCA_", "PRTE_", "HWLOC_"})
    if (name.starts_with(start)) return true;
  return name.ends_with("_PLUGIN") || name.ends_with("_PRELOAD");  // NCCL_NET_PLUGIN: a library by name
}

// Set by the launcher, or by Weir for its children.
bool is_own(std::string_view name) {
  for (const std::string_view start : {"OMPI_COMM_", "PMI_", "PMIX_", "SLURM_", "WEIR_"})
    if (name.starts_with(start)) return true;
  return name == "TMPDIR";
}

std::string shown_value(const std::optional<std::string>& value) { return value ? *value : "the empty value"; }

void check_value(const VariableAxis& axis, const std::optional<std::string>& value, const std::string& where) {
  if (!value) return;
  if (value->size() > kLongestValue)
    reject(fmt::format("{}: a value of {} has {} characters", where, axis.name, value->size()),
           fmt::format("Use at most {}.", kLongestValue));
  if (std::any_of(value->begin(), value->end(), [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }))
    reject(fmt::format("{}: a value of {} has a control character", where, axis.name),
           "Write values on one line, without tabs.");
  if (recorded_value(axis.name, *value) != *value)
    reject(fmt::format("{}: a value of {} holds a secret, which no document may record", where, axis.name),
           "Export it before weir starts: every process inherits it.");
}

}  // namespace

VariableAxis parse_variable_axis(const std::string& text) {
  const std::size_t sign = text.find('=');
  VariableAxis axis{text.substr(0, sign), {}};
  if (sign == std::string::npos || !is_variable_name(axis.name))
    reject(fmt::format("--env {}: not NAME=VALUE,VALUE", text), "For example: --env NCCL_ALGO=Ring,Tree");
  std::string value;
  const auto add = [&] {
    std::optional<std::string> item;
    if (!value.empty()) item = std::exchange(value, {});
    if (std::find(axis.values.begin(), axis.values.end(), item) != axis.values.end())
      reject(fmt::format("--env {}: {} is listed twice", text, shown_value(item)),
             "An empty item means that the variable is not set; it may appear once.");
    axis.values.push_back(std::move(item));
  };
  for (std::size_t i = sign + 1; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ',') {
      value += text[++i];
    } else if (text[i] == ',') {
      add();
    } else {
      value += text[i];
    }
  }
  add();
  return axis;
}

void add_variable_axis(std::vector<VariableAxis>& axes, VariableAxis axis, const std::string& where) {
  if (!is_variable_name(axis.name))
    reject(fmt::format("{}: '{}' is not the name of a variable", where, shown(axis.name)),
           "Names have letters, digits and _, and begin with no digit: NCCL_ALGO.");
  if (std::any_of(axes.begin(), axes.end(), [&](const VariableAxis& other) { return other.name == axis.name; }))
    reject(fmt::format("{}: {} is given twice", where, axis.name), "List all its values at once.");
  if (chooses_code(axis.name))
    reject(fmt::format("{}: {} decides which code runs, so it is not varied here", where, axis.name),
           "Export it before weir starts, or vary it with `weir try --env ... -- weir run ...`.");
  if (is_own(axis.name))
    reject(fmt::format("{}: {} is set by Weir or by the launcher", where, axis.name), "Vary another variable.");
  if (is_secret_name(axis.name))
    reject(fmt::format("{}: {} is the name of a secret, which no document may record", where, axis.name),
           "Export it before weir starts: every process inherits it.");
  if (axis.values.empty())
    reject(fmt::format("{}: {} has no value", where, axis.name), "List one or several: [Ring, Tree].");
  for (const auto& value : axis.values) {
    check_value(axis, value, where);
    if (std::count(axis.values.begin(), axis.values.end(), value) > 1)
      reject(fmt::format("{}: {} of {} is listed twice", where, shown_value(value), axis.name),
             "List each value once.");
  }
  if (axes.size() == kMaxAxes)
    reject(fmt::format("{}: more than {} variables", where, kMaxAxes), "Vary the others in a second sweep.");
  axes.push_back(std::move(axis));
}

std::vector<VariableAxis> parse_variable_axes(const std::vector<std::string>& texts) {
  std::vector<VariableAxis> axes;
  for (const std::string& text : texts) add_variable_axis(axes, parse_variable_axis(text), "--env " + text);
  // The order of the flags means nothing, and a sweep that is resumed finds its points whatever it was.
  std::ranges::sort(axes, {}, &VariableAxis::name);
  return axes;
}

std::vector<VariableSetting> variable_settings(const std::vector<VariableAxis>& axes, std::size_t others) {
  std::vector<VariableSetting> settings = {{}};
  for (const VariableAxis& axis : axes) {
    if (settings.size() * axis.values.size() * std::max<std::size_t>(others, 1) > kMaxVariedPoints)
      reject(fmt::format("variables of the environment (--env, env:) and all other values: more than {} points",
                         kMaxVariedPoints),
             "Use fewer variables, or fewer values.");
    std::vector<VariableSetting> next;
    for (const VariableSetting& setting : settings)
      for (const auto& value : axis.values) next.emplace_back(setting).emplace_back(axis.name, value);
    settings = std::move(next);
  }
  return settings;
}

Json to_json(const VariableSetting& setting) {
  Json json = Json::object();
  for (const auto& [name, value] : setting) json[name] = value ? Json(*value) : Json(nullptr);
  return json;
}

std::string variable_words(const Json& document) {
  std::string words;
  const Json& variables = at_path(document, {"set_variables"});
  if (!variables.is_object()) return words;
  std::size_t count = 0;
  for (const auto& [name, value] : variables.items()) {
    if (++count > kMaxAxes) break;  // the document may be anybody's
    words += fmt::format("{}{}{}", words.empty() ? "" : " ", name,
                         value.is_string() ? "=" + value.get<std::string>() : " unset");
  }
  return words;
}

std::string words_for(const VariableSetting& setting) {
  Json document = Json::object();
  document["set_variables"] = to_json(setting);
  return variable_words(document);
}

void apply(const VariableSetting& setting, ChildRequest& child) {
  for (const auto& [name, value] : setting) {
    if (value)
      child.variables.emplace_back(name, *value);
    else
      child.absent.push_back(name);
  }
}

}  // namespace weir
