// Forward operators y = A(x). What an operator can do is its type: a solver asks for the kind it needs when
// the problem is set up (`as_linear`, `as_spectral`, ...), never by name.
//
//   Operator                 apply                                        any program (black box)
//   DifferentiableOperator   + vjp                                        non-linear but smooth
//   LinearOperator           + adjoint, pseudo_inverse, regularised_solve
//   SpectralOperator         + Ut, U, Vt, V, singular_values              A = U S V^T known
//
// Tensors are float NCHW in [-1, 1]. An operator may hold one state per image (masks, kernels); then
// `batch()` is their number B, and an input may have k*B rows, row j belonging to image j mod B. `batch()` 1
// serves any batch.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dpg {

using torch::Tensor;

// The size of one clean image; an operator is built for it.
struct ImageShape {
  std::int64_t channels = 3, height = 0, width = 0;
  std::int64_t elements() const { return channels * height * width; }
};

// Throws, naming the operator, unless every side is at least one.
void check_shape(const std::string& what, const ImageShape& shape);

class Operator {
 public:
  virtual ~Operator() = default;

  virtual Tensor apply(const Tensor& x) const = 0;  // [N, C, H, W] -> [N, measurement shape]

  virtual ImageShape input_shape() const = 0;
  virtual std::vector<std::int64_t> output_shape() const = 0;  // of one measurement, without the batch
  virtual std::int64_t batch() const { return 1; }
  virtual std::string spec() const = 0;  // the textual form that builds it again
  virtual std::shared_ptr<const Operator> to(
      torch::Device device) const = 0;  // a copy whose state lives there

  // Where something was observed: 1 or 0, broadcasts against [batch(), output_shape]. Noise belongs only
  // there. Default: a scalar one, which says that every entry is observed and combines with tensors on any
  // device.
  virtual Tensor observed_mask() const;
  // Observed numbers per image (m of the noise floor sigma_y * sqrt(m)). Default: the product of
  // output_shape.
  virtual std::int64_t measurements() const;

  // Throws, naming operator and shapes, unless x fits input_shape and batch.
  void check_input(const Tensor& x) const;
  // The same for a measurement: [k * batch(), output_shape].
  void check_output(const Tensor& y) const;
};

// Directions whose singular value is below this part of the largest cannot be told from float32 rounding;
// they count as lost (singular value zero).
inline constexpr double kRankTolerance = 1e-5;

// x [k*B, ...] times a state [B or 1, ...], row j with state j mod B; the state's other dimensions broadcast.
Tensor times_state(const Tensor& x, const Tensor& state);

class DifferentiableOperator : public Operator {
 public:
  // (dA/dx at x)^T v, same batch as x. Default: autograd through apply.
  virtual Tensor vjp(const Tensor& x, const Tensor& v) const;
};

class LinearOperator : public DifferentiableOperator {
 public:
  virtual Tensor adjoint(const Tensor& y) const = 0;         // A^T y
  virtual Tensor pseudo_inverse(const Tensor& y) const = 0;  // A^+ y
  // (lambda I + A^T A)^-1 v, lambda > 0. Closed form by structure, FFT, or conjugate gradients (stated
  // tolerance).
  virtual Tensor regularised_solve(const Tensor& v, double lambda) const = 0;
  Tensor vjp(const Tensor& x, const Tensor& v) const override;  // = adjoint(v)

 protected:
  void check_lambda(double lambda) const;  // throws unless lambda > 0
};

// A = U S V^T. V is square and orthogonal on images; coefficients come as [N, elements], in an order in which
// `singular_values()` ([B or 1, elements], zeros where A loses the direction) matches. U's columns for
// non-zero singular values are orthonormal; Ut(y) lays <u_i, y> at place i and zero where the singular value
// is zero.
class SpectralOperator : public LinearOperator {
 public:
  virtual Tensor singular_values() const = 0;
  virtual Tensor V(const Tensor& s) const = 0;
  virtual Tensor Vt(const Tensor& x) const = 0;
  virtual Tensor U(const Tensor& s) const = 0;
  virtual Tensor Ut(const Tensor& y) const = 0;
  // Closed forms through the decomposition; families with a cheaper one override them.
  Tensor apply(const Tensor& x) const override;
  Tensor adjoint(const Tensor& y) const override;
  Tensor pseudo_inverse(const Tensor& y) const override;
  Tensor regularised_solve(const Tensor& v, double lambda) const override;
};

// The operator as a stronger kind, or null.
const DifferentiableOperator* as_differentiable(const Operator& a);
const LinearOperator* as_linear(const Operator& a);
const SpectralOperator* as_spectral(const Operator& a);
const char* kind_name(const Operator& a);  // "spectral", "linear", "differentiable", "black box"

}  // namespace dpg
