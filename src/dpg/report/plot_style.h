// How plots look.
#pragma once

namespace dpg::style {

inline constexpr int kColours = 7;

// Okabe and Ito's colours, which colour-blind readers tell apart; the seventh is the text colour. On a dark
// page the lighter ones come first, and the dark blue makes way for yellow.
inline constexpr const char* kStyle =
    ".dpg-plot{max-width:100%;height:auto}"
    ".dpg-plot text{font:13px system-ui,sans-serif;fill:currentColor}"
    ".dpg-frame{fill:none;stroke:currentColor;stroke-opacity:.45}"
    ".dpg-grid{stroke:currentColor;stroke-opacity:.14}"
    ".dpg-line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}"
    ".dpg-dot{fill:currentColor}"
    ".dpg-band{fill:currentColor;fill-opacity:.2}"
    ".dpg-reference{stroke:currentColor;stroke-width:1.5;stroke-dasharray:6 4}"
    ".dpg-0{color:#0072B2}.dpg-1{color:#D55E00}.dpg-2{color:#009E73}.dpg-3{color:#CC79A7}"
    ".dpg-4{color:#E69F00}.dpg-5{color:#56B4E9}"
    "@media(prefers-color-scheme:dark){"
    ".dpg-0{color:#56B4E9}.dpg-1{color:#E69F00}.dpg-4{color:#D55E00}.dpg-5{color:#F0E442}}";

// For a file of its own: the page around it has no colours to give.
inline constexpr const char* kFileStyle =
    ".dpg-plot{color:#1c1e21;background:#fff}"
    "@media(prefers-color-scheme:dark){.dpg-plot{color:#e6e8eb;background:#16181c}}";

}  // namespace dpg::style
