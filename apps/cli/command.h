// What the commands share. Each command is one file: add_xxx_command registers a subcommand whose callback
// does the work and throws dpg::Error when it can't; main prints that one sentence and exits with 1.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace dpg::cli {

void add_model_command(CLI::App& app);      // model info, convert, forward
void add_sample_command(CLI::App& app);     // unconditional samples
void add_denoise_command(CLI::App& app);    // noise an image to level t and show what the prior makes of it
void add_degrade_command(CLI::App& app);    // clean pictures to measurements
void add_operators_command(CLI::App& app);  // what operators and noises there are
void add_estimate_noise_command(CLI::App& app);  // the noise level of a single picture
void add_restore_command(CLI::App& app);         // degraded pictures to restored ones
void add_rerun_command(CLI::App& app);           // a restored picture again, from its manifest
void add_methods_command(CLI::App& app);         // what methods and presets there are
void add_tune_command(CLI::App& app);            // a method over a grid of settings
void add_demo_command(CLI::App& app);            // everything once, as a page
void add_bench_command(CLI::App& app);           // how fast the GPU is at it
void add_score_command(CLI::App& app);           // how near pictures are to the truth
void add_compare_command(CLI::App& app);         // two evaluations, picture by picture
void add_eval_command(CLI::App& app);            // methods against each other, by a plan

}  // namespace dpg::cli
