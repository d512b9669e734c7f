package triage_test

import (
	"fmt"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

func ExampleMatcher_Match() {
	m := triage.NewMatcher()
	p, found := m.Match("12:00:01 RangeError: Maximum call stack size exceeded")
	fmt.Println(found, p.ID, p.Cause)
	_, found = m.Match("all is well")
	fmt.Println(found)
	// Output:
	// true recursion busy_loop
	// false
}

func ExampleLogWatch() {
	w := triage.NewLogWatch(triage.NewMatcher())
	for i := range 30 {
		w.Add(sandbox.LogLine{Text: fmt.Sprintf("step %d: asking again", i)})
	}
	w.Add(sandbox.LogLine{Text: "POST https://api.example.com/v1/messages?key=secret"})
	found := w.Findings()
	fmt.Println(found.Repeat.Count, found.Calling, found.Call)
	// Output:
	// 30 true api.example.com
}

func ExampleTrendOf() {
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	samples := []sandbox.Usage{
		{At: start, CPUSeconds: new(10.0)},
		{At: start.Add(10 * time.Second), CPUSeconds: new(19.9)},
	}
	trend := triage.TrendOf(samples, triage.DefaultThresholds())
	fmt.Printf("%.0f%%\n", *trend.CPUPercent)
	fmt.Println(triage.TrendOf(samples[:1], triage.DefaultThresholds()).CPUPercent)
	// Output:
	// 99%
	// <nil>
}

func ExampleJudge() {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	s := sandbox.Sandbox{State: sandbox.StateRunning, CreatedAt: now.Add(-11 * time.Minute)}
	th := triage.DefaultThresholds()

	alone := triage.Judge(s, triage.Signals{}, th, now)
	fmt.Println(alone.Stuck, alone.Say())

	quiet := triage.Signals{Logs: &triage.LogFindings{Complete: true, Lines: 9, Last: now.Add(-2 * time.Minute)}}
	silent := triage.Judge(s, quiet, th, now)
	fmt.Println(silent.Stuck, silent.Say(), silent.Cause, silent.Confidence)
	fmt.Println(silent.Reason)
	// Output:
	// unknown not_looked
	// true age, silent silent probable
	// stuck: it is silent (age 11m, silence 2m)
}

func ExampleClassifyExit() {
	m := triage.NewMatcher()
	bare := triage.ClassifyExit(m, triage.ExitFacts{Raw: "137"})
	fmt.Println(bare.Class, bare.Cause)

	proven := triage.ClassifyExit(m, triage.ExitFacts{
		Raw: "signal: killed", OOMKills: new(int64(1)),
		KernelLog: "Memory cgroup out of memory: Killed process 4711 (node)", OwnLimit: sandbox.True,
	})
	fmt.Println(proven.Class, proven.Cause, proven.Confidence)
	// Output:
	// killed_unknown unknown
	// oom oom certain
}

func ExampleVerdict_findings() {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	s := sandbox.Sandbox{State: sandbox.StateRunning, CreatedAt: now.Add(-time.Hour)}
	sig := triage.Signals{
		Logs:  &triage.LogFindings{Complete: true, Lines: 9, Last: now.Add(-time.Hour)},
		Trend: &triage.Trend{CPUPercent: new(0.0), Waiting: "tcp 10.0.0.1:443"},
	}
	for _, f := range triage.Judge(s, sig, triage.DefaultThresholds(), now).Findings {
		fmt.Printf("%s %s %.2f\n", f.Cause, f.Confidence, f.Score)
	}
	// Output:
	// hung_io probable 0.78
	// silent hint 0.57
}
