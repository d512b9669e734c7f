module sbx/tools/sbom

go 1.26.0
