package wiretest_test

import (
	"context"
	"iter"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wiretest"
	"sbx/internal/sandbox"
)

// small is a provider of one box; lie makes it break a promise.
type small struct {
	c   *httpx.Client
	lie func(error) error // of a failed listing or read
}

func (*small) Name() string { return "small" }
func (*small) Type() string { return "small" }
func (p *small) Close()     { p.c.Close() }

func (p *small) List(ctx context.Context, _ providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		var ids []string
		if _, err := p.c.JSON(ctx, httpx.Request{Op: "list", Path: "/boxes"}, &ids); err != nil {
			if httpx.Status(err) == http.StatusNotFound || httpx.Status(err) == http.StatusGone {
				err = fault.New(fault.KindUnavailable, "%w", err)
			}
			if err = p.lie(err); err != nil {
				yield(sandbox.Sandbox{}, err)
			}
			return
		}
		for _, id := range ids {
			if !yield(sandbox.Sandbox{ID: id}, nil) {
				return
			}
		}
	}
}

func (p *small) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	var got string
	_, err := p.c.JSON(ctx, httpx.Request{Op: "get", Path: httpx.Path("boxes", id)}, &got)
	return sandbox.Sandbox{ID: id}, p.lie(err)
}

func (p *small) Terminate(ctx context.Context, id string, _ providers.TerminateOptions) error {
	_, err := p.c.Do(ctx, httpx.Request{Op: "terminate", Method: "DELETE", Path: httpx.Path("boxes", id)})
	return p.lie(err)
}

func smallSubject(t *testing.T, wt wiretest.T, lie func(error) error) wiretest.Subject {
	t.Helper()
	s := wiretest.New(wt, wiretest.Options{})
	answer := func(v any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { wiretest.JSON(w, http.StatusOK, v) }
	}
	s.Handle(
		wiretest.Route{Method: "GET", Path: "/boxes", Serve: answer([]string{"a"})},
		wiretest.Route{Method: "GET", Path: "/boxes/{id}", Serve: answer("a")},
		wiretest.Route{Method: "DELETE", Path: "/boxes/{id}", Changes: true, Serve: answer("ok")},
	)
	c, err := httpx.New(httpx.Net{Dial: s.Dial}, httpx.Options{Base: "http://small", Profile: "small"})
	require.NoError(t, err)
	return wiretest.Subject{
		Server: s, P: &small{c, lie}, ID: "a", Rows: 1, List: "GET /boxes", Get: "GET /boxes/{id}", Terminate: "DELETE /boxes/{id}",
	}
}

func TestAnHonestProviderSurvivesBadDays(t *testing.T) {
	t.Parallel()
	wiretest.RunBadDays(t, func(wt wiretest.T) wiretest.Subject {
		return smallSubject(t, wt, func(err error) error { return err })
	})
}

func TestLiarsTurnBadDaysRed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		day string
		lie func(error) error
	}{
		"a failed listing is empty": {"Internal Server Error", func(error) error { return nil }},
		"401 is gone": {"401", func(err error) error {
			if fault.KindOf(err) == fault.KindAuth {
				return fault.New(fault.KindGone, "expired")
			}
			return err
		}},
		"the wait is lost": {"429 for an hour", func(error) error {
			return fault.New(fault.KindUnavailable, "HTTP 429")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, day := range wiretest.BadDays() {
				if day.Name != tc.day {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					w := &witness{T: t}
					day.Judge(t.Context(), w, smallSubject(t, w, tc.lie))
					assert.NotEmpty(t, w.said, "the day does not notice")
				})
			}
		})
	}
}
