package local

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMemoryThatIsNotTold(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"MemTotal: 2048 kB\nMemFree: 1 kB\nMemAvailable: 1024 kB\n": true,
		"MemTotal: 2048 kB\n":                   false,
		"":                                      false,
		"MemTotal: x kB\nMemAvailable: 1 kB\n":  false,
		"MemTotal: 1 kB\nMemAvailable: 2 kB\n":  false,
		"MemTotal: 1 kB\nMemAvailable: -2 kB\n": false,
		"MemTotal:\nMemAvailable:\n":            false,
		"MemTotal: 9223372036854775807 kB\nMemAvailable: 1024 kB\n": false,
	} {
		total, available, got := parseMeminfo(text)
		assert.Equal(t, ok, got, "%q", text)
		if ok {
			assert.Equal(t, int64(2<<20), total)
			assert.Equal(t, int64(1<<20), available)
		}
	}
}

func TestPressureThatIsNotTold(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"some avg10=23.41 avg60=1.00 avg300=0.00 total=5\nfull avg10=7.00 avg60=0.00 avg300=0.00 total=8\n": 23.41,
		"full avg10=7.00 avg60=0.00 avg300=0.00 total=8\nsome avg10=0.00\n":                                 0,
		"some avg10=100.00 avg60=1.00": 100,
		"full avg10=7.00 avg60=0.00":   -1,
		"":                             -1,
		"some":                         -1,
		"some avg60=1.00 avg10=2.00":   -1,
		"some avg10=NaN":               -1,
		"some avg10=Inf":               -1,
		"some avg10=-1":                -1,
		"some avg10=100.01":            -1,
		"some avg10=":                  -1,
		"some 7":                       -1,
	} {
		percent, ok := parsePressure(text)
		assert.Equal(t, want >= 0, ok, "%q", text)
		if ok {
			assert.InDelta(t, want, percent, 0, "%q", text)
		}
	}
}

func FuzzMemoryFiles(f *testing.F) {
	f.Add("MemTotal: 2048 kB\nMemAvailable: 1024 kB\n")
	f.Add("some avg10=23.41 avg60=1.00 avg300=0.00 total=5\n")
	f.Fuzz(func(t *testing.T, text string) {
		if total, available, ok := parseMeminfo(text); ok {
			assert.Positive(t, total)
			assert.GreaterOrEqual(t, available, int64(0))
			assert.LessOrEqual(t, available, total)
		}
		if percent, ok := parsePressure(text); ok {
			assert.GreaterOrEqual(t, percent, 0.0)
			assert.LessOrEqual(t, percent, 100.0)
		}
	})
}

func TestSizesAreRoundedDown(t *testing.T) {
	t.Parallel()
	const mib, gib = 1 << 20, 1 << 30
	for bytes, want := range map[int64]string{
		0: "0 MiB", mib - 1: "0 MiB", 512 * mib: "512 MiB", gib - 1: "1023 MiB", gib: "1 GiB",
		1<<30 + 1<<28: "1.2 GiB", 2*gib - 1: "1.9 GiB", 8 * gib: "8 GiB", 10*gib + gib/2: "10.5 GiB",
	} {
		assert.Equal(t, want, formatSize(bytes), "%d", bytes)
	}
}
