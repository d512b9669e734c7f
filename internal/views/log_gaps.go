package views

import (
	"strconv"
	"strings"

	"sbx/internal/sandbox"
)

// MissingOutput is a gap in words: why, and how much.
func MissingOutput(line sandbox.LogLine) string {
	var parts []string
	if n := line.Gap.Lines; n != nil {
		parts = append(parts, strconv.FormatInt(*n, 10)+" lines")
	}
	if n := line.Gap.Bytes; n != nil {
		parts = append(parts, sizeText(*n))
	}
	if len(parts) == 0 {
		return line.Text
	}
	return line.Text + ": " + strings.Join(parts, ", ") + " missing"
}

// sizeText writes a size for people.
func sizeText(bytes int64) string {
	if bytes < 1<<20 {
		return strconv.FormatInt(bytes, 10) + " bytes"
	}
	return strconv.FormatFloat(float64(bytes)/(1<<20), 'f', 1, 64) + " MiB"
}
