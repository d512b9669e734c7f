package commands

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

// openEnds are the stored requests to end a sandbox.
type openEnds map[sandbox.Ref]sandbox.EndRequest

func (o openEnds) Unconfirmed(context.Context) (map[sandbox.Ref]sandbox.EndRequest, error) {
	return o, nil
}
func (o openEnds) Keep(context.Context, sandbox.Ref, sandbox.EndRequest) error { return nil }
func (o openEnds) Forget(context.Context, sandbox.Ref) error                   { return nil }

// unreadableEnds cannot be read.
type unreadableEnds struct{ openEnds }

func (unreadableEnds) Unconfirmed(context.Context) (map[sandbox.Ref]sandbox.EndRequest, error) {
	return nil, errors.New("disk I/O error")
}

// TestUnconfirmedEndsAreSaid: doctor and `ls --all` name a sandbox that may still run after a request to end it,
// also where its provider lists it no more.
func TestUnconfirmedEndsAreSaid(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("aaaa", time.Minute))
	assert.NotContains(t, b.run(t, "doctor -o json").stdout, "end requests")
	assert.NotContains(t, b.run(t, "ls --all").stderr, "not confirmed")
	assert.NotContains(t, b.run(t, "ls --all -o json").stdout, "unconfirmed")
	at := noon.Add(-2 * time.Hour)
	b.requests = openEnds{
		{Provider: "prod", ID: "lost0001"}:  {At: at, Detail: "HTTP 500"},
		{Provider: "prod", ID: "lost0003"}:  {At: at.Add(-time.Hour)},
		{Provider: "other", ID: "lost0002"}: {At: at, Detail: "HTTP 500"},
		{Provider: "prod", ID: "known001"}:  {At: at, Acknowledged: true},
	}
	var rows []map[string]any
	for _, row := range b.run(t, "doctor -o json").list(t, "items") {
		if row["check"] == "end requests" {
			rows = append(rows, row)
		}
	}
	if assert.Len(t, rows, 2) {
		assert.Equal(t, "prod", rows[1]["provider"])
		assert.Contains(t, rows[0]["message"], "lost0003: its end was requested 3h ")
		assert.Contains(t, rows[1]["message"], "lost0001: its end was requested 2h ")
		assert.Contains(t, rows[1]["message"], "(HTTP 500)")
		assert.Contains(t, rows[1]["hint"], "`sbx terminate prod/lost0001`")
	}
	all := b.run(t, "ls --all").stderr
	assert.Contains(t, all, "prod/lost0001: its end was requested 2h ")
	assert.Contains(t, all, "`sbx terminate prod/lost0003`")
	assert.NotContains(t, all, "lost0002", "of a profile that is not asked")
	assert.NotContains(t, all, "known001")
	assert.NotContains(t, b.run(t, "ls").stderr, "not confirmed")
	ends := b.run(t, "ls --all -o json").list(t, "unconfirmed")
	if assert.Len(t, ends, 2) {
		assert.Equal(t, map[string]any{"ref": "prod/lost0001", "at": at.Format(time.RFC3339Nano), "detail": "HTTP 500"}, ends[1])
	}
	b.requests = unreadableEnds{}
	assert.Contains(t, b.run(t, "ls --all").stderr, "cannot be read: disk I/O error")
	assert.Contains(t, b.run(t, "doctor").stdout, "cannot be read: disk I/O error")
	assert.Contains(t, b.run(t, "ls --all -o json").stdout, `"unconfirmed": null`)
}

// TestAnUnprovedEndCountsAsActive: until it is verified it counts as running, as the hint of terminate says, in each
// verb that counts.
func TestAnUnprovedEndCountsAsActive(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("aaaa", time.Minute))
	active := func() any { return b.run(t, "stats -o json").list(t, "items")[0]["active"] }
	assert.InDelta(t, 1, active(), 0)
	at := noon.Add(-2 * time.Hour)
	b.requests = openEnds{
		{Provider: "prod", ID: "lost0001"}:  {At: at, Detail: "HTTP 500"},
		{Provider: "prod", ID: "aaaa"}:      {At: at, Detail: "HTTP 500"},
		{Provider: "prod", ID: "known001"}:  {At: at, Acknowledged: true},
		{Provider: "other", ID: "lost0002"}: {At: at, Detail: "HTTP 500"},
	}
	assert.InDelta(t, 2, active(), 0, "the listed one counts once")
	const says = "1 counted as active may still run, since the end that was requested is not proved: prod/lost0001"
	assert.Contains(t, b.run(t, "stats").stderr, says)
	verified := b.run(t, "verify")
	assert.Contains(t, verified.stdout+verified.stderr, "prod/lost0001")
	b.requests = unreadableEnds{}
	assert.InDelta(t, 1, active(), 0)
}
