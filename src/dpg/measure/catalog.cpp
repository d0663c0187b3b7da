#include "dpg/measure/catalog.h"

#include "dpg/core/error.h"
#include "dpg/measure/catalog_entry.h"
#include "dpg/measure/compose.h"

namespace dpg {
namespace {

const CatalogEntry& find_entry(const std::string& name) {
  std::vector<std::string> names;
  for (const CatalogEntry& entry : catalog_entries()) {
    if (entry.info.name == name) return entry;
    names.push_back(entry.info.name);
  }
  fail("there is no operator called \"", name, "\"; did you mean \"", nearest(name, names),
       "\"? \"dpg operators\" lists them all");
}

std::shared_ptr<const Operator> build(const Spec& spec, const OperatorContext& context) {
  const CatalogEntry& entry = find_entry(spec.name);
  std::vector<std::string> keys;
  for (const OperatorParameter& parameter : entry.info.parameters) keys.push_back(parameter.name);
  OptionReader(spec, keys);  // refuses an unknown option whatever the builder reads
  return entry.build(spec, context);
}

}  // namespace

std::shared_ptr<const Operator> make_operator(const std::string& text, const OperatorContext& context) {
  check(!context.images.empty(), "an operator was asked for no images; give the index of at least one");
  std::shared_ptr<const Operator> all;
  OperatorContext here = context;
  for (const Spec& spec : parse_specs(text)) {
    if (!all) {
      all = build(spec, here);
      continue;
    }
    here.shape = output_as_image(*all);
    here.seed += 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio: no two parts share a seed
    all = compose(std::move(all), build(spec, here));
  }
  return all;
}

std::span<const OperatorInfo> operator_catalog() {
  static const std::vector<OperatorInfo> infos = [] {
    std::vector<OperatorInfo> list;
    for (const CatalogEntry& entry : catalog_entries()) list.push_back(entry.info);
    return list;
  }();
  return infos;
}

}  // namespace dpg
