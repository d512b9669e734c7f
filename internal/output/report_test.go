package output

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestReport(t *testing.T) {
	t.Parallel()
	timeout := fault.New(fault.KindUnavailable, "timed out").At("prod", "terminate abc").WithHint("try again")
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"nothing":           {nil, ""},
		"the shape":         {timeout, "sbx: error: prod: terminate abc: timed out\nsbx: hint: try again\n"},
		"foreign":           {errors.New("plain"), "sbx: error: plain\n"},
		"joined":            {errors.Join(timeout, errors.New("b")), "sbx: error: prod: terminate abc: timed out\nsbx: hint: try again\nsbx: error: b\n"},
		"twice the same":    {errors.Join(timeout, timeout), "sbx: error: prod: terminate abc: timed out\nsbx: hint: try again\n"},
		"one hint for two":  {errors.Join(timeout, fault.New(fault.KindAuth, "c").WithHint("try again")), "sbx: error: prod: terminate abc: timed out\nsbx: hint: try again\nsbx: error: c\n"},
		"join in a join":    {errors.Join(errors.New("a"), errors.Join(errors.New("b"), nil)), "sbx: error: a\nsbx: error: b\n"},
		"join in a fault":   {&fault.Error{Kind: fault.KindPartial, Err: errors.Join(errors.New("a"), errors.New("b"))}, "sbx: error: a\nsbx: error: b\n"},
		"join with a place": {(&fault.Error{Kind: fault.KindPartial, Err: errors.Join(errors.New("a"), errors.New("b"))}).At("p", "op"), "sbx: error: p: op: a; b\n"},
		"two causes":        {fmt.Errorf("both %w and %w", errors.New("a"), errors.New("b")), "sbx: error: both a and b\n"},
		"several lines":     {errors.Join(errors.New("a\nb"), nil), "sbx: error: a; b\n"},
		"control runes":     {errors.New("bad \x1b[2J\u202e"), `sbx: error: bad \x1b[2J\u202e` + "\n"},
		"secret":            {errors.New("key s3cret refused"), "sbx: error: key [redacted] refused\n"},
		"secret in a hint":  {fault.New(fault.KindAuth, "no").WithHint("unset s3cret"), "sbx: error: no\nsbx: hint: unset [redacted]\n"},
		"shown already":     {reportedError(timeout), ""},
		"shown and wrapped": {fmt.Errorf("outer: %w", reportedError(timeout)), ""},
		"reader gone":       {ErrClosed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(place{})
			s.printer(t, "table", func(o *Options) { o.Secrets = []string{"s3cret"}; o.Quiet = true }).Report(tc.err)
			assert.Equal(t, tc.want, s.err.String())
			assert.Empty(t, s.out.String())
		})
	}
}

func TestVerboseShowsTheChain(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	cause := fmt.Errorf("dial tcp: %w", errors.New("connection refused"))
	s.printer(t, "table", func(o *Options) { o.Verbose = 1 }).Report((&fault.Error{Kind: fault.KindUnavailable, Err: cause}).At("prod", "list"))
	assert.Equal(t, `sbx: error: prod: list: dial tcp: connection refused
sbx: detail: kind unavailable, exit 7
sbx: detail: caused by: dial tcp: connection refused
sbx: detail: caused by: connection refused
`, s.err.String())
}

func TestStructuredReportOfOtherKindsIsText(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	s.printer(t, "json").Report(fault.New(fault.KindRefused, "needs --yes"))
	assert.Equal(t, "sbx: error: needs --yes\n", s.err.String())
}

func TestErrorObject(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	p := s.printer(t, "json", func(o *Options) { o.Secrets = []string{"s3cret"} })
	err := &fault.Error{Kind: fault.KindUnavailable, Provider: "prod", Op: "list", Hint: "wait, s3cret", RetryAfter: 1500 * time.Millisecond, Err: errors.New("429 s3cret\nslow down")}
	assert.Equal(t, Fields{
		{"provider", "prod"},
		{"kind", "unavailable"},
		{"message", "list: 429 [redacted]; slow down"},
		{"hint", "wait, [redacted]"},
		{"retryable", true},
		{"retry_after_seconds", 1.5},
	}, p.errorObject(err))
	assert.Equal(t, Fields{
		{"provider", ""},
		{"kind", "unknown"},
		{"message", "x"},
		{"hint", ""},
		{"retryable", false},
		{"retry_after_seconds", nil},
	}, p.errorObject(errors.New("x")))
}

func TestShownKeepsTheKind(t *testing.T) {
	t.Parallel()
	require.NoError(t, reportedError(nil))
	mixed := errors.Join(fault.New(fault.KindAuth, "a"), fault.New(fault.KindGone, "b"))
	assert.Equal(t, 3, fault.ExitCode(reportedError(mixed)))
	assert.Equal(t, 1, fault.ExitCode(reportedError(&fault.Error{Err: errors.New("no kind")})), "never exit 0 with an error")
	assert.Equal(t, 4, fault.ExitCode(reportedError(fault.New(fault.KindAuth, "a"))))
	assert.Equal(t, "a\nb", reportedError(errors.Join(errors.New("a"), errors.New("b"))).Error())
}

func TestNotes(t *testing.T) {
	t.Parallel()
	for quiet, want := range map[bool]string{
		false: "sbx: one; \\x1b\nsbx: warning: two [redacted]\n",
		true:  "sbx: warning: two [redacted]\n",
	} {
		s := newStage(place{})
		p := s.printer(t, "table", func(o *Options) { o.Quiet = quiet; o.Secrets = []string{"s3cret"} })
		p.Note("one; \x1b")
		p.Warn("two s3cret")
		assert.Equal(t, want, s.err.String())
	}
}

func TestTheNameIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	s.Args = []string{"/opt/bin/my-sbx"}
	s.printer(t, "table").Report(errors.New("x"))
	assert.Equal(t, "my-sbx: error: x\n", s.err.String())
}

func TestHintsNameTheProgramAsItWasCalled(t *testing.T) {
	t.Parallel()
	err := fault.New(fault.KindNotFound, "no `sbx thing`").WithHint("`sbx ls` lists them; the label sbx/keep stays")
	for _, format := range []string{"table", "json"} {
		s := newStage(place{})
		s.Args[0] = "/opt/bin/other"
		_ = s.printer(t, format).Failed("sbx.ls/v1", ShapeList, err)
		assert.Contains(t, s.out.String()+s.err.String(), "`other ls` lists them; the label sbx/keep stays", format)
	}
}

// TestMessagesWrapAtWords of a terminal, and leave a command in one piece.
func TestMessagesWrapAtWords(t *testing.T) {
	t.Parallel()
	const text = "no run is recorded for the layer of old sandboxes; `sbx cron print --layer age` prints the line to install"
	for width, want := range map[int]string{
		0: "sbx: warning: " + text + "\n",
		60: "sbx: warning: no run is recorded for the layer of old\n" +
			"  sandboxes; `sbx cron print --layer age` prints the line to\n" +
			"  install\n",
		24: "sbx: warning: no run is\n  recorded for the layer\n  of old sandboxes; `sbx\n  cron print --layer\n  age` prints the line\n  to install\n",
	} {
		s := newStage(place{width: width})
		New(s.Process, Options{}).Warn(text)
		assert.Equal(t, want, s.err.String(), "width %d", width)
	}
}

// TestQuestionsWrapAtWords, and the answer follows them.
func TestQuestionsWrapAtWords(t *testing.T) {
	t.Parallel()
	s := newStage(place{width: 60})
	New(s.Process, Options{}).Prompt("type 26 to terminate them (e2b 17, novita 9), anything else to cancel: ")
	assert.Equal(t, "type 26 to terminate them (e2b 17, novita 9), anything else\n  to cancel: ", s.err.String())
}

// TestJoinedErrorsAreOneWarning, without a literal line break.
func TestJoinedErrorsAreOneWarning(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	New(s.Process, Options{}).Warn(errors.Join(errors.New("slack: 503"), errors.New("pagerduty: 401")).Error())
	assert.Equal(t, "sbx: warning: slack: 503; pagerduty: 401\n", s.err.String())
}

// TestAFindingIsOneLineWithQuiet: cron mails what is found, and no more.
func TestAFindingIsOneLineWithQuiet(t *testing.T) {
	t.Parallel()
	found := fault.New(fault.KindFound, "26 sandboxes are stuck").WithHint("`sbx diagnose`")
	failed := fault.New(fault.KindUnavailable, "e2b: no answer").WithHint("try later")
	for quiet, want := range map[bool]string{
		false: "sbx: error: 26 sandboxes are stuck\nsbx: hint: `sbx diagnose`\nsbx: error: e2b: no answer\nsbx: hint: try later\n",
		true:  "sbx: 26 sandboxes are stuck\nsbx: error: e2b: no answer\nsbx: hint: try later\n",
	} {
		s := newStage(place{})
		New(s.Process, Options{Quiet: quiet}).Report(errors.Join(found, failed))
		assert.Equal(t, want, s.err.String())
	}
}
