// dpg compare A.json B.json: two evaluations picture by picture.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "dpg/core/error.h"
#include "dpg/evaluate/compare.h"

namespace dpg::cli {
namespace {

struct Options {
  std::filesystem::path a, b;
  std::string methods;
  std::uint64_t seed = 0;
  bool json = false;
};

// "dps,dpg"
std::optional<evaluate::MethodPair> method_pair(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t comma = text.find(',');
  check(comma != std::string::npos && comma > 0 && comma + 1 < text.size() &&
            text.find(',', comma + 1) == std::string::npos,
        "--methods ", text, " must be written as A,B: a method of the first file and one of the second");
  return evaluate::MethodPair{text.substr(0, comma), text.substr(comma + 1)};
}

void compare(const Options& o) {
  const evaluate::Comparison comparison = evaluate::compare_results(
      evaluate::read_results(o.a), evaluate::read_results(o.b), method_pair(o.methods), o.seed);
  if (o.json) {
    evaluate::Json json = {{"a", o.a.string()}, {"b", o.b.string()}};
    json.update(evaluate::comparison_json(comparison));
    std::printf("%s\n", json.dump(2).c_str());
    return;
  }
  std::printf("A: %s\nB: %s\n\n%s", o.a.string().c_str(), o.b.string().c_str(),
              evaluate::comparison_text(comparison).c_str());
}

}  // namespace

void add_compare_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "compare", "two results of dpg eval, picture by picture: better, worse or within noise");
  command->add_option("A", o->a, "a results.json")->required();
  command->add_option("B", o->b, "another; or the same, with --methods")->required();
  command->add_option("--methods", o->methods, "A,B: this method of the first file with that of the second");
  command->add_option("--seed", o->seed, "of the intervals' resampling");
  command->add_flag("--json", o->json, "for programs");
  command->callback([o] { compare(*o); });
}

}  // namespace dpg::cli
