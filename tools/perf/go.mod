module sbx/tools/perf

go 1.26.0
