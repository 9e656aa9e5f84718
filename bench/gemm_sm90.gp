# SPDX-License-Identifier: MIT
# Draws the table of bench_gemm_sm90 --table FILE:  gnuplot -e "table='FILE'" bench/gemm_sm90.gp >gemm.svg
set terminal svg size 1200,520 background "white" font ",12"
set style data histogram
set style histogram clustered gap 1
set style fill solid 0.9 border -1
set ylabel "TFLOP/s"
set yrange [0:*]
set grid ytics
set key top left
set xtics rotate by -45 scale 0
set bmargin 8
plot table using 4:xtic(sprintf("%dx%dx%d", $1, $2, $3)) title "cptx" linecolor rgb "#2a7ab0", \
     table using 5 title "cuBLAS" linecolor rgb "#c0c0c0"
