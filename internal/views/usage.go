package views

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// UsageRow is one line of top: what a sandbox uses, and what its samples say
// together.
type UsageRow look.SandboxUsage

// UsageItem is what one sandbox uses.
type UsageItem struct {
	Ref        string     `json:"ref" table:""`            // PROFILE/ID.
	At         *time.Time `json:"at"`                      // When it was measured.
	CPUPercent *float64   `json:"cpu_percent" table:"CPU"` // Processor time in percent of one core.
	// The working set, in MiB: memory in use without inactive page cache. Null where that is not
	// known.
	MemoryMB        *output.Mebibytes   `json:"memory_mb" table:"MEMORY"`
	MemoryLimitMB   *output.Mebibytes   `json:"memory_limit_mb" table:"LIMIT,wide"`      // The limit of memory, in MiB.
	MemorySlope     *float64            `json:"memory_slope_mb_per_min" table:"MIB/MIN"` // How fast memory grows, in MiB a minute.
	Operations      *int64              `json:"operations" table:"OPS"`                  // Reads and writes since the start of the sandbox.
	DurationSeconds *float64            `json:"duration_seconds" table:"RAN,wide"`       // How long the sandbox has run, as the provider counts it.
	PIDs            *int64              `json:"pids" table:",wide"`                      // Processes and threads.
	OOMKills        *int64              `json:"oom_kills" table:"OOM,wide"`              // How often the kernel has ended a process for memory.
	Pattern         triage.UsagePattern `json:"pattern" table:""`                        // What the samples look like; `sbx top --help` and docs/GLOSSARY.md explain the words.
	LikelyCause     string              `json:"likely_cause" table:"LIKELY,whole"`       // The likely cause; empty for none.
	Source          string              `json:"source" table:",wide"`                    // Where the figures are from.
	Stuck           sandbox.Verdict     `json:"stuck" table:",wide"`                     // Whether it is stuck.
	Cause           *sandbox.Cause      `json:"cause"`                                   // Why it is stuck, or what ended it.

	Basis

	Name   string `json:"name" table:",wide"`        // Its name; empty without one.
	TaskID string `json:"task_id" table:"TASK,wide"` // The task it works on, from its labels.
}

// Item is the usage as documents have it.
func (r UsageRow) Item() UsageItem {
	item := UsageItem{
		Ref: r.Sandbox.Ref().String(), At: output.Time(r.Last.At), CPUPercent: tenths(r.Trend.CPUPercent),
		MemoryMB: output.MiB(r.Trend.MemoryBytes), MemoryLimitMB: output.MiB(r.Trend.MemoryLimitBytes), MemorySlope: tenths(r.Trend.MemorySlope),
		Operations: r.Last.Operations, PIDs: r.Last.PIDs, OOMKills: r.Last.OOMKills,
		Pattern: r.Verdict.Pattern, LikelyCause: string(r.Verdict.Cause), Source: r.Trend.Source, Stuck: r.Verdict.Stuck, Cause: orNil(r.Verdict.Cause), Basis: basisOf(r.Verdict),
		Name: r.Sandbox.Name, TaskID: r.Sandbox.TaskID,
	}
	if r.Last.Duration != nil {
		item.DurationSeconds = new(output.Seconds(*r.Last.Duration))
	}
	return item
}

// tenths rounds a figure for machines; nil stays unknown.
func tenths(v *float64) *float64 {
	if v == nil {
		return nil
	}
	return new(math.Round(*v*10)/10 + 0) // + 0 turns -0 into 0
}

// UsageColumns are the columns of a UsageItem.
func UsageColumns() []output.Column[UsageRow] {
	type column = output.Column[UsageRow]
	return output.Columns(UsageRow.Item,
		column{Name: "cpu_percent", Text: UsageRow.CPUText, Tone: UsageRow.CPUTone},
		column{Name: "memory_mb", Text: UsageRow.MemoryText, Tone: UsageRow.MemoryTone},
		column{Name: "memory_slope_mb_per_min", Text: UsageRow.SlopeText},
		column{Name: "operations", Text: UsageRow.OperationsText},
		column{Name: "pattern", Text: UsageRow.PatternText, Tone: UsageRow.PatternTone},
		column{Name: "likely_cause", Text: func(r UsageRow) string { return r.Verdict.Cause.Label() }},
	)
}

// UsageScreen are the columns of top on a terminal.
func UsageScreen() []output.Column[UsageRow] {
	type row = UsageRow
	return output.Complete([]output.Column[row]{
		{Name: "name", Head: "NAME", Value: func(r row) any { return TaskAndName(r.Sandbox) }},
		{Name: "ref", Whole: true},
		{Name: "cpu_percent"},
		{Name: "memory", Head: "MEM", Value: func(row) any { return nil }, Text: row.MemoryShareText, Tone: row.MemoryTone},
		{Name: "memory_slope_mb_per_min"},
		{Name: "operations", Spare: true},
		{Name: "pattern", Spare: true},
		{Name: "why", Keep: output.ReasonCells, Value: func(r row) any { return r.why() }, Tone: func(r row) output.Tone { return r.asSandbox().WhyTone() }},
		{Name: "memory_mb", Level: output.Wide},
		{Name: "pids"},
		{Name: "oom_kills"},
		{Name: "duration_seconds"},
		{Name: "source"},
	}, UsageColumns())
}

func (r UsageRow) asSandbox() SandboxRow { return SandboxRow{Sandbox: r.Sandbox, Verdict: r.Verdict} }

func (r UsageRow) why() string { return r.asSandbox().Why() }

// MemoryShareText is the use of memory as a share of its limit, or in MiB without a limit.
func (r UsageRow) MemoryShareText() string {
	if share, known := look.SandboxUsage(r).MemoryShare(); known {
		return Decimal(share*100, 0) + "%"
	}
	if r.Trend.MemoryBytes == nil {
		return "-"
	}
	return MebibytesText(r.Trend.MemoryBytes) + "M"
}

// CPUText is the use of the processor.
func (r UsageRow) CPUText() string {
	if r.Trend.CPUPercent == nil {
		return "-"
	}
	return Decimal(*r.Trend.CPUPercent, 0) + "%"
}

// CPUTone is its tone.
func (r UsageRow) CPUTone() output.Tone {
	if cpu := r.Trend.CPUPercent; cpu != nil && *cpu >= r.Limits.CPUBusy {
		return output.Bad
	}
	return output.Plain
}

// MemoryText puts the limit beside the figure: "120 of 256".
func (r UsageRow) MemoryText() string {
	used := MebibytesText(r.Trend.MemoryBytes)
	if r.Trend.MemoryLimitBytes == nil || r.Trend.MemoryBytes == nil {
		return used
	}
	return used + " of " + MebibytesText(r.Trend.MemoryLimitBytes)
}

// MemoryTone is the tone of the use of memory.
func (r UsageRow) MemoryTone() output.Tone {
	used, limit := r.Trend.MemoryBytes, r.Trend.MemoryLimitBytes
	if used != nil && limit != nil && *limit > 0 && float64(*used) >= r.Limits.MemoryNear*float64(*limit) {
		return output.Bad
	}
	return output.Plain
}

// SlopeText is the trend of memory.
func (r UsageRow) SlopeText() string {
	switch {
	case r.Trend.MemorySlope == nil && r.Trend.TooShort && r.Trend.Samples > 1:
		return "short"
	case r.Trend.MemorySlope == nil:
		return "-"
	}
	slope := math.Round(*r.Trend.MemorySlope)
	if slope > 0 {
		return "+" + Decimal(slope, 0)
	}
	return Decimal(slope, 0)
}

// OperationsText rounds a large count: "150k".
func (r UsageRow) OperationsText() string {
	if r.Last.Operations == nil {
		return "-"
	}
	switch n := *r.Last.Operations; {
	case n >= 10_000_000:
		return strconv.FormatInt(n/1_000_000, 10) + "M"
	case n >= 10_000:
		return strconv.FormatInt(n/1000, 10) + "k"
	default:
		return strconv.FormatInt(n, 10)
	}
}

// Words is the use of everything in one line: "cpu 98%, memory 120 of 256 MiB, 3 processes, busy loop".
func (r UsageRow) Words() string {
	var parts []string
	if r.Trend.CPUPercent != nil {
		parts = append(parts, "cpu "+r.CPUText())
	}
	switch {
	case r.Trend.MemoryBytes != nil:
		text := "memory " + r.MemoryText() + " MiB"
		if r.Trend.MemorySlope != nil {
			text += " (" + r.SlopeText() + " MiB/min)"
		}
		parts = append(parts, text)
	case r.Last.MemoryPeakBytes != nil:
		parts = append(parts, "memory peak "+MebibytesText(r.Last.MemoryPeakBytes)+" MiB")
	}
	if r.Last.PIDs != nil && !r.Sandbox.State.Ended() {
		parts = append(parts, fmt.Sprintf("%d processes", *r.Last.PIDs))
	}
	if r.Last.OOMKills != nil && *r.Last.OOMKills > 0 {
		parts = append(parts, fmt.Sprintf("%d killed for memory", *r.Last.OOMKills))
	}
	if r.Last.Waiting != "" {
		parts = append(parts, "waits on "+r.Last.Waiting)
	}
	if r.Verdict.Pattern != triage.PatternUnknown && !r.Sandbox.State.Ended() {
		parts = append(parts, r.PatternText())
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// PatternText is the pattern, by the name of the cause where it is one.
func (r UsageRow) PatternText() string {
	switch r.Verdict.Pattern {
	case triage.PatternBusyLoop, triage.PatternHungIO, triage.PatternLeak:
		return sandbox.Cause(r.Verdict.Pattern).Label()
	case triage.PatternBusy, triage.PatternIdle, triage.PatternSteady, triage.PatternUnknown:
	}
	return string(r.Verdict.Pattern)
}

// PatternTone is the tone of the pattern.
func (r UsageRow) PatternTone() output.Tone {
	switch r.Verdict.Pattern {
	case triage.PatternBusyLoop, triage.PatternLeak:
		return output.Bad
	case triage.PatternHungIO, triage.PatternBusy:
		return output.Warn
	case triage.PatternSteady:
		return output.Good
	case triage.PatternIdle, triage.PatternUnknown:
	}
	return output.Plain
}

// MebibytesText writes a count of bytes in whole MiB, "-" when it is not known.
func MebibytesText(bytes *int64) string {
	if bytes == nil {
		return "-"
	}
	return Decimal(float64(*bytes)/sandbox.MiB, 0)
}

// ShowUsage shows one look at what sandboxes use. Program is what sbx is called.
func ShowUsage(p *output.Printer, schema string, r *look.TopResult, program string) error {
	list, err := output.NewList(p, output.ListSpec[UsageRow]{
		Schema: schema, Columns: UsageColumns(), Screen: UsageScreen(), Empty: "no sandbox runs; `" + program + " ls` lists them",
	})
	if err != nil {
		return err
	}
	if r.Truncated {
		list.Truncated()
	}
	for _, err := range r.Errors {
		list.Fail(err)
	}
	for _, u := range r.Usage {
		add := func() error { return list.Add(UsageRow(u)) }
		if u.Err != nil {
			add = func() error { return list.AddFailed(UsageRow(u), u.Err) }
		}
		if err := add(); err != nil {
			return err
		}
	}
	return list.Close()
}
