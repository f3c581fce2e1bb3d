# SPDX-License-Identifier: GPL-2.0-or-later
#
# The bars of report.py: data is its file, title0 and title1 name the panels.

set multiplot layout 2,1
set style data histogram
set style histogram clustered gap 1.2
set style fill solid 0.85 border -1
set boxwidth 0.95
set grid ytics
set ylabel "requests, upstream = 1"
set yrange [0.6:*]
set key outside right top
set xtics font ",9" rotate by -15
do for [i = 0:1] {
	set title (i ? title1 : title0)
	plot for [c = 2:4] data index i using c:xtic(1) title columnheader(c) \
		linecolor rgb word("#9e9e9e #1b6ca8 #e08e2b", c - 1)
}
unset multiplot
