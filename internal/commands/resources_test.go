package commands

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
	"sbx/internal/views"
)

func TestFiguresForPeople(t *testing.T) {
	t.Parallel()
	limits := triage.DefaultThresholds()
	for name, tc := range map[string]struct {
		trend                      triage.Trend
		operations                 *int64
		cpu, memory, slope, counts string
		cpuTone, memoryTone        output.Tone
	}{
		"nothing is known": {cpu: "-", memory: "-", slope: "-", counts: "-"},
		"idle": {
			trend:      triage.Trend{CPUPercent: new(0.0), MemoryBytes: new(int64(0)), MemorySlope: new(-0.2)},
			operations: new(int64(0)), cpu: "0%", memory: "0", slope: "0", counts: "0",
		},
		"just below busy and full": {
			trend:      triage.Trend{CPUPercent: new(94.9), MemoryBytes: new(int64(89 * sandbox.MiB)), MemoryLimitBytes: new(int64(100 * sandbox.MiB)), MemorySlope: new(12.4)},
			operations: new(int64(9999)), cpu: "95%", memory: "89 of 100", slope: "+12", counts: "9999",
		},
		"busy and full": {
			trend:      triage.Trend{CPUPercent: new(95.0), MemoryBytes: new(int64(90 * sandbox.MiB)), MemoryLimitBytes: new(int64(100 * sandbox.MiB)), MemorySlope: new(-31.0)},
			operations: new(int64(150_000)), cpu: "95%", memory: "90 of 100", slope: "-31", counts: "150k", cpuTone: output.Bad, memoryTone: output.Bad,
		},
		"several cores, no limit": {
			trend:      triage.Trend{CPUPercent: new(398.7), MemoryBytes: new(int64(5000 * sandbox.MiB))},
			operations: new(int64(23_456_789)), cpu: "399%", memory: "5000", slope: "-", counts: "23M", cpuTone: output.Bad,
		},
		"a limit of nothing": {
			trend: triage.Trend{MemoryBytes: new(int64(1)), MemoryLimitBytes: new(int64(0))}, cpu: "-", memory: "0 of 0", slope: "-", counts: "-",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := views.UsageRow{Trend: tc.trend, Last: sandbox.Usage{Operations: tc.operations}, Limits: limits}
			assert.Equal(t, tc.cpu, r.CPUText())
			assert.Equal(t, tc.memory, r.MemoryText())
			assert.Equal(t, tc.slope, r.SlopeText())
			assert.Equal(t, tc.counts, r.OperationsText())
			assert.Equal(t, tc.cpuTone, r.CPUTone())
			assert.Equal(t, tc.memoryTone, r.MemoryTone())
		})
	}
}

func TestPatternTones(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[triage.UsagePattern]output.Tone{
		triage.PatternBusyLoop: output.Bad, triage.PatternLeak: output.Bad, triage.PatternHungIO: output.Warn, triage.PatternBusy: output.Warn,
		triage.PatternSteady: output.Good, triage.PatternIdle: output.Plain, triage.PatternUnknown: output.Plain,
	} {
		assert.Equal(t, want, views.UsageRow{Verdict: triage.Verdict{Pattern: pattern}}.PatternTone(), pattern)
	}
}

func TestFiguresForMachines(t *testing.T) {
	t.Parallel()
	for in, want := range map[float64]float64{0: 0.0, -0.01: 0.0, 0.05: 0.1, 99.94: 99.9, 100: 100.0} {
		row := views.UsageRow{Trend: triage.Trend{CPUPercent: &in}}
		assert.InDelta(t, want, *row.Item().CPUPercent, 0)
		assert.NotContains(t, views.Decimal(in, 0), "-0")
	}
	assert.Nil(t, views.UsageRow{}.Item().CPUPercent)
	assert.Equal(t, "2", views.Decimal(2, 2))
	assert.Equal(t, "0.25", views.Decimal(0.251, 2))
	assert.Equal(t, "-", views.MebibytesText(nil))
	assert.Equal(t, "2", views.MebibytesText(new(int64(3*sandbox.MiB/2))))
}

func TestMeasuredTakesTheNewestSample(t *testing.T) {
	t.Parallel()
	usage := growing(0.5, 10, 100)
	first, second := usage(noon), usage(noon)
	row := views.UsageRow(look.UsageOf(sandbox.Sandbox{Provider: "p", ID: "x"}, []sandbox.Usage{second, first}, triage.DefaultThresholds(), triage.Verdict{}))
	assert.Equal(t, second.At, row.Last.At)
	assert.InEpsilon(t, 50, *row.Trend.CPUPercent, 0.01)
	assert.Equal(t, "p/x", row.Item().Ref)
}
