#include "dpg/core/memory.h"

#include <climits>  // also tells whether this is glibc
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace dpg {

void reuse_freed_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest it takes; activations of usual images are smaller
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 256 << 20);
#endif
}

}  // namespace dpg
