#include "dpg/solve/dpg.h"

#include "dpg/core/error.h"
#include "dpg/solve/method_entry.h"
#include "dpg/solve/policy_guide.h"

namespace dpg {

template <class Visitor>
void fields(Visitor& visit, DpgOptions& o) {
  sampler_fields(visit, o.sampler);
  visit("estimator", o.estimator);
  visit("mc", o.mc);
  visit("pairs", o.pairs);
  visit("collapse", o.collapse);
  visit("strength", o.strength);
  visit("passes", o.passes);
  visit("relaxation", o.relaxation);
  visit("smoothing", o.smoothing);
  visit("floor", o.floor);
  visit("draws", o.draws);
  visit("second_order", o.second_order);
  visit("rewards", o.rewards);
  visit("smallest_r", o.smallest_r);
  visit("momentum", o.momentum);
  visit("unguided", o.unguided);
  visit("detail", o.detail);
  visit("guess", o.guess);
  visit("queries", o.queries);
}

// In a long run what one step leaves over is soon taken up by the next; a third pass would be a third more
// work (docs/methods/dpg.md).
int passes_of(const DpgOptions& o) {
  constexpr int kLongRun = 200;
  return o.passes.value_or(o.sampler.steps < kLongRun ? 3 : 2);
}

std::int64_t network_calls(const DpgOptions& o) {
  return static_cast<std::int64_t>(o.sampler.steps) * o.draws;
}

void validate(const DpgOptions& o) {
  validate(o.sampler);
  check(o.estimator == "auto" || o.estimator == "mc" || o.estimator == "exact", "estimator \"", o.estimator,
        "\" is not one of auto, mc, exact");
  check(o.mc >= 2, "mc = ", o.mc, " must be at least 2");
  check(o.pairs == "auto" || o.pairs == "always" || o.pairs == "never", "pairs \"", o.pairs,
        "\" is not one of auto, always, never");
  check(!o.strength || *o.strength >= 0, "strength = ", o.strength.value_or(0), " must not be negative");
  check(!o.passes || *o.passes >= 1, "passes = ", o.passes.value_or(0), " must be at least 1");
  check(o.relaxation > 0, "relaxation = ", o.relaxation, " must be positive");
  check(!o.smoothing || (*o.smoothing >= 0 && *o.smoothing <= 1), "smoothing = ", o.smoothing.value_or(0),
        " must lie in [0, 1]");
  check(o.floor >= 0 && o.floor <= 1, "floor = ", o.floor, " must lie in [0, 1]");
  check(o.draws >= 1, "draws = ", o.draws, " must be at least 1");
  check(!o.second_order || (*o.second_order >= 0 && *o.second_order <= 1),
        "second_order = ", o.second_order.value_or(0), " must lie in [0, 1]");
  check(o.rewards == "code" || o.rewards == "text", "rewards \"", o.rewards, "\" is not one of code, text");
  check(o.smallest_r >= 0, "smallest_r = ", o.smallest_r, " must not be negative");
  check(o.momentum >= 0 && o.momentum < 1, "momentum = ", o.momentum, " must lie in [0, 1)");
  check(o.unguided >= -1, "unguided = ", o.unguided, " must be a number of steps, or -1");
  check(o.detail == "auto" || o.detail == "full" || o.detail == "coarse", "detail \"", o.detail,
        "\" is not one of auto, full, coarse");
  check(o.queries >= 0, "queries = ", o.queries, " must not be negative");
}

namespace {

// The first draw is the one that the seed gives without others beside it; each other has a stream of its own.
Rng rng_of_draw(const Rng& rng, int number) {
  return Rng(rng.seed() + static_cast<std::uint64_t>(number - 1) * 0x9E3779B97F4A7C15u);
}

// The steps of draw `number` as part of those of all, which run from the last to the first.
Observer counting_from(const Observer& observer, int number, int draws) {
  if (!observer || draws == 1) return observer;
  return [&observer, number, draws](StepRecord record) {
    record.done += (draws - number) * record.total;
    record.total *= draws;
    return observer(record);
  };
}

void add(Cost& to, const Cost& more) {
  to.network_calls += more.network_calls;
  to.reverse_passes += more.reverse_passes;
  to.operator_calls += more.operator_calls;
}

}  // namespace

Dpg::Dpg(DpgOptions options) : options_(std::move(options)) {
  validate(options_);
}

void Dpg::check_problem(const Measurement& m) const {
  if (options_.estimator != "exact") return;  // sampling serves everything
  const bool fits = options_.strength ? as_linear(*m.A) != nullptr : as_differentiable(*m.A) != nullptr;
  check(fits, "the exact estimator needs ",
        options_.strength ? "a linear operator" : "an operator with a derivative", ", and \"", m.A->spec(),
        "\" is ", kind_name(*m.A), "; use --estimator mc, which needs no more than A itself");
}

Result Dpg::solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
                  std::span<const std::uint32_t> images, const Observer& observer) const {
  check_problem(measurement);
  check_sizes(measurement, prior, images);
  const Measurement m = to_device(measurement, prior.device());
  const auto run = [&](PolicyGuide& guide, int number) {
    return run_guided(guide, guide.sampler(), m.A->input_shape(), prior, rng_of_draw(rng, number), images,
                      counting_from(observer, number, options_.draws));
  };
  Tensor sum;
  Cost cost;
  for (int number = options_.draws; number > 1; --number) {
    PolicyGuide guide(options_, m, rng_of_draw(rng, number), images, PolicyGuide::Answer::near_to);
    Result other = run(guide, number);
    add(cost, other.cost);
    other.cost = cost;
    if (other.stopped) return other;
    sum = sum.defined() ? sum + other.image : other.image;
  }
  PolicyGuide guide(options_, m, rng, images);
  if (sum.defined()) guide.beside(sum, options_.draws - 1);
  Result result = run(guide, 1);
  add(result.cost, cost);
  return result;
}

MethodEntry dpg_entry() {
  return method_entry<Dpg, DpgOptions>(
      {"", "diffusion policy gradient: guidance from sampled rewards, or from their exact limit",
       "Tang et al., Solving General Noisy Inverse Problem via Posterior Sampling: A Policy Gradient "
       "Viewpoint",
       "black box"});
}

}  // namespace dpg
