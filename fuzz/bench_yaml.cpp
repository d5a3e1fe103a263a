// bench.yaml of any origin: whatever the text, it either gives a config whose parts keep their promises, or throws our
// own error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "lab/kernels/package/compile_flags.h"
#include "lab/kernels/package/discovery.h"

namespace {

using namespace weir::package;

void check(const Config& config) {
  const auto problems = problems_of(config.problem_size);
  if (problems.empty() || problems.size() > 10'000) __builtin_trap();
  Package package;
  package.name = "fuzz";
  package.folder = "/fuzz";
  package.config = config;
  weir::to_text(manifest_document({{package}, {}}, {}));
  for (const Form form : {Form::host_source, Form::cuda_source, Form::hip_source, Form::opencl_source})
    for (const std::string& flag : flags_for(form, false, config.compile_flags, "/fuzz"))
      if (flag.find("plugin") != std::string::npos && !flag.starts_with("-D") && !flag.starts_with("-U") &&
          !flag.starts_with("-I/fuzz/") && !flag.starts_with("-l"))
        __builtin_trap();
  Facts facts;
  for (const FactWord& word : fact_words()) {
    if (word.kind == FactKind::truth) facts[word.name] = true;
    if (word.kind == FactKind::number) facts[word.name] = 8.0;
    if (word.kind == FactKind::text) facts[word.name] = std::string("cuda");
  }
  // Kinds were checked when it was read: with all facts there, every condition has an answer.
  for (const SkipCondition& skip : config.skip_conditions)
    if (skip.check) skip.check->holds(facts);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Config config;
  try {
    config = parse_config(text, "fuzz");
  } catch (const weir::Error& error) {
    // The one way in which a file may be refused, and always as the user's mistake.
    if (error.fault != weir::Fault::input) __builtin_trap();
    return 0;
  }
  check(config);
  return 0;
}
