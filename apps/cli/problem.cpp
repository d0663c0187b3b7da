#include "problem.h"

#include <torch/torch.h>

#include <algorithm>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/image/transform.h"
#include "dpg/measure/catalog.h"
#include "dpg/measure/cropped.h"
#include "dpg/measure/sidecar.h"
#include "dpg/tensor/convert.h"
#include "pictures.h"

namespace dpg::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLargestFactor = 16;

Problem from_sidecar(const fs::path& input, const fs::path& json) {
  const Sidecar sidecar = read_sidecar(json);
  check(sidecar.images.size() == 1, json.string(), " holds ", sidecar.images.size(),
        " measurements; give one file for each picture");
  Problem problem;
  problem.input = input;
  problem.files = {json, fs::path(json).replace_extension(".npy")};
  problem.op = sidecar.operator_spec, problem.noise = sidecar.noise_spec;
  problem.op_seed = sidecar.seed, problem.image = sidecar.images[0];
  problem.shape = sidecar.shape, problem.y = sidecar.y;
  return problem;
}

// The size of the clean picture is the smallest multiple of the degraded one's from which the operator makes
// pictures of that size: 1 for blurs and masks, the factor for super-resolution.
std::shared_ptr<const Operator> operator_for(const std::string& spec, std::uint64_t seed, std::uint32_t image,
                                             const Image& picture) {
  std::string first_error;
  for (std::int64_t factor = 1; factor <= kLargestFactor; ++factor) {
    const ImageShape shape{3, factor * picture.height, factor * picture.width};
    std::shared_ptr<const Operator> A;
    try {
      A = make_operator(spec, {shape, seed, {image}});
    } catch (const Error& error) {
      if (first_error.empty()) first_error = error.what();
      continue;
    }
    const std::vector<std::int64_t> out = A->output_shape();
    if (out.size() == 3 && out[1] == picture.height && out[2] == picture.width) return A;
  }
  check(first_error.empty(), first_error);
  fail("no picture becomes one of ", picture.width, "x", picture.height, " through \"", spec,
       "\"; measurements that are no pictures are restored from the sidecar that \"dpg degrade\" writes");
}

Problem from_photo(const fs::path& input, const ProblemOptions& options, std::uint32_t number) {
  const Image picture = read_image(input);
  const auto A = operator_for(options.op, options.op_seed, number, picture);
  const Tensor y = to_tensor(A->output_shape()[0] == 1 ? to_grey(picture) : to_rgb(picture));
  const Measurement m = observed_only({y, A, make_noise(options.noise, y)});
  return {input, {input}, A->spec(), m.noise->spec(), options.op_seed, number, A->input_shape(), m.y.clone()};
}

bool is_sidecar(const fs::path& file) {
  if (file.extension() != ".json") return false;
  return read_text(file).find("\"dpg measurement\"") != std::string::npos;
}

}  // namespace

Problem read_problem(const fs::path& input, const ProblemOptions& options, std::uint32_t number) {
  if (!options.op.empty()) return from_photo(input, options, number);
  const fs::path json = fs::path(input).replace_extension(".json");
  check(fs::exists(json), "there is no ", json.string(), " that says how ", input.string(),
        " came about; say it with --op, as in --op blur:sigma=2 --noise auto");
  return from_sidecar(input, json);
}

std::vector<fs::path> inputs_in(const fs::path& in, const ProblemOptions& options) {
  check(fs::exists(in), "there is no ", in.string(), "; give a picture, a sidecar or a folder of them");
  if (!fs::is_directory(in)) return {in};
  if (!options.op.empty()) return pictures_in(in);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(in))
    if (is_sidecar(entry.path())) files.push_back(entry.path());
  check(!files.empty(), "the folder ", in.string(),
        " holds no measurement with a sidecar; say with --op what happened to its pictures");
  std::sort(files.begin(), files.end());
  return files;
}

bool alike(const Problem& a, const Problem& b) {
  return a.op == b.op && a.noise == b.noise && a.op_seed == b.op_seed && a.y.sizes() == b.y.sizes() &&
         a.shape.channels == b.shape.channels && a.shape.height == b.shape.height &&
         a.shape.width == b.shape.width;
}

Measurement join(std::span<const Problem> problems, std::int64_t rounds, std::int64_t multiple) {
  std::vector<Tensor> rows;
  OperatorContext context{problems[0].shape, problems[0].op_seed, {}};
  for (const Problem& problem : problems) context.images.push_back(problem.image);
  for (std::int64_t k = 0; k < rounds; ++k)
    for (const Problem& problem : problems) rows.push_back(problem.y);
  const auto up = [multiple](std::int64_t side) { return (side + multiple - 1) / multiple * multiple; };
  return {
      torch::cat(rows),
      on_larger(make_operator(problems[0].op, context), up(context.shape.height), up(context.shape.width)),
      make_noise(problems[0].noise)};
}

}  // namespace dpg::cli
