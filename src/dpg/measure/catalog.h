// Operators by their textual form: "sr:4", "blur:sigma=3,size=61,boundary=reflect", "inpaint:box | jpeg:10".
// Parsed once into validated options; a wrong name or value is answered with the nearest valid one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dpg/measure/operator.h"

namespace dpg {

// What an operator that draws something (masks, trajectories) draws from: image i of the run uses stream i of
// `seed`, whatever batch it is in.
struct OperatorContext {
  ImageShape shape;
  std::uint64_t seed = 0;
  std::vector<std::uint32_t> images = {
      0};  // indices in the whole run; one state per entry where the operator has any
};

// The left part of a composition is applied first; each further part is built for what the one before gives,
// and draws from a seed of its own. `make_operator(a->spec(), context)` with the same context builds the same
// operator again.
std::shared_ptr<const Operator> make_operator(const std::string& spec, const OperatorContext& context);

struct OperatorParameter {
  std::string name, default_value, meaning;
};
struct OperatorInfo {
  std::string name, kind, summary, example;
  std::vector<OperatorParameter> parameters;  // in the order in which values without a key fill them
};
std::span<const OperatorInfo> operator_catalog();

}  // namespace dpg
