package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// List reads all containers, those that have ended too: the API has no pages, so that an answer is complete.
func (c *Client) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		words := labelWords(q.Labels)
		if c.label != "" {
			words = append(words, c.label)
		}
		rows, err := c.rows(ctx, "list", filters("label", words...))
		if err != nil && !httpx.OnlyRefused(err) {
			yield(sandbox.Sandbox{}, c.ListFault(err, "list", "check host: requests go to "+c.at.Host))
			return
		}
		for _, w := range rows {
			labels, failed := c.ownLabels(ctx, "list", w.ImageID, w.Labels)
			if failed != nil {
				yield(sandbox.Sandbox{}, failed)
				return
			}
			if w.Labels = labels; !hasAll(labels, q.Labels) { // the engine has compared those of the image, too
				continue
			}
			if !yield(c.listed(w), nil) {
				return
			}
		}
		if err != nil {
			yield(sandbox.Sandbox{}, err)
		}
	}
}

func hasAll(labels wirekit.Labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, has := labels[key]; !has || got != value {
			return false
		}
	}
	return true
}

// rows are the containers that match, running or not. Refused rows are an error beside the others.
func (c *Client) rows(ctx context.Context, op string, query url.Values) ([]wireRow, error) {
	query.Set("all", "1")
	var list httpx.List[wireRow]
	if err := c.json(ctx, httpx.Request{Op: op, Path: "/containers/json", Query: query}, &list); err != nil {
		return nil, err
	}
	rows, err := list.Named(func(w wireRow) string { return w.ID })
	seen := map[string]bool{}
	rows = slices.DeleteFunc(rows, func(w wireRow) bool {
		twice := seen[w.ID]
		seen[w.ID] = true
		return twice
	})
	return rows, fault.Placed(err, c.Profile, op)
}

// filters is the query of a filter with these values; empty without values.
func filters(name string, values ...string) url.Values {
	if len(values) == 0 {
		return url.Values{}
	}
	text, err := json.Marshal(map[string][]string{name: values})
	if err != nil {
		return url.Values{}
	}
	return url.Values{"filters": {string(text)}}
}

func labelWords(labels map[string]string) []string {
	words := make([]string, 0, len(labels))
	for key, value := range labels {
		words = append(words, key+"="+value)
	}
	return words
}

// Get reads one by its id or its name.
func (c *Client) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	began := time.Now()
	w, err := c.inspect(ctx, "get", id)
	if err != nil {
		c.lately.Keep(id, began, w, err)
		return sandbox.Sandbox{}, err
	}
	c.lately.Keep(w.ID, began, w, nil)
	if w, err = c.withOwnLabels(ctx, "get", id, w); err != nil {
		return sandbox.Sandbox{}, err
	}
	s := c.inspected(w)
	s.Troubles = c.troublesOf(ctx, w)
	return s, nil
}

// TakesName is false for a whole id. What looks like the beginning of one may be a name, which inspect tells apart.
func (c *Client) TakesName(word string) bool { return !wholeID().MatchString(word) }

func wholeID() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) }

// inspect reads a container. The API takes the beginning of an id for the whole, so the answer must have the
// id or the name that was asked for.
func (c *Client) inspect(ctx context.Context, op, id string) (wireContainer, error) {
	var w wireContainer
	err := c.json(ctx, httpx.Request{Op: op + " " + id, Path: httpx.Path("containers", id, "json")}, &w)
	if httpx.Status(err) == http.StatusInternalServerError { // the engine has answered: it cannot read this one
		err = c.Fault(fault.KindOf(err), op+" "+id, "%w", err).Inside()
	}
	switch begins := len(id) < len(w.ID) && strings.HasPrefix(w.ID, id); {
	case err == nil && begins && strings.TrimPrefix(w.Name, "/") != id:
		err = c.Fault(fault.KindNotFound, op+" "+id, "it is the beginning of an id")
	case err == nil:
		err = providers.CheckAnswerID(c.Profile, op+" "+id, id, w.ID, strings.TrimPrefix(w.Name, "/"))
	}
	if err != nil {
		return wireContainer{}, err
	}
	return w, nil
}

// inspectOwn reads a container, with those of its labels that are its own.
func (c *Client) inspectOwn(ctx context.Context, op, id string) (wireContainer, error) {
	w, err := c.inspectInLook(ctx, op, id)
	if err != nil {
		return w, err
	}
	return c.withOwnLabels(ctx, op, id, w)
}

func (c *Client) withOwnLabels(ctx context.Context, op, id string, w wireContainer) (wireContainer, error) {
	var err error
	w.Config.Labels, err = c.ownLabels(ctx, op+" "+id, w.Image, w.Config.Labels)
	return w, err
}

// inspectInLook is inspect for the queries of a look: those that begin together share it.
func (c *Client) inspectInLook(ctx context.Context, op, id string) (wireContainer, error) {
	return wirekit.InLook(ctx, id, func() (wireContainer, error) { return c.inspect(ctx, op, id) })
}

// listed is a row of the listing, which lacks limits, the start and what the exit proves.
func (c *Client) listed(w wireRow) sandbox.Sandbox {
	s := c.described(w.ID, w.State, w.Labels, w.Image)
	s.Name = cmp.Or(s.Name, ownName(w.Names))
	if w.Created > 0 {
		s.CreatedAt = providers.ValidTime(time.Unix(w.Created, 0).UTC())
	}
	if code := exitedStatus().FindStringSubmatch(w.Status); code != nil && !madeBySbx(w.Labels) && s.State == sandbox.StateStopped {
		s.Exit = new(triage.ClassifyExit(nil, triage.ExitFacts{Raw: code[1], Source: "engine", At: c.Now()}))
	}
	s.Troubles = c.troublesOfRow(w)
	return s
}

// ownName is the name of a container itself: another one that has a link to it gives it one more, with its own in front
// ("/proxy/upstream").
func ownName(names []string) string {
	own := slices.IndexFunc(names, func(name string) bool { return strings.LastIndexByte(name, '/') <= 0 })
	if own < 0 {
		return ""
	}
	return strings.TrimPrefix(names[own], "/")
}

// exitedStatus finds the exit code in the status of a row (Docker and Podman, as observed).
func exitedStatus() *regexp.Regexp { return regexp.MustCompile(`^Exited \((\d+)\)`) }

// inspected is a container in full. The time of its creation is cut to the second, as in the listing: it
// identifies the container.
func (c *Client) inspected(w wireContainer) sandbox.Sandbox {
	s := c.described(w.ID, w.State.Status, w.Config.Labels, w.Config.Image)
	s.Name = cmp.Or(s.Name, strings.TrimPrefix(w.Name, "/"))
	s.CreatedAt = providers.ValidTime(w.Created.Truncate(time.Second).UTC())
	s.StartedAt = providers.ValidTime(w.State.StartedAt.UTC())
	s.Limits, s.EndNote = w.HostConfig.limits(), c.endNote(w.HostConfig.RestartPolicy)
	if !madeBySbx(w.Config.Labels) && w.Path != "" {
		s.Command = append([]string{w.Path}, w.Args...)
	}
	if s.State == sandbox.StateStopped || s.State.Ended() {
		s.EndedAt = providers.ValidTime(w.State.FinishedAt.UTC())
		s.Exit = c.exitOf(w)
	}
	return s
}

// described is what a row and a container in full have alike.
func (c *Client) described(id, state string, labels wirekit.Labels, image string) sandbox.Sandbox {
	return sandbox.Sandbox{
		Provider: c.Profile, ProviderType: TypeName, ID: id, RawState: state, State: stateOf(state), Activity: sandbox.Unknown,
		Name: labels[sandbox.LabelName], Template: image, Labels: maps.Clone(labels), TaskID: labels[sandbox.LabelTask], AgentType: labels[sandbox.LabelAgentType],
		ExpiresAt: sandbox.ExpiresBy(labels),
	}
}

func madeBySbx(labels map[string]string) bool { return labels[sandbox.LabelRun] != "" }

// stateOf converts the engine's word. A container that has ended keeps its disk, and can be started again.
func stateOf(word string) sandbox.State {
	switch word {
	case "created", "configured", "initialized": // the last two are of Podman
		return sandbox.StateProvisioning
	case "running", "restarting":
		return sandbox.StateRunning
	case "paused":
		return sandbox.StatePaused
	case "exited", "stopped": // Podman has both
		return sandbox.StateStopped
	case "removing", "stopping":
		return sandbox.StateTerminating
	case "dead": // a removal failed, and nothing of it can be started
		return sandbox.StateFailed
	}
	return sandbox.StateUnknown
}

func (w wireHostConfig) limits() sandbox.Limits {
	l := sandbox.Limits{Isolation: w.Runtime}
	positive := func(n *int64) *int64 {
		if n == nil || *n <= 0 {
			return nil
		}
		return n
	}
	l.MemoryBytes, l.PIDs = providers.ValidBytes(positive(w.Memory)), positive(w.PidsLimit)
	if n := positive(w.NanoCPUs); n != nil {
		l.CPU = new(float64(*n) / 1e9)
	}
	if size, err := sandbox.ParseSize(w.StorageOpt["size"]); err == nil {
		l.DiskBytes = &size
	}
	return l
}

// exitOf is the exit of the main program of a container that has ended. Of a container of sbx the main program
// only waits: the exit of the program inside is in its files. A container that was never started has none.
func (c *Client) exitOf(w wireContainer) *sandbox.Exit {
	if madeBySbx(w.Config.Labels) || w.State.ExitCode == nil || providers.ValidTime(w.State.StartedAt).IsZero() {
		return nil
	}
	f := triage.ExitFacts{
		Raw: strconv.Itoa(*w.State.ExitCode), Source: "engine", At: w.State.FinishedAt, NotStarted: w.State.Error != "", CounterSource: "engine: OOMKilled",
	}
	if w.State.OOMKilled {
		f.OOMKills = new(int64(1))
	} else if !c.isPodman() { // there it is no answer: a kill was not reported either
		f.OOMKills = new(int64(0))
	}
	f.LimitBytes = w.HostConfig.limits().MemoryBytes
	exit := triage.ClassifyExit(triage.NewMatcher(), f)
	if w.State.Error != "" {
		exit.Evidence = append(exit.Evidence, c.Evidence("error", w.State.Error, "engine"))
	}
	return &exit
}
