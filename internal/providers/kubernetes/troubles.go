package kubernetes

import (
	"strconv"
	"strings"

	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// troublesOf is what the kubelet reports to be wrong with a pod that has not ended: containers that end and are started
// again, and a main container that has ended beside others.
func (c *Client) troublesOf(o object) []sandbox.Trouble {
	p, has := o.pod()
	if state, _ := o.state(); !has || state.Ended() || state == sandbox.StateTerminating {
		return nil
	}
	var all []sandbox.Trouble
	for _, s := range p.Status.InitContainerStatuses {
		if t, is := c.restarts("init container "+s.Name, s, o).Trouble(c.Now()); is && p.Status.Phase == "Pending" {
			all = append(all, t)
		}
	}
	main := o.mainStatus()
	if t, is := c.restarts("its main program", main, o).Trouble(c.Now()); is {
		all = append(all, t)
	}
	if ended := main.State.Terminated; ended != nil && p.Status.Phase == "Running" && !p.startsAgain(ended) {
		all = append(all, mainEnded(c.endOf(ended, o), p, main.Name))
	}
	return all
}

// restarts is what the status of a container says of its starts.
func (c *Client) restarts(program string, s wireContainerStatus, o object) wirekit.Restarts {
	r := wirekit.Restarts{Program: program, Count: s.RestartCount, Source: "kubelet"}
	if w := s.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
		r.Waits = w.Reason
	}
	last := s.LastState.Terminated
	if last == nil && s.RestartCount > 0 {
		last = s.State.Terminated
	}
	if last != nil {
		r.Last, r.LastAt = c.endOf(last, o), providers.ValidTime(last.FinishedAt.UTC())
	}
	return r
}

// endOf is one end of a container.
func (c *Client) endOf(t *wireTerminated, o object) *sandbox.Exit {
	f := triage.ExitFacts{
		Source: "kubelet", Provider: TypeName, At: providers.ValidTime(t.FinishedAt.UTC()), LimitBytes: o.limits().MemoryBytes,
		NotStarted: t.Reason == "StartError" || t.Reason == "ContainerCannotRun",
	}
	if t.ExitCode != nil {
		f.Raw = strconv.Itoa(*t.ExitCode)
	}
	if t.Reason == "OOMKilled" {
		f.OOMKills, f.CounterSource = new(int64(1)), "kubelet: OOMKilled"
	}
	exit := triage.ClassifyExit(triage.NewMatcher(), f)
	return &exit
}

// startsAgain says that the kubelet starts a container of the pod again that has ended so.
func (w wireObject) startsAgain(ended *wireTerminated) bool {
	switch w.Spec.RestartPolicy {
	case "Never":
		return false
	case "OnFailure":
		return ended.ExitCode == nil || *ended.ExitCode != 0
	}
	return true
}

func mainEnded(exit *sandbox.Exit, p wireObject, main string) sandbox.Trouble {
	t := sandbox.Trouble{ID: "main_ended", Cause: sandbox.CauseMainEnded, Confidence: sandbox.Probable, Evidence: exit.Evidence}
	if exit.Cause != sandbox.CauseNone && exit.Cause != sandbox.CauseUnknown {
		t.Cause = exit.Cause
	}
	var others []string
	for _, s := range p.Status.ContainerStatuses {
		if s.Name != main && s.State.Running != nil {
			others = append(others, s.Name)
		}
	}
	t.Say = "its main container " + main + " has ended with " + exit.Raw
	if len(others) > 0 {
		t.Say += "; beside it runs " + strings.Join(others, ", ")
	}
	return t
}
