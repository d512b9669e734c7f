// Package kubernetestest is a strict fake of the API of Kubernetes: objects in memory with the controllers and the
// kubelet that matter to them, whose programs are real processes of this host. It follows the API conventions, the
// reference of the API and what kube-apiserver 1.36 and the controller of agent-sandbox 0.5 were seen to answer.
package kubernetestest

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"sbx/internal/testkit/wiretest"
)

// What the fake has.
const (
	Image     = "sbxtest:1" // the one image that can be pulled
	Namespace = "agents"
	Token     = "token-7f3ac2d1" //nolint:gosec // of the fake alone
	Node      = "node-1"
)

// Options shape a fake.
type Options struct {
	Now         func() time.Time // nil = time.Now
	NoCRD       bool             // the cluster has no Sandbox
	NoClaims    bool             // it has neither claims nor pools
	Alpha       bool             // it serves Sandbox as v1alpha1 only
	Virtual     bool             // main programs are not run, for tests in virtual time: a real process stops its clock
	Shell       string           // the `sh` of its containers; "" = that of this host
	PageSize    int              // the longest page; 0 = as was asked for
	Expired     int              // how many pages behind the first are answered with 410 and a token for an inconsistent rest
	Refuse      []string         // what RBAC refuses: "list jobs", "get pods.metrics.k8s.io"
	Deny        int              // the status with which an admission webhook denies each delete; 0 = none
	NoDryRun    bool             // an admission webhook takes no dry runs
	LostNode    bool             // the kubelet is gone: no end is confirmed
	NoMetrics   bool             // there is no metrics server
	Scrape      time.Duration    // between two samples of the metrics server; 0 = each read takes one
	MetricsPage int              // the longest page of its list; 0 = all at once, as metrics-server does
	NoRoom      bool             // no pod can be scheduled
	NoSpace     bool             // the namespace does not exist
	DropLabel   string           // an admission webhook drops this label of each new pod
	NoPods      string           // why admission refuses each new pod; "" = it takes them
	EndFor      time.Duration    // how long an end takes in virtual time
	Orphans     int              // wrong: the status of a refused delete, which drops the record of what runs on; 0 = none
	Deaf        bool             // wrong: a delete answers 200 and does nothing
	KeepsEnd    bool             // wrong: a later end is acknowledged, and an admission webhook has put the old one back
	Ended       bool             // wrong: what was deleted is shown as running for ever
	Moves       bool             // wrong: each page is of another moment
	// SilentWatches send neither events nor bookmarks.
	SilentWatches bool
	Wire          wiretest.Options
}

// Fake is one cluster.
type Fake struct {
	*wiretest.Server

	t       wiretest.T
	mu      sync.Mutex
	change  *sync.Cond // of anything below
	o       Options
	things  []*thing
	lost    []*thing // pods that run without a record
	events  []map[string]any
	version int // of the last change
	made    int
	pages   map[string]page // by token
	execs   map[*thing][]*wiretest.Running

	dirty      bool // the history may lack changes
	history    []change
	compacted  int // versions before it are too old for a watch
	shown      map[*thing]shown
	shownOrder []*thing
	watches    int // that are open
	cuts       int
	abort      bool     // the last cut breaks connections
	raw        []string // that was injected
}

// entry is one line of a log.
type entry struct {
	at   time.Time
	text string
}

// New makes a fake that ends with the test.
func New(t wiretest.T, o Options) *Fake {
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &Fake{Server: wiretest.New(t, o.Wire), t: t, o: o, version: 1000, pages: map[string]page{}, execs: map[*thing][]*wiretest.Running{}, shown: map[*thing]shown{}}
	f.change = sync.NewCond(&f.mu)
	f.Handle(f.allRoutes()...)
	t.Cleanup(func() { // what waits for a change ends with the test
		f.mu.Lock()
		defer f.mu.Unlock()
		f.change.Broadcast()
	})
	return f
}

// Config writes a kubeconfig for the fake that listens at base and returns its path.
func Config(t wiretest.T, base string) string {
	dir, err := os.MkdirTemp("", "kubeconfig")
	if err != nil {
		t.Errorf("kubeconfig: %v", err)
		t.FailNow()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, rand.Text())
	text := "apiVersion: v1\nkind: Config\ncurrent-context: fake\n" +
		"clusters: [{name: c, cluster: {server: '" + base + "'}}]\n" +
		"users: [{name: u, user: {token: " + Token + "}}]\n" +
		"contexts: [{name: fake, context: {cluster: c, user: u, namespace: " + Namespace + "}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Errorf("kubeconfig: %v", err)
		t.FailNow()
	}
	return file
}

// Settings are the settings of a profile of the fake that listens at base.
func Settings(t wiretest.T, base string) map[string]string {
	return map[string]string{"kubeconfig": Config(t, base), "image": Image}
}

// Change edits the options.
func (f *Fake) Change(edit func(*Options)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(&f.o)
	f.changed()
}

// Seed is an object that exists from the start, with its pod where it has one. Without a command nothing runs in it,
// whatever its phase says.
type Seed struct {
	Kind                string // "pod", "job", "sandbox", "claim", "pool", or an owner: "cronjob", "replicaset", "workflow"; "" = pod
	Name, Phase         string // "" = Running
	Reason              string // of the pod's status
	Labels, Annotations map[string]string
	Age                 time.Duration
	Code                int // with the phase Failed
	OOM                 bool
	Owner               string // the id of its controller
	Command             []string
	Sidecar             bool // beside the main container another one runs
	MainEnded           bool // with a sidecar: the main container has ended with Code
	Suspended           bool
	Sandbox             string        // of a claim: the sandbox that its status names; "" = the one that it owns
	Ends                time.Duration // from now until the end in its specification; 0 = it has none
	Replicas, Ready     int           // of a pool
	NoPod               bool
	Waiting             string // the reason for which its container waits
	Conditions          []any  // instead of those of its controller
	LostNode            bool
	Finalizers          []string      // that nobody removes: the record of a deleted object stays
	Grace               time.Duration // the own grace of its pod; 0 = 30 s, the default of the API
	Stubborn            bool          // its main program ignores TERM, in virtual time: it ends when the grace is over
	// Restarts is how often its main container was started again, the last time after it ended a while Ago with LastCode, or
	// for memory with OOM. RestartPolicy "" = Never.
	Restarts, LastCode int
	Ago                time.Duration
	RestartPolicy      string
	Init               string // the reason for which its init container waits; it has ended with LastCode
}

// Add adds an object and returns its id as sbx spells it: kind, name and the first eight characters of its uid.
func (f *Fake) Add(s Seed) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	plural := map[string]string{"": "pods", "pod": "pods", "job": "jobs", "sandbox": "sandboxes", "claim": "sandboxclaims", "pool": "sandboxwarmpools", "cronjob": "cronjobs", "replicaset": "replicasets", "workflow": "workflows"}[s.Kind]
	o := f.newThing(plural, s.Name)
	o.labels, o.annotations, o.suspended, o.conditions = maps.Clone(s.Labels), maps.Clone(s.Annotations), s.Suspended, s.Conditions
	o.finalizers = s.Finalizers
	o.created, o.bound, o.replicas, o.ready = f.o.Now().Add(-s.Age), s.Sandbox, s.Replicas, s.Ready
	if s.Owner != "" {
		o.owner = f.findID(s.Owner)
	}
	f.things = append(f.things, o)
	if s.Ends > 0 {
		f.setEnd(o, f.o.Now().Add(s.Ends))
	}
	pod := o
	switch plural {
	case "jobs", "sandboxes":
		if s.NoPod {
			return o.id()
		}
		pod = f.newPodOf(o)
		f.things = append(f.things, pod)
	case "pods":
	default: // it has none of its own
		return o.id()
	}
	containers := []any{map[string]any{"name": "main", "image": Image, "command": anySlice(s.Command)}}
	if s.Sidecar {
		containers = append([]any{map[string]any{"name": "proxy", "image": Image}}, containers...)
		if pod.annotations == nil {
			pod.annotations = map[string]string{}
		}
		pod.annotations["kubectl.kubernetes.io/default-container"] = "main"
	}
	pod.spec["containers"], pod.stubborn = containers, s.Stubborn
	if s.Grace > 0 {
		pod.spec[graceField] = s.Grace.Seconds()
	}
	pod.created, pod.started = o.created, o.created
	pod.phase, pod.reason, pod.code, pod.oom, pod.waiting, pod.done = "Running", s.Reason, s.Code, s.OOM, s.Waiting, s.MainEnded
	if s.Phase != "" {
		pod.phase = s.Phase
	}
	pod.again = s
	if pod.phase == "Succeeded" || pod.phase == "Failed" || pod.done {
		pod.finished, pod.done = f.o.Now(), true
	}
	if len(s.Command) > 0 && pod.phase == "Running" {
		f.run(pod)
	}
	return o.id()
}

func (f *Fake) sandboxVersion() string {
	if f.o.Alpha {
		return "v1alpha1"
	}
	return "v1beta1"
}

// note records an event of a pod. The lock is held.
func (f *Fake) note(p *thing, reason, message string) {
	at := f.o.Now().UTC()
	e := map[string]any{
		"metadata":       map[string]any{"name": p.name + "." + strconv.Itoa(len(f.events)), "uid": fmt.Sprintf("e0000000-0000-4000-8000-%012d", len(f.events)), "namespace": Namespace, "creationTimestamp": stamp(at)},
		"involvedObject": map[string]any{"kind": p.kind, "name": p.name, "uid": p.uid}, "type": "Normal", "reason": reason, "message": message, "eventTime": nil, "firstTimestamp": stamp(at), "lastTimestamp": stamp(at), "count": 1,
	}
	if len(f.events)%2 == 1 { // reporters of the newer API set one time only
		e["eventTime"], e["firstTimestamp"], e["lastTimestamp"], e["count"] = at.Format("2006-01-02T15:04:05.000000Z07:00"), nil, nil, nil
	}
	f.events = append(f.events, e)
}

// logWriter collects the lines that a main program writes.
type logWriter struct {
	f    *Fake
	p    *thing
	text string
}

// Write implements io.Writer.
func (w *logWriter) Write(p []byte) (int, error) {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	w.text += string(p)
	for {
		line, rest, ended := strings.Cut(w.text, "\n")
		if !ended {
			break
		}
		w.p.log = append(w.p.log, entry{w.f.o.Now(), line})
		w.text = rest
	}
	w.f.change.Broadcast()
	return len(p), nil
}

// refuse answers with a Status.
func refuse(w http.ResponseWriter, code int, reason, format string, args ...any) {
	wiretest.JSON(w, code, map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "message": fmt.Sprintf(format, args...), "reason": reason, "code": code})
}
