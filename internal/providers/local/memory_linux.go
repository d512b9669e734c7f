package local

import (
	"math"
	"strconv"
	"strings"

	"sbx/internal/sandbox"
)

// memoryOf reads MemTotal and MemAvailable of /proc/meminfo, in bytes.
func memoryOf(text string) (total, available int64, ok bool) {
	found := 0
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		kib, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil || kib < 0 || kib > math.MaxInt64/1024 {
			continue
		}
		switch name {
		case "MemTotal":
			total, found = kib*1024, found+1
		case "MemAvailable":
			available, found = kib*1024, found+1
		}
	}
	return total, available, found == 2 && total > 0 && available <= total
}

// pressureOf reads /proc/pressure/memory: for which share of the last 10 s, in
// percent, some process waited for memory.
func pressureOf(text string) (percent float64, ok bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "some" {
			continue
		}
		value, named := strings.CutPrefix(fields[1], "avg10=")
		percent, err := strconv.ParseFloat(value, 64)
		return percent, named && err == nil && percent >= 0 && percent <= 100 // NaN is neither
	}
	return 0, false
}

// sizeText writes an amount for people: "512 MiB", "1.2 GiB", rounded down, so that
// nothing looks free that is not.
func sizeText(bytes int64) string {
	const gib = 1024 * sandbox.MiB
	if bytes < gib {
		return strconv.FormatInt(bytes/sandbox.MiB, 10) + " MiB"
	}
	text := strconv.FormatInt(bytes/gib, 10)
	if tenths := bytes % gib * 10 / gib; tenths > 0 {
		text += "." + strconv.FormatInt(tenths, 10)
	}
	return text + " GiB"
}
