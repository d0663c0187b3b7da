// Which of the compiled instruction sets this processor runs (see dpg_simd_sources in
// cmake/DpgTargets.cmake).
#pragma once

namespace dpg {

enum class Isa { baseline, avx2, avx512 };

// The best one this processor has. DPG_ISA=baseline|avx2|avx512 in the environment lowers it, for tests.
Isa best_isa();
bool isa_supported(Isa isa);
const char* isa_name(Isa isa);
bool has_amx();  // matrix tiles of 16-bit numbers (Intel, since Sapphire Rapids)

}  // namespace dpg
