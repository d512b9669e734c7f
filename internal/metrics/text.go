package metrics

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// ContentType is what /metrics says about its text.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Text is the set in the Prometheus text exposition format, without timestamps:
// the textfile collector refuses them.
func (s Set) Text() string {
	var b strings.Builder
	for _, f := range s.families {
		b.WriteString("# HELP " + f.name + " " + escapeHelp(f.help) + "\n# TYPE " + f.name + " " + f.kind + "\n")
		for _, one := range f.samples {
			if f.kind == kindHistogram {
				writeHistogram(&b, f.name, one)
				continue
			}
			writeSample(&b, f.name, one.labels, one.value)
		}
	}
	return b.String()
}

func writeHistogram(b *strings.Builder, name string, h sample) {
	for _, s := range append(slices.Clone(h.steps), step{math.Inf(1), h.count}) {
		writeSample(b, name+"_bucket", append(slices.Clone(h.labels), Label{"le", formatNumber(s.bound)}), float64(s.count))
	}
	writeSample(b, name+"_sum", h.labels, h.value)
	writeSample(b, name+"_count", h.labels, float64(h.count))
}

func writeSample(b *strings.Builder, name string, labels []Label, value float64) {
	b.WriteString(name)
	for i, l := range labels {
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		b.WriteString(l.Name + `="` + escapeValue(l.Value) + `"`)
	}
	if len(labels) > 0 {
		b.WriteByte('}')
	}
	b.WriteString(" " + formatNumber(value) + "\n")
}

// formatNumber writes whole values without an exponent up to where a float is exact,
// so that a moment in seconds can be read.
func formatNumber(v float64) string {
	const exact = 1 << 53
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	case v == math.Trunc(v) && math.Abs(v) < exact:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64) // NaN as well
}

func escapeValue(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text)
}

func escapeHelp(text string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(strings.ToValidUTF8(text, "\uFFFD"))
}
