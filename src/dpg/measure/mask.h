// Inpainting and uncropping: y is the picture with zeros at the lost pixels. A mask keeps or loses a pixel in
// all channels. A = diag(mask), so U, V = I and every solve is pointwise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "dpg/core/rng.h"
#include "dpg/measure/operator.h"

namespace dpg {

// A lost box, one per image. "inpaint:box"
struct BoxMaskOptions {
  enum class Position { random, centre };
  std::optional<std::int64_t> height = {}, width = {};  // unset: half of the image's side
  std::optional<std::int64_t> margin = {};  // kept pixels around a random box; unset: 1/16 of each side
  Position position = Position::random;
  // Both set: the box lies there, for every image, and `position` plays no role.
  std::optional<std::int64_t> top = {}, left = {};

  void validate(const ImageShape& shape) const;
  std::string spec() const;
};
std::shared_ptr<const SpectralOperator> make_box_mask(const ImageShape& shape, const BoxMaskOptions& options,
                                                      const Rng& rng, std::span<const std::uint32_t> images);

// Pixels lost at random, one draw per image, always the same number of them. "inpaint:random"
struct RandomMaskOptions {
  double removed = 0.92;  // part of the pixels, in [0, 1); at least one pixel is kept

  void validate() const;
  std::string spec() const;
};
std::shared_ptr<const SpectralOperator> make_random_mask(const ImageShape& shape,
                                                         const RandomMaskOptions& options, const Rng& rng,
                                                         std::span<const std::uint32_t> images);

// A user's mask image of the same size: bright pixels (at least mid-grey) are kept, dark ones are lost.
// "inpaint:mask=FILE"
struct FileMaskOptions {
  std::filesystem::path file = {};
  bool invert = false;  // bright pixels are lost instead

  void validate() const;
  std::string spec() const;
};
std::shared_ptr<const SpectralOperator> make_file_mask(const ImageShape& shape,
                                                       const FileMaskOptions& options);

// The picture goes on beyond what was kept. "uncrop:half", "uncrop:border"
struct UncropOptions {
  enum class Kind {
    half,    // one side of the picture is kept
    border,  // a centred window is kept
  };
  enum class Side { left, right, top, bottom };
  Kind kind = Kind::half;
  double keep = 0.5;       // part of the side that is kept, in (0, 1)
  Side side = Side::left;  // which side `half` keeps

  void validate(const ImageShape& shape) const;
  std::string spec() const;
};
std::shared_ptr<const SpectralOperator> make_uncrop(const ImageShape& shape, const UncropOptions& options);

// Any masks: `keep` is [B, H, W] of ones (kept) and zeros, with the same number of ones per image.
std::shared_ptr<const SpectralOperator> make_mask(const ImageShape& shape, const Tensor& keep,
                                                  std::string spec);

}  // namespace dpg
