// dpg rerun x.manifest.json: makes a restored picture again, and says whether its bytes are the same.
#include <cstdio>
#include <memory>

#include "command.h"
#include "dpg/core/error.h"
#include "dpg/core/fingerprint.h"
#include "dpg/image/image.h"
#include "dpg/tensor/convert.h"
#include "interrupt.h"
#include "manifest.h"

namespace dpg::cli {
namespace {

struct Options {
  std::filesystem::path manifest, out;
};

void rerun(const Options& o) {
  const Manifest manifest = read_manifest(o.manifest);
  const std::filesystem::path out = o.out.empty() ? manifest.output : o.out;
  const auto prior = load_prior(manifest.job.runtime);
  const Interrupt interrupt;
  const auto pictures = restore_batch(manifest.job.plan, *prior, manifest.batch);
  check(!Interrupt::asked(), "interrupted; nothing was written");
  write_image(out, to_image(pictures[manifest.row].samples[0]));
  const bool same = file_fingerprint(out) == manifest.output_fingerprint;
  std::printf("%s: %s\n", out.string().c_str(),
              same ? "the same bytes as before" : "not the same bytes as before");
  check(same, "the bytes differ: another machine, build, tensor library or file format rounds differently");
}

}  // namespace

void add_rerun_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("rerun", "make a restored picture again from its manifest");
  command->add_option("MANIFEST", o->manifest, "NAME.manifest.json beside a restored picture")->required();
  command->add_option("-o,--out", o->out, "where to write it (default: where it was)");
  command->callback([o] { rerun(*o); });
}

}  // namespace dpg::cli
