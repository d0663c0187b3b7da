// Two results of `dpg eval`, picture by picture: what became better, what worse, and what is within noise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "dpg/evaluate/statistics.h"

namespace dpg::evaluate {

using Json = nlohmann::ordered_json;

enum class Direction { higher_is_better, lower_is_better, none };
// By the metric's name: "psnr" and "ssim" up; "lpips_...", FID, KID, FD-..., KD-..., seconds and counts of
// calls down; none for residuals (a residual below the noise's is as wrong as one above) and for unknown
// names.
Direction direction_of(const std::string& metric);

struct MetricComparison {
  std::string metric;
  double mean_a = 0, mean_b = 0;  // over the pictures that have the number on both sides
  PairedDifference difference;    // b - a
  // "better" (b than a), "worse", "within noise"; "differs" where no direction is the better one; "one
  // picture" where that is all there is.
  std::string verdict;
};

// Numbers of a whole set of pictures. Those with "... leaving out" or a "... standard error" beside them are
// judged by it; the others come without an interval, and the verdict says so.
struct SetComparison {
  std::string metric;
  std::optional<double> a, b;  // none: unavailable
  std::string verdict;
};

struct MethodComparison {
  std::string task, method_a, method_b;
  std::size_t pictures = 0;  // in both
  std::vector<MetricComparison> metrics;
  std::vector<SetComparison> sets;
  std::vector<std::string> only_in_a, only_in_b;  // pictures
};

struct Comparison {
  std::vector<MethodComparison> methods;
  std::vector<std::string> only_in_a, only_in_b;  // "task, method" of which the other file has nothing
  std::vector<std::string> notes;                 // in what the plans differ
};

struct MethodPair {
  std::string a, b;
};

// Reads a results.json; fails with a sentence for anything else.
Json read_results(const std::filesystem::path& path);

// Rows are joined by task, method and image; where a picture has several rows (seeds), their mean counts.
// Without `methods`: every method that both have, with itself. With it: that of a with that of b, which may
// be the same file. Fails where nothing can be joined.
Comparison compare_results(const Json& a, const Json& b, const std::optional<MethodPair>& methods = {},
                           std::uint64_t seed = 0);

// A table for people.
std::string comparison_text(const Comparison& comparison);
Json comparison_json(const Comparison& comparison);

}  // namespace dpg::evaluate
