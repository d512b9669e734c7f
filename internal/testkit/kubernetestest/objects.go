package kubernetestest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"sbx/internal/testkit/wiretest"
)

// thing is an object.
type thing struct {
	plural, kind, api, name, uid string
	labels, annotations          map[string]string
	finalizers                   []string
	owner                        *thing
	version                      int
	created, started, finished   time.Time
	deleted                      time.Time     // its deletionTimestamp; zero = none
	grace                        time.Duration // its deletionGracePeriodSeconds
	stubborn                     bool          // its main program ignores TERM, in virtual time
	spec                         map[string]any
	phase, reason, waiting       string // of a pod
	code                         int
	oom, done                    bool   // done: its main container has ended
	suspended                    bool   // of a sandbox
	bound                        string // of a claim: Seed.Sandbox
	replicas, ready              int    // of a pool
	conditions                   []any  // of a job or a sandbox, instead of those of the controller
	machine                      *wiretest.Machine
	main                         *wiretest.Running
	log                          []entry
	figures                      *Figures  // nil = those of every pod
	since                        time.Time // when they were set
	unsampled                    bool      // the metrics server has no sample of it
	again                        Seed      // how it was started again
}

func anySlice(words []string) []any {
	all := make([]any, len(words))
	for i, w := range words {
		all[i] = w
	}
	return all
}

func (o *thing) id() string {
	kind := map[string]string{"pods": "pod", "jobs": "job", "sandboxes": "sandbox", "sandboxclaims": "claim"}[o.plural]
	if kind == "" {
		kind = o.plural
	}
	return kind + "." + o.name + "." + o.uid[:8]
}

// newThing makes an empty object. The lock is held.
func (f *Fake) newThing(plural, name string) *thing {
	f.changed()
	f.made++
	f.version++
	if name == "" {
		name = fmt.Sprintf("agent-%d", f.made)
	}
	kinds := map[string][2]string{
		"pods": {"Pod", "v1"}, "jobs": {"Job", "batch/v1"}, "sandboxes": {"Sandbox", "agents.x-k8s.io/" + f.sandboxVersion()},
		"cronjobs": {"CronJob", "batch/v1"}, "replicasets": {"ReplicaSet", "apps/v1"}, "workflows": {"Workflow", "argoproj.io/v1alpha1"}, // what owns others' objects
		"sandboxclaims": {"SandboxClaim", "extensions.agents.x-k8s.io/" + f.sandboxVersion()}, "sandboxwarmpools": {"SandboxWarmPool", "extensions.agents.x-k8s.io/" + f.sandboxVersion()},
	}
	return &thing{
		plural: plural, kind: kinds[plural][0], api: kinds[plural][1], name: name, version: f.version, created: f.o.Now(), spec: map[string]any{},
		uid: fmt.Sprintf("%08x-5ca1-4ab1-8e55-%012x", uint32(0x9e3779b9)*uint32(f.made), f.made),
	}
}

// newPodOf makes the pod of a job or a sandbox, as its controller does. The lock is held.
func (f *Fake) newPodOf(o *thing) *thing {
	name := o.name
	if o.plural == "jobs" {
		name += "-x7k2p"
	}
	p := f.newThing("pods", name)
	p.owner, p.phase, p.labels = o, "Pending", map[string]string{}
	template, _ := o.spec["template"].(map[string]any)
	if o.plural == "sandboxes" {
		template, _ = o.spec["podTemplate"].(map[string]any)
		p.labels["agents.x-k8s.io/sandbox-name-hash"] = hash(o)
		if o.owner != nil && o.owner.plural == "sandboxclaims" {
			p.labels["agents.x-k8s.io/claim-uid"] = o.owner.uid
		}
	} else {
		p.labels["batch.kubernetes.io/controller-uid"], p.labels["batch.kubernetes.io/job-name"] = o.uid, o.name
	}
	meta, _ := template["metadata"].(map[string]any)
	maps.Copy(p.labels, texts(meta["labels"]))
	delete(p.labels, f.o.DropLabel)
	p.annotations = texts(meta["annotations"])
	if spec, ok := template["spec"].(map[string]any); ok {
		p.spec = spec
	}
	return p
}

func hash(o *thing) string { return fmt.Sprintf("%08x", len(o.name)) } // others may have the same

func texts(v any) map[string]string {
	all := map[string]string{}
	members, _ := v.(map[string]any)
	for key, value := range members {
		all[key] = fmt.Sprint(value)
	}
	return all
}

// find finds an object. The lock is held.
func (f *Fake) find(plural, name string) *thing {
	i := slices.IndexFunc(f.things, func(o *thing) bool { return o.plural == plural && o.name == name })
	if i < 0 {
		return nil
	}
	return f.things[i]
}

func (f *Fake) findID(id string) *thing {
	i := slices.IndexFunc(f.things, func(o *thing) bool { return o.id() == id })
	if i < 0 {
		return nil
	}
	return f.things[i]
}

func (f *Fake) podsOf(o *thing) []*thing {
	var all []*thing
	for _, p := range f.things {
		if p.plural == "pods" && (p == o || p.owner == o || p.owner != nil && p.owner.owner == o) {
			all = append(all, p)
		}
	}
	return all
}

// mainContainer is the main container of a pod's specification.
func (o *thing) mainContainer() map[string]any {
	containers, _ := o.spec["containers"].([]any)
	for _, c := range containers {
		if c, ok := c.(map[string]any); ok && c["name"] == "main" {
			return c
		}
	}
	return nil
}
