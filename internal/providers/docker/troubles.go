package docker

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

const (
	mainProgram = "its main program"
	restarting  = "restarting"
	unhealthy   = "unhealthy"
)

// Troubles reads what is wrong with a container. In a look the list of its processes has read the record already.
func (c *Client) Troubles(ctx context.Context, id string) ([]sandbox.Trouble, error) {
	if notes := httpx.LookNotes(ctx); notes != nil {
		if w, ok := notes.Load(noteRecord); ok {
			return c.troublesOf(ctx, w.(wireContainer)), nil //nolint:forcetypeassert,errcheck // it is no other
		}
	}
	w, err := c.inspect(ctx, "troubles", id)
	if err != nil {
		return nil, err
	}
	return c.troublesOf(ctx, w), nil
}

// troublesOf is what the engine reports to be wrong with a container: a main program that ends and is started again, a
// health check that fails, and a start that failed.
func (c *Client) troublesOf(ctx context.Context, w wireContainer) []sandbox.Trouble {
	var all []sandbox.Trouble
	r := wirekit.Restarts{Program: mainProgram, Count: w.RestartCount, LastAt: providers.ValidTime(w.State.FinishedAt.UTC()), Source: "engine"}
	switch {
	case w.State.Status == restarting:
		r.Waits, r.Last = restarting, c.exitOf(w)
	case w.State.Running && w.RestartCount > 0:
		if r.Last = c.lastEnd(ctx, w); r.Last == nil && (w.State.OOMKilled || w.State.ExitCode != nil && *w.State.ExitCode != 0) {
			r.Last = c.exitOf(w)
		}
	}
	if t, is := r.Trouble(c.Now()); is && w.State.Running {
		all = append(all, t)
	} else if w.State.Running && w.State.OOMKilled { // newer engines say it of a container that runs on
		all = append(all, sandbox.Trouble{
			ID: "oom", Say: "one of its processes was killed: out of memory (OOM)", Cause: sandbox.CauseOOMChild, Confidence: sandbox.Probable,
			Evidence: []sandbox.Evidence{c.Evidence("OOMKilled", "true", "engine")},
		})
	}
	if h := w.State.Health; h != nil && h.Status == unhealthy && w.State.Running {
		t := failedCheck(c.Now())
		t.Evidence = append(t.Evidence, sandbox.Evidence{What: "failures in a row", Value: strconv.Itoa(h.FailingStreak), Source: "engine", At: c.Now()})
		if n := len(h.Log); n > 0 {
			last := h.Log[n-1]
			t.Evidence = append(
				t.Evidence,
				sandbox.Evidence{What: "last check", Value: "exit " + strconv.Itoa(last.ExitCode) + ": " + lastLine(last.Output), Source: "engine", At: last.End.UTC()},
			)
		}
		all = append(all, t)
	}
	if said := w.failedStart(); said != "" {
		all = append(all, sandbox.Trouble{
			ID: "start", Say: "its start failed: " + said, Cause: sandbox.CauseProvisioning, Confidence: sandbox.Probable, Evidence: []sandbox.Evidence{c.Evidence("error", said, "engine")},
		})
	}
	return all
}

// failedStart is why a container that has never run was not started; "" = nobody has tried, or it runs.
func (w wireContainer) failedStart() string {
	if stateOf(w.State.Status) != sandbox.StateProvisioning {
		return ""
	}
	return w.State.Error
}

func failedCheck(now time.Time) sandbox.Trouble {
	return sandbox.Trouble{
		ID: unhealthy, Say: "its health check fails", Cause: sandbox.CauseUnhealthy, Confidence: sandbox.Probable,
		Evidence: []sandbox.Evidence{{What: "health check", Value: unhealthy, Source: "engine", At: now}},
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// lastEnd is how a main program ended before it was started again, by the memory of the engine: its record is of the
// present run. Nil = that is not known.
func (c *Client) lastEnd(ctx context.Context, w wireContainer) *sandbox.Exit {
	ended := w.State.FinishedAt.UTC()
	events, err := c.remembered(ctx, "get "+w.ID, w.ID, ended.Add(-eventSlack), 0)
	if err != nil {
		return nil
	}
	var code string
	killed := false
	for _, e := range events {
		if at, is := strings.CutPrefix(e.Detail, "exitCode="); is && e.Event == "die" {
			code, _, _ = strings.Cut(at, " ")
		}
		killed = killed || e.Event == "oom"
	}
	if code == "" {
		return nil
	}
	f := triage.ExitFacts{Raw: code, Source: "engine", At: ended, CounterSource: "engine: event oom", LimitBytes: w.HostConfig.limits().MemoryBytes}
	if killed {
		f.OOMKills = new(int64(1))
	}
	exit := triage.ClassifyExit(triage.NewMatcher(), f)
	return &exit
}

// eventSlack is how long before the end of a program its events may be.
const eventSlack = 2 * time.Second

// troublesOfRow is what a row of the list reports, which has no count of restarts.
func (c *Client) troublesOfRow(w wireRow) []sandbox.Trouble {
	var all []sandbox.Trouble
	if w.State == restarting {
		r := wirekit.Restarts{Program: mainProgram, Count: -1, Waits: restarting, Source: "engine"}
		if code := restartingStatus().FindStringSubmatch(w.Status); code != nil {
			exit := triage.ClassifyExit(nil, triage.ExitFacts{Raw: code[1], Source: "engine", At: c.Now()})
			r.Last = &exit
		}
		if t, is := r.Trouble(c.Now()); is {
			all = append(all, t)
		}
	}
	if strings.HasSuffix(w.Status, "("+unhealthy+")") {
		all = append(all, failedCheck(c.Now()))
	}
	return all
}

// restartingStatus finds the exit code in the status of a row.
func restartingStatus() *regexp.Regexp { return regexp.MustCompile(`^Restarting \((\d+)\)`) }

// isHealthCheck says that a command is the container's own health check, which the engine runs.
func (w wireContainer) isHealthCheck(e wireExec) bool {
	test := w.Config.Healthcheck.Test
	ran := append([]string{e.ProcessConfig.Entrypoint}, e.ProcessConfig.Arguments...)
	switch {
	case len(test) < 2:
		return false
	case test[0] == "CMD-SHELL": // by the shell of the image
		return ran[len(ran)-1] == test[1]
	}
	return slices.Equal(ran, test[1:])
}
