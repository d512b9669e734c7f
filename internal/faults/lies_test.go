package faults_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/testkit/wiretest"
)

// source is who answers: in one run one source lies, and what two of them say together is true.
type source string

// The sources of a sandbox. Where a provider has one more witness of an end, such as the edge of E2B or the name of
// a session of Vercel, it is the host.
const (
	sourceRecord source = "record" // the record by id
	sourceList   source = "list"
	sourceHost   source = "host"
	sourceInside source = "inside" // figures, logs, commands
	sourceAnswer source = "answer" // the answer to a request of ours
	sourceLog    source = "log"    // the provider's record of events
	sourceClock  source = "clock"
)

// sources are the sources of a cloud, with their routes.
func (c *cloud) sources() map[source][]string {
	all := map[source][]string{
		sourceRecord: {c.get}, sourceList: {c.list}, sourceAnswer: {c.stop, c.destroy}, sourceInside: nil, sourceClock: {""},
	}
	for _, route := range c.inside {
		all[sourceInside] = append(all[sourceInside], route)
	}
	all[sourceInside] = append(all[sourceInside], c.looks...)
	slices.Sort(all[sourceInside])
	all[sourceInside] = slices.Compact(all[sourceInside])
	if c.stop == c.destroy {
		all[sourceAnswer] = all[sourceAnswer][:1]
	}
	maps.Copy(all, c.more)
	return all
}

// lie is what one source says instead of the truth.
type lie struct {
	from    source
	name    string
	about   string // the id; "" = every sandbox
	times   int    // how often; 0 = until the world is mended
	faults  []wiretest.Fault
	forgets bool // the node fails to end what the API has forgotten
	ignored bool // acknowledged and not done
	ages    bool // every time of a creation is too early, by a clock whose Date is right: no other source has an age
}

func (l lie) String() string {
	about, times := "all", "for ever"
	if l.about != "" {
		about = l.about
	}
	if l.times > 0 {
		times = strconv.Itoa(l.times) + " times"
	}
	return fmt.Sprintf("%s: %s about %s, %s", l.from, l.name, about, times)
}

// hides reports whether no source is left that could show what a rule selects: the list is the only one that names a
// sandbox, and the body the only one that says when it was created.
func (l lie) hides() bool {
	return slices.Contains([]string{"row missing", "empty", "stale", "it has stopped"}, l.name) && l.from == sourceList || l.from == sourceClock
}

// spares reports whether the lie is about another sandbox, so that it may change nothing for this one.
func (l lie) spares(id string) bool {
	return l.about != "" && l.about != id && !l.forgets && !l.ignored
}

// statuses are the answers that any source may give instead of its own.
func statuses() []int {
	return []int{400, 401, 403, 404, 409, 410, 412, 422, 429, 500, 502, 503, 504}
}

// newLie draws a lie about one of the sandboxes of a cloud, or about all.
func newLie(r *rand.Rand, c *cloud, ids []string) lie {
	sources := c.sources()
	var names []string
	for of := range sources {
		names = append(names, string(of))
	}
	slices.Sort(names)
	l := lie{from: source(names[r.IntN(len(names))]), times: []int{0, 0, 1, 2, 3, 5}[r.IntN(6)]}
	if r.IntN(3) > 0 && l.from != sourceList && l.from != sourceClock && l.from != sourceHost {
		l.about = ids[r.IntN(len(ids))]
	}
	var one wiretest.Fault
	l.name, one = l.draw(r, c, ids)
	one.Contains, one.Times = c.shownAs(l.about), l.times
	for _, route := range sources[l.from] {
		one.Route = route
		l.faults = append(l.faults, one)
	}
	return l
}

// choice is what a source may say.
type choice struct {
	name  string
	fault wiretest.Fault
}

// clockLies are the lies of a clock that is wrong by some time.
func clockLies(r *rand.Rand) []choice {
	shift := time.Duration([]int{-180, -90, -5, 5, 90, 180}[r.IntN(6)]) * time.Minute
	date := wiretest.Fault{HeaderFunc: func() map[string]string {
		return map[string]string{"Date": time.Now().Add(shift).UTC().Format(http.TimeFormat)}
	}}
	both := date
	both.Edit = shiftTimes(shift)
	return []choice{
		{"Date " + shift.String(), date},
		{"body " + shift.String(), wiretest.Fault{Edit: shiftTimes(shift)}},
		{"both " + shift.String(), both},
		{"naive", wiretest.Fault{Edit: func(body []byte) []byte { return zoned.ReplaceAll(body, []byte(`"$1"`)) }}},
	}
}

// draw draws what the source says.
func (l *lie) draw(r *rand.Rand, c *cloud, ids []string) (string, wiretest.Fault) {
	status := statuses()[r.IntN(len(statuses()))]
	choices := []choice{
		{"status " + strconv.Itoa(status), wiretest.Fault{Status: status, Body: fmt.Sprintf(`{"code":%d,"message":"no","statusCode":%d}`, status, status)}},
		{"late by seconds", wiretest.Fault{Delay: time.Duration(1+r.IntN(8)) * time.Second}},
		{"cut", wiretest.Fault{Trouble: wiretest.TroubleTruncate}},
	}
	stale := choice{"stale", wiretest.Fault{Stale: true}}
	stopped := choice{"it has stopped", wiretest.Fault{Edit: func(body []byte) []byte { return []byte(strings.NewReplacer(c.stops...).Replace(string(body))) }}}
	switch l.from {
	case sourceRecord:
		choices = append(choices, stale, stopped, stopped, choices[0], choices[0])
		if l.about != "" && !slices.Contains([]string{"docker", "kubernetes", "vercel"}, c.kind.Name) {
			choices = append(choices, choice{"another's body", wiretest.Fault{Other: ids[r.IntN(len(ids))]}})
		}
	case sourceList:
		victim := c.shownAs(ids[r.IntN(len(ids))])
		choices = append(choices, stale, stopped,
			choice{"row missing", wiretest.Fault{Edit: editRows(func(row string) int { return count(!strings.Contains(row, victim)) })}},
			choice{"row twice", wiretest.Fault{Edit: editRows(func(row string) int { return 1 + count(strings.Contains(row, victim)) })}},
			choice{"empty", wiretest.Fault{Edit: editRows(func(string) int { return 0 })}})
	case sourceHost, sourceInside, sourceLog:
		choices = append(choices, stale, stopped)
	case sourceAnswer:
		choices = append(choices, choices[0], choice{"twice", wiretest.Fault{Twice: true}},
			choice{"done, " + choices[0].name, wiretest.Fault{Status: status, Body: choices[0].fault.Body, Late: true}},
			choice{"done, no answer", wiretest.Fault{Trouble: wiretest.TroubleReset, Late: true}},
			choice{"acknowledged, not done", wiretest.Fault{}})
		if c.nodeFails != nil {
			choices = append(choices, choice{"the node fails", wiretest.Fault{Twice: r.IntN(2) == 0}})
		}
	case sourceClock:
		choices = clockLies(r)
	}
	drawn := choices[r.IntN(len(choices))]
	l.ages = strings.HasPrefix(drawn.name, "body -")
	l.forgets = drawn.name == "the node fails"
	l.ignored = drawn.name == "acknowledged, not done"
	return drawn.name, drawn.fault
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// shownAs is what lists and addresses have of a sandbox; "" of all.
func (c *cloud) shownAs(id string) string {
	if c.kind.Name == "kubernetes" && id != "" { // kind.name.uid
		return strings.Split(id, ".")[1]
	}
	return id
}

// editRows edits the first array of objects in a body: each row comes as often as copies says.
func editRows(copies func(row string) int) func([]byte) []byte {
	return func(body []byte) []byte {
		var whole any
		if json.Unmarshal(body, &whole) != nil {
			return body
		}
		edited, err := json.Marshal(editFirst(whole, copies))
		if err != nil {
			return body
		}
		return edited
	}
}

func editFirst(value any, copies func(row string) int) any {
	switch v := value.(type) {
	case []any:
		rows := []any{}
		for _, row := range v {
			text, _ := json.Marshal(row) // it was read from JSON
			for range copies(string(text)) {
				rows = append(rows, row)
			}
		}
		return rows
	case map[string]any:
		for _, key := range []string{"items", "sandboxes", "events"} {
			if rows, has := v[key].([]any); has {
				v[key] = editFirst(rows, copies)
			}
		}
	}
	return value
}

var (
	zoned  = regexp.MustCompile(`"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)(?:Z|[+-]\d\d:\d\d)"`)
	millis = regexp.MustCompile(`\b9\d{11}\b`) // of the year in which virtual time begins
)

var (
	figure = regexp.MustCompile(`"(cpu\w*|mem\w*|operations|duration_ms)":[\d.]+`)
	stamp  = regexp.MustCompile(`"(timestampUnix|ts)":(\d+)`)
)

// unreadFigures makes every figure of a body null.
func unreadFigures(body []byte) []byte { return figure.ReplaceAll(body, []byte(`"$1":null`)) }

// shiftStamps shifts the times of samples.
func shiftStamps(by time.Duration) func([]byte) []byte {
	return func(body []byte) []byte {
		body = stamp.ReplaceAllFunc(body, func(text []byte) []byte {
			parts := stamp.FindSubmatch(text)
			n, err := strconv.ParseInt(string(parts[2]), 10, 64)
			if err != nil {
				return text
			}
			return fmt.Appendf(nil, `"%s":%d`, parts[1], n+int64(by.Seconds()))
		})
		return shiftTimes(by)(body)
	}
}

// shiftTimes shifts every time of a body.
func shiftTimes(by time.Duration) func([]byte) []byte {
	return func(body []byte) []byte {
		body = zoned.ReplaceAllFunc(body, func(text []byte) []byte {
			at, err := time.Parse(time.RFC3339Nano, strings.Trim(string(text), `"`))
			if err != nil {
				return text
			}
			return []byte(`"` + at.Add(by).Format(time.RFC3339Nano) + `"`)
		})
		return millis.ReplaceAllFunc(body, func(text []byte) []byte {
			n, err := strconv.ParseInt(string(text), 10, 64)
			if err != nil {
				return text
			}
			return strconv.AppendInt(nil, n+by.Milliseconds(), 10)
		})
	}
}
