# cmake -DFROM=kernel.cu -DTO=kernel.cpp -P EmulateKernel.cmake
# A GPU kernel's source as C++ for kernels/emulated.
file(READ "${FROM}" text)
string(REPLACE "<<<" " ->* ::dpg::emulated::Launch{" text "${text}")
string(REPLACE ">>>(" "}(" text "${text}")
string(REGEX REPLACE "extern __shared__ ([a-z0-9_]+) ([a-z0-9_]+)\\[\\];"
       "auto* \\2 = static_cast<\\1*>(::dpg::emulated::shared_memory());" text "${text}")
file(WRITE "${TO}" "#line 1 \"${FROM}\"\n${text}")
