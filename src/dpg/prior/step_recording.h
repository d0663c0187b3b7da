// A sampler's whole step as one launch: everything it does on the GPU becomes one CUDA graph. Only in builds
// with DPG_CUDA.
#pragma once

#include <torch/types.h>

#include <functional>
#include <mutex>

namespace dpg {

// Runs `step` on this GPU. It may neither wait for the GPU nor use it for the first time (libraries set up
// then).
//
// A step's numbers (abar, its place in the random stream) are arguments of its kernels, so each step is
// captured anew; the graph it makes only updates the one that is ready to run, which takes a fraction of the
// time that the GPU is busy with the step before. The network comes in as it was recorded (GpuRecording).
void run_as_one_launch(torch::Device gpu, const std::function<void()>& step);

// Whether the caller is inside of such a step.
bool inside_one_launch();

// Whether samplers use it; for tests and measurements, which compare both ways.
void set_whole_step_launches(bool on);
bool whole_step_launches();

// Who puts work for the network's recordings on the GPU: one thread at a time, for a whole step where it is
// one launch.
std::recursive_mutex& gpu_turn();

}  // namespace dpg
