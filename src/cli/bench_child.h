// The child's side of `weir bench`: opens one package for one backend and measures its cases, or asks this machine what
// it has, as a file says; tells what comes of it as lines of JSON. Whatever a package does, it does it here.
#pragma once

#include <string>

namespace weir::cli {

// Requests and what is told:
//   {"task": "facts", "backend", "device"}             {"event": "result", "value": facts}
//   {"task": "ceilings", "backend", "device", ...}     {"event": "result", "value": ceilings}
//   {"task": "measure", "folder", "name", "backend", ...}
//     {"event": "building"}, {"event": "opening"}      compilers may take long, all else has the time of a case
//     {"event": "cases", "entries": [...]}             what there is to measure; those that are skipped say so
//     {"event": "begins", "key"}, {"event": "ends", "entry"}
//   {"event": "refused", "what", "hint"}               instead of all that would follow
// Samples go to a file of doubles, so that those of a crash are not lost and nobody wakes up for each of them.
int run_bench_child(const std::string& file);

}  // namespace weir::cli
