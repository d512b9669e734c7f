package cond_test

import (
	"testing"

	"sbx/internal/cond"
	"sbx/internal/sandbox"
)

// row is a subject as a table over a real struct has it.
type row struct {
	state    string
	age, cpu float64
	memory   *int64
	labels   map[string]string
}

func rowSchema() cond.Schema[*row] {
	return cond.Schema[*row]{Names: []cond.Name[*row]{
		{Name: "state", Kind: cond.KindText, Value: func(r *row) cond.Value { return cond.Text(r.state) }},
		{Name: "age_seconds", Kind: cond.KindNumber, Unit: cond.UnitSeconds, Value: func(r *row) cond.Value { return cond.Number(r.age) }},
		{Name: "cpu_percent", Kind: cond.KindNumber, Unit: cond.UnitPercent, Value: func(r *row) cond.Value { return cond.Number(r.cpu) }},
		{Name: "usage.memory_mb", Kind: cond.KindNumber, Unit: cond.UnitMiB, Value: func(r *row) cond.Value { return cond.Scaled(r.memory, sandbox.MiB) }},
		{Name: "labels", Kind: cond.KindLabels, Value: func(r *row) cond.Value { return cond.Labels(r.labels) }},
	}}
}

func rows(n int) []*row {
	out := make([]*row, n)
	for i := range out {
		out[i] = &row{state: "running", age: float64(i % 3600), cpu: float64(i % 100), labels: map[string]string{"team": "a"}}
		if i%3 > 0 {
			out[i].memory = new(int64(i%512) * sandbox.MiB)
		}
	}
	return out
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := cond.Compile(`state == "running" and age_seconds > 10m and (cpu_percent < 1% or usage.memory_mb > 400M)`, rowSchema()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExplain(b *testing.B) {
	c, err := cond.Compile(`state == "running" and age_seconds > 10m and (cpu_percent < 1% or usage.memory_mb > 400M)`, rowSchema())
	if err != nil {
		b.Fatal(err)
	}
	r := rows(2)[1]
	for b.Loop() {
		c.Explain(r)
	}
}
