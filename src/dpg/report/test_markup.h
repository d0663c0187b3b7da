// For the tests: what tags a piece of SVG or HTML holds, and whether they match.
#pragma once

#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace dpg::test {

inline std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t i = text.find(what); i != std::string::npos; i = text.find(what, i + 1)) ++found;
  return found;
}

// What stands between < and >, in order; a > inside quotes does not end a tag.
inline std::vector<std::string> tags(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t i = text.find('<'); i != std::string::npos; i = text.find('<', i)) {
    bool quoted = false;
    std::size_t end = i + 1;
    for (; end < text.size() && (quoted || text[end] != '>'); ++end) quoted = quoted != (text[end] == '"');
    out.push_back(text.substr(i + 1, end - i - 1));
    i = end;
  }
  return out;
}

// Empty where every tag is closed by its own; otherwise the tag that is not. In HTML some have no end.
inline std::string unbalanced(const std::string& text) {
  std::vector<std::string> open;
  for (const std::string& tag : tags(text)) {
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag.find('<') != std::string::npos || tag.empty()) return tag;
    if (tag[0] == '!' || tag.back() == '/' || name == "meta" || name == "img") continue;
    if (tag[0] != '/') {
      open.push_back(name);
    } else if (open.empty() || "/" + open.back() != tag) {
      return tag;
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

inline std::string attribute(const std::string& tag, const std::string& name) {
  const std::string start = " " + name + "=\"";
  const std::size_t i = tag.find(start);
  if (i == std::string::npos) return "";
  return tag.substr(i + start.size(), tag.find('"', i + start.size()) - i - start.size());
}

// The points of each <polyline> or <polygon>, in pixels.
inline std::vector<std::vector<std::pair<double, double>>> points_of(const std::string& svg,
                                                                     const std::string& kind) {
  std::vector<std::vector<std::pair<double, double>>> out;
  for (const std::string& tag : tags(svg)) {
    if (!tag.starts_with(kind + " ")) continue;
    out.emplace_back();
    std::istringstream in(attribute(tag, "points"));
    char comma = 0;
    for (double x = 0, y = 0; in >> x >> comma >> y;) out.back().emplace_back(x, y);
  }
  return out;
}

}  // namespace dpg::test
