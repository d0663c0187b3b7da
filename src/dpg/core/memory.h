// How the C allocator treats large blocks. A setting of the whole process, so programs call it, the library
// does not.
#pragma once

namespace dpg {

// Keeps freed blocks for the next use instead of giving them back to the system. A network allocates and
// frees the same activations at every step; fetching their pages anew each time costs some 10 % of a step on
// the CPU.
void reuse_freed_memory();

}  // namespace dpg
