module sbx/tools/depcost

go 1.26.0
