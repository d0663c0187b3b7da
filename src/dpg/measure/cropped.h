// An operator on pictures that are larger than what it sees.
#pragma once

#include <memory>

#include "dpg/measure/operator.h"

namespace dpg {

// A of the top left part of a height x width picture; what lies outside is not measured. For pictures whose
// size a network cannot take: it restores a larger one, of which the wanted part is cut out. Linear where A
// is, differentiable where A is. A itself where the size is A's own.
std::shared_ptr<const Operator> on_larger(std::shared_ptr<const Operator> A, std::int64_t height,
                                          std::int64_t width);

}  // namespace dpg
