package triage

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/cron"
	"sbx/internal/sandbox"
)

// CleanupLog is what the log of a cleanup job says (R52 R54 R89). A claim that contradicts another
// one is in Doubts and proves nothing.
type CleanupLog struct {
	Lines   int // lines read, of which
	Matched int // so many belong to cleanup
	Dated   int // and so many have a time
	First   time.Time
	Last    time.Time // of all lines with a time
	ReadAt  time.Time
	Runs    []CleanupLogRun
	// NotFound counts removals that failed because the sandbox did not exist (R96).
	NotFound int
	Doubts   []string // what in the log is contradictory, a sentence each
}

// CleanupLogRun is one run of the job by its log.
type CleanupLogRun struct {
	StartedAt time.Time // zero = not known
	EndedAt   time.Time // of a run that completed; zero = not known
	Completed bool
	Found     *int // how many it chose; nil = the log does not say
	Removed   int
	Failed    int
	Error     string // of a run that failed as a whole; untrusted text
	claimed   *int   // how many it says to have removed, in a line of its own
}

// Failure says why the run did not do its work; "" = it did, or is not over.
func (r CleanupLogRun) Failure() string {
	switch {
	case r.Error != "":
		return r.Error
	case r.Failed > 0:
		return fmt.Sprintf("%d of %d sandboxes were not removed", r.Failed, r.Failed+r.Removed)
	}
	return ""
}

// cleanupLogReader reads a log line by line.
type cleanupLogReader struct {
	log        CleanupLog
	known      []Pattern
	now        time.Time
	open       bool // the last run has begun and not ended
	outOfOrder int  // lines whose time is before that of the line above
	inFuture   int  // lines whose time is still to come
	unbegun    int  // ends without a beginning
}

// ReadCleanupLog reads a job's log. Lines begin with their time or are JSON objects with one; both
// spellings of the messages are known. now is this machine's time.
func ReadCleanupLog(text string, now time.Time) CleanupLog {
	r := cleanupLogReader{known: cleanupPatterns(), now: now, log: CleanupLog{ReadAt: now}}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			r.add(line)
		}
	}
	r.addDoubts()
	return r.log
}

// logClockSkew is how far the clock of the job's machine may differ.
const logClockSkew = time.Minute

func (r *cleanupLogReader) add(line string) {
	r.log.Lines++
	at, message := splitLogTime(line)
	if !at.IsZero() {
		r.log.Dated++
	}
	switch {
	case at.IsZero():
	case at.After(r.now.Add(logClockSkew)):
		r.inFuture++
		return
	case at.Add(logClockSkew).Before(r.log.Last):
		r.outOfOrder++
		return
	default:
		if r.log.First.IsZero() {
			r.log.First = at
		}
		if at.After(r.log.Last) {
			r.log.Last = at
		}
	}
	lower := strings.ToLower(message)
	i := slices.IndexFunc(r.known, func(p Pattern) bool {
		return slices.ContainsFunc(p.literals, func(words string) bool { return strings.Contains(lower, words) })
	})
	if i < 0 {
		return
	}
	r.log.Matched++
	if strings.Contains(lower, "sandbox not found") {
		r.log.NotFound++
	}
	r.addMessage(r.known[i].ID, message, at)
}

func (r *cleanupLogReader) addMessage(id, message string, at time.Time) {
	if id == "cleanup_started" {
		r.log.Runs = append(r.log.Runs, CleanupLogRun{StartedAt: at})
		r.open = true
		return
	}
	if !r.open {
		if id == "cleanup_completed" || id == "cleanup_failed" {
			r.unbegun++
		}
		r.log.Runs = append(r.log.Runs, CleanupLogRun{})
		r.open = true
	}
	run := &r.log.Runs[len(r.log.Runs)-1]
	switch id {
	case "cleanup_found":
		run.Found = numberIn(message)
	case "cleanup_removed":
		run.addRemoval(message)
	case "cleanup_item_failed":
		run.Failed++
	case "cleanup_failed":
		run.Error, run.EndedAt, r.open = shortenLine(message), at, false
	case "cleanup_completed":
		run.Completed, run.EndedAt, r.open = true, at, false
		if claimed := numberIn(message); claimed != nil {
			run.claimed = claimed
		}
	}
}

// addRemoval counts a line with the words "cleaned up": of one sandbox, of one that was not
// removed, or of a number of them, which is a claim beside the lines of each.
func (r *CleanupLogRun) addRemoval(message string) {
	lower := strings.ToLower(message)
	switch {
	case negatedRemoval.MatchString(lower):
		r.Failed++
	case noRemoval.MatchString(lower):
		r.claimed = new(0)
	case countedRemoval.MatchString(lower):
		r.claimed = numberIn(countedRemoval.FindString(lower))
	default:
		r.Removed++
	}
}

func (r *cleanupLogReader) addDoubts() {
	doubt := func(n int, format string) {
		if n > 0 {
			r.log.Doubts = append(r.log.Doubts, fmt.Sprintf(format, n))
		}
	}
	doubt(r.inFuture, "the time of %d lines is in the future; they are not used")
	doubt(r.outOfOrder, "the time of %d lines is before that of earlier lines; they are not used")
	doubt(r.unbegun, "%d runs end without a beginning: the log is cut, or lines are missing")
	different, short := 0, 0
	for i, run := range r.log.Runs {
		last := i == len(r.log.Runs)-1
		switch {
		case run.claimed != nil && *run.claimed != run.Removed && run.Removed > 0:
			different++
		case run.Completed && run.Found != nil && *run.Found != run.Removed+run.Failed && run.Removed+run.Failed > 0:
			short++
		case !run.Completed && run.Error == "" && !last:
			short++
		}
	}
	doubt(different, "%d runs claim another number of removed sandboxes than their lines show")
	doubt(short, "%d runs do not say what became of every sandbox")
}

// splitLogTime takes the time off the beginning of a line; zero where it has none.
func splitLogTime(line string) (at time.Time, message string) {
	if strings.HasPrefix(line, "{") {
		if at, message, ok := splitJSONLine(line); ok {
			return at, message
		}
	}
	fields := strings.SplitN(line, " ", 3)
	for n := min(2, len(fields)); n > 0; n-- {
		word := strings.Trim(strings.Join(fields[:n], " "), "[]():,")
		if at, ok := sandbox.ParseTime(word); ok {
			return at, strings.Join(fields[n:], " ")
		}
	}
	return time.Time{}, line
}

// splitJSONLine reads a line of a structured log.
func splitJSONLine(line string) (at time.Time, message string, ok bool) {
	var object map[string]any
	if json.Unmarshal([]byte(line), &object) != nil {
		return at, "", false
	}
	for _, key := range []string{"timestamp", "time", "ts", "at"} {
		switch v := object[key].(type) {
		case string:
			at, _ = sandbox.ParseTime(v)
		case float64: // milliseconds, as workers write it
			at = time.UnixMilli(int64(v)).UTC()
		}
		if !at.IsZero() {
			break
		}
	}
	for _, key := range []string{"message", "msg", "text"} {
		switch v := object[key].(type) {
		case string:
			return at, v, true
		case []any:
			return at, strings.Trim(fmt.Sprint(v...), "[]"), true
		}
	}
	return at, line, true
}

var (
	firstNumber    = regexp.MustCompile(`\d+`)
	negatedRemoval = regexp.MustCompile(`(\bnot|n't|cannot)( be| been)? cleaned up`)
	noRemoval      = regexp.MustCompile(`^(no|nothing)\b.*cleaned up`)
	countedRemoval = regexp.MustCompile(`cleaned up \d+ sandbox`)
)

func numberIn(text string) *int {
	n, err := strconv.Atoi(firstNumber.FindString(text))
	if err != nil {
		return nil
	}
	return &n
}

// newest is the newest run whose time is known, and since when nothing has failed. Zero where the
// log names no time.
func (l CleanupLog) newest() (at time.Time, failures int64) {
	for _, run := range l.Runs {
		for _, moment := range []time.Time{run.StartedAt, run.EndedAt} {
			if moment.After(at) {
				at = moment
			}
		}
		switch {
		case run.Failure() != "":
			failures++
		case run.Completed:
			failures = 0
		}
	}
	return at, failures
}

// Readable reports whether the log tells whether cleanup runs: it has lines of cleanup, or spans
// long enough to show that there are none (R55).
func (l CleanupLog) Readable(every time.Duration) bool {
	return l.Matched > 0 || l.Last.Sub(l.First) > cron.Limit(every)
}

// AddTo adds what the log says to the signals of a profile.
func (l CleanupLog) AddTo(sig *FleetSignals, every time.Duration) {
	if !l.Readable(every) {
		return
	}
	at, failures := l.newest()
	if l.Matched > 0 && at.IsZero() { // it ran, and nobody knows when
		return
	}
	sig.CleanupRead, sig.CleanupNotFound = true, new(int64(l.NotFound))
	if at.After(sig.CleanupSeen) {
		sig.CleanupSeen, sig.CleanupFailures = at, &failures
	}
}
