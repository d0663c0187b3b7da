#include "dpg/measure/catalog_entry.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "dpg/core/error.h"
#include "dpg/measure/bicubic.h"
#include "dpg/measure/colour.h"
#include "dpg/measure/downsample.h"
#include "dpg/measure/external.h"
#include "dpg/measure/gaussian_blur.h"
#include "dpg/measure/hadamard.h"
#include "dpg/measure/hdr.h"
#include "dpg/measure/jpeg_operator.h"
#include "dpg/measure/kernel_blur.h"
#include "dpg/measure/kernel_network.h"
#include "dpg/measure/mask.h"
#include "dpg/measure/motion_kernel.h"
#include "dpg/measure/nonlinear_blur.h"
#include "dpg/measure/phase_retrieval.h"
#include "dpg/measure/quantize.h"

namespace dpg {
namespace {

using Built = std::shared_ptr<const Operator>;

constexpr std::int64_t kMostPixels = 1 << 20;  // a side; far above any picture, so that sums never overflow
constexpr double kTiny = 1e-6;                 // stands for "above 0"

std::optional<std::int64_t> optional_integer(const OptionReader& options, const std::string& key,
                                             std::int64_t minimum, std::int64_t maximum) {
  if (!options.given(key)) return std::nullopt;
  return options.integer(key, minimum, minimum, maximum);
}

Boundary read_boundary(const OptionReader& options) {
  const std::string word = options.choice("boundary", "reflect", {"reflect", "circular", "zero"});
  return word == "reflect" ? Boundary::reflect : word == "circular" ? Boundary::circular : Boundary::zero;
}

Built build_box(const Spec& spec, const OperatorContext& context) {
  const OptionReader options(spec, {"kind", "height", "width", "margin", "position", "top", "left"});
  BoxMaskOptions box;
  box.height = optional_integer(options, "height", 1, context.shape.height);
  box.width = optional_integer(options, "width", 1, context.shape.width);
  box.margin = optional_integer(options, "margin", 0, std::max(context.shape.height, context.shape.width));
  box.top = optional_integer(options, "top", 0, context.shape.height - 1);
  box.left = optional_integer(options, "left", 0, context.shape.width - 1);
  if (options.choice("position", "random", {"random", "centre"}) == "centre")
    box.position = BoxMaskOptions::Position::centre;
  return make_box_mask(context.shape, box, Rng(context.seed), context.images);
}

Built build_inpaint(const Spec& spec, const OperatorContext& context) {
  const bool by_file = std::any_of(spec.arguments.begin(), spec.arguments.end(),
                                   [](const SpecArgument& argument) { return argument.key == "mask"; });
  if (by_file) {
    const OptionReader options(spec, {"mask", "invert"});
    return make_file_mask(context.shape, {options.text("mask", ""), options.flag("invert", false)});
  }
  const OptionReader any(
      spec, {"kind", "height", "width", "margin", "position", "top", "left", "removed", "invert"});
  if (any.choice("kind", "box", {"box", "random"}) == "box") return build_box(spec, context);
  RandomMaskOptions random;
  random.removed = OptionReader(spec, {"kind", "removed"}).number("removed", random.removed, 0, 1 - kTiny);
  return make_random_mask(context.shape, random, Rng(context.seed), context.images);
}

Built build_uncrop(const Spec& spec, const OperatorContext& context) {
  const OptionReader options(spec, {"kind", "keep", "side"});
  UncropOptions uncrop;
  if (options.choice("kind", "half", {"half", "border"}) == "border")
    uncrop.kind = UncropOptions::Kind::border;
  check(uncrop.kind == UncropOptions::Kind::half || !options.given("side"),
        "uncrop: side belongs to uncrop:half; a border has no side, remove it");
  uncrop.keep = options.number("keep", uncrop.keep, kTiny, 1 - kTiny);
  const std::string side = options.choice("side", "left", {"left", "right", "top", "bottom"});
  using Side = UncropOptions::Side;
  uncrop.side = side == "left"    ? Side::left
                : side == "right" ? Side::right
                : side == "top"   ? Side::top
                                  : Side::bottom;
  return make_uncrop(context.shape, uncrop);
}

Built build_downsample(const Spec& spec, const OperatorContext& context) {
  return make_downsample(context.shape,
                         {OptionReader(spec, {"factor"}).integer("factor", 4, 1, kMostPixels)});
}

Built build_bicubic(const Spec& spec, const OperatorContext& context) {
  return make_bicubic(context.shape, {OptionReader(spec, {"factor"}).integer("factor", 4, 1, kMostPixels)});
}

Built build_blur(const Spec& spec, const OperatorContext& context) {
  const OptionReader options(spec, {"sigma", "size", "boundary"});
  GaussianBlurOptions blur;
  if (options.given("sigma")) blur.sigma = options.number("sigma", 3, 0.01, 10000);
  blur.size = optional_integer(options, "size", 1, kMostPixels);
  blur.boundary = read_boundary(options);
  return make_gaussian_blur(context.shape, blur);
}

MotionBlurOptions read_motion(const OptionReader& options) {
  MotionBlurOptions motion;
  motion.intensity = options.number("intensity", motion.intensity, 0, 1);
  motion.size = optional_integer(options, "size", 1, kMostPixels);
  motion.boundary = read_boundary(options);
  return motion;
}

Built build_motion(const Spec& spec, const OperatorContext& context) {
  return make_motion_blur(context.shape, read_motion(OptionReader(spec, {"intensity", "size", "boundary"})),
                          Rng(context.seed), context.images);
}

Built build_kernel(const Spec& spec, const OperatorContext& context) {
  const OptionReader options(spec, {"file", "boundary"});
  return make_file_kernel_blur(
      context.shape,
      {options.required("file", "the kernel's file, as in kernel:kernel.png"), read_boundary(options)});
}

Built build_gray(const Spec& spec, const OperatorContext& context) {
  const std::string weights = OptionReader(spec, {"weights"}).choice("weights", "mean", {"mean", "luma"});
  return make_gray(context.shape,
                   {weights == "mean" ? GrayOptions::Weights::mean : GrayOptions::Weights::luma});
}

Built build_identity(const Spec&, const OperatorContext& context) {
  return make_identity(context.shape);
}

Built build_compressed_sensing(const Spec& spec, const OperatorContext& context) {
  return make_compressed_sensing(
      context.shape, {OptionReader(spec, {"ratio"}).number("ratio", 0.25, kTiny, 1)}, Rng(context.seed));
}

Built build_phase(const Spec& spec, const OperatorContext& context) {
  return make_phase_retrieval(context.shape,
                              {OptionReader(spec, {"oversample"}).number("oversample", 2, 0, 8)});
}

Built build_nonlinear_blur(const Spec& spec, const OperatorContext& context) {
  const bool learned = std::any_of(spec.arguments.begin(), spec.arguments.end(),
                                   [](const SpecArgument& argument) { return argument.key == "weights"; });
  if (learned) {
    const OptionReader options(spec, {"weights", "spread"});
    return make_kernel_network_blur(context.shape,
                                    {options.text("weights", ""), options.number("spread", 1.2, 0, 100)},
                                    Rng(context.seed), context.images);
  }
  const OptionReader options(spec, {"intensity", "size", "boundary", "exposure"});
  return make_nonlinear_blur(context.shape,
                             {read_motion(options), options.number("exposure", 1.2, kTiny, 100)},
                             Rng(context.seed), context.images);
}

Built build_hdr(const Spec& spec, const OperatorContext& context) {
  return make_hdr(context.shape, {OptionReader(spec, {"scale"}).number("scale", 2, kTiny, 100)});
}

Built build_jpeg(const Spec& spec, const OperatorContext& context) {
  const OptionReader options(spec, {"quality", "chroma", "gradient"});
  const std::string chroma = options.choice("chroma", "420", {"420", "444"});
  return make_jpeg(context.shape, {options.integer("quality", 10, 1, 100),
                                   chroma == "420" ? JpegOptions::Chroma::half : JpegOptions::Chroma::full,
                                   options.choice("gradient", "none", {"none", "straight"}) == "straight"});
}

Built build_quantize(const Spec& spec, const OperatorContext& context) {
  return make_quantize(context.shape, {OptionReader(spec, {"bits"}).integer("bits", 3, 1, 16)});
}

Built build_external(const Spec& spec, const OperatorContext& context) {
  const OptionReader options(spec, {"command", "timeout", "budget", "jobs"});
  return make_external(context.shape,
                       {options.required("command", "a program, as in exec:./forward.py"),
                        options.number("timeout", 60, 0.001, 86400),
                        options.integer("budget", 0, 0, std::numeric_limits<std::int64_t>::max() / 2),
                        static_cast<int>(options.integer("jobs", 1, 1, 1024))});
}

const OperatorParameter kBoundary = {"boundary", "reflect", "beyond the edge: reflect, circular or zero"};
const OperatorParameter kSize = {"size", "61 at 256 pixels, in proportion", "of the kernel, odd"};
const OperatorParameter kIntensity = {"intensity", "0.5", "of the shake, 0 (straight) to 1"};

const std::vector<CatalogEntry>& entries() {
  static const std::vector<CatalogEntry> list = {
      {{"inpaint",
        "spectral",
        "lost pixels: a box, random ones, or a mask picture",
        "inpaint:box",
        {{"kind", "box", "box or random; or give mask=FILE instead"},
         {"height", "half", "of the box, in pixels"},
         {"width", "half", "of the box, in pixels"},
         {"margin", "1/16 of the side", "pixels kept around a random box"},
         {"position", "random", "of the box: random (for each image) or centre"},
         {"top", "", "of the box, in pixels: with left, fixes its place"},
         {"left", "", "of the box, in pixels"},
         {"removed", "0.92", "part of the pixels that random removes"},
         {"mask", "", "a picture of the same size: bright pixels are kept"},
         {"invert", "no", "of a mask picture: bright pixels are lost"}}},
       build_inpaint},
      {{"uncrop",
        "spectral",
        "the picture goes on beyond what was kept",
        "uncrop",
        {{"kind", "half", "half (one side is kept) or border (a centred window is kept)"},
         {"keep", "0.5", "part of each side that is kept"},
         {"side", "left", "that half keeps: left, right, top or bottom"}}},
       build_uncrop},
      {{"sr",
        "spectral",
        "super-resolution: the mean of blocks",
        "sr:4",
        {{"factor", "4", "divides both sides"}}},
       build_downsample},
      {{"sr-bicubic",
        "spectral",
        "super-resolution: antialiased bicubic reduction",
        "sr-bicubic:4",
        {{"factor", "4", "divides both sides"}}},
       build_bicubic},
      {{"blur",
        "spectral",
        "Gaussian blur",
        "blur:sigma=3",
        {{"sigma", "3 at 256 pixels, in proportion", "in pixels"}, kSize, kBoundary}},
       build_blur},
      {{"motion",
        "linear; spectral when circular",
        "blur by a random camera shake, one for each image",
        "motion:intensity=0.5",
        {kIntensity, kSize, kBoundary}},
       build_motion},
      {{"kernel",
        "linear; spectral when circular",
        "blur by your own kernel",
        "kernel:kernel.png",
        {{"file", "", "a picture (black is zero) or an NPY array"}, kBoundary}},
       build_kernel},
      {{"gray",
        "spectral",
        "colourisation: the picture is seen in grey",
        "gray",
        {{"weights", "mean", "mean of the channels, or luma"}}},
       build_gray},
      {{"identity", "spectral", "denoising: the picture is seen as it is", "identity", {}}, build_identity},
      {{"cs",
        "spectral",
        "compressed sensing: random Walsh-Hadamard coefficients",
        "cs:ratio=0.25",
        {{"ratio", "0.25", "measurements per pixel"}}},
       build_compressed_sensing},
      {{"phase",
        "differentiable",
        "phase retrieval: the spectrum without its phase",
        "phase",
        {{"oversample", "2", "zeros added to each side, in eighths of it"}}},
       build_phase},
      {{"nonlinear-blur",
        "differentiable",
        "camera shake in linear light, with saturation and response curve; or a learned network",
        "nonlinear-blur",
        {kIntensity,
         kSize,
         kBoundary,
         {"exposure", "1.2", "gain before saturation"},
         {"weights", "", "the learned network's file, instead of all the above"},
         {"spread", "1.2", "of the learned network's random kernel code"}}},
       build_nonlinear_blur},
      {{"hdr", "differentiable", "overexposure: clamp(scale x, -1, 1)", "hdr", {{"scale", "2", "contrast"}}},
       build_hdr},
      {{"jpeg",
        "black box; encode and decode; differentiable with gradient=straight",
        "JPEG, encoded and decoded",
        "jpeg:10",
        {{"quality", "10", "1 to 100"},
         {"chroma", "420", "420 (colour at half resolution) or 444"},
         {"gradient", "none",
          "straight: a derivative as if nothing were rounded, for methods that need one"}}},
       build_jpeg},
      {{"quantize",
        "black box; encode and decode",
        "rounded to 2^bits levels",
        "quantize:bits=3",
        {{"bits", "3", "1 to 16"}}},
       build_quantize},
      {{"exec",
        "black box; encode and decode when it keeps the size",
        "any program, asked over pipes (docs/operators.md)",
        "exec:./forward.py",
        {{"command", "", "the program and its arguments"},
         {"timeout", "60", "seconds for one request"},
         {"budget", "0", "pictures it may be asked in all; 0: unlimited"},
         {"jobs", "1", "copies of it that share the pictures of a request"}}},
       build_external},
  };
  return list;
}

}  // namespace

std::span<const CatalogEntry> catalog_entries() {
  return entries();
}

}  // namespace dpg
