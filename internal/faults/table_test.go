package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/testkit/wiretest"
)

// row is one fault.
type row struct {
	name string
	make func(c *cloud) wiretest.Fault
	on   []string     // the verbs that it concerns; nil = all
	may  []fault.Kind // what a verb that fails may say
	pass bool         // it may also succeed
	must bool         // it has to succeed
	wait time.Duration
	set  func(c *cloud) // done to the cloud instead of a fault in front of it

	outcome []string // of an end; nil = whatever does not contradict the truth
}

const (
	auth = fault.KindAuth
	down = fault.KindUnavailable
)

// Groups of verbs.
func reads() []string { return []string{"list", "page 2", "get", "usage", "logs", "exit"} }

func plain(f wiretest.Fault) func(*cloud) wiretest.Fault {
	return func(*cloud) wiretest.Fault { return f }
}

// table lists all faults.
func table() []row {
	return slices.Concat(refusals(), serverErrors(), nothings(), others(), connections(), endless(), redirects(), pages(), clocks(), ends())
}

func refusals() []row {
	var all []row
	for _, status := range []int{401, 403} {
		all = append(all, row{name: fmt.Sprintf("%d with the key in its text", status), may: []fault.Kind{auth}, make: func(c *cloud) wiretest.Fault {
			return wiretest.Fault{Status: status, Body: fmt.Sprintf(`{"message":"the key %s is not known","error":{"code":"x","message":"Bearer %s"}}`, c.secret, c.secret)}
		}})
	}
	return append(all,
		row{name: "404", make: plain(wiretest.Status(404)), may: []fault.Kind{fault.KindNotFound, down, fault.KindUnsupported, fault.KindUnknown}, pass: true},
		row{name: "409", make: plain(wiretest.Status(409)), may: []fault.Kind{fault.KindUnknown, down, fault.KindRefused}}, // its state forbids it
		row{name: "410", make: plain(wiretest.Status(410)), may: []fault.Kind{fault.KindGone, down, fault.KindUnknown}},
		row{name: "429 for a second, once", make: plain(times(1, wiretest.TooMany(map[string]string{"Retry-After": "1"}))), may: []fault.Kind{down}, pass: true},
		row{name: "429 for a second", make: plain(wiretest.TooMany(map[string]string{"Retry-After": "1"})), may: []fault.Kind{down}, wait: time.Second},
		row{name: "429 for an hour", make: plain(wiretest.TooMany(map[string]string{"Retry-After": "3600"})), may: []fault.Kind{down}, wait: time.Hour},
		row{name: "429 for an hour, by a suffixed header", make: plain(wiretest.TooMany(map[string]string{"Retry-After-Sandbox-Create": "3600"})), may: []fault.Kind{down}, wait: time.Hour},
		row{name: "429 without a time", make: plain(wiretest.TooMany(nil)), may: []fault.Kind{down}},
	)
}

func times(n int, f wiretest.Fault) wiretest.Fault { f.Times = n; return f }

func lately(f wiretest.Fault) wiretest.Fault { f.Late = true; return f }

func answer(status int, kind, body string) wiretest.Fault {
	return wiretest.Fault{Status: status, Body: body, Header: map[string]string{"Content-Type": kind}}
}

func serverErrors() []row {
	page := answer(503, "text/html", "<!doctype html><title>Bad gateway</title>")
	return []row{
		{name: "500 once", make: plain(times(1, wiretest.Status(500))), on: reads(), must: true},
		{name: "500 once, of what changes something", make: plain(times(1, wiretest.Status(500))), on: []string{"stop", "delete", "create", "exec"}, may: []fault.Kind{down}, pass: true},
		{name: "500", make: plain(wiretest.Status(500)), may: []fault.Kind{down}},
		{name: "503 as a web page", make: plain(page), may: []fault.Kind{down}},
		{name: "502 after arrival", make: plain(lately(wiretest.Status(502))), may: []fault.Kind{down}, pass: true},
	}
}

// nothings are answers of 200 without the requested object.
func nothings() []row {
	var all []row
	json := "application/json"
	for name, f := range map[string]wiretest.Fault{
		"a web page": wiretest.HTML(), "a web page called JSON": answer(200, json, "<!doctype html><title>Sign in</title>"), "garbage": wiretest.Garbage(),
		"half a document": answer(200, json, `{"id":"a","state":"sta`), "an empty body": answer(200, json, ""), "null": answer(200, json, "null"), "{}": answer(200, json, "{}"),
		"204": {Status: 204}, "an error in a 200": answer(200, json, `{"error":{"code":"internal","message":"try later"},"statusCode":500}`),
		"binary": answer(200, "application/octet-stream", "\x00\x01\xff\xfe\x1f\x8b\x08"), "a number": answer(200, json, "7"), "a text": answer(200, json, `"fine"`),
	} {
		all = append(all, row{name: "200 of " + name, make: plain(f), may: []fault.Kind{down}})
	}
	return append(all,
		row{name: "200 of []", on: []string{"get", "stop", "delete", "create"}, make: plain(answer(200, json, "[]")), may: []fault.Kind{down}},
		row{name: "a row is null", on: []string{"list", "page 2"}, make: edited(func(_ *cloud, rows []any) { rows[0] = nil }), may: []fault.Kind{down}},
		row{name: "a row without id", on: []string{"list", "page 2"}, make: edited(func(_ *cloud, rows []any) {
			if held, ok := rows[0].(map[string]any); ok {
				meta, _ := held["metadata"].(map[string]any)
				for _, key := range []string{"id", "Id", "sandboxID", "name", "uid", "currentSessionId"} {
					delete(held, key)
					delete(meta, key)
				}
			}
		}), may: []fault.Kind{down}},
		row{name: "an odd row", on: []string{"list", "page 2"}, make: edited(func(_ *cloud, rows []any) { rows[0] = []any{7, "x"} }), may: []fault.Kind{down}},
	)
}

// edited changes the rows of a list.
func edited(edit func(c *cloud, rows []any)) func(c *cloud) wiretest.Fault {
	return func(c *cloud) wiretest.Fault {
		return wiretest.Fault{Edit: func(body []byte) []byte {
			var whole any
			if json.Unmarshal(body, &whole) != nil {
				return body
			}
			rows, found := whole.([]any)
			for _, key := range []string{"items", "sandboxes"} {
				if held, ok := whole.(map[string]any); ok && !found {
					rows, found = held[key].([]any)
				}
			}
			if len(rows) > 0 {
				edit(c, rows)
			}
			text, _ := json.Marshal(whole) // it was JSON
			return text
		}}
	}
}

func others() []row {
	return []row{
		{name: "an answer about another", on: []string{"get", "stop", "delete"}, may: []fault.Kind{down}, make: func(c *cloud) wiretest.Fault {
			return wiretest.Fault{Edit: func(body []byte) []byte {
				return bytes.ReplaceAll(body, []byte(c.shownAs(c.id)), []byte(stranger(c.shownAs(c.id))))
			}}
		}},
		{name: "an answer about one that is there, too", on: []string{"get"}, may: []fault.Kind{down}, make: func(c *cloud) wiretest.Fault {
			return wiretest.Fault{Contains: c.shownAs(c.id), Other: c.shownAs(c.other)}
		}},
		{name: "a wrong content type", on: reads(), make: plain(wiretest.Fault{Header: map[string]string{"Content-Type": "text/plain"}}), may: []fault.Kind{down}, pass: true},
	}
}

func connections() []row {
	var all []row
	for name, f := range map[string]wiretest.Fault{
		"reset": {Trouble: wiretest.TroubleReset}, "no answer": {Trouble: wiretest.TroubleHang}, "a cut in the middle": {Trouble: wiretest.TroubleTruncate},
		"half an answer, then nothing": {Trouble: wiretest.TroubleHangBody}, "a byte a second": {Trouble: wiretest.TroubleDrip},
	} {
		all = append(all, row{name: name, make: plain(f), may: []fault.Kind{down, fault.KindTimeout}, pass: name == "a cut in the middle" || name == "half an answer, then nothing" || name == "a byte a second"},
			row{name: name + ", once", on: reads(), make: plain(times(1, f)), must: true})
		if f.Trouble == wiretest.TroubleReset || f.Trouble == wiretest.TroubleHang {
			all = append(all, row{name: name + ", after arrival", make: plain(lately(f)), may: []fault.Kind{down, fault.KindTimeout}, pass: true})
		}
	}
	return all
}

// flood is more than any client reads; the fake counts the bytes that were received.
const flood = 500 << 20

func endless() []row {
	var all []row
	for name, char := range map[string]byte{"blanks": ' ', "brackets": '['} {
		for _, length := range []bool{true, false} {
			all = append(all, row{name: fmt.Sprintf("500 MB of %s, with a length: %t", name, length), may: []fault.Kind{down}, pass: false, make: plain(wiretest.Fault{Status: 200, Flood: flood, FloodOf: char, Length: length})})
		}
	}
	return all
}

func redirects() []row {
	var all []row
	for _, status := range []int{302, 307} {
		for name, to := range map[string]string{
			"another host": "http://elsewhere.example/", "another port": "http://e2b:8081/", "another scheme": "ftp://e2b/x", "user information": "http://user:word@elsewhere.example/",
			"no address": "", "a file": "file:///etc/passwd",
		} {
			all = append(all, row{name: strconv.Itoa(status) + " to " + name, may: []fault.Kind{down, fault.KindUnknown, fault.KindUsage}, make: plain(wiretest.Fault{Status: status, Header: map[string]string{"Location": to}})})
		}
	}
	return all
}

// pages are lists without an end, or with another one at each read.
func pages() []row {
	on := []string{"page 2"}
	tokens := func(next func(n int) string) func(*cloud) wiretest.Fault {
		return func(c *cloud) wiretest.Fault {
			n := 0
			return wiretest.Fault{
				Edit: func(body []byte) []byte { n++; return setNext(body, next(n)) }, Forget: strings.TrimSuffix(c.second, "="),
				Header: map[string]string{"X-Next-Token": "again"},
			}
		}
	}
	return []row{
		{name: "a token that comes again", on: on, make: tokens(func(int) string { return "again" }), may: []fault.Kind{down}},
		{name: "pages that repeat, under new tokens for ever", on: on, may: []fault.Kind{down}, make: func(c *cloud) wiretest.Fault {
			n := 0
			f := tokens(func(n int) string { return "token-" + strconv.Itoa(n) })(c)
			f.HeaderFunc = func() map[string]string { n++; return map[string]string{"X-Next-Token": "token-" + strconv.Itoa(n)} }
			return f
		}},
		{name: "rows twice", on: []string{"list"}, must: true, make: func(*cloud) wiretest.Fault {
			return wiretest.Fault{Edit: func(body []byte) []byte { return twice(body) }}
		}},
		{name: "page 2 fails", on: on, make: plain(wiretest.Status(500)), may: []fault.Kind{down}},
		{name: "page 2 fails, for good", on: on, make: plain(wiretest.Status(400)), may: []fault.Kind{fault.KindUnknown, down, fault.KindUsage}},
	}
}

// setNext puts a cursor into the body of a page that holds one.
func setNext(body []byte, next string) []byte {
	var whole map[string]any
	if json.Unmarshal(body, &whole) != nil {
		return body
	}
	if _, there := whole["nextCursor"]; there {
		whole["nextCursor"] = next
	}
	if p, ok := whole["pagination"].(map[string]any); ok {
		p["next"] = next
	}
	text, _ := json.Marshal(whole) // it was JSON
	return text
}

// twice repeats each row of a page.
func twice(body []byte) []byte {
	var whole any
	if json.Unmarshal(body, &whole) != nil {
		return body
	}
	double := func(v any) any {
		if rows, ok := v.([]any); ok {
			return append(rows, rows...)
		}
		return v
	}
	if held, ok := whole.(map[string]any); ok {
		for _, key := range []string{"items", "sandboxes"} {
			if rows, there := held[key]; there {
				held[key] = double(rows)
			}
		}
	} else {
		whole = double(whole)
	}
	text, _ := json.Marshal(whole) // it was JSON
	return text
}

func clocks() []row {
	var all []row
	for _, off := range []time.Duration{-2 * time.Hour, 2 * time.Hour, 10 * time.Minute} {
		all = append(all, row{name: "a clock that is off by " + off.String(), on: []string{"list", "get", "usage"}, must: true, make: func(*cloud) wiretest.Fault {
			return wiretest.Fault{HeaderFunc: func() map[string]string {
				return map[string]string{"Date": time.Now().Add(off).UTC().Format("Mon, 02 Jan 2006 15:04:05") + " GMT"}
			}}
		}})
	}
	return all
}

// ends are terminates whose answer differs from their effect.
func ends() []row {
	on := []string{"stop", "delete"}
	return []row{
		{name: "accepted, and nothing happens", on: []string{"stop"}, set: func(c *cloud) { c.ignoresEnds(true) }, outcome: []string{"accepted", "stuck"}},
		{name: "accepted, and it happens 200 ms later", on: on, set: func(c *cloud) { c.slow() }, outcome: []string{"verified"}},
		{name: "it happens 200 ms later, and the list flaps", on: on, set: func(c *cloud) { c.slow(); c.flaps() }, outcome: []string{"verified", "accepted"}},
		{name: "refused, and forgotten", on: []string{"delete"}, set: func(c *cloud) { c.orphans() }, outcome: []string{"accepted", "stuck", "failed"}},
		{name: "refused, and done", on: on, make: plain(lately(wiretest.Status(500))), may: []fault.Kind{down}, pass: true},
	}
}

// flaps delays the list against reads by id, as a search index does (Daytona, issue 5138): after a
// terminate it lacks the sandbox, which still runs; then it shows the old row once more; at last it
// agrees.
func (c *cloud) flaps() {
	var before []byte
	var asked time.Time
	c.server.Break(wiretest.Fault{Route: c.list, Edit: func(body []byte) []byte {
		if len(c.server.Calls(c.stop))+len(c.server.Calls(c.destroy)) == 0 {
			before = bytes.Clone(body)
			return body
		}
		if asked.IsZero() {
			asked = time.Now()
		}
		switch since := time.Since(asked); {
		case since < 100*time.Millisecond:
			return bytes.ReplaceAll(body, []byte(c.id), []byte(stranger(c.id)))
		case since < 2700*time.Millisecond && before != nil:
			return before
		}
		return body
	}})
	for _, err := range c.p.List(context.Background(), providers.Query{}) { // so that there is a list from before
		if err != nil {
			panic(err) // nothing stands before it yet
		}
	}
}
