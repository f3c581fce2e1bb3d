# SPDX-License-Identifier: GPL-2.0-or-later
"""For `make htmldocs`. In the kernel tree its own configuration is in force."""

project = "RTRS client"
language = "en"
highlight_language = "none"
nitpicky = True
html_theme = "alabaster"
html_theme_options = {"page_width": "64em"}
html_show_copyright = False
html_copy_source = False
exclude_patterns = []
