#include "dpg/evaluate/work_list.h"

#include <algorithm>
#include <charconv>

#include "dpg/core/error.h"

namespace dpg::evaluate {
namespace {

bool listed(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

bool read_number(const std::string& text, std::size_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::vector<WorkBatch> work_list(const Plan& plan, std::size_t pictures, int batch) {
  check(batch >= 1, "pictures can't be restored ", batch, " at once; give a batch of at least 1");
  std::vector<WorkBatch> list;
  for (std::size_t task = 0; task < plan.tasks.size(); ++task)
    for (std::size_t method = 0; method < plan.methods.size(); ++method) {
      if (!plan.methods[method].takes(plan.tasks[task])) continue;
      for (std::size_t first = 0; first < pictures; first += static_cast<std::size_t>(batch)) {
        WorkBatch one{task, method, 0, {}};
        for (std::size_t i = first; i < std::min(pictures, first + static_cast<std::size_t>(batch)); ++i)
          one.pictures.push_back(i);
        list.push_back(std::move(one));
      }
    }
  const Evolution& evolution = plan.evolution;
  if (static_cast<std::size_t>(evolution.picture) >= pictures) return list;
  for (std::size_t task = 0; task < plan.tasks.size(); ++task)
    for (std::size_t method = 0; method < plan.methods.size(); ++method) {
      const bool wanted = listed(evolution.tasks, plan.tasks[task].name) &&
                          listed(evolution.methods, plan.methods[method].name) &&
                          plan.methods[method].takes(plan.tasks[task]);
      for (int run = 1; wanted && run < evolution.runs; ++run)
        list.push_back({task, method, run, {static_cast<std::size_t>(evolution.picture)}});
    }
  return list;
}

Shard parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  std::size_t index = 0, count = 0;
  const bool fine = slash != std::string::npos && read_number(text.substr(0, slash), index) &&
                    read_number(text.substr(slash + 1), count) && index >= 1 && index <= count;
  check(fine, "--shard ", text, " must be K/N with K from 1 to N, as in 1/8 to 8/8");
  return {index - 1, count};
}

}  // namespace dpg::evaluate
