// The textual form of operators and noise, the same everywhere (command line, sidecars, presets, reports):
//
//   NAME                          identity
//   NAME:VALUE                    sr:4
//   NAME:KEY=VALUE,KEY=VALUE      blur:sigma=3,size=61,boundary=reflect
//   SPEC | SPEC                   blur:3 | inpaint:box      (the left one is applied first)
//
// Values given without a key fill the options in their listed order. A value that holds a comma, a bar, an
// equals sign or a quote is written in double quotes, with \" and \\ inside: exec:"./run --mean
// 1,2",timeout=5
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dpg {

struct SpecArgument {
  std::string key;  // empty: given by place
  std::string value;
};

struct Spec {
  std::string name;
  std::vector<SpecArgument> arguments;
};

std::vector<Spec> parse_specs(std::string_view text);  // one per part of a composition, at least one
Spec parse_spec(std::string_view text);                // exactly one: noise has no composition
std::string to_text(const Spec& spec);                 // parse_spec gives the same back

std::string number_text(double value);  // the shortest decimal text that reads back as exactly this number
std::string join(std::span<const std::string> words, std::string_view separator);

std::size_t edit_distance(std::string_view a, std::string_view b);  // insertions, deletions, changes, swaps
// The closest candidate (the first of equals); empty when there is none.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// Reads the arguments of one spec as typed options. Each failure is one sentence with the nearest valid
// answer.
class OptionReader {
 public:
  // `keys`: every option the name takes, in the order in which values without a key fill them.
  OptionReader(const Spec& spec, std::vector<std::string> keys);

  bool given(const std::string& key) const;
  double number(const std::string& key, double fallback, double minimum, double maximum) const;
  std::int64_t integer(const std::string& key, std::int64_t fallback, std::int64_t minimum,
                       std::int64_t maximum) const;
  bool flag(const std::string& key, bool fallback) const;  // yes, no, true, false, 1, 0
  std::string choice(const std::string& key, const std::string& fallback,
                     std::vector<std::string> choices) const;
  std::string text(const std::string& key, const std::string& fallback) const;
  // A value that must be there: `what` completes "needs ...".
  std::string required(const std::string& key, const std::string& what) const;

 private:
  const std::string* find(const std::string& key) const;
  std::string name_;
  std::vector<SpecArgument> values_;  // every key filled in
};

}  // namespace dpg
