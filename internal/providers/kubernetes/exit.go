package kubernetes

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// exitWords are reasons of pods and jobs in place of an exit code.
func exitWords() []sandbox.ExitWord {
	return slices.Concat(
		sandbox.TimeoutWords(sandbox.Certain, "activeDeadlineSeconds of the pod or the job has passed", "deadlineexceeded"),
		sandbox.ExitWords(sandbox.ClassInfra, "the node ran short of memory, disk or processes, or the API was asked to move the pod", "evicted"),
		sandbox.ExitWords(sandbox.ClassInfra, "a pod of higher priority took its place", "preempted", "preempting"),
		sandbox.ExitWords(sandbox.ClassInfra, "the node was lost or shut down", "nodelost", "nodeshutdown", "terminated", "shutdown", "nodeaffinity"),
		sandbox.ExitWords(sandbox.ClassInfra, "the node refused the pod", "outofcpu", "outofmemory", "outofpods", "unexpectedadmissionerror"),
		sandbox.ExitWords(sandbox.ClassUnknown, "the pods of the job failed as often as it allows; their exits say why", "backofflimitexceeded", "podfailurepolicy"),
	)
}

// exitOf is the exit of the main container, and when. What the kernel or the cluster did comes before the code.
// Of a sandbox that sbx made the main container only waits: its own code says nothing about the program inside.
func (c *Client) exitOf(o object) (*sandbox.Exit, time.Time) {
	pod, _ := o.pod()
	ended := o.terminated()
	f := triage.ExitFacts{Source: "kubelet", Provider: TypeName, Words: exitWords(), LimitBytes: o.limits().MemoryBytes}
	if ended != nil {
		f.At = providers.ValidTime(ended.FinishedAt.UTC())
	}
	reason := pod.Status.Reason
	if failed := o.condition("Failed"); failed.Status == "True" && reason == "" && o.kind.name == "job" {
		if _, decides := triage.FindExitWord(f.Words, failed.Reason); decides && (ended == nil || failed.Reason == "DeadlineExceeded") {
			reason = failed.Reason
			f.At, f.Source = providers.ValidTime(failed.LastTransitionTime.UTC()), "job controller"
		}
	}
	_, known := triage.FindExitWord(f.Words, reason)
	switch {
	case ended != nil && ended.Reason == "OOMKilled":
		f.OOMKills, f.CounterSource = new(int64(1)), "kubelet: OOMKilled"
	case known:
		f.Raw = reason
	case ended == nil || ended.ExitCode == nil || madeBySbx(o.Metadata):
		return nil, f.At
	}
	if f.Raw == "" && ended.ExitCode != nil {
		f.Raw = strconv.Itoa(*ended.ExitCode)
	}
	f.NotStarted = ended != nil && (ended.Reason == "StartError" || ended.Reason == "ContainerCannotRun")
	exit := triage.ClassifyExit(triage.NewMatcher(), f)
	if said := pod.Status.Message; said != "" {
		exit.Evidence = append(exit.Evidence, sandbox.Evidence{What: "message", Value: said, Source: f.Source, At: f.At})
	}
	return &exit, f.At
}

// terminated is the end of the main container: its present one, else its last one where it does not run.
func (o object) terminated() *wireTerminated {
	main := o.mainStatus()
	switch {
	case main.State.Terminated != nil:
		return main.State.Terminated
	case main.State.Running != nil:
		return nil
	}
	return main.LastState.Terminated
}

// Exit is the exit of the program that create started, from its file inside; of any other sandbox that of its
// main container.
func (c *Client) Exit(ctx context.Context, id string) (*sandbox.Exit, error) {
	op := "exit " + id
	if exit, known := c.watches.Exit(id); known {
		return exit, nil
	}
	o, err := c.readIfNotWatched(ctx, "exit", id)
	if err != nil {
		return nil, err
	}
	state, raw := o.state()
	if exit, _ := c.exitOf(o); exit != nil {
		return exit, nil
	}
	switch {
	case !madeBySbx(o.Metadata) && !state.Ended():
		return nil, nil //nolint:nilnil // it runs
	case !madeBySbx(o.Metadata):
		return nil, c.Fault(fault.KindNotFound, op, "nothing says how its program ended")
	case state != sandbox.StateRunning:
		return nil, c.Fault(fault.KindUnavailable, op, "it is %s, and its exit is stored in it", raw).Inside()
	}
	if exit, known := c.watches.ExitSoon(ctx, id, c.podWatches.wasJustMade(id)); known {
		return exit, nil
	}
	exit, err := c.mainExit(ctx, o, op)
	return exit, fault.Placed(err, c.Profile, op)
}

// mainExit is the exit of the program that create started, nil while it runs. In a look the command inside runs once.
func (c *Client) mainExit(ctx context.Context, o object, op string) (*sandbox.Exit, error) {
	ask := func() (*sandbox.Exit, error) {
		sh, err := c.shellIn(o, op, nil)
		if err != nil {
			return nil, err
		}
		return guest.Exit(ctx, sh, guest.MainTag)
	}
	notes := httpx.LookNotes(ctx)
	if notes == nil {
		return ask()
	}
	once, _ := notes.LoadOrStore(noteExit{}, sync.OnceValues(ask))
	return once.(func() (*sandbox.Exit, error))() //nolint:forcetypeassert,errcheck // it holds nothing else
}

// noteExit is the key of mainExit among the notes of a look.
type noteExit struct{}
