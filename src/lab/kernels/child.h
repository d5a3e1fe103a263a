// The child's side of `weir bench`: opens one package for one backend and measures its cases, or examines this machine,
// as a request file says; reports as lines of JSON. Everything that a package does happens here.
#pragma once

#include <string>

namespace weir::bench {

// Requests and reports:
//   {"task": "facts", "backend", "device"}             {"event": "result", "value": facts}
//   {"task": "ceilings", "backend", "device", ...}     {"event": "result", "value": ceilings}
//   {"task": "measure", "folder", "name", "backend", ...}
//     {"event": "building"}, {"event": "opening"}      compilers may take long, all else has a case's time limit
//     {"event": "cases", "entries": [...]}             what there is to measure; skipped cases are marked
//     {"event": "begins", "key"}, {"event": "ends", "entry"}
//   {"event": "refused", "what", "hint"}               instead of everything that would follow
// Samples go to a file of doubles, so that those before a crash are kept and nobody is woken up for each of them.
void run_bench_child(const std::string& file);

}  // namespace weir::bench
