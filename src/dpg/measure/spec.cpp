#include "dpg/measure/spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>

#include "dpg/core/error.h"

namespace dpg {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// Where `wanted` stands outside double quotes, or npos.
std::size_t find_unquoted(std::string_view text, char wanted) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && text[i] == wanted) {
      return i;
    }
  }
  check(!quoted, "the quote in \"", text, "\" is not closed; add the missing double quote");
  return std::string_view::npos;
}

std::vector<std::string_view> split_unquoted(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end; (end = find_unquoted(text, separator)) != std::string_view::npos;
       text.remove_prefix(end + 1))
    parts.push_back(trimmed(text.substr(0, end)));
  parts.push_back(trimmed(text));
  return parts;
}

std::string unquoted(std::string_view text, std::string_view whole) {
  if (text.empty() || text.front() != '"') {
    check(text.find('"') == std::string_view::npos, "a quote in the middle of \"", text, "\" in \"", whole,
          "\"; put the whole value in double quotes and write \\\" inside it");
    return std::string(text);
  }
  std::string value;
  std::size_t i = 1;
  for (; i < text.size() && text[i] != '"'; ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    value += text[i];
  }
  check(i + 1 == text.size(), "text after the closing quote of ", text, " in \"", whole, "\"; remove it");
  return value;
}

std::string quoted_if_needed(const std::string& value) {
  const bool plain =
      value.find_first_of(",|=\"\\") == std::string::npos && trimmed(value) == value && !value.empty();
  if (plain) return value;
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

SpecArgument parse_argument(std::string_view text, std::string_view whole) {
  check(!text.empty(), "an empty option in \"", whole, "\"; remove the extra comma or colon");
  const std::size_t equals = find_unquoted(text, '=');
  if (equals == std::string_view::npos) return {"", unquoted(text, whole)};
  SpecArgument argument{std::string(trimmed(text.substr(0, equals))),
                        unquoted(trimmed(text.substr(equals + 1)), whole)};
  check(!argument.key.empty() && !argument.value.empty(), "\"", text, "\" in \"", whole,
        "\" lacks a name or a value; write it as KEY=VALUE");
  check(argument.key.find_first_of(" /.\\'") == std::string::npos, "\"", argument.key, "\" in \"", whole,
        "\" is not the name of an option; put a value that holds an equals sign in double quotes");
  return argument;
}

template <class Number>
std::optional<Number> parse_number(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

}  // namespace

std::vector<Spec> parse_specs(std::string_view text) {
  std::vector<Spec> specs;
  for (const std::string_view part : split_unquoted(text, '|')) {
    check(!part.empty(), "\"", text, "\" has an empty part; write NAME or NAME:OPTIONS, joined with \" | \"");
    const std::size_t colon = find_unquoted(part, ':');
    Spec spec{std::string(trimmed(part.substr(0, colon))), {}};
    check(!spec.name.empty(), "\"", part, "\" has no name before the colon; write NAME:OPTIONS");
    if (colon != std::string_view::npos)
      for (const std::string_view argument : split_unquoted(part.substr(colon + 1), ','))
        spec.arguments.push_back(parse_argument(argument, part));
    specs.push_back(std::move(spec));
  }
  return specs;
}

Spec parse_spec(std::string_view text) {
  std::vector<Spec> specs = parse_specs(text);
  check(specs.size() == 1, "\"", text, "\" names ", specs.size(),
        " things where one is needed; keep one of them");
  return std::move(specs.front());
}

std::string to_text(const Spec& spec) {
  std::string text = spec.name;
  for (std::size_t i = 0; i < spec.arguments.size(); ++i) {
    const SpecArgument& argument = spec.arguments[i];
    text += i == 0 ? ":" : ",";
    if (!argument.key.empty()) text += argument.key + "=";
    text += quoted_if_needed(argument.value);
  }
  return text;
}

std::string number_text(double value) {
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, result.ptr};
}

std::string join(std::span<const std::string> words, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += separator;
    text += words[i];
  }
  return text;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table are enough to see swaps of neighbours.
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({change, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  const std::string wanted = lower_case(word);
  std::string best;
  std::size_t best_distance = std::string::npos;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(wanted, lower_case(candidate));
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

OptionReader::OptionReader(const Spec& spec, std::vector<std::string> keys) : name_(spec.name) {
  std::size_t place = 0;
  for (SpecArgument argument : spec.arguments) {
    if (argument.key.empty()) {
      check(!keys.empty(), name_, " takes no options, but \"", argument.value, "\" was given; write just ",
            name_);
      check(place < keys.size(), name_, " was given more values than its options (", join(keys, ", "),
            "): remove \"", argument.value, "\"");
      argument.key = keys[place++];
    } else if (std::find(keys.begin(), keys.end(), argument.key) == keys.end()) {
      check(!keys.empty(), name_, " takes no options, but \"", argument.key, "\" was given; write just ",
            name_);
      fail(name_, " has no option \"", argument.key, "\"; did you mean \"", nearest(argument.key, keys),
           "\"? Its options are ", join(keys, ", "));
    }
    check(!given(argument.key), "the option ", argument.key, " of ", name_, " is given twice; keep one");
    values_.push_back(std::move(argument));
  }
}

const std::string* OptionReader::find(const std::string& key) const {
  for (const SpecArgument& value : values_)
    if (value.key == key) return &value.value;
  return nullptr;
}

bool OptionReader::given(const std::string& key) const {
  return find(key) != nullptr;
}

double OptionReader::number(const std::string& key, double fallback, double minimum, double maximum) const {
  const std::string* text = find(key);
  if (!text) return fallback;
  const std::optional<double> value = parse_number<double>(*text);
  check(value && std::isfinite(*value), name_, ": ", key, " \"", *text, "\" is not a number; give one from ",
        number_text(minimum), " to ", number_text(maximum), ", such as ",
        number_text(std::clamp(fallback, minimum, maximum)));
  check(*value >= minimum && *value <= maximum, name_, ": ", key, " ", *text, " is outside ",
        number_text(minimum), " to ", number_text(maximum), "; the nearest valid value is ",
        number_text(std::clamp(*value, minimum, maximum)));
  return *value;
}

std::int64_t OptionReader::integer(const std::string& key, std::int64_t fallback, std::int64_t minimum,
                                   std::int64_t maximum) const {
  const std::string* text = find(key);
  if (!text) return fallback;
  const std::optional<std::int64_t> value = parse_number<std::int64_t>(*text);
  check(value.has_value(), name_, ": ", key, " \"", *text, "\" is not a whole number; give one from ",
        minimum, " to ", maximum, ", such as ", std::clamp(fallback, minimum, maximum));
  check(*value >= minimum && *value <= maximum, name_, ": ", key, " ", *text, " is outside ", minimum, " to ",
        maximum, "; the nearest valid value is ", std::clamp(*value, minimum, maximum));
  return *value;
}

bool OptionReader::flag(const std::string& key, bool fallback) const {
  const std::string word = choice(key, fallback ? "yes" : "no", {"yes", "no", "true", "false", "1", "0"});
  return word == "yes" || word == "true" || word == "1";
}

std::string OptionReader::choice(const std::string& key, const std::string& fallback,
                                 std::vector<std::string> choices) const {
  const std::string* text = find(key);
  if (!text) return fallback;
  check(std::find(choices.begin(), choices.end(), *text) != choices.end(), name_, ": ", key, " \"", *text,
        "\" is not one of ", join(choices, ", "), "; did you mean \"", nearest(*text, choices), "\"?");
  return *text;
}

std::string OptionReader::text(const std::string& key, const std::string& fallback) const {
  const std::string* value = find(key);
  return value ? *value : fallback;
}

std::string OptionReader::required(const std::string& key, const std::string& what) const {
  const std::string* value = find(key);
  check(value != nullptr, name_, " needs ", what);
  return *value;
}

}  // namespace dpg
