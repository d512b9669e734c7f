package views

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/ops"
	"sbx/internal/ops/launch"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// CompareItem is one provider of run --compare; behind it stands the task itself.
type CompareItem struct {
	Compared           string         `json:"compared" table:"PROVIDER"`                 // The profile that was compared.
	State              *task.State    `json:"state" table:""`                            // The state of its task.
	ExitCode           *int           `json:"exit_code" table:"EXIT"`                    // The exit code.
	Class              *sandbox.Class `json:"class" table:""`                            // The class of the exit.
	Cause              *sandbox.Cause `json:"cause" table:""`                            // What ended it.
	CreateSeconds      *float64       `json:"create_seconds" table:"CREATE"`             // How long it took to make the sandbox.
	FirstOutputSeconds *float64       `json:"first_output_seconds" table:"FIRST OUTPUT"` // How long it took to the first output.
	DurationSeconds    *float64       `json:"duration_seconds" table:"TOOK"`             // How long the command ran.
	PeakMB             *int64         `json:"peak_mb" table:""`                          // The most memory that it used, in MiB.
	MemoryMB           *int64         `json:"memory_mb" table:"LIMIT MB"`                // The limit of memory, in MiB.
	Messages           *int           `json:"messages" table:""`                         // The messages of the agent's session.
	OOMKills           *int64         `json:"oom_kills" table:"KILLS"`                   // How often the kernel has ended a process for memory.
}

// RunKeys are the keys of run beside its items: of --file, and of --compare.
type RunKeys struct {
	Tasks       *int    `json:"tasks,omitzero"`        // How many tasks the file has.
	Completed   *int    `json:"completed,omitzero"`    // How many of them completed.
	NotLaunched *int    `json:"not_launched,omitzero"` // How many of them were not launched.
	Difference  *string `json:"difference,omitzero"`   // What differs between the providers, in words.
}

// CompareColumns are the columns of a CompareItem, and behind them those of a task.
func CompareColumns(now time.Time) []output.Column[launch.BatchOutcome] {
	own := output.Columns(
		compareItem, output.Column[launch.BatchOutcome]{Name: "state", Tone: func(o launch.BatchOutcome) output.Tone { return outcomeRow(o, now).Tone() }},
	)
	known := output.Names(own)
	for _, c := range OutcomeColumns(now) {
		if !slices.Contains(known, c.Name) {
			c.Level = output.Extra
			own = append(own, c)
		}
	}
	return own
}

func compareItem(o launch.BatchOutcome) CompareItem {
	a, e := attemptOf(o), exitOf(o)
	return CompareItem{
		Compared: o.Label, State: orNil(o.Task.State), ExitCode: e.Code, Class: orNil(e.Class), Cause: orNil(e.Cause), CreateSeconds: secondsOrNil(createdOf(o)),
		FirstOutputSeconds: secondsOrNil(o.FirstOutput()), DurationSeconds: secondsOrNil(tookOf(o)), PeakMB: a.PeakMB, MemoryMB: positiveOrNil(a.MemoryMB),
		Messages: a.Messages, OOMKills: a.OOMKills,
	}
}

func secondsOrNil(d time.Duration, known bool) *float64 {
	if !known {
		return nil
	}
	return new(output.Seconds(d))
}

// attemptOf is the last one; an empty one before the first.
func attemptOf(o launch.BatchOutcome) task.Attempt {
	if a := o.Task.Last(); a != nil {
		return *a
	}
	return task.Attempt{}
}

func exitOf(o launch.BatchOutcome) task.Exit {
	if a := attemptOf(o); a.Exit != nil {
		return *a.Exit
	}
	return task.Exit{Class: sandbox.Class("")}
}

// createdOf is how long it took until the program ran.
func createdOf(o launch.BatchOutcome) (time.Duration, bool) {
	a := attemptOf(o)
	return a.StartedAt.Sub(a.IntentAt), !a.StartedAt.IsZero()
}

func tookOf(o launch.BatchOutcome) (time.Duration, bool) { return AttemptLength(attemptOf(o)) }

// slower is the ratio from which a difference of durations is mentioned: two runs at one
// provider differ by less.
const slower = 1.5

// noticeable is the least difference of durations that is mentioned.
const noticeable = time.Second

// CompareDifference says in one sentence what differs between the providers: whether it is
// the provider at all (S0-16).
func CompareDifference(all []launch.BatchOutcome, jobs int) string {
	if len(all) < jobs || slices.ContainsFunc(all, func(o launch.BatchOutcome) bool {
		return o.Task.ID == "" || o.Task.State == task.Stopped || !o.Task.State.Final()
	}) {
		return "no comparison: it did not finish at every provider"
	}
	groups := distinctEndings(all)
	if len(groups) > 1 {
		var parts []string
		for _, g := range groups {
			parts = append(parts, g.ending+" at "+joinedNames(g.names))
		}
		return "the provider makes a difference: " + strings.Join(parts, ", ") + memoryWords(all)
	}
	if all[0].Task.State != task.Completed {
		return "it is not the provider: " + groups[0].ending + " at all " + strconv.Itoa(len(all)) + memoryWords(all)
	}
	return "it completed at all " + strconv.Itoa(len(all)) + paceWords(all)
}

// endingOf is how a task ended, as far as two of them are compared.
func endingOf(o launch.BatchOutcome) string {
	e := exitOf(o)
	switch {
	case o.Task.State == task.Completed:
		return "completed"
	case o.Task.State == task.TimedOut:
		return "timed out (" + string(o.Task.Reason) + ")"
	case e.Code != nil && *e.Code != 0:
		return fmt.Sprintf("%s (exit %d)", e.Class, *e.Code)
	}
	return ops.WithDetail(string(o.Task.State), string(e.Class))
}

type group struct {
	ending string
	names  []string
}

// distinctEndings are the different ends with their providers, in the order of --compare.
func distinctEndings(all []launch.BatchOutcome) []group {
	var groups []group
	for _, o := range all {
		i := slices.IndexFunc(groups, func(g group) bool { return g.ending == endingOf(o) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{ending: endingOf(o)})
		}
		groups[i].names = append(groups[i].names, o.Label)
	}
	return groups
}

// memoryWords mentions differing memory limits: the likeliest reason why one provider kills
// what another lets run.
func memoryWords(all []launch.BatchOutcome) string {
	var words []string
	same := true
	for _, o := range all {
		limit := attemptOf(o).MemoryMB
		same = same && limit == attemptOf(all[0]).MemoryMB
		if limit > 0 {
			words = append(words, fmt.Sprintf("%s %d MB", o.Label, limit))
		}
	}
	if same || len(words) < len(all) {
		return ""
	}
	return "; their memory limits differ: " + strings.Join(words, ", ")
}

// paceWords mentions the slowest provider, where it is much slower.
func paceWords(all []launch.BatchOutcome) string {
	least, most := all[0], all[0]
	for _, o := range all {
		d, known := tookOf(o)
		if !known {
			return ""
		}
		if quick, _ := tookOf(least); d < quick {
			least = o
		}
		if slow, _ := tookOf(most); d > slow {
			most = o
		}
	}
	quick, _ := tookOf(least)
	slow, _ := tookOf(most)
	if slow-quick < noticeable || float64(slow) < slower*float64(quick) {
		return ", and none was much slower"
	}
	return fmt.Sprintf("; %s took %s, %s %s", most.Label, sandbox.FormatElapsed(slow), least.Label, sandbox.FormatElapsed(quick))
}

func joinedNames(names []string) string { return strings.Join(names, " and ") }

// InOrder puts outcomes into the order of their jobs.
func InOrder(all []launch.BatchOutcome) []launch.BatchOutcome {
	slices.SortFunc(all, func(a, b launch.BatchOutcome) int { return a.Seq - b.Seq })
	return all
}
