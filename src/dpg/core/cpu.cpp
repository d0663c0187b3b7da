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

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

// What the processor says of itself in a leaf of CPUID; zeros where it has no such leaf.
Registers cpuid([[maybe_unused]] unsigned leaf) {
  Registers r;
#if defined(__x86_64__)
  __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d);
#endif
  return r;
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

// AMX for bf16. (Not every compiler's __builtin_cpu_supports knows it.)
bool has_amx() {
  return (cpuid(7).d >> 22 & 1) != 0;
}

bool lists_amx_tiles() {
  return cpuid(0x1D).a > 0;  // how many palettes of tiles
}

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
