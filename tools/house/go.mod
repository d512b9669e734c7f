module sbx/tools/house

go 1.26.0
