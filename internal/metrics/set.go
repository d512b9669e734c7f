package metrics

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Label is one dimension of a sample.
type Label struct{ Name, Value string }

// Set is a snapshot of metrics, in the order in which they were added. The zero
// value is empty and ready.
type Set struct{ families []*family }

const (
	kindGauge     = "gauge"
	kindHistogram = "histogram"
)

// family is all samples of one name; the format wants them side by side, once
// with their help.
type family struct {
	name, help, kind string
	samples          []sample
}

// sample is one line, or all lines of one histogram.
type sample struct {
	labels []Label
	value  float64
	steps  []step // of a histogram, rising, the last one at +Inf
	count  uint64
}

// step counts the observations up to a bound, those below it included.
type step struct {
	bound float64
	count uint64
}

// Gauge adds one value; the unit belongs into the name (_seconds). The same name
// with the same labels again replaces the value.
func (s *Set) Gauge(name, help string, value float64, labels ...Label) {
	s.putSample(kindGauge, name, help, sample{labels: orderLabels(labels), value: value})
}

// Histogram adds the distribution of observed values over buckets that end at
// bounds, which rise; a bucket for all that is larger comes by itself.
func (s *Set) Histogram(name, help string, bounds, observed []float64, labels ...Label) {
	all := sample{labels: orderLabels(labels), count: uint64(len(observed))}
	for _, v := range observed {
		all.value += v
	}
	for _, bound := range bounds {
		n := uint64(0)
		for _, v := range observed {
			if v <= bound {
				n++
			}
		}
		all.steps = append(all.steps, step{bound, n})
	}
	s.putSample(kindHistogram, name, help, all)
}

// putSample finds the family by its name, or adds it; kind and help stay those of the first
// sample.
func (s *Set) putSample(kind, name, help string, add sample) {
	name = nameOf(name, ":")
	i := slices.IndexFunc(s.families, func(f *family) bool { return f.name == name })
	if i < 0 {
		i = len(s.families)
		s.families = append(s.families, &family{name: name, help: help, kind: kind})
	}
	f := s.families[i]
	if f.kind != kind {
		return // two kinds under one name make the whole file unreadable
	}
	if same := slices.IndexFunc(f.samples, func(o sample) bool { return slices.Equal(o.labels, add.labels) }); same >= 0 {
		f.samples[same] = add
		return
	}
	f.samples = append(f.samples, add)
}

// orderLabels gives labels by name, each name once, the last value holding, and
// without those that no parser takes.
func orderLabels(labels []Label) []Label {
	var list []Label
	for _, l := range labels {
		l = Label{labelName(l.Name), strings.ToValidUTF8(l.Value, "\uFFFD")}
		list = slices.DeleteFunc(list, func(o Label) bool { return o.Name == l.Name })
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// labelName is nameOf without what the format keeps for itself.
func labelName(name string) string {
	if name = nameOf(name, ""); name == "le" || name == "quantile" || strings.HasPrefix(name, "__") {
		return "x_" + name
	}
	return name
}

// nameOf makes a name that every parser takes; more lists what it may hold
// beside letters, digits and _.
func nameOf(name, more string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '_', r >= '0' && r <= '9', r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r < 0x80 && strings.ContainsRune(more, r):
			return r
		}
		return '_'
	}, name)
	if clean == "" || (clean[0] >= '0' && clean[0] <= '9') {
		return "_" + clean
	}
	return clean
}

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
