// Internal to the catalog: one operator's description, and how its options are read.
#pragma once

#include <memory>
#include <span>

#include "dpg/measure/catalog.h"
#include "dpg/measure/spec.h"

namespace dpg {

struct CatalogEntry {
  OperatorInfo info;
  std::shared_ptr<const Operator> (*build)(const Spec& spec, const OperatorContext& context);
};

std::span<const CatalogEntry> catalog_entries();

}  // namespace dpg
