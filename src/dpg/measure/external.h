// Any program as an operator: a black box that runs beside us and is asked over pipes. "exec:./forward.py"
//
// The protocol (docs/operators.md, examples/forward.py): for each request the program reads one NPY array
// from its standard input, float32, C order, [N, C, H, W] in [-1, 1], and writes one NPY array to its
// standard output and flushes it: float32, C order, [N, ...], row i measured from picture i. At the end of
// its input it leaves.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dpg/measure/operator.h"

namespace dpg {

struct ExternalOptions {
  std::string command;  // words as in a shell ('...', "..." and \ keep them together), but no shell runs
  double timeout = 60;  // seconds for one request
  std::int64_t budget =
      0;         // pictures that may be asked in all, without the grey one of the start; 0: unlimited
  int jobs = 1;  // copies of the program that share the pictures of a request

  void validate() const;
  std::string spec() const;
};

// Starts the program and asks it once, with a mid-grey picture, what shape its measurements have; further
// copies start when a request has pictures for them. Thread-safe: one request at a time. After a failure the
// next request starts the copy that failed anew.
std::shared_ptr<const Operator> make_external(const ImageShape& shape, const ExternalOptions& options);

// "python3 run.py 'a b'" -> {"python3", "run.py", "a b"}.
std::vector<std::string> split_command(const std::string& command);

}  // namespace dpg
