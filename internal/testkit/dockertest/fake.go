// Package dockertest is a strict fake of the Engine API of Docker and Podman: a state machine in memory, whose
// programs are real processes of this host. It follows the description of the API (swagger.yaml of
// github.com/moby/moby/api) and what engines 20.10 and 26.1 were seen to answer.
package dockertest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sbx/internal/testkit/wiretest"
)

// Image is the one image that the engine has.
const Image = "sbxtest:1"

// Options shape a fake.
type Options struct {
	Now      func() time.Time // nil = time.Now
	API      string           // the newest version that it speaks; "" = 1.47
	MinAPI   string           // the oldest one; "" = 1.24
	Podman   bool             // its words and its silence about memory
	Shell    string           // the `sh` of its containers; "" = that of this host
	Virtual  bool             // main programs are not run, for tests in virtual time: a real process stops its clock
	Rests    bool             // no container uses CPU time
	NoLimits bool             // its kernel has no limit of memory
	NoGroups bool             // of Podman: its user has no control groups, so that limits are dropped and figures are the host's
	Forgets  bool             // its memory of events is empty
	EndFor   time.Duration    // how long an end takes in virtual time
	Orphans  int              // wrong: the status of a refused delete, which drops the record of what runs on; 0 = none
	Deaf     bool             // wrong: stop and delete answer 204 and do nothing
	Ended    bool             // wrong: what has ended is listed as running
	Wire     wiretest.Options
}

// Fake is one engine.
type Fake struct {
	*wiretest.Server

	t      wiretest.T
	mu     sync.Mutex
	change *sync.Cond // of anything below
	o      Options
	boxes  []*box
	lost   []*box // what runs without a record
	execs  map[string]*exec
	events []event
	made   int
	pulled []string                     // images
	images map[string]map[string]string // labels of images that were made of containers, by name
}

// box is a container.
type box struct {
	id, name, state, image     string
	labels                     map[string]string
	entrypoint, cmd, env       []string
	host                       map[string]any
	tty, remove, oom           bool
	restart                    string
	watched                    time.Duration
	restarts, code             int
	created, started, finished time.Time
	machine                    *wiretest.Machine
	main                       *wiretest.Running
	stopping                   bool
	log                        []entry
	execs                      []string
	usage                      *usage // nil = the figures of every container
	failed, health, alias      string
	check                      []string
}

// entry is one message of a log.
type entry struct {
	at     time.Time
	stream byte
	text   string
}

type event struct {
	at         time.Time
	id, action string
	attributes map[string]string
}

// New makes a fake that ends with the test.
func New(t wiretest.T, o Options) *Fake {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.API == "" {
		o.API = "1.47"
	}
	if o.MinAPI == "" {
		o.MinAPI = "1.24"
	}
	f := &Fake{Server: wiretest.New(t, o.Wire), t: t, o: o, execs: map[string]*exec{}}
	f.change = sync.NewCond(&f.mu)
	f.Handle(f.allRoutes()...)
	t.Cleanup(func() { // what waits for a change ends with the test
		f.mu.Lock()
		defer f.mu.Unlock()
		f.change.Broadcast()
	})
	return f
}

// Address is the address of a server that listens at base, as in DOCKER_HOST.
func Address(base string) string { return "tcp://" + strings.TrimPrefix(base, "http://") }

// Environment enables a profile of the fake that listens at base.
func (f *Fake) Environment(base string) map[string]string {
	return map[string]string{"DOCKER_HOST": Address(base)}
}

// Settings are the settings of a profile of the fake that listens at base.
func Settings(base string) map[string]string {
	return map[string]string{"host": Address(base), "image": Image, "network": "none"}
}

// Change edits the options.
func (f *Fake) Change(edit func(*Options)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(&f.o)
}

// Seed is a container that exists from the start. Without a command nothing runs in it, whatever its state says.
type Seed struct {
	Name, State string // "" = running
	Image       string // "" = Image; else one of Commit, whose labels it inherits
	Labels      map[string]string
	Age         time.Duration
	Code        int    // with the state exited
	OOM         bool   // memory ran out in it
	Remove      bool   // --rm
	Restart     string // its restart policy
	Command     []string
	TTY         bool
	Watched     time.Duration // something starts it again this long after its end; 0 = nothing does
	// Restarts is how often its policy has started it again, the last time after it ended a while Ago with LastCode.
	Restarts, LastCode int
	Ago                time.Duration
	Error              string // with the state created: why its start failed
	Health             string // the status of its health check
	Check              []string
	Alias              string // the name of a link that another container has to it: "proxy/upstream"
}

// Add adds a container and returns its id.
func (f *Fake) Add(s Seed) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.newBox()
	b.name, b.labels, b.remove, b.restart, b.oom, b.code, b.tty = s.Name, s.Labels, s.Remove, s.Restart, s.OOM, s.Code, s.TTY
	b.watched = s.Watched
	if b.name == "" {
		b.name = fmt.Sprintf("quiet_name_%d", f.made)
	}
	b.entrypoint, b.state, b.image = s.Command, "running", cmp.Or(s.Image, Image)
	b.labels = f.inherit(b.image, b.labels)
	b.created = f.o.Now().Add(-s.Age)
	b.started = b.created
	if s.State != "" {
		b.state = s.State
	}
	if b.state == "exited" || b.state == "stopped" {
		b.finished = f.o.Now()
	}
	b.failed, b.health, b.check, b.alias = s.Error, s.Health, s.Check, s.Alias
	f.seedRestarts(b, s)
	f.boxes = append(f.boxes, b)
	if len(s.Command) > 0 && b.state == "running" {
		if err := f.run(b); err != nil {
			f.t.Errorf("seed: %v", err)
		}
	}
	return b.id
}

// seedRestarts makes a container one that was started again: the record of one that runs has nothing of its last end but
// the time, which the memory of events completes. The lock is held.
func (f *Fake) seedRestarts(b *box, s Seed) {
	if s.Restarts == 0 {
		return
	}
	b.restarts, b.finished = s.Restarts, f.o.Now().Add(-s.Ago)
	if s.OOM {
		f.events = append(f.events, event{b.finished, b.id, "oom", nil})
	}
	f.events = append(f.events, event{b.finished, b.id, "die", map[string]string{"exitCode": strconv.Itoa(s.LastCode)}})
	if b.state == "running" {
		b.oom, b.code, b.started = false, 0, b.finished.Add(time.Second)
		f.events = append(f.events, event{b.started, b.id, "start", nil})
	} else {
		b.code = s.LastCode
	}
}

// newBox makes an empty container. The lock is held.
func (f *Fake) newBox() *box {
	f.made++
	return &box{id: fmt.Sprintf("%016x%048x", uint64(0x9e3779b97f4a7c15)*uint64(f.made), f.made), state: "created", created: f.o.Now(), host: map[string]any{}}
}

// find finds a container as the API does: by its id, its name, or the beginning of an id that no other has.
// The lock is held.
func (f *Fake) find(word string) *box {
	var begins []*box
	for _, b := range f.boxes {
		if b.id == word || b.name == word {
			return b
		}
		if strings.HasPrefix(b.id, word) {
			begins = append(begins, b)
		}
	}
	if len(begins) == 1 {
		return begins[0]
	}
	return nil
}

// note remembers an event. The lock is held.
func (f *Fake) note(b *box, action string, attributes map[string]string) {
	all := map[string]string{"image": b.image, "name": b.name}
	maps.Copy(all, b.labels)
	maps.Copy(all, attributes)
	f.events = append(f.events, event{f.o.Now(), b.id, action, all})
}

// Processes are the real commands that run in a container beside its main program, for a test to kill.
func (f *Fake) Processes(id string) []*wiretest.Running {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.find(id)
	if b == nil {
		return nil
	}
	var all []*wiretest.Running
	for _, id := range b.execs {
		if e := f.execs[id]; e.running && e.run != nil {
			all = append(all, e.run)
		}
	}
	return all
}

// Commands is how many commands were started in a container beside its main program.
func (f *Fake) Commands(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.find(id); b != nil {
		return len(b.execs)
	}
	return 0
}

// Runs says whether a container runs, whatever the API shows.
func (f *Fake) Runs(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range slices.Concat(f.boxes, f.lost) {
		if b.id == id {
			return b.runs()
		}
	}
	return false
}

// Running is the number of containers that run.
func (f *Fake) Running() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range slices.Concat(f.boxes, f.lost) {
		if b.runs() {
			n++
		}
	}
	return n
}

func (b *box) runs() bool {
	return b.state == "running" || b.state == "paused" || b.state == "restarting"
}

// logWriter collects what a main program writes: a message for each line, or for 16 KiB of a longer one. What
// has not ended waits, as in the engine.
type logWriter struct {
	f      *Fake
	b      *box
	stream byte
	text   []byte
}

const longestMessage = 16 << 10

func (f *Fake) logTo(b *box, stream byte) *logWriter { return &logWriter{f: f, b: b, stream: stream} }

// Write implements io.Writer.
func (w *logWriter) Write(p []byte) (int, error) {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	w.text = append(w.text, p...)
	for len(w.text) > 0 {
		end := slices.Index(w.text, '\n') + 1
		if end == 0 || end > longestMessage {
			if len(w.text) < longestMessage {
				break
			}
			end = longestMessage
		}
		w.b.log = append(w.b.log, entry{w.f.o.Now(), w.stream, string(w.text[:end])})
		w.text = w.text[end:]
	}
	w.f.change.Broadcast()
	return len(p), nil
}

// Say adds messages to the log of a container, as its main program would.
func (f *Fake) Say(id string, stream byte, at time.Time, messages ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.find(id)
	for _, text := range messages {
		b.log = append(b.log, entry{at, stream, text})
	}
	f.change.Broadcast()
}

// refuse answers with a status and a message.
func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	wiretest.JSON(w, status, map[string]string{"message": fmt.Sprintf(format, args...)})
}
