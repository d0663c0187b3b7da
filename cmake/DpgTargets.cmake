# Three helpers that every folder uses, so that its CMakeLists.txt only lists files.

# Libraries and programs alike as position-independent code: they share one precompiled torch header, which needs
# equal flags (CMake's own switch would give -fPIC to libraries and -fPIE to programs).
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fPIC> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fPIC>)

add_library(dpg_flags INTERFACE)
set(DPG_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wunused)
if(DPG_WARNINGS_AS_ERRORS)
  list(APPEND DPG_WARNINGS -Werror)
endif()
target_compile_options(dpg_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${DPG_WARNINGS}>")

# Everything at once: dpg::dpg, here and for those who find_package(dpg).
add_library(dpg_all INTERFACE)
add_library(dpg::dpg ALIAS dpg_all)
set_target_properties(dpg_all PROPERTIES EXPORT_NAME dpg)

# dpg_library(NAME SOURCES ... [DEPS ...] [TORCH]): a folder as the library dpg::NAME.
# TORCH: its sources include torch headers; they then share one precompiled header.
function(dpg_library name)
  cmake_parse_arguments(arg "TORCH" "" "SOURCES;DEPS" ${ARGN})
  add_library(dpg_${name} STATIC ${arg_SOURCES})
  add_library(dpg::${name} ALIAS dpg_${name})
  set_target_properties(dpg_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(dpg_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(dpg_${name} PUBLIC cxx_std_20)
  target_link_libraries(dpg_${name} PUBLIC ${arg_DEPS} PRIVATE $<BUILD_INTERFACE:dpg_flags>)
  if(arg_TORCH)
    # Once installed, dpgConfig.cmake looks for LibTorch anew and gives it this name.
    target_link_libraries(dpg_${name} PUBLIC $<BUILD_INTERFACE:dpg_torch> $<INSTALL_INTERFACE:dpg::torch>)
    dpg_use_torch_header(dpg_${name})
  endif()
  target_link_libraries(dpg_all INTERFACE dpg_${name})
  set_property(GLOBAL APPEND PROPERTY DPG_LIBRARIES dpg_${name})
endfunction()

# dpg_simd_sources(NAME FILE...): compiles each file three times, once per instruction set. The file puts its
# code into namespace DPG_SIMD (baseline, avx2 or avx512); core/cpu.h picks one at run time.
# Contraction is off so that all three give the same bits.
function(dpg_simd_sources name)
  foreach(file ${ARGN})
    get_filename_component(stem ${file} NAME_WE)
    foreach(isa baseline avx2 avx512)
      set(flags_baseline "")
      set(flags_avx2 -march=x86-64-v3)
      set(flags_avx512 -march=x86-64-v4 -mprefer-vector-width=512)
      add_library(dpg_${name}_${stem}_${isa} OBJECT ${file})
      target_compile_definitions(dpg_${name}_${stem}_${isa} PRIVATE DPG_SIMD=${isa})
      target_compile_options(dpg_${name}_${stem}_${isa} PRIVATE
        -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math ${flags_${isa}})
      target_include_directories(dpg_${name}_${stem}_${isa} PRIVATE ${PROJECT_SOURCE_DIR}/src)
      target_link_libraries(dpg_${name}_${stem}_${isa} PRIVATE dpg_flags dpg_openmp)
      target_sources(dpg_${name} PRIVATE $<TARGET_OBJECTS:dpg_${name}_${stem}_${isa}>)
    endforeach()
  endforeach()
endfunction()

# dpg_test(NAME SOURCES ... [DEPS ...] [TORCH] [TIMEOUT s]): one GoogleTest program, registered with CTest as one test.
function(dpg_test name)
  if(NOT DPG_BUILD_TESTS OR DPG_BUILD_FUZZ)
    return()
  endif()
  cmake_parse_arguments(arg "TORCH" "TIMEOUT" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} dpg_flags GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    DPG_SOURCE_DIR="${PROJECT_SOURCE_DIR}" DPG_SHARED_DIR="${DPG_SHARED_DIR}")
  if(arg_TORCH)
    target_link_libraries(${name} PRIVATE dpg_torch)
    dpg_use_torch_header(${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
endfunction()
