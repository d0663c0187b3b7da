// dpg operators: what can be written after --op, as a table, as JSON, or as a sheet of pictures.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "command.h"
#include "dpg/core/error.h"
#include "dpg/image/grid.h"
#include "dpg/image/transform.h"
#include "dpg/measure/catalog.h"
#include "dpg/measure/noise.h"
#include "dpg/measure/spec.h"
#include "dpg/measure/view.h"
#include "dpg/solve/catalog.h"
#include "dpg/tensor/convert.h"

namespace dpg::cli {
namespace {

// The methods that can restore from an operator; its kind as the catalogue of operators says it: "linear;
// spectral when circular".
std::string methods_for(const std::string& kind) {
  std::set<std::string> named;
  const auto more = [&](const std::string& of_kind) {
    std::vector<std::string> names;
    for (const MethodInfo& method : method_catalog())
      if (takes(method, of_kind) && named.insert(method.name).second) names.push_back(method.name);
    return join(names, ", ");
  };
  std::string text, part;
  for (std::istringstream parts(kind); std::getline(parts >> std::ws, part, ';');) {
    const std::size_t condition = std::min(part.find(" when "), part.find(" with "));
    const std::string names = more(part.substr(0, condition));
    if (condition == std::string::npos)
      text += (text.empty() ? "" : ", ") + names;
    else
      text += ";" + part.substr(condition) + " also " + names;
  }
  return text;
}

void print_table() {
  for (const OperatorInfo& info : operator_catalog()) {
    std::printf("%-15s %s\n%-15s kind: %s   example: %s\n%-15s methods: %s\n", info.name.c_str(),
                info.summary.c_str(), "", info.kind.c_str(), info.example.c_str(), "",
                methods_for(info.kind).c_str());
    for (const OperatorParameter& parameter : info.parameters) {
      const std::string fallback =
          parameter.default_value.empty() ? "" : " [" + parameter.default_value + "]";
      std::printf("%-15s   %-11s %s%s\n", "", parameter.name.c_str(), parameter.meaning.c_str(),
                  fallback.c_str());
    }
    std::printf("\n");
  }
  std::printf("Join operators with \" | \": --op \"blur:3 | inpaint:box\" applies the left one first.\n");
}

void print_json() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const OperatorInfo& info : operator_catalog()) {
    nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
    for (const OperatorParameter& parameter : info.parameters)
      parameters.push_back(
          {{"name", parameter.name}, {"default", parameter.default_value}, {"meaning", parameter.meaning}});
    list.push_back({{"name", info.name},
                    {"kind", info.kind},
                    {"methods", methods_for(info.kind)},
                    {"summary", info.summary},
                    {"example", info.example},
                    {"parameters", parameters}});
  }
  std::printf("%s\n", list.dump(2).c_str());
}

struct SheetOptions {
  std::filesystem::path picture, out;
  int size = 128;
};

// Each operator and each noise on one picture, with its text below.
void draw_sheet(const SheetOptions& options) {
  check(!options.out.empty(), "the sheet needs a file to be written to; add -o sheet.png");
  const Image clean = fit(to_rgb(read_image(options.picture)), options.size);
  const Tensor x = to_tensor(clean);
  std::vector<Image> cells = {with_caption(clean, "the picture")};
  const auto add = [&](const std::string& operator_spec, const std::string& noise_spec,
                       const std::string& caption) {
    const OperatorContext context = {{3, options.size, options.size}, 1, {0}};
    const Measurement m =
        measure(make_operator(operator_spec, context), make_noise(noise_spec), x, 1, context.images);
    Image shown = to_image(view_of(m.y).pictures);
    // Small measurements are enlarged, and a spectrum larger than the picture is cut to its middle.
    if (shown.height < options.size)
      shown = resize(shown, options.size, options.size * shown.width / shown.height);
    if (shown.height > options.size) shown = centre_crop(shown, options.size, options.size);
    cells.push_back(with_caption(shown, caption));
  };
  for (const OperatorInfo& info : operator_catalog()) {
    if (info.name == "kernel" || info.name == "exec") continue;  // they need a file or a program
    add(info.example, "none", info.example);
    if (info.name == "inpaint") add("inpaint:random,removed=0.7", "none", "inpaint:random");
    if (info.name == "uncrop") add("uncrop:border", "none", "uncrop:border");
  }
  for (const std::string noise : {"gaussian:0.2", "poisson:0.1", "salt-pepper:0.1", "speckle:0.3"})
    add("identity", noise, noise);
  write_image(options.out, make_grid(cells, 7, 4));
}

}  // namespace

void add_operators_command(CLI::App& app) {
  auto* command = app.add_subcommand("operators", "List the operators: kind, options, defaults");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "For programs");
  auto sheet = std::make_shared<SheetOptions>();
  auto* picture =
      command->add_option("--sheet", sheet->picture, "Draw every operator on this picture, into -o");
  command->add_option("-o,--out", sheet->out, "The sheet to write")->needs(picture);
  command->add_option("--size", sheet->size, "Of each picture on the sheet")
      ->needs(picture)
      ->check(CLI::Range(32, 1024))
      ->capture_default_str();
  command->callback([as_json, sheet] {
    if (!sheet->picture.empty()) return draw_sheet(*sheet);
    *as_json ? print_json() : print_table();
  });
}

}  // namespace dpg::cli
