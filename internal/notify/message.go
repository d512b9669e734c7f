package notify

import (
	"cmp"
	"time"

	"sbx/internal/fault"
)

// Kind is what a message is about.
type Kind string

// The closed list. A run that went well has no kind: nobody is notified.
const (
	KindFailed     Kind = "failed"     // the run failed as a whole
	KindPartial    Kind = "partial"    // some sandboxes or providers failed, the rest is done
	KindUnverified Kind = "unverified" // asked to end and not seen to
	KindRefused    Kind = "refused"    // a guard said no, and nothing was done
	KindFound      Kind = "found"      // a check found something wrong
	KindOverdue    Kind = "overdue"    // a run that should have been was not
	KindRecovered  Kind = "recovered"  // the reported trouble is over
)

// Kinds lists every kind.
func Kinds() []Kind {
	return []Kind{KindFailed, KindPartial, KindUnverified, KindRefused, KindFound, KindOverdue, KindRecovered}
}

// KindFor is the message kind for a run that ended with this kind of fault; false where nobody
// is notified: success, a run delayed by another one, and an interrupted run.
func KindFor(kind fault.Kind) (Kind, bool) {
	switch kind {
	case fault.KindNone, fault.KindLocked, fault.KindCanceled:
		return "", false
	case fault.KindPartial:
		return KindPartial, true
	case fault.KindUnverified:
		return KindUnverified, true
	case fault.KindRefused:
		return KindRefused, true
	case fault.KindFound:
		return KindFound, true
	default:
		return KindFailed, true
	}
}

// Message is one notification. Its texts may quote names from sandboxes: control and invisible
// characters are escaped before anything is sent.
type Message struct {
	Verb    string            `json:"verb"` // "cleanup"
	RunID   string            `json:"run_id"`
	Host    string            `json:"host"`
	Kind    Kind              `json:"kind"`
	Key     string            `json:"key"`     // what goes on failing: "cleanup stuck"; a recovery names the same. Empty = Verb
	Title   string            `json:"title"`   // one line; empty = made of verb, kind and host
	Text    string            `json:"text"`    // some lines, plain
	Figures map[string]string `json:"figures"` // "selected": "37"
	At      time.Time         `json:"at"`
	Link    string            `json:"link"` // http or https; anything else is left out
}

// sanitized makes a message fit to be sent anywhere: complete, printable and short.
func (m Message) sanitized() Message {
	m.Verb, m.RunID, m.Host, m.Key = oneLine(m.Verb), oneLine(m.RunID), oneLine(m.Host), oneLine(m.Key)
	m.Key = cmp.Or(m.Key, m.Verb)
	if m.Title = oneLine(m.Title); m.Title == "" {
		m.Title = "sbx " + m.Verb + " " + string(m.Kind)
		if m.Host != "" {
			m.Title += " on " + m.Host
		}
	}
	m.Text = cutText(printableLines(m.Text), mostText)
	figures := make(map[string]string, len(m.Figures))
	for name, value := range m.Figures {
		figures[oneLine(name)] = oneLine(value)
	}
	m.Figures = figures
	m.At = m.At.UTC()
	m.Link = webLink(m.Link)
	return m
}

// severityWord is how loud a kind is, in words that PagerDuty and Alertmanager share.
func (k Kind) severityWord() string {
	switch k {
	case KindFailed, KindRefused, KindOverdue:
		return severityCritical
	default:
		return severityWarning
	}
}

const (
	severityCritical = "critical"
	severityWarning  = "warning"
)
