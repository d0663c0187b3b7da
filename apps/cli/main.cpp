// dpg: the command line. Exit codes: 0 done, 1 could not be done (one sentence on stderr), 2 wrong usage.
#include <c10/util/Exception.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "command.h"
#include "dpg/core/error.h"
#include "dpg/core/memory.h"

namespace {

// An error of the tensor library carries a stack trace after its first line: a user needs the line.
std::string first_line(const char* text) {
  const std::string message = text;
  return message.substr(0, message.find('\n'));
}

}  // namespace

int main(int argc, char** argv) {
  dpg::reuse_freed_memory();
  CLI::App app{"dpg restores images by sampling a diffusion prior's posterior."};
  app.set_version_flag("--version", "dpg " DPG_VERSION);
  app.require_subcommand(1);
  dpg::cli::add_model_command(app);
  dpg::cli::add_sample_command(app);
  dpg::cli::add_denoise_command(app);
  dpg::cli::add_degrade_command(app);
  dpg::cli::add_operators_command(app);
  dpg::cli::add_estimate_noise_command(app);
  dpg::cli::add_restore_command(app);
  dpg::cli::add_rerun_command(app);
  dpg::cli::add_methods_command(app);
  dpg::cli::add_tune_command(app);
  dpg::cli::add_score_command(app);
  dpg::cli::add_compare_command(app);
  dpg::cli::add_demo_command(app);
  dpg::cli::add_eval_command(app);
  dpg::cli::add_bench_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const dpg::Error& error) {
    std::fprintf(stderr, "dpg: %s\n", error.what());
    return 1;
  } catch (const c10::OutOfMemoryError&) {
    std::fprintf(stderr,
                 "dpg: out of GPU memory; try a smaller --batch or smaller pictures, or --device cpu\n");
    return 1;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "dpg: out of memory; try a smaller batch or image\n");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dpg: %s\n", first_line(error.what()).c_str());
    return 1;
  }
  return 0;
}
