package output

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/process"
	"sbx/internal/sandbox"
)

var update = flag.Bool("update", false, "rewrite the goldens under testdata")

// noon is the wall clock of every test.
func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// stage is a process whose streams are kept.
type stage struct {
	process.Process
	out, err buffer
}

// buffer may be written to by a timer while a test reads it.
type buffer struct {
	mu     sync.Mutex
	text   bytes.Buffer
	writes int
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes++
	return b.text.Write(p)
}

func (b *buffer) written() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.writes
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// place says where a test prints to.
type place struct {
	width int // of the terminal; 0 = a pipe
	env   []string
}

func newStage(at place) *stage {
	s := &stage{}
	s.Process = process.Process{
		Args:    []string{"/usr/bin/sbx", "ls"},
		Environ: append([]string{"TERM=xterm-256color"}, at.env...),
		Now:     noon,
		Stdout:  process.Stream{Writer: &s.out, TTY: at.width > 0, Width: at.width},
		Stderr:  process.Stream{Writer: &s.err, TTY: at.width > 0, Width: at.width},
	}
	return s
}

// printer makes one with a format; "table" is the default, "-o table" is asked for by its name.
func (s *stage) printer(t *testing.T, format string, change ...func(*Options)) *Printer {
	t.Helper()
	if format == string(Table) {
		format = ""
	}
	format = strings.TrimPrefix(format, "-o ")
	f, err := ParseFormat(t.Context(), format)
	require.NoError(t, err)
	o := Options{Format: f}
	for _, c := range change {
		c(&o)
	}
	return New(s.Process, o)
}

// golden compares with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run with -update to write it")
	assert.Equal(t, string(want), got)
}

// box is the printable type of these tests.
type box struct {
	ref     sandbox.Ref
	state   sandbox.State
	created time.Time
	age     time.Duration
	labels  map[string]string
	memory  *int64
	cpu     *float64
	note    string
	stuck   sandbox.Verdict
}

func boxColumns() []Column[box] {
	return []Column[box]{
		{Name: "ref", Value: func(b box) any { return b.ref }},
		{Name: "state", Value: func(b box) any { return b.state }},
		{Name: "created_at", Head: "CREATED", Value: func(b box) any { return Time(b.created) }},
		{Name: "age_seconds", Head: "AGE", Level: Wide, Value: func(b box) any { return Seconds(b.age) }},
		{Name: "labels", Level: Wide, Value: func(b box) any { return b.labels }},
		{Name: "memory_mb", Head: "MEM", Level: Extra, Value: func(b box) any { return MiB(b.memory) }},
		{Name: "cpu", Level: Extra, Value: func(b box) any { return b.cpu }},
		{
			Name: "stuck", Level: Default, Value: func(b box) any { return b.stuck },
			Text: func(b box) string {
				if b.stuck == sandbox.True {
					return "STUCK"
				}
				return ""
			},
			Tone: func(b box) Tone {
				if b.stuck == sandbox.True {
					return Bad
				}
				return Plain
			},
		},
		{Name: "note", Value: func(b box) any { return b.note }},
	}
}

func boxes() []box {
	return []box{
		{
			ref: sandbox.Ref{Provider: "local", ID: "0123abcd"}, state: sandbox.StateRunning,
			created: noon().Add(-90 * time.Minute), age: 90 * time.Minute,
			labels: map[string]string{"team": "agents", "a": "b"}, memory: new(int64(64 * sandbox.MiB)),
			cpu: new(1.5), stuck: sandbox.False, note: "quiet",
		},
		{
			ref: sandbox.Ref{Provider: "prod", ID: "i-77"}, state: sandbox.StateFailed,
			created: noon().Add(-3 * time.Second), age: 3 * time.Second,
			memory: new(int64(1<<20 + 1<<19)), stuck: sandbox.True,
			note: "=cmd|'/C calc', a \"long\" note\nwith \x1b[31mred\x1b[0m and \u202ebidi <&> 日本",
		},
		{ref: sandbox.Ref{Provider: "prod", ID: "unknown-age"}, state: sandbox.StateUnknown, stuck: sandbox.Unknown},
	}
}
