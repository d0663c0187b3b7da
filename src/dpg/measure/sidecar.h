// A measurement on disk: NAME.json (what made it) and NAME.npy (its exact numbers), so that nothing has to be
// repeated to restore from it. The picture NAME.png beside them is for looking at only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dpg/measure/noise.h"

namespace dpg {

struct Sidecar {
  std::string operator_spec, noise_spec;  // canonical textual forms
  std::uint64_t seed = 0;                 // of the noise, and of whatever the operator drew
  std::vector<std::uint32_t> images;      // index of each row in the whole run
  ImageShape shape;                       // of one clean picture
  std::string source;                     // the clean picture's file, for people; may be empty
  Tensor y;                               // [images, measurement shape], float32
};

// Writes both files; `json` ends in .json. Each is written under a temporary name and renamed.
void write_sidecar(const std::filesystem::path& json, const Sidecar& sidecar);
Sidecar read_sidecar(const std::filesystem::path& json);

// Builds the operator and the noise again. Files that the operator names (a mask, a kernel) are looked up as
// they were named: from the current folder.
Measurement to_measurement(const Sidecar& sidecar);

}  // namespace dpg
