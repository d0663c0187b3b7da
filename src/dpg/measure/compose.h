// Composition A2(A1(x)): its kind is the weaker of the two, at most linear.
#pragma once

#include <memory>

#include "dpg/measure/operator.h"

namespace dpg {

// `first` must give a picture that `second` takes. Two linear ones stay linear: the adjoint is exact,
// regularised_solve and pseudo_inverse go by conjugate gradients (tolerances in conjugate_gradient.h).
std::shared_ptr<const Operator> compose(std::shared_ptr<const Operator> first,
                                        std::shared_ptr<const Operator> second);

// The picture that an operator's measurement is; throws, naming the operator, when it is none.
ImageShape output_as_image(const Operator& a);

}  // namespace dpg
