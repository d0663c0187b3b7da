#include "dpg/core/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdlib>
#include <string>

#include "dpg/core/error.h"

namespace dpg {
namespace {

Isa detect() {
  for (Isa isa : {Isa::avx512, Isa::avx2})
    if (isa_supported(isa)) return isa;
  return Isa::baseline;
}

Isa choose() {
  const char* wanted = std::getenv("DPG_ISA");
  if (wanted == nullptr) return detect();
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (std::string(wanted) != isa_name(isa)) continue;
    check(isa_supported(isa), "DPG_ISA=", wanted, ": this processor does not have it; unset DPG_ISA");
    return isa;
  }
  fail("DPG_ISA=", wanted, " is not one of baseline, avx2, avx512");
}

}  // namespace

bool isa_supported(Isa isa) {
#if defined(__x86_64__)
  // The levels x86-64-v3 and v4, which is what the files are compiled for.
  const bool v3 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512cd");
  return isa == Isa::baseline || (isa == Isa::avx2 && v3) || (isa == Isa::avx512 && v4);
#else
  return isa == Isa::baseline;
#endif
}

#if defined(__x86_64__)

// Asked of the processor itself: not every compiler's __builtin_cpu_supports knows AMX.
bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 22 & 1) != 0;
}

bool lists_amx_tiles() {
  unsigned palettes = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(0x1D, 0, &palettes, &b, &c, &d) != 0 && palettes > 0;
}

#else

bool has_amx() {
  return false;
}

bool lists_amx_tiles() {
  return false;
}

#endif

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::avx512:
      return "avx512";
    case Isa::avx2:
      return "avx2";
    case Isa::baseline:
      break;
  }
  return "baseline";
}

Isa best_isa() {
  static const Isa isa = choose();
  return isa;
}

}  // namespace dpg
