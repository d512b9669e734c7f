package kubernetestest

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

func stamp(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.UTC().Format(time.RFC3339) // the API keeps whole seconds
}

// show is an object as the API has it. Empty fields are left out.
func (f *Fake) show(o *thing) map[string]any {
	meta := map[string]any{"name": o.name, "namespace": Namespace, "uid": o.uid, "resourceVersion": strconv.Itoa(o.version), "creationTimestamp": stamp(o.created)}
	if len(o.labels) > 0 {
		meta["labels"] = o.labels
	}
	if len(o.annotations) > 0 {
		meta["annotations"] = o.annotations
	}
	if !o.deleted.IsZero() && !f.o.Ended {
		meta["deletionTimestamp"] = stamp(o.deleted)
		meta["deletionGracePeriodSeconds"] = o.grace.Seconds()
		if o.plural != "pods" {
			meta["finalizers"] = append([]string{"foregroundDeletion"}, o.finalizers...)
		}
	}
	if _, deleted := meta["finalizers"]; !deleted && len(o.finalizers) > 0 {
		meta["finalizers"] = o.finalizers
	}
	if o.owner != nil {
		meta["ownerReferences"] = []any{map[string]any{"apiVersion": o.owner.api, "kind": o.owner.kind, "name": o.owner.name, "uid": o.owner.uid, "controller": true, "blockOwnerDeletion": true}}
	}
	spec, status := maps.Clone(o.spec), map[string]any{}
	switch o.plural {
	case "pods":
		status = f.podStatus(o)
		spec["restartPolicy"], spec[graceField] = cmp.Or(o.again.RestartPolicy, "Never"), o.ownGrace().Seconds()
		if !f.o.NoRoom {
			spec["nodeName"] = Node
		}
	case "jobs":
		status = f.jobStatus(o)
	case "sandboxclaims":
		spec["warmPoolRef"], status = map[string]any{"name": "warm"}, f.claimStatus(o)
	case "sandboxwarmpools":
		spec["replicas"], spec["sandboxTemplateRef"] = o.replicas, map[string]any{"name": "agent"}
		status = map[string]any{"replicas": o.replicas, "readyReplicas": o.ready, "selector": "agents.x-k8s.io/warm-pool-sandbox=" + o.name}
	case "sandboxes":
		status = f.sandboxStatus(o)
		if o.suspended && f.o.Alpha {
			spec["replicas"] = 0
		} else if o.suspended {
			spec["operatingMode"] = "Suspended"
		}
	}
	return map[string]any{"kind": o.kind, "apiVersion": o.api, "metadata": meta, "spec": spec, "status": status}
}

func condition(kind, status, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-08-22T10:00:00Z"}
}

func (f *Fake) podStatus(p *thing) map[string]any {
	state := map[string]any{}
	switch {
	case p.done:
		reason := "Completed"
		if p.oom {
			reason = "OOMKilled"
		} else if p.code != 0 {
			reason = "Error"
		}
		state["terminated"] = map[string]any{"exitCode": p.code, "reason": reason, "startedAt": stamp(p.started), "finishedAt": stamp(p.finished), "containerID": "containerd://x"}
	case p.waiting != "":
		state["waiting"] = map[string]any{"reason": p.waiting, "message": "Back-off pulling image"}
	case p.phase == "Running":
		state["running"] = map[string]any{"startedAt": stamp(p.started)}
	default:
		state["waiting"] = map[string]any{"reason": "ContainerCreating"}
	}
	statuses := []any{}
	containers, _ := p.spec["containers"].([]any)
	for _, c := range containers {
		name := c.(map[string]any)["name"] //nolint:forcetypeassert,errcheck // the fake has made it
		own, last, restarts := state, map[string]any{}, 0
		if name != "main" {
			own = map[string]any{"running": map[string]any{"startedAt": stamp(p.started)}}
		} else if restarts = p.again.Restarts; restarts > 0 {
			last = f.lastState(p)
		}
		statuses = append(statuses, map[string]any{"name": name, "image": Image, "ready": p.phase == "Running", "restartCount": restarts, "state": own, "lastState": last})
	}
	scheduled := condition("PodScheduled", "True", "", "")
	if f.o.NoRoom {
		scheduled = condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available: 1 Insufficient memory.")
		statuses = []any{}
	}
	s := map[string]any{"phase": p.phase, "conditions": []any{scheduled}, "containerStatuses": statuses, "startTime": stamp(p.created)}
	if p.again.Init != "" {
		s["initContainerStatuses"] = []any{map[string]any{"name": "setup", "image": Image, "ready": false, "restartCount": 4, "state": map[string]any{"waiting": map[string]any{"reason": p.again.Init, "message": "back-off 40s restarting failed container"}}, "lastState": f.lastState(p)}}
	}
	if p.reason != "" {
		s["reason"], s["message"] = p.reason, "The node was low on resource: memory."
	}
	return s
}

// lastState is how a container ended before it was started again.
func (f *Fake) lastState(p *thing) map[string]any {
	reason, code := "Error", p.again.LastCode
	if p.again.OOM {
		reason, code = "OOMKilled", 137
	}
	at := f.o.Now().Add(-p.again.Ago)
	return map[string]any{"terminated": map[string]any{"exitCode": code, "reason": reason, "startedAt": stamp(at.Add(-time.Second)), "finishedAt": stamp(at), "containerID": "containerd://x"}}
}

func (f *Fake) jobStatus(o *thing) map[string]any {
	s := map[string]any{"startTime": stamp(o.created), "terminating": 0}
	if o.conditions != nil {
		s["conditions"] = o.conditions
		return s
	}
	for _, p := range f.podsOf(o) {
		switch p.phase {
		case "Succeeded":
			s["conditions"] = []any{condition("SuccessCriteriaMet", "True", "CompletionsReached", ""), condition("Complete", "True", "CompletionsReached", "")}
		case "Failed":
			s["conditions"] = []any{condition("FailureTarget", "True", "BackoffLimitExceeded", ""), condition("Failed", "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")}
		default:
			s["active"] = 1
		}
	}
	return s
}

func (f *Fake) sandboxStatus(o *thing) map[string]any {
	s := map[string]any{"selector": "agents.x-k8s.io/sandbox-name-hash=" + hash(o)}
	if o.conditions != nil {
		s["conditions"] = o.conditions
		return s
	}
	ready := condition("Ready", "False", "DependenciesNotReady", "Pod does not exist")
	all := []any{}
	if len(f.podsOf(o)) == 0 && f.o.NoPods != "" {
		ready = condition("Ready", "False", "ReconcilerError", "Error seen: "+f.o.NoPods)
	}
	for _, p := range f.podsOf(o) {
		ready["message"] = "Pod exists with phase: " + p.phase
		switch p.phase {
		case "Running":
			ready = condition("Ready", "True", "DependenciesReady", "Pod is Ready")
		case "Succeeded", "Failed":
			all = append(all, condition("Finished", "True", "Pod"+p.phase, ""))
		}
	}
	if o.suspended {
		ready = condition("Ready", "False", "SandboxSuspended", "")
	}
	s["conditions"] = append([]any{ready}, all...)
	return s
}

// claimStatus names the sandbox of a claim, unless its controller has not seen it yet: then its conditions are given.
func (f *Fake) claimStatus(o *thing) map[string]any {
	s, bound := map[string]any{"conditions": o.conditions}, o.bound
	i := slices.IndexFunc(f.things, func(b *thing) bool { return b.plural == "sandboxes" && b.owner == o })
	switch {
	case o.conditions != nil:
	case i < 0:
		s["conditions"] = []any{condition("Ready", "False", "SandboxMissing", "Sandbox does not exist")}
	default:
		s["conditions"], bound = []any{condition("Ready", "True", "DependenciesReady", "Pod is Ready")}, f.things[i].name
	}
	if bound != "" {
		s["sandbox"] = map[string]any{"name": bound}
	}
	return s
}
