package notify

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"sbx/internal/httpx"
)

// mostLog is how many bytes of a log go along with a ping: services keep 10 kB or
// more.
const mostLog = 10_000

// PingStart says that a run begins, so that one that never ends is noticed.
// Without a ping it does nothing.
func (n *Notifier) PingStart(ctx context.Context, runID string) error {
	return n.sendPing(ctx, runID, "start", "")
}

// PingEnd says how a run ended: the address itself for exit code 0, with
// /<exit code> behind it for 1 to 255, else with /fail. The log's end goes along.
// A run that another one held up should not ping at all.
func (n *Notifier) PingEnd(ctx context.Context, runID string, exitCode int, log string) error {
	switch {
	case exitCode == 0:
		return n.sendPing(ctx, runID, "", log)
	case exitCode > 0 && exitCode <= 255:
		return n.sendPing(ctx, runID, strconv.Itoa(exitCode), log)
	}
	return n.sendPing(ctx, runID, "fail", log)
}

// sendPing sends one ping; two that are alike count as one, so it may be repeated.
func (n *Notifier) sendPing(ctx context.Context, runID, word, log string) error {
	if n.ping == nil {
		return nil
	}
	ctx, stop := withLimit(ctx)
	defer stop()
	log = printableLines(log)
	log = strings.ToValidUTF8(log[max(0, len(log)-mostLog):], "")
	return n.ping.send(ctx, httpx.Request{
		URL: pingAddress(n.targets.PingURL, word, runID), Body: []byte(log), Again: true,
		Header: map[string][]string{"Content-Type": {"text/plain; charset=utf-8"}, "Accept": {"*/*"}},
	})
}

// pingAddress puts the word behind the path, before any query, and names the run,
// so that the service times overlapping runs apart.
func pingAddress(base, word, runID string) string {
	u, err := url.Parse(base)
	if err != nil { // New has refused it
		return base
	}
	if word != "" {
		u = u.JoinPath(word)
	}
	if runID != "" {
		q := u.Query()
		q.Set("rid", uuidOf(runID))
		u.RawQuery = q.Encode()
	}
	return u.String()
}

// uuidOf gives a run a name in the one form that healthchecks takes: a UUID whose
// content is ours (version 8).
func uuidOf(runID string) string {
	b := sha256.Sum256([]byte(runID))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
