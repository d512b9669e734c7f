package wiretest_test

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/wiretest"
)

// secret is the credential of small.
const secret = "s3cr3t-k3y"

// small is a provider of three boxes on two pages. Each field is a rule that it breaks.
type small struct {
	c      *httpx.Client
	server *wiretest.Server

	lists     func(error) error // of a failed page
	gets      func(error) error
	ends      func(error) error
	anyToken  bool // a page token may come again
	twice     bool // rows are not told apart
	insists   bool // DELETE is sent again
	hasty     bool // GET is not
	waits     bool // Get comes back when it must
	recurses  bool // what cleans up after Exec cleans up after itself
	lingers   bool // what cleans up after Exec takes its time
	empties   bool // what is no list is an empty one, what is no object an empty one
	trusts    bool // what GET answers about is what was asked for
	twiceMade bool // a create is sent again
	blind     bool // a conflict is not looked into
	sure      bool // a failed create has made nothing
	hides     bool // a row that is refused hides the others
	strict    bool // a time that cannot be read fails the listing
	guesses   bool // it is now
	buries    bool // a state that cannot be read is an end
	unmarked  bool // a full page is the last one
	deaf      bool // a command whose answer did not come has ended well
}

func honest(err error) error { return err }

func (*small) Name() string { return "small" }
func (*small) Type() string { return "small" }
func (p *small) Close()     { p.c.Close() }

type smallBox struct {
	ID    string    `json:"id"             odd:"error"`
	Born  time.Time `json:"born,omitzero"`
	State string    `json:"state,omitzero"`
}

func newBox(id string) smallBox {
	return smallBox{ID: id, Born: time.Now().Add(-time.Hour).Truncate(time.Second), State: "running"}
}

// smallAsked is how many boxes a page is asked for.
const smallAsked = 5

func (p *small) sandbox(b smallBox) sandbox.Sandbox {
	s := sandbox.Sandbox{ID: b.ID, CreatedAt: b.Born, State: sandbox.StateRunning}
	if p.guesses && b.Born.IsZero() {
		s.CreatedAt = time.Now()
	}
	if p.buries && b.State == "" {
		s.State = sandbox.StateTerminated
	}
	return s
}

// boxes are the boxes of a page.
func (p smallPage) boxes() []smallBox {
	rows, _ := p.Boxes.Rows()
	return rows
}

func (b smallBox) id() string { return b.ID }

type smallPage struct {
	Boxes httpx.List[smallBox] `json:"boxes"`
	Next  *string              `json:"next" odd:"error"`
}

func (p *small) List(ctx context.Context, _ providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		var refused error
		tokens, ids := map[string]bool{}, map[string]bool{}
		for query := (url.Values{}); ; {
			var page smallPage
			_, err := p.c.JSON(ctx, httpx.Request{Op: "list", Path: "/boxes", Query: query, Once: p.hasty}, &page)
			if status := httpx.Status(err); status == http.StatusNotFound || status == http.StatusGone {
				err = fault.New(fault.KindUnavailable, "%w", err)
			}
			next := ""
			if page.Next != nil {
				next = *page.Next
			}
			if err == nil && tokens[next] && !p.anyToken {
				err = fault.New(fault.KindUnavailable, "the listing repeats itself")
			}
			rows, bad := page.Boxes.Named(smallBox.id)
			if p.empties {
				rows, bad = slices.DeleteFunc(page.boxes(), func(b smallBox) bool { return b.ID == "" }), nil
			}
			if err == nil && (!httpx.OnlyRefused(bad) || p.hides) {
				err = bad
			}
			if err == nil && p.strict && slices.ContainsFunc(rows, func(b smallBox) bool { return b.Born.IsZero() }) {
				err = fault.New(fault.KindUnavailable, "it is not a time")
			}
			if err != nil {
				if err = p.lists(err); err != nil {
					yield(sandbox.Sandbox{}, err)
				}
				return
			}
			for _, box := range rows {
				if (!ids[box.ID] || p.twice) && !yield(p.sandbox(box), nil) {
					return
				}
				ids[box.ID] = true
			}
			if page.Next == nil && len(rows) >= smallAsked && !p.unmarked {
				bad = fault.New(fault.KindUnavailable, "there may be more")
			}
			if httpx.OnlyRefused(bad) || next == "" {
				refused = cmp.Or(refused, bad)
			}
			if next == "" {
				if refused != nil {
					yield(sandbox.Sandbox{}, refused)
				}
				return
			}
			tokens[next] = true
			query.Set("token", next)
		}
	}
}

func (p *small) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	if p.waits {
		<-ctx.Done()
		return sandbox.Sandbox{}, ctx.Err()
	}
	got, err := p.box(ctx, id)
	return p.sandbox(got), p.gets(err)
}

func (p *small) box(ctx context.Context, id string) (got smallBox, err error) {
	_, err = p.c.JSON(ctx, httpx.Request{Op: "get", Path: httpx.Path("boxes", id), Once: p.hasty}, &got)
	if err == nil && !p.empties && !p.trusts {
		err = providers.CheckAnswerID("small", "get", id, got.ID)
	}
	return got, err
}

func (p *small) Terminate(ctx context.Context, id string, _ providers.TerminateOptions) error {
	if p.trusts {
		got, err := p.box(ctx, id)
		if err != nil {
			return p.ends(err)
		}
		id = got.ID
	}
	_, err := p.c.Do(ctx, httpx.Request{Op: "terminate", Method: http.MethodDelete, Path: httpx.Path("boxes", id), Again: p.insists})
	return p.ends(err)
}

// Exec starts a command, and ends it when its caller gives up.
func (p *small) Exec(ctx context.Context, id string, cmd providers.Command) (sandbox.Exit, error) {
	res, err := p.c.Do(ctx, httpx.Request{Op: "exec", Method: http.MethodPost, Path: httpx.Path("boxes", id, "exec")})
	if err != nil && ctx.Err() != nil {
		most := 500 * time.Millisecond
		if p.lingers {
			most = 10 * time.Second
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
		defer cancel()
		if p.recurses && end.Err() == nil && len(p.server.Calls("")) < 10*24 { // bounded, so that the test ends
			return p.Exec(end, id, providers.Command{})
		}
		_, _ = p.c.Do(end, httpx.Request{Op: "kill", Method: http.MethodPost, Path: httpx.Path("boxes", id, "exec")})
	}
	if err == nil && cmd.Stdout != nil {
		_, err = cmd.Stdout.Write(res.Body)
	}
	if p.deaf {
		err = nil
	}
	return sandbox.Exit{Code: new(0)}, err
}

// Create makes a box.
func (p *small) Create(ctx context.Context, _ sandbox.Spec) (sandbox.Sandbox, error) {
	var made smallBox
	_, err := p.c.JSON(ctx, httpx.Request{Op: "create", Method: http.MethodPost, Path: "/boxes", Again: p.twiceMade, Timeout: time.Minute}, &made)
	if err == nil && made.ID == "" && !p.empties {
		err = fault.New(fault.KindUnavailable, "the answer names nothing")
	}
	if httpx.Status(err) == http.StatusConflict && !p.blind {
		if found, failed := p.box(ctx, "d"); failed == nil {
			return sandbox.Sandbox{ID: found.ID}, nil
		}
	}
	if err != nil {
		err = providers.CreateFailed(err, providers.CreateMark{})
	}
	if p.sure && err != nil {
		err = providers.NothingMade(err)
	}
	return sandbox.Sandbox{ID: made.ID}, err
}

// smallSubject is small before its fake, on two pages of which the first has two
// boxes.
func smallSubject(t wiretest.T, p small) wiretest.Subject {
	s := wiretest.New(t, wiretest.Options{})
	p.server = s
	var made []smallBox
	answer := func(v any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { wiretest.JSON(w, http.StatusOK, v) }
	}
	s.Handle(
		wiretest.Route{Method: "GET", Path: "/boxes", Query: []string{"token"}, Serve: func(w http.ResponseWriter, r *http.Request) {
			page := map[string]any{"boxes": []smallBox{newBox("a"), newBox("b")}, "next": "two"}
			if r.URL.Query().Get("token") == "two" {
				page = map[string]any{"boxes": append([]smallBox{newBox("c")}, made...)}
			}
			wiretest.JSON(w, http.StatusOK, page)
		}},
		wiretest.Route{Method: "GET", Path: "/boxes/{id}", Serve: func(w http.ResponseWriter, r *http.Request) {
			if id := r.PathValue("id"); id == "a" || len(made) > 0 {
				wiretest.JSON(w, http.StatusOK, newBox(id))
				return
			}
			http.NotFound(w, r)
		}},
		wiretest.Route{Method: "POST", Path: "/boxes", Changes: true, Serve: func(w http.ResponseWriter, _ *http.Request) {
			made = append(made, newBox(string(rune('d'+len(made)))))
			wiretest.JSON(w, http.StatusCreated, made[len(made)-1])
		}},
		wiretest.Route{Method: "POST", Path: "/boxes/{id}/exec", Serve: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("some words\n")) }},
		wiretest.Route{Method: "DELETE", Path: "/boxes/{id}", Changes: true, Serve: answer("ok")},
	)
	var err error
	p.c, err = httpx.New(httpx.Net{Dial: s.Dial}, httpx.Options{Base: "http://small", Profile: "small", Secrets: []string{secret}})
	require.NoError(t, err)
	for _, f := range []*func(error) error{&p.lists, &p.gets, &p.ends} {
		if *f == nil {
			*f = honest
		}
	}
	return wiretest.Subject{
		Server: s, P: &p, ID: "a", Rows: 3, First: 2, SecondBy: "token=", Asked: smallAsked, Marks: []string{"next"}, Secrets: []string{secret},
		List: "GET /boxes", Get: "GET /boxes/{id}", Terminate: "DELETE /boxes/{id}",
	}
}

// day finds a bad day by its name.
func day(t *testing.T, name string) wiretest.BadDay {
	t.Helper()
	for _, d := range wiretest.BadDays() {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("no day %q", cmp.Or(name, "without a name"))
	return wiretest.BadDay{}
}
