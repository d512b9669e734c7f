// Package wirekit holds what the clients of all provider APIs do in the same way: the
// common part of a client, pages of a listing, log lines and how a log is followed, and
// the cleanup after a create that failed.
//
// No paths, fields or states of one provider enter this room.
package wirekit

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	stream "github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Base is the part that the clients of all APIs have in common, to be embedded.
type Base struct {
	Profile  string // the profile's name
	TypeName string
	API      *httpx.Client
	Now      func() time.Time
}

// NewBase makes the client of a profile; options need no profile name.
func NewBase(p providers.Profile, d providers.Deps, typeName string, options httpx.Options) (Base, error) {
	options.Profile = p.Name
	api, err := httpx.New(d.Net, options)
	if err != nil {
		return Base{}, err
	}
	b := Base{Profile: p.Name, TypeName: typeName, API: api, Now: d.Now}
	if b.Now == nil {
		b.Now = time.Now
	}
	return b, nil
}

// Name is the profile's name.
func (b *Base) Name() string { return b.Profile }

// Type is the name of the provider type.
func (b *Base) Type() string { return b.TypeName }

// Close closes idle connections.
func (b *Base) Close() { b.API.Close() }

// Skew is how far the API's clock is ahead of this machine's.
func (b *Base) Skew() (time.Duration, bool) { return b.API.Skew() }

// ServerNow is the API's time: that of this machine, corrected by the last answer.
func (b *Base) ServerNow() time.Time {
	ahead, _ := b.Skew()
	return b.Now().Add(ahead)
}

// Evidence is an observation of now.
func (b *Base) Evidence(what, value, source string) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: value, Source: source, At: b.Now()}
}

// Fault is a new fault of an operation of this profile.
func (b *Base) Fault(kind fault.Kind, op, format string, args ...any) *fault.Error {
	return fault.New(kind, format, args...).At(b.Profile, op)
}

// ListFault keeps a 404 or 410 of a listing from looking like a missing sandbox: it is
// fault.KindUnavailable with the hint. Other errors stay as they are.
func (b *Base) ListFault(err error, op, hint string) error {
	if !Missing(err) {
		return err
	}
	return b.Fault(fault.KindUnavailable, op, "%w", err).WithHint("%s", hint)
}

// FailedCheck is the finding of doctor that an API cannot be read.
func FailedCheck(check string, err error) providers.Check {
	return providers.Check{Check: check, Verdict: sandbox.False, Message: err.Error(), Hint: fault.HintOf(err)}
}

// Reasons say why a type lacks an ability: ability -> reason. Embedded in a client, it
// makes the client a providers.Explainer.
type Reasons map[string]string

// WhyNot says why an ability is missing; "" without a reason.
func (r Reasons) WhyNot(ability string) string {
	if ability == "sweep" {
		return "none of it runs on this machine"
	}
	return r[ability]
}

// Missing says that the API does not find the object: fault.KindNotFound or KindGone.
func Missing(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.KindNotFound || kind == fault.KindGone
}

// CheckCommand refuses a command that no API takes.
func CheckCommand(cmd providers.Command) error {
	if len(cmd.Args) == 0 {
		return fault.Usage("there is no command")
	}
	return providers.CheckText(nil, cmd.Env)
}

// EachSize sends each new size of a terminal until ctx ends. A lost size does no harm.
func EachSize(ctx context.Context, tty *providers.Terminal, send func(providers.Size)) {
	for {
		select {
		case size, open := <-tty.Resize:
			if !open {
				return
			}
			send(size)
		case <-ctx.Done():
			return
		}
	}
}

// ContextFault is the end of ctx as a fault with its cause.
func ContextFault(ctx context.Context) *fault.Error {
	return &fault.Error{Kind: fault.KindOf(ctx.Err()), Err: context.Cause(ctx)}
}

// Sleep waits for d, in a look without its slot; the end of ctx is a fault.
func Sleep(ctx context.Context, d time.Duration) error {
	if providers.SleepWithoutSlot(ctx, d) != nil {
		return ContextFault(ctx)
	}
	return nil
}

// Environment converts KEY=VALUE words to the map that APIs take.
func Environment(words []string) map[string]string {
	env := map[string]string{}
	for _, w := range words {
		if key, value, ok := strings.Cut(w, "="); ok {
			env[key] = value
		}
	}
	return env
}

// CleanupLimit is how long a call may clean up after itself: kill the command that it started, end the sandbox that
// it made. The caller's context has often ended by then, and the call may outlive it by all of this time: what is
// given up too early goes on, and costs money. A second interrupt aborts it. A person who waits for a command has less:
// providers.WithCleanupLimit.
const CleanupLimit = 5 * time.Second

// CleanupContext is the context of a cleanup: it ends after CleanupLimit, or that of ctx, whenever ctx ends. A cleanup
// must not start another one when it fails.
func CleanupContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), providers.CleanupLimit(ctx, CleanupLimit))
}

// notRunning are the words with which a runtime refuses a command in a container that does not run: containerd and the
// kubelet, and an engine between two starts of a container. The processes of a container end with it.
func notRunning() []string {
	return []string{"container not found", "is not running", "is restarting"}
}

// Unended is the error of a command that was given up: err, and that the command may still run where killed, the
// result of its kill within CleanupLimit, is an error. In a sandbox that is gone, or whose container does not run,
// nothing runs.
func Unended(err, killed error, profile, id string) error {
	if killed == nil || Missing(killed) || slices.ContainsFunc(notRunning(), func(words string) bool { return strings.Contains(killed.Error(), words) }) {
		return err
	}
	return fault.New(fault.KindOf(err), "%w; the command may still run in it, since its kill was not confirmed (%w)", err, killed).At(profile, "exec "+id).
		WithHint("`sbx exec %[1]s/%[2]s -- ps` shows what runs in it; `sbx terminate %[1]s/%[2]s` ends it with its sandbox", profile, id)
}

// UndoCreate deletes a sandbox whose program could not be started because of err. The
// error that it returns says whether the delete was accepted. done is what the delete
// does in the provider's words, and flags is what `sbx terminate` needs to do the same.
func UndoCreate(ctx context.Context, p providers.Provider, id string, err error, done, flags string) error {
	end, cancel := CleanupContext(ctx)
	defer cancel()
	kind := fault.KindOf(err)
	undone := providers.Undone(fault.New(kind, "%w; its sandbox was %s again", err, done))
	if p.Terminate(end, id, providers.TerminateOptions{Delete: true}) != nil {
		undone = fault.New(kind, "%w; its sandbox %s was not %s", err, id, done).WithHint("terminate it with `sbx terminate %s/%s%s`", p.Name(), id, flags)
	}
	return fault.Placed(undone, p.Name(), "create")
}

// ConflictUnsettled is the error of a create that was answered with a conflict where the
// search for the sandbox of an earlier attempt failed: it may exist.
func ConflictUnsettled(conflict, searched error, mark providers.CreateMark) error {
	return fault.New(fault.KindUnavailable, "%w; unknown whether an earlier attempt created it: %w", conflict, searched).
		At(mark.Provider, "create").WithHint("search for it with `%s`", mark.SearchCommand())
}

// Labels are the labels of a wire struct. Labels that are no object are decoded as one label,
// sandbox.LabelUnreadable, with their JSON: rules may not take what nobody can read for "no labels". Null and an
// empty list are no labels.
type Labels map[string]string

// UnmarshalJSON decodes labels; it fails only for a text that is no JSON.
func (l *Labels) UnmarshalJSON(text []byte) error {
	return jsonv2.Unmarshal(text, l, jsonv1.DefaultOptionsV1())
}

// UnmarshalJSONFrom decodes labels; it fails only for what is no JSON. A value that is no text keeps its JSON.
func (l *Labels) UnmarshalJSONFrom(dec *stream.Decoder) error {
	*l = nil
	if dec.PeekKind() != stream.KindBeginObject {
		value, err := dec.ReadValue()
		if empty := strings.Join(strings.Fields(string(value)), ""); err == nil && empty != "null" && empty != "[]" {
			*l = Labels{sandbox.LabelUnreadable: string(value)}
		}
		return err
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	*l = Labels{}
	for dec.PeekKind() != stream.KindEndObject {
		key, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := key.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		switch value.Kind() {
		case stream.KindString:
			text, _ := stream.AppendUnquote(nil, value) // invalid UTF-8 is replaced
			(*l)[name] = string(text)
		case stream.KindNull:
			(*l)[name] = ""
		default:
			(*l)[name] = string(value)
		}
	}
	_, err := dec.ReadToken()
	return err
}

const (
	// maxPages bounds a listing: at 100 rows a page it is a million rows.
	maxPages = 10_000
	// maxStalePages is how many pages in a row may bring no new row.
	maxStalePages = 20
)

// Page is one page of a listing.
type Page[R any] struct {
	Rows []R
	Next string // the token of the page behind it; "" = there is none
	// Unmarked says that the answer has nothing, a null token or a total, that marks the end. A full page is none then,
	// since a server that ignores tokens answers so, nor is an empty one behind a token, which a cursor gives that has
	// lost its place.
	Unmarked bool
	Full     bool // it has as many rows as were asked for
}

// openEnd says why a page that was asked for by a token, and has no next one, may not be the last one; "" = it is.
func (p Page[R]) openEnd(token string) string {
	switch {
	case !p.Unmarked:
	case p.Full:
		return "the page is full"
	case token != "" && len(p.Rows) == 0:
		return "the page behind a token is empty"
	}
	return ""
}

// NextToken is the token of the next page in an answer. Where APIs write null on the last page, a missing one
// marks no end.
type NextToken struct {
	Token string
	Told  bool // it was in the answer
}

// UnmarshalJSON decodes a text or null.
func (t *NextToken) UnmarshalJSON(text []byte) error {
	t.Told = true
	return json.Unmarshal(text, &t.Token)
}

// NewPage is the page of a list whose answers have a token or null. limit is the number of rows that was asked for.
func NewPage[R any](l httpx.List[R], next NextToken, limit int, id func(R) string) (Page[R], error) {
	rows, err := l.Named(id)
	return Page[R]{Rows: rows, Next: next.Token, Unmarked: !next.Told, Full: l.Len() >= limit}, err
}

// EachRow reads a listing page by page and gives each row once, by its id, to take until
// take returns false. read returns the page of a token, "" for the first one. A listing without an end is an
// error of profile and op, see PageGuard, and so is one whose end has no mark, see Page. Refused rows
// (httpx.OnlyRefused) end no listing: the others are given, and the first such error is returned at the end.
func EachRow[R any](profile, op string, read func(token string) (Page[R], error), id func(R) string, take func(R) bool) error {
	seen := map[string]bool{}
	var guard PageGuard
	var refused error
	for token := ""; ; {
		page, err := read(token)
		if err != nil && !httpx.OnlyRefused(err) {
			return err
		}
		refused = cmp.Or(refused, err)
		before := len(seen)
		for _, row := range page.Rows {
			if seen[id(row)] {
				continue
			}
			seen[id(row)] = true
			if !take(row) {
				return nil
			}
		}
		switch why := page.openEnd(token); {
		case page.Next == "" && why != "":
			return fault.New(fault.KindUnavailable, "there may be more than %d: %s, and the answer has neither a next page nor a total", len(seen), why).
				At(profile, op).WithHint("the API ignores page tokens: narrow the listing by state or label, or ask the operator of the API")
		case page.Next == "":
			return refused
		}
		if err := guard.Check(page.Next, len(seen)-before); err != nil {
			return fault.Placed(err, profile, op)
		}
		token = page.Next
	}
}

// PageGuard finds a listing that never ends: a token that comes again, and pages without
// new rows, are fault.KindUnavailable, so that the listing counts as incomplete.
type PageGuard struct {
	tokens map[string]bool
	stale  int
}

// Check takes the token of the next page. fresh is how many rows the page before it had
// that no earlier page had.
func (g *PageGuard) Check(token string, fresh int) error {
	if g.tokens == nil {
		g.tokens = map[string]bool{}
	}
	g.stale++
	if fresh > 0 {
		g.stale = 0
	}
	switch {
	case g.tokens[token]:
		return fault.New(fault.KindUnavailable, "the listing repeats itself: a page token occurred twice")
	case g.stale >= maxStalePages:
		return fault.New(fault.KindUnavailable, "the listing does not end: %d pages had nothing new", g.stale)
	case len(g.tokens)+1 >= maxPages:
		return fault.New(fault.KindUnavailable, "the listing does not end: %d pages were read", maxPages).WithHint("narrow it by state or label")
	}
	g.tokens[token] = true
	return nil
}
