#include "dpg/report/html.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "dpg/core/error.h"
#include "dpg/report/markup.h"

namespace dpg {
namespace {

using markup::escape;

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--ink:#1c1e21;--soft:#565c64;--rule:#d5d9de;--paper:#fff;--shade:#f5f6f8}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--soft:#a4abb4;--rule:#3a3f46;--paper:#16181c;--shade:#1f2227}}
*{box-sizing:border-box}
body{margin:0 auto;padding:2rem 1.25rem 4rem;max-width:62rem;font:1rem/1.55 system-ui,sans-serif;
  color:var(--ink);background:var(--paper)}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 1.25rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.5rem 0 .75rem}
p{max-width:44rem;margin:.75rem 0;overflow-wrap:anywhere}
.scroll{overflow-x:auto;margin:1rem 0;width:max-content;
  max-width:min(100vw - 2.5rem,max(100%,50vw + 28rem))} /* wide tables use the margin on the right */
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .9rem .35rem 0;border-bottom:1px solid var(--rule);text-align:left;vertical-align:top}
th+td,th+th,td+td{padding-left:.9rem}
thead th{border-bottom-width:2px}
tbody tr:hover{background:var(--shade)}
.facts th{font-weight:normal;color:var(--soft);white-space:nowrap}
.facts td{overflow-wrap:anywhere}
th.number,td.number{text-align:right}
td.number{white-space:nowrap}
figure{margin:0}
figcaption{color:var(--soft);font-size:.9rem;overflow-wrap:anywhere}
.plot{margin:1rem 0;overflow-x:auto}
.plot svg{display:block;min-width:30rem}
.pictures{display:flex;flex-wrap:wrap;gap:1rem;margin:1rem 0}
.pictures figure{max-width:100%}
.pictures img{display:block;max-width:100%;height:auto;border-radius:3px;margin-bottom:.3rem}
.enlarged{image-rendering:pixelated}
.groups th,.groups td{padding-left:.6rem;padding-right:.6rem}
.groups .group{text-align:center}
.groups tbody th{white-space:nowrap}
.groups .first{border-left:1px solid var(--rule)}
.groups u{text-underline-offset:.2em}
.groups .words{color:var(--soft);font-size:.9rem;text-align:left;white-space:normal}
.sheet th,.sheet td{border:0;padding:.15rem}
.sheet figure{max-width:none}
.sheet img{display:block;border-radius:3px}
.sheet thead th{width:1px;font-weight:normal;color:var(--soft);font-size:.9rem} /* names wrap, pictures decide */
)";

std::string element(const char* tag, const std::string& text) {
  return dpg::str("<", tag, ">", escape(text), "</", tag, ">\n");
}

// "0.31", "-2e-3", "24.1 dB", "0.31 ± 0.02", "95 %": a number first, and no more letters than a unit has.
bool is_number(const std::string& text) {
  const std::size_t first = text.find_first_not_of("+-.");
  if (first == std::string::npos || !std::isdigit(static_cast<unsigned char>(text[first]))) return false;
  return std::count_if(text.begin(), text.end(), [](unsigned char c) { return std::isalpha(c) != 0; }) <= 3;
}

bool is_missing(const std::string& text) {
  return text.empty() || text == "-" || text == "\u2013" || text == "\u2014";
}

std::vector<bool> number_columns(std::size_t columns, const std::vector<std::vector<std::string>>& rows) {
  std::vector<bool> result(columns);
  for (std::size_t column = 0; column < columns; ++column) {
    bool some = false, all = true;
    for (const auto& row : rows) {
      some = some || is_number(row[column]);
      all = all && (is_number(row[column]) || is_missing(row[column]));
    }
    result[column] = some && all;
  }
  return result;
}

std::string table_row(const char* cell, const std::vector<std::string>& texts,
                      const std::vector<bool>& numbers) {
  std::string out = "<tr>";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    out += dpg::str("<", cell, numbers[i] ? " class=\"number\">" : ">", escape(texts[i]), "</", cell, ">");
  }
  return out + "</tr>\n";
}

std::string figure_of(const CaptionedPicture& captioned, int wide) {
  Image shown = captioned.picture;
  std::string caption = captioned.caption;
  std::size_t black = 0;
  for (float& value : shown.data) {
    if (std::isfinite(value)) continue;
    value = -1.0f;
    ++black;
  }
  if (black > 0) {  // a restoration that went astray is just what a report is opened for
    caption += dpg::str(caption.empty() ? "" : "; ", black, " of ", shown.data.size(),
                        " values are not finite and shown black");
  }
  const std::string data = markup::base64(encode_image(shown, ".png"));
  const int scale = std::max(1, wide / shown.width);
  const std::string width = std::to_string(shown.width * scale),
                    height = std::to_string(shown.height * scale);
  // The figure's own width makes long captions wrap below the picture.
  return dpg::str("<figure style=\"width:", width, "px\"><img", scale > 1 ? " class=\"enlarged\"" : "",
                  " width=\"", width, "\" height=\"", height, "\" alt=\"",
                  escape(caption.empty() ? "picture" : caption), "\" src=\"data:image/png;base64,", data,
                  "\">", caption.empty() ? "" : "<figcaption>" + escape(caption) + "</figcaption>",
                  "</figure>\n");
}

}  // namespace

Page::Page(const std::string& title) : title_(title), body_(element("h1", title)) {}

Page& Page::heading(const std::string& text) {
  body_ += element("h2", text);
  return *this;
}

Page& Page::text(const std::string& paragraph) {
  body_ += element("p", paragraph);
  return *this;
}

Page& Page::facts(const Facts& facts) {
  if (facts.empty()) return *this;
  body_ += "<div class=\"scroll\"><table class=\"facts\">\n";
  for (const auto& [name, value] : facts) {
    body_ += "<tr><th scope=\"row\">" + escape(name) + "</th><td>" + escape(value) + "</td></tr>\n";
  }
  body_ += "</table></div>\n";
  return *this;
}

Page& Page::table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  for (const auto& row : rows) {
    check(row.size() == header.size(), "a table of ", header.size(), " columns has a row of ", row.size());
  }
  const std::vector<bool> numbers = number_columns(header.size(), rows);
  body_ +=
      "<div class=\"scroll\"><table>\n<thead>" + table_row("th", header, numbers) + "</thead>\n<tbody>\n";
  for (const auto& row : rows) body_ += table_row("td", row, numbers);
  body_ += "</tbody>\n</table></div>\n";
  return *this;
}

Page& Page::pictures(const std::vector<CaptionedPicture>& pictures, int wide) {
  if (pictures.empty()) return *this;
  check(codec_available("png"),
        "the report's pictures cannot be embedded: browsers need PNG, which this build lacks; build dpg with "
        "libpng, "
        "or go without the report");
  body_ += "<div class=\"pictures\">\n";
  for (const CaptionedPicture& picture : pictures) {
    check(picture.picture.width > 0 && picture.picture.height > 0, "the report's picture \"", picture.caption,
          "\" is empty");
    body_ += figure_of(picture, wide);
  }
  body_ += "</div>\n";
  return *this;
}

Page& Page::figure(const std::string& svg, const std::string& caption) {
  body_ += "<figure class=\"plot\">\n" + svg;
  if (!caption.empty()) body_ += element("figcaption", caption);
  body_ += "</figure>\n";
  return *this;
}

std::string Page::html() const {
  // The policy keeps the promise: whatever the texts hold, nothing is loaded and no script runs.
  return dpg::str(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
      element("title", title_), "<style>", kStyle, "</style>\n</head>\n<body>\n", body_,
      "</body>\n</html>\n");
}

}  // namespace dpg
