// env.json of `weir bench`: the machine, its devices and drivers, compilers, and the commit of the working folder. Asks
// other programs; knows no kernel.
#pragma once

#include <string>

#include "base/json.h"

namespace weir::cli {

// weir.bench_environment/1: what every result carries (measure/environment.h), and "cpu_model", "devices", "compilers",
// "git". `facts` as of cli/bench_facts.h.
Json bench_environment(const Json& facts, const std::string& compiler);

}  // namespace weir::cli
