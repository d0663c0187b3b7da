// Which of the compiled instruction sets this processor runs (see dpg_simd_sources in
// cmake/DpgTargets.cmake).
#pragma once

namespace dpg {

enum class Isa { baseline, avx2, avx512 };

// The best one this processor has. DPG_ISA=baseline|avx2|avx512 in the environment lowers it, for tests.
Isa best_isa();
bool isa_supported(Isa isa);
const char* isa_name(Isa isa);
// Matrix tiles of 16-bit numbers, AMX (Intel, since Sapphire Rapids). Some virtual machines pass the
// instructions on but leave out the list of tile sizes, by which libraries set the tiles up.
bool has_amx();
bool lists_amx_tiles();

}  // namespace dpg
