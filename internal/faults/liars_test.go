package faults_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/providertest"
)

// liar is a provider with the mistakes that the table must find. Nil fields are correct.
type liar struct {
	*e2b.Client

	lists, gets func(error) error
	twice       bool // an end is asked for again
	absent      bool // what no list shows is gone, and proved
	forgets     bool // what was asked to end is gone, and proved
	nothing     bool // a failed create has made nothing
	again       bool // it is tried again
	partial     bool // an exec that failed has ended well

	asked bool
}

func (l *liar) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		for s, err := range l.Client.List(ctx, q) {
			if err != nil && l.lists != nil {
				if err = l.lists(err); err == nil {
					return
				}
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

func (l *liar) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	if l.forgets && l.asked {
		return sandbox.Sandbox{}, fault.New(fault.KindNotFound, "no sandbox %q", id)
	}
	if l.absent && l.asked && !l.shown(ctx, id) {
		return sandbox.Sandbox{}, fault.New(fault.KindNotFound, "no sandbox %q", id)
	}
	s, err := l.Client.Get(ctx, id)
	if err != nil && l.gets != nil {
		err = l.gets(err)
	}
	return s, err
}

func (l *liar) shown(ctx context.Context, id string) bool {
	for s, err := range l.Client.List(ctx, providers.Query{}) {
		if err == nil && s.ID == id {
			return true
		}
	}
	return false
}

func (l *liar) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	l.asked = true
	err := l.Client.Terminate(ctx, id, o)
	if err != nil && l.twice {
		return l.Client.Terminate(ctx, id, o)
	}
	return err
}

func (l *liar) VerifyEnd(ctx context.Context, id string, q providers.EndQuery) (providers.Proof, error) {
	if l.forgets || (l.absent && !l.shown(ctx, id)) {
		return providers.Proof{Ended: sandbox.True}, nil
	}
	return l.Client.VerifyEnd(ctx, id, q)
}

func (l *liar) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	made, err := l.Client.Create(ctx, spec)
	if err != nil && l.again {
		return l.Client.Create(ctx, spec)
	}
	if err != nil && l.nothing {
		err = providers.NothingMade(err)
	}
	return made, err
}

func (l *liar) Exec(ctx context.Context, id string, c providers.Command) (sandbox.Exit, error) {
	exit, err := l.Client.Exec(ctx, id, c)
	if err != nil && l.partial {
		return sandbox.Exit{Code: new(3)}, nil
	}
	return exit, err
}

func TestLiarsTurnTheTableRed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		verb, row string
		liar      liar
		said      string
	}{
		"honest":                         {"list", "200 of null", liar{}, ""},
		"no list is an empty one":        {"list", "200 of null", liar{lists: func(error) error { return nil }}, "a part passes for the whole"},
		"a lost page is the end":         {"page 2", "page 2 fails", liar{lists: func(error) error { return nil }}, "a part passes for the whole"},
		"an outage is a missing sandbox": {"get", "500", liar{gets: func(error) error { return fault.New(fault.KindNotFound, "no such sandbox") }}, "does not contain"},
		"the key is quoted":              {"get", "401 with the key in its text", liar{gets: func(error) error { return fault.New(fault.KindAuth, "the key e2b_5ec7e7fake0123456789 is wrong") }}, "quotes the key"},
		"an end is asked for again":      {"stop", "502 after arrival", liar{twice: true}, "it is asked again"},
		"forgotten is ended":             {"stop", "accepted, and nothing happens", liar{forgets: true}, "and it runs"},
		"what no list shows is ended":    {"stop", "it happens 200 ms later, and the list flaps", liar{absent: true}, "and it runs"},
		"no answer is nothing made":      {"create", "no answer, after arrival", liar{nothing: true}, "nothing was made"},
		"a create is tried again":        {"create", "reset, after arrival", liar{again: true}, "two were made"},
		"half of it is all of it":        {"exec", "reset", liar{partial: true}, "passes for the whole"},
		"the wait is lost":               {"get", "429 for an hour", liar{gets: func(err error) error { return fault.New(fault.KindUnavailable, "%s", err) }}, "when to try again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, r, err := pair(tc.verb, tc.row)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				verdict := providertest.Record(t.Context(), func(rt providertest.T) {
					c := clouds()["e2b"](rt)
					l := tc.liar
					l.Client, _ = c.p.(*e2b.Client)
					c.p = &l
					play(rt.Context(), rt, c, v, r)
				})
				assert.Equal(t, tc.said != "", verdict.Failed, "%v", verdict.Messages)
				assert.Contains(t, strings.Join(verdict.Messages, "\n"), tc.said)
			})
		})
	}
}

func pair(verbName, rowName string) (verb, row, error) {
	for _, v := range verbs() {
		for _, r := range table() {
			if v.name == verbName && r.name == rowName {
				return v, r, nil
			}
		}
	}
	return verb{}, row{}, errors.New("no such pair: " + verbName + ", " + rowName)
}
