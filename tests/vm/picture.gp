# SPDX-License-Identifier: GPL-2.0-or-later
#
# The picture of picture.py: folder holds the data.

set title "Verified random reads and writes over two links: requests in each 100 ms"
set xlabel "seconds"
set ylabel "requests a second"
set yrange [0:*]
set offsets graph 0, 0, 0.45, 0
set grid
set key outside bottom center horizontal
set style fill solid 0.35

stats folder . "/iops.dat" using 2 nooutput
top = STATS_max
row(n) = top * (1.10 + 0.10 * n)
colour(n) = n == 0 ? 0xd62728 : n == 1 ? 0x2ca02c : 0x555555
events = folder . "/events.dat"

plot folder . "/iops.dat" using 1:2 with filledcurves x1 lc rgb "#1b6ca8" title "requests a second", \
	events using 1:(0):(0):(row($2)):(colour($2)) with vectors nohead lw 1.5 lc rgb variable \
		notitle, \
	events using 1:(row($2)):3:(colour($2)) with labels left offset 0.4,0 font ",9" \
		tc rgb variable notitle
