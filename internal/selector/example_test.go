package selector_test

import (
	"fmt"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
)

func ExampleCompile() {
	_, err := selector.Compile(selector.Options{States: []string{"runnin"}})
	fmt.Println(err)
	fmt.Println(fault.KindOf(err))
	// Output:
	// --state: no state "runnin"
	// usage
}

func ExampleSelector_Apply() {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	s, err := selector.Compile(selector.Options{OlderThan: new("10m"), Sort: new("-age")})
	if err != nil {
		fmt.Println(err)
		return
	}
	got := s.Apply([]sandbox.Sandbox{
		{Provider: "prod", ID: "old", CreatedAt: now.Add(-time.Hour)},
		{Provider: "prod", ID: "exact", CreatedAt: now.Add(-10 * time.Minute)},
		{Provider: "prod", ID: "future", CreatedAt: now.Add(time.Hour)},
	}, selector.Facts{Now: now})
	for _, j := range got.Selected {
		fmt.Println("selected", j.Sandbox.Ref(), j.Match.Reason)
	}
	for _, j := range got.Kept {
		fmt.Println("kept", j.Sandbox.Ref(), j.Match.Reason)
	}
	for _, j := range got.Unknown {
		fmt.Println("unknown", j.Sandbox.Ref(), j.Match.Reason)
	}
	// Output:
	// selected prod/old age 1h over 10m
	// kept prod/exact age 10m not over 10m
	// unknown prod/future age unknown: its creation time is in the future
}
