package snapshot

import (
	"math"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Series are samples of usage as columns, which need a fifth of the room of rows. A column has a
// value for each sample, null where it was not reported; one value stands for all samples, and a
// column that is absent was not reported.
type Series struct {
	Start            time.Time  `json:"start"` // of the first sample
	AfterMicro       []int64    `json:"after_us"`
	CPUPercent       []*float64 `json:"cpu_percent,omitempty"`
	CPUSeconds       []*float64 `json:"cpu_seconds,omitempty"`
	Busiest          []*Thread  `json:"busiest,omitempty"`
	MemoryBytes      []*int64   `json:"memory_bytes,omitempty"`
	MemoryLimitBytes []*int64   `json:"memory_limit_bytes,omitempty"`
	Operations       []*int64   `json:"operations,omitempty"`
	PIDs             []*int64   `json:"pids,omitempty"`
	Tasks            []*int64   `json:"tasks,omitempty"`
	TasksRefused     []*int64   `json:"tasks_refused,omitempty"`
	OOMKills         []*int64   `json:"oom_kills,omitempty"`
	Waiting          []*string  `json:"waiting,omitempty"`
	Source           []*string  `json:"source,omitempty"`
}

// newSeries are the newest of the samples; nil for none.
func newSeries(samples []sandbox.Usage, most int, redact Redact) *Series {
	if samples = samples[max(0, len(samples)-most):]; len(samples) == 0 {
		return nil
	}
	s := &Series{Start: samples[0].At.UTC()}
	for _, u := range samples {
		s.AfterMicro = append(s.AfterMicro, u.At.Sub(samples[0].At).Microseconds())
		s.CPUPercent, s.CPUSeconds = append(s.CPUPercent, rounded(u.CPUPercent)), append(s.CPUSeconds, rounded(u.CPUSeconds))
		s.MemoryBytes, s.MemoryLimitBytes = append(s.MemoryBytes, u.MemoryBytes), append(s.MemoryLimitBytes, u.MemoryLimitBytes)
		s.Operations, s.PIDs, s.OOMKills = append(s.Operations, u.Operations), append(s.PIDs, u.PIDs), append(s.OOMKills, u.OOMKills)
		s.Tasks, s.TasksRefused = append(s.Tasks, u.Tasks), append(s.TasksRefused, u.TasksRefused)
		s.Waiting, s.Source = append(s.Waiting, textOrNil(redact(u.Waiting))), append(s.Source, textOrNil(u.Source))
		var busiest *Thread
		if t := u.Busiest; t != nil {
			busiest = &Thread{t.ID, t.WantedSeconds, t.Runnable, t.Sleeps}
		}
		s.Busiest = append(s.Busiest, busiest)
	}
	s.CPUPercent, s.CPUSeconds = shortColumn(s.CPUPercent), shortColumn(s.CPUSeconds)
	for _, column := range []*[]*int64{&s.MemoryBytes, &s.MemoryLimitBytes, &s.Operations, &s.PIDs, &s.OOMKills, &s.Tasks, &s.TasksRefused} {
		*column = shortColumn(*column)
	}
	s.Waiting, s.Source = shortColumn(s.Waiting), shortColumn(s.Source)
	if len(s.Busiest) == 0 || s.Busiest[0] == nil && allNil(s.Busiest) {
		s.Busiest = nil
	}
	return s
}

// rounded keeps six decimals, which decide nothing.
func rounded(v *float64) *float64 {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return nil
	}
	return new(math.Round(*v*1e6) / 1e6)
}

func textOrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func allNil[T any](column []*T) bool {
	for _, v := range column {
		if v != nil {
			return false
		}
	}
	return true
}

// shortColumn is nothing for a column without values, and one value where all are equal.
func shortColumn[T comparable](column []*T) []*T {
	if allNil(column) {
		return nil
	}
	for _, v := range column {
		if column[0] == nil || v == nil || *v != *column[0] {
			return column
		}
	}
	return column[:1]
}

// at is the value of a sample.
func at[T any](column []*T, i int) *T {
	switch len(column) {
	case 0:
		return nil
	case 1:
		return column[0]
	}
	return column[i]
}

// usages are the samples; none of nil.
func (s *Series) usages() []sandbox.Usage {
	if s == nil {
		return nil
	}
	all := make([]sandbox.Usage, len(s.AfterMicro))
	for i, after := range s.AfterMicro {
		u := sandbox.Usage{
			At: s.Start.Add(time.Duration(after) * time.Microsecond), CPUPercent: at(s.CPUPercent, i), CPUSeconds: at(s.CPUSeconds, i),
			MemoryBytes: at(s.MemoryBytes, i), MemoryLimitBytes: at(s.MemoryLimitBytes, i), Operations: at(s.Operations, i), PIDs: at(s.PIDs, i), OOMKills: at(s.OOMKills, i),
			Tasks: at(s.Tasks, i), TasksRefused: at(s.TasksRefused, i),
		}
		if text := at(s.Waiting, i); text != nil {
			u.Waiting = *text
		}
		if text := at(s.Source, i); text != nil {
			u.Source = *text
		}
		if t := at(s.Busiest, i); t != nil {
			u.Busiest = &sandbox.ThreadUsage{ID: t.ID, WantedSeconds: t.WantedSeconds, Runnable: t.Runnable, Sleeps: t.Sleeps}
		}
		all[i] = u
	}
	return all
}

// check refuses columns that have not one value for each sample, and times beyond a year.
func (s *Series) check() error {
	if s == nil {
		return nil
	}
	n := len(s.AfterMicro)
	for _, have := range []int{
		len(s.CPUPercent), len(s.CPUSeconds), len(s.Busiest), len(s.MemoryBytes), len(s.MemoryLimitBytes), len(s.Operations), len(s.PIDs), len(s.OOMKills), len(s.Tasks), len(s.TasksRefused), len(s.Waiting), len(s.Source),
	} {
		if have > 1 && have != n {
			return fault.Usage("a column of samples has %d values for %d samples", have, n)
		}
	}
	const year = 365 * 24 * time.Hour
	for _, after := range s.AfterMicro {
		if after < -year.Microseconds() || after > year.Microseconds() {
			return fault.Usage("a sample is %d microseconds after the first", after)
		}
	}
	return nil
}
