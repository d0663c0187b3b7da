# What the project is built on. Image codecs are optional: a build without one says so when such a file is opened.
find_package(Threads REQUIRED)
find_package(OpenMP COMPONENTS CXX)
add_library(dpg_openmp INTERFACE)
if(OpenMP_CXX_FOUND AND NOT DPG_BUILD_FUZZ)
  target_link_libraries(dpg_openmp INTERFACE OpenMP::OpenMP_CXX)
else()
  target_compile_options(dpg_openmp INTERFACE -Wno-unknown-pragmas)
endif()

# dpg_header_only(PACKAGE TARGET HEADER): a header-only package, or where it is not installed its headers alone, found
# through CMAKE_INCLUDE_PATH.
function(dpg_header_only package target header)
  find_package(${package} QUIET)
  if(TARGET ${target})
    return()
  endif()
  find_path(DPG_${package}_INCLUDE_DIR ${header})
  if(NOT DPG_${package}_INCLUDE_DIR)
    message(FATAL_ERROR "${package} is missing: run script/bootstrap, or put its headers on CMAKE_INCLUDE_PATH")
  endif()
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${DPG_${package}_INCLUDE_DIR})
endfunction()

dpg_header_only(nlohmann_json nlohmann_json::nlohmann_json nlohmann/json.hpp)
find_package(PNG)
find_package(JPEG)
find_library(DPG_WEBP_LIBRARY webp)
find_path(DPG_WEBP_INCLUDE_DIR webp/decode.h)

if(DPG_BUILD_TESTS AND NOT DPG_BUILD_FUZZ)
  enable_testing()
  find_package(GTest QUIET)
  if(NOT TARGET GTest::gtest_main)  # its sources will do
    find_path(DPG_GOOGLETEST_SOURCE googletest/src/gtest-all.cc PATHS ENV DPG_GOOGLETEST_SOURCE /usr/src/googletest)
    if(NOT DPG_GOOGLETEST_SOURCE)
      message(FATAL_ERROR "googletest is missing: run script/bootstrap, name its sources with -DDPG_GOOGLETEST_SOURCE=, or build without tests (-DDPG_BUILD_TESTS=OFF)")
    endif()
    set(INSTALL_GTEST OFF)
    set(BUILD_GMOCK OFF)
    add_subdirectory(${DPG_GOOGLETEST_SOURCE} ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
    foreach(part gtest gtest_main)  # its warnings are not ours
      get_target_property(include ${part} INTERFACE_INCLUDE_DIRECTORIES)
      set_target_properties(${part} PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${include}")
    endforeach()
    if(NOT TARGET GTest::gtest_main)
      add_library(GTest::gtest_main ALIAS gtest_main)
    endif()
  endif()
endif()
if(DPG_BUILD_FUZZ)
  return()
endif()

dpg_header_only(CLI11 CLI11::CLI11 CLI/App.hpp)
find_package(Torch REQUIRED)
if(DPG_CUDA AND Torch_VERSION VERSION_LESS 2.8)
  message(FATAL_ERROR "The GPU build needs LibTorch 2.8 or later, and this is ${Torch_VERSION}; name another with CMAKE_PREFIX_PATH")
endif()

# One interface target for LibTorch: its headers are system headers (their warnings are not ours).
add_library(dpg_torch INTERFACE)
target_include_directories(dpg_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(dpg_torch INTERFACE ${TORCH_LIBRARIES})
separate_arguments(DPG_TORCH_FLAGS NATIVE_COMMAND "${TORCH_CXX_FLAGS}")
# GCC 13 sees an overrun in LibTorch 2's autograd headers where there is none, inlined into our code.
target_compile_options(dpg_torch INTERFACE ${DPG_TORCH_FLAGS} -Wno-array-bounds -Wno-stringop-overflow)

# Torch headers take some 15 s to parse: parse them once.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/torch_header.cpp CONTENT "// Holds the precompiled torch header.\n")
add_library(dpg_torch_header OBJECT ${PROJECT_BINARY_DIR}/torch_header.cpp)
target_link_libraries(dpg_torch_header PRIVATE dpg_torch dpg_flags dpg_openmp)
target_precompile_headers(dpg_torch_header PRIVATE <torch/torch.h>)
function(dpg_use_torch_header target)
  # The compiler takes the precompiled header only where the flags are the same: OpenMP is one of them.
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:dpg_openmp>)
  target_precompile_headers(${target} REUSE_FROM dpg_torch_header)
endfunction()
