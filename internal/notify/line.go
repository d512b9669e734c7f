package notify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/httpx"
)

const hintLost = "only the notification is missing; the run's own result is complete"

// line is the way to one service.
type line struct {
	name   string
	client *httpx.Client
}

// newLine opens the way to an address; what is secret about it, and whatever of it
// could give it away, is hidden from errors and traces.
func newLine(n httpx.Net, name, address, secret string) (*line, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fault.Usage("%s: its address is not an http or https address", name).
			WithHint("check the setting notify.%s_* and the value of its variable: https://host/path", name)
	}
	var secrets []string
	if secret != "" {
		secrets = append(secrets, secret)
	}
	if secret == address {
		secrets = append(secrets, secretParts(u)...)
	}
	client, err := httpx.New(n, httpx.Options{Profile: name, Base: u.Scheme + "://" + u.Host, Secrets: secrets, Explain: explainRefusal, Gone: true})
	if err != nil {
		return nil, err
	}
	return &line{name: name, client: client}, nil
}

// secretParts are the spellings and pieces of a secret address, its host included: some
// services put the key there.
func secretParts(u *url.URL) []string {
	const telling = 8 // characters from which a piece of a path is one of a kind
	list := []string{u.String(), u.Host, u.Hostname(), u.Path, u.EscapedPath(), u.RequestURI(), u.RawQuery}
	for _, piece := range strings.FieldsFunc(u.Path+"/"+u.RawQuery, func(r rune) bool { return strings.ContainsRune("/?&=", r) }) {
		if len(piece) >= telling {
			list = append(list, piece)
		}
	}
	return list
}

func (l *line) send(ctx context.Context, r httpx.Request) error {
	r.Op, r.Method = "notify", "POST"
	if r.Again {
		r.Timeout = attempt
	}
	_, err := l.client.Do(ctx, r)
	return l.withOwnHint(err)
}

// withOwnHint puts a hint of its own in place of those that are about providers.
func (l *line) withOwnHint(err error) error {
	known, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	own := *known
	switch own.Kind {
	case fault.KindAuth, fault.KindNotFound, fault.KindGone, fault.KindUnsupported:
		own.Hint = "the address or the key may have changed: check notify." + l.name + "_* in `sbx config explain`"
	case fault.KindTimeout, fault.KindCanceled:
		own.Kind, own.Err = fault.KindUnavailable, fmt.Errorf("not notified in time: %w", own.Err)
		own.Hint = hintLost
	default:
		own.Hint = hintLost
	}
	return &own
}

// explainRefusal reads what the services say of a refusal: PagerDuty's list of errors,
// Slack's bare word.
func explainRefusal(status int, body []byte) (code, message string) {
	if listed := listedErrors(body); listed != "" {
		return "", listed
	}
	if code, message = httpx.Explain(status, body); message != "" {
		return code, message
	}
	if text := strings.TrimSpace(string(body)); !strings.HasPrefix(text, "<") && !strings.HasPrefix(text, "{") {
		return "", cutText(text, mostLine)
	}
	return "", ""
}

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
