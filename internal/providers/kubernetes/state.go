package kubernetes

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// labelPrefix begins the labels of sbx, which are annotations: their values are no values of Kubernetes labels.
const labelPrefix = "sbx/"

// labelsOf are the labels of an object with the annotations of sbx.
func labelsOf(m wireMeta) map[string]string {
	all := maps.Clone(m.Labels)
	if all == nil {
		all = map[string]string{}
	}
	for key, value := range m.Annotations {
		if strings.HasPrefix(key, labelPrefix) {
			all[key] = value
		}
	}
	return all
}

func madeBySbx(m wireMeta) bool { return m.Annotations[sandbox.LabelRun] != "" }

// described converts an object.
func (c *Client) described(o object) sandbox.Sandbox {
	m, labels := o.Metadata, labelsOf(o.Metadata)
	s := sandbox.Sandbox{
		Provider: c.Profile, ProviderType: TypeName, ID: idOf(o.kind, m), Name: cmp.Or(labels[sandbox.LabelName], m.Name), Activity: sandbox.Unknown,
		CreatedAt: providers.ValidTime(m.CreationTimestamp.UTC()), Labels: labels, TaskID: labels[sandbox.LabelTask], AgentType: labels[sandbox.LabelAgentType],
		ExpiresAt: o.expiry(labels), Limits: o.limits(),
	}
	s.State, s.RawState = o.state()
	if s.State == sandbox.StateTerminating {
		s.EndingAt, s.EndsBy = o.endingSince(), o.endsBy()
	}
	main, hasMain := o.mainContainer()
	if hasMain {
		s.Template = main.Image
		if !madeBySbx(m) && len(main.Command) > 0 {
			s.Command = append(slices.Clone(main.Command), main.Args...)
		}
	}
	if p, ok := o.pod(); ok {
		s.StartedAt = providers.ValidTime(p.Status.StartTime.UTC())
		s.Node = p.Spec.NodeName
	}
	s.Exit, s.EndedAt = c.exitOf(o)
	if !s.State.Ended() {
		s.EndedAt = time.Time{}
	}
	s.Troubles = c.troublesOf(o)
	return s
}

// pod is the pod that counts: the newest that is not being deleted, else the newest.
func (o object) pod() (wireObject, bool) {
	if len(o.pods) == 0 {
		return wireObject{}, false
	}
	return slices.MaxFunc(o.pods, func(a, b wireObject) int {
		if aEnds, bEnds := a.Metadata.DeletionTimestamp != nil, b.Metadata.DeletionTimestamp != nil; aEnds != bEnds {
			if aEnds {
				return -1
			}
			return 1
		}
		return a.Metadata.CreationTimestamp.Compare(b.Metadata.CreationTimestamp)
	}), true
}

// mainContainer is the container that is the sandbox: others beside it are no sign of its life.
func (o object) mainContainer() (wireContainer, bool) {
	all := slices.Concat(o.Spec.Containers, o.Spec.Template.Spec.Containers, o.Spec.PodTemplate.Spec.Containers)
	annotations := o.Metadata.Annotations
	if p, ok := o.pod(); ok {
		all, annotations = p.Spec.Containers, p.Metadata.Annotations
	}
	if len(all) == 0 {
		return wireContainer{}, false
	}
	i := slices.IndexFunc(all, func(c wireContainer) bool {
		return c.Name == annotations["kubectl.kubernetes.io/default-container"]
	})
	return all[max(i, 0)], true
}

// mainStatus is the status of the main container; the zero value before there is one.
func (o object) mainStatus() wireContainerStatus {
	p, _ := o.pod()
	main, _ := o.mainContainer()
	i := slices.IndexFunc(p.Status.ContainerStatuses, func(s wireContainerStatus) bool { return s.Name == main.Name })
	if i < 0 {
		return wireContainerStatus{}
	}
	return p.Status.ContainerStatuses[i]
}

func (o object) condition(name string) wireCondition {
	i := slices.IndexFunc(o.Status.Conditions, func(c wireCondition) bool { return c.Type == name })
	if i < 0 {
		return wireCondition{}
	}
	return o.Status.Conditions[i]
}

func (o object) has(condition string) bool { return o.condition(condition).Status == "True" }

func words(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
}

// state is the state with the words of the API. What a controller says has ended still ends while a pod of it may
// run: its conditions may be set before its pods are deleted, and a node need not have confirmed their end.
func (o object) state() (state sandbox.State, raw string) {
	state, raw = o.statedState()
	if i := slices.IndexFunc(o.pods, wireObject.mayRun); i >= 0 && state.Ended() {
		return sandbox.StateTerminating, words(raw, "its pod "+o.pods[i].Metadata.Name+" is "+o.pods[i].podWord())
	}
	return state, raw
}

// mayRun is false for a pod of which the kubelet has confirmed the end.
func (w wireObject) mayRun() bool {
	return !slices.Contains([]string{"Succeeded", "Failed"}, w.podWord())
}

// podWord is the phase of a pod, or that it is being deleted.
func (w wireObject) podWord() string {
	if w.Metadata.DeletionTimestamp != nil {
		return "Terminating"
	}
	return cmp.Or(w.Status.Phase, "of no phase")
}

// statedState is what the record itself says. A deletion comes first: controllers leave the conditions as they are
// while an object is deleted.
func (o object) statedState() (state sandbox.State, raw string) {
	switch {
	case o.Metadata.DeletionTimestamp != nil:
		return sandbox.StateTerminating, "Terminating"
	case o.kind.name == "job":
		return o.jobState()
	case o.kind.name == "sandbox", o.kind.name == claimKind().name:
		return o.sandboxState()
	}
	return o.podState()
}

func (o object) podState() (state sandbox.State, raw string) {
	p, ok := o.pod()
	if !ok {
		return sandbox.StateProvisioning, "no pod"
	}
	if p.Metadata.DeletionTimestamp != nil {
		return sandbox.StateTerminating, "Terminating"
	}
	main := o.mainStatus()
	switch p.Status.Phase {
	case "Pending":
		return sandbox.StateProvisioning, words("Pending", o.waitReason())
	case "Running":
		switch {
		case main.State.Terminated != nil:
			return sandbox.StateRunning, words("Running", "main container "+main.State.Terminated.Reason)
		case main.State.Waiting != nil:
			return sandbox.StateRunning, words("Running", main.State.Waiting.Reason)
		}
		return sandbox.StateRunning, "Running"
	case "Succeeded":
		return sandbox.StateTerminated, "Succeeded"
	case "Failed":
		return sandbox.StateFailed, words("Failed", p.Status.Reason)
	}
	return sandbox.StateUnknown, cmp.Or(p.Status.Phase, "no phase")
}

// waitReason is why a pod does not start; "" = nothing is known.
func (o object) waitReason() string {
	if w := o.mainStatus().State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
		return w.Reason
	}
	p, ok := o.pod()
	if !ok {
		return ""
	}
	for _, s := range p.Status.InitContainerStatuses { // they run one after the other, before all others
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "" && s.State.Waiting.Reason != "PodInitializing":
			return "init container " + s.Name + " " + s.State.Waiting.Reason
		case s.State.Terminated != nil && s.State.Terminated.ExitCode != nil && *s.State.Terminated.ExitCode != 0:
			return "init container " + s.Name + " " + s.State.Terminated.Reason
		}
	}
	if scheduled := (object{wireObject: p}).condition("PodScheduled"); scheduled.Status == "False" {
		return scheduled.Reason
	}
	return ""
}

func (o object) jobState() (state sandbox.State, raw string) {
	switch {
	case o.has("Complete"):
		return sandbox.StateTerminated, "Complete"
	case o.has("Failed"):
		return sandbox.StateFailed, words("Failed", o.condition("Failed").Reason)
	case o.has("FailureTarget"): // decided; its pods still end
		return sandbox.StateTerminating, words("FailureTarget", o.condition("FailureTarget").Reason)
	case o.has("SuccessCriteriaMet"):
		return sandbox.StateTerminating, "SuccessCriteriaMet"
	case o.Spec.Suspend && len(o.pods) == 0:
		return sandbox.StatePaused, "Suspended"
	}
	state, raw = o.podState()
	if state.Ended() || state == sandbox.StateTerminating { // the job makes another pod, or its conditions follow
		return sandbox.StateProvisioning, words("pod", raw)
	}
	return state, raw
}

// sandboxState is the state of kubernetes-sigs/agent-sandbox: what is asked for, then the conditions. Those of a claim
// are its own until it has a sandbox. What is missing may come later; what is rejected stays so.
func (o object) sandboxState() (state sandbox.State, raw string) {
	ready, finished := o.condition("Ready"), o.condition("Finished")
	suspended := o.Spec.OperatingMode == "Suspended" || o.Spec.Replicas != nil && *o.Spec.Replicas == 0
	switch {
	case finished.Status == "True" && finished.Reason == "PodSucceeded":
		return sandbox.StateTerminated, words("Finished", finished.Reason)
	case finished.Status == "True":
		return sandbox.StateFailed, words("Finished", finished.Reason)
	case ready.Reason == "SandboxExpired", ready.Reason == "ClaimExpired": // a record without a pod
		return sandbox.StateTerminated, ready.Reason
	case suspended && len(o.pods) > 0:
		return sandbox.StateRunning, "Suspending"
	case suspended:
		return sandbox.StatePaused, "Suspended"
	case ready.Status == "True" && o.kind.name == "sandbox":
		return o.readyState()
	case ready.Status == "True":
		return sandbox.StateRunning, "Ready"
	case o.runsWithoutReady():
		return o.podState()
	case slices.Contains([]string{"InvalidMetadata", "EnvVarsInjectionRejected", "VolumeClaimTemplatesError"}, ready.Reason):
		return sandbox.StateFailed, ready.Reason
	case slices.Contains([]string{"DependenciesNotReady", "WarmPoolNotFound", "TemplateNotFound", "SandboxMissing", "SandboxNotReady", "SandboxCreatePending", "AdoptionConflict"}, ready.Reason), ready.Type == "":
		return sandbox.StateProvisioning, words(cmp.Or(ready.Reason, "no condition"), o.waitReason())
	}
	return sandbox.StateUnknown, cmp.Or(ready.Reason, "Ready "+ready.Status)
}

// readyState is the state of a sandbox whose controller says that it is ready: its controller may be down since. The pods
// were read beside it, and count.
func (o object) readyState() (state sandbox.State, raw string) {
	p, has := o.pod()
	if !has {
		return sandbox.StateUnknown, "Ready, but it has no pod"
	}
	if state, raw = o.podState(); p.Status.Phase == "Running" && state == sandbox.StateRunning {
		return state, "Ready"
	}
	return state, words("Ready, but its pod", raw)
}

// runsWithoutReady says that a pod runs whose main container has ended or is started again, so that its controller
// calls it not ready: it has started, and does not wait for that.
func (o object) runsWithoutReady() bool {
	p, has := o.pod()
	main := o.mainStatus()
	return has && p.Metadata.DeletionTimestamp == nil && p.Status.Phase == "Running" && (main.State.Terminated != nil || main.RestartCount > 0)
}

// expiry is when it ends by itself: the earliest of its ends, that of its claim included.
func (o object) expiry(labels map[string]string) (first time.Time) {
	ends := []time.Time{sandbox.ExpiresBy(labels), o.Spec.ShutdownTime, o.Spec.Lifecycle.ShutdownTime}
	if o.claim != nil {
		ends = append(ends, o.claim.Spec.Lifecycle.ShutdownTime)
	}
	if start := o.Status.StartTime; o.Spec.ActiveDeadlineSeconds != nil && !start.IsZero() {
		ends = append(ends, start.Add(time.Duration(*o.Spec.ActiveDeadlineSeconds)*time.Second))
	}
	for _, at := range ends {
		if at = providers.ValidTime(at.UTC()); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

func (o object) limits() sandbox.Limits {
	main, _ := o.mainContainer()
	l := sandbox.Limits{Isolation: cmp.Or(o.Spec.RuntimeClassName, o.Spec.Template.Spec.RuntimeClassName, o.Spec.PodTemplate.Spec.RuntimeClassName)}
	l.CPU = quantity(main.Resources.Limits["cpu"])
	l.MemoryBytes = providers.ValidBytes(wholeNumber(quantity(main.Resources.Limits["memory"])))
	l.DiskBytes = providers.ValidBytes(wholeNumber(quantity(main.Resources.Limits["ephemeral-storage"])))
	return l
}

// quantity reads an amount of the API, such as "500m" or "512Mi"; nil for none.
func quantity(text string) *float64 {
	q, err := resource.ParseQuantity(text)
	if text == "" || err != nil {
		return nil
	}
	return new(q.AsApproximateFloat64())
}

func wholeNumber(n *float64) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n))
}
