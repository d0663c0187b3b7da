#include "eval_inputs.h"

#include <torch/torch.h>

#include <algorithm>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/core/fingerprint.h"
#include "dpg/image/transform.h"
#include "dpg/measure/catalog.h"
#include "dpg/measure/sidecar.h"
#include "dpg/measure/view.h"
#include "dpg/tensor/convert.h"

namespace dpg::cli {
namespace {

namespace fs = std::filesystem;

bool same_bytes(const fs::path& file, const std::vector<std::byte>& bytes) {
  if (!fs::exists(file)) return false;
  const MappedFile there(file);
  return std::equal(there.bytes().begin(), there.bytes().end(), bytes.begin(), bytes.end());
}

bool same_measurement(const fs::path& json, const Sidecar& wanted) {
  const fs::path numbers = fs::path(json).replace_extension(".npy"),
                 view = fs::path(json).replace_extension(".png");
  if (!fs::exists(json) || !fs::exists(numbers) || !fs::exists(view)) return false;
  const Sidecar there = read_sidecar(json);
  return there.operator_spec == wanted.operator_spec && there.noise_spec == wanted.noise_spec &&
         there.seed == wanted.seed && there.images == wanted.images && there.source == wanted.source &&
         there.shape.elements() == wanted.shape.elements();
}

}  // namespace

Problem kept_problem(const evaluate::RunFolder& folder, const evaluate::PlannedTask& task,
                     const SourcePicture& source, const ImageShape& shape, std::uint64_t seed) {
  const Image clean = fit(to_rgb(read_image(source.file)), static_cast<int>(shape.height));
  const std::vector<std::byte> bytes = encode_image(clean, ".png");
  const fs::path truth = folder.truth(source.name);
  if (!same_bytes(truth, bytes)) write_image(truth, clean);

  const std::vector<std::uint32_t> number = {source.number};
  const auto A = make_operator(task.op, {shape, seed, number});
  const auto noise = make_noise(task.noise);
  Sidecar sidecar{A->spec(), noise->spec(), seed,
                  number,    shape,         str("truth/", source.name, ".png ", fingerprint(bytes)),
                  {}};
  const fs::path input = folder.input(task.name, source.name);
  const fs::path json = fs::path(input).replace_extension(".json");
  if (!same_measurement(json, sidecar)) {
    fs::create_directories(input.parent_path());
    // From the picture as it is kept, rounded to 8 bits: what can be seen is what was measured.
    const Tensor x = to_tensor(decode_image(bytes, truth.string()));
    sidecar.y = measure(A, noise, x, seed, number).y;
    write_image(input, to_image(view_of(sidecar.y).pictures));
    write_sidecar(json, sidecar);
  }
  return read_problem(input, {}, source.number);
}

}  // namespace dpg::cli
