package sandbox

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Labels that sbx itself writes or reads, at every provider.
const (
	LabelOwner     = "sbx/owner"      // that sbx made it; config's `owned` uses it
	LabelName      = "sbx/name"       // where the provider generates names, or has none
	LabelTask      = "sbx/task"       // Spec.TaskID
	LabelAgentType = "sbx/agent-type" // Spec.AgentType
	LabelKeep      = "sbx/keep"       // protects it from being ended, see Kept
	LabelRun       = "sbx/run"        // the tag of the program that create started
	// LabelUnreadable holds the labels of a provider's answer that cannot be read: it may be protected, so it is kept.
	LabelUnreadable = "sbx/unreadable"
	LabelExpires    = "sbx/expires-at" // when it ends by itself, where the provider has no field for that, see ExpiresBy
	LabelNonce      = "sbx/nonce"      // identifies a sandbox whose create had no answer
	LabelKeptUntil  = "sbx/kept-until" // the latest time until which `run --keep-alive` keeps it, see KeptAtMost
)

// CreateLabels are the labels of a new sandbox at a provider that stores nothing but labels:
// the requested ones, its owner, name, task and agent type.
func (s Spec) CreateLabels() map[string]string {
	marks := map[string]string{LabelOwner: "sbx"}
	maps.Copy(marks, s.Labels)
	for label, value := range map[string]string{LabelName: s.Name, LabelTask: s.TaskID, LabelAgentType: s.AgentType} {
		if value != "" {
			marks[label] = value
		}
	}
	return marks
}

// KeptAtMost is the latest time until which sbx itself keeps a sandbox, by the label of its
// launch: sbx stops keeping it when its task fails or is ended, which the task's record says.
// Zero = it is not kept, or the label is no time. Unlike LabelKeep it does not protect a
// sandbox that is named explicitly.
func KeptAtMost(labels map[string]string) time.Time {
	text := labels[LabelKeptUntil]
	if text == "" {
		return time.Time{}
	}
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return until
}

// ExpiresBy is the time of the label LabelExpires; zero without one, and where it is no time.
func ExpiresBy(labels map[string]string) time.Time {
	until, err := time.Parse(time.RFC3339, labels[LabelExpires])
	if err != nil {
		return time.Time{}
	}
	return until.UTC()
}

// Metadata maps a provider's labels to task, agent type and owner, in addition to the labels
// of sbx itself. Of several keys the first one present counts.
type Metadata struct {
	Task      []string
	AgentType []string
	Owner     []string // shown to people; it does not make a sandbox owned by sbx
}

// DefaultMetadata has the keys that users of the providers' SDKs commonly write.
func DefaultMetadata() Metadata {
	return Metadata{Task: []string{"task_id"}, AgentType: []string{"agent_type"}, Owner: []string{"owner"}}
}

// Read sets the task, agent type and owner of a sandbox from its labels. The provider's own
// fields come first, then the labels of sbx.
func (m Metadata) Read(s Sandbox) Sandbox {
	for _, meaning := range []struct {
		field *string
		own   string
		keys  []string
	}{
		{&s.TaskID, LabelTask, m.Task},
		{&s.AgentType, LabelAgentType, m.AgentType},
		{&s.Owner, LabelOwner, m.Owner},
	} {
		if *meaning.field == "" {
			*meaning.field = s.Labels[meaning.own]
		}
		for _, key := range meaning.keys {
			if *meaning.field == "" {
				*meaning.field = s.Labels[key]
			}
		}
	}
	return s
}

// Kept is why the label LabelKeep protects a sandbox now; "" = it does not. The value is "true"
// or the time until which it protects; any other value, and a key with different case or
// spaces, protects as well, since it was meant to.
func Kept(labels map[string]string, now time.Time) string {
	for key, value := range labels {
		if isKeep(key) {
			if why := keepReason(value, now); why != "" {
				return why
			}
		}
	}
	return ""
}

// SetKeep makes value the only label LabelKeep, in place of every spelling that protects; "" removes them. It
// returns the value that was there, of several spellings the first by its key.
func SetKeep(labels map[string]string, value string) (was string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if isKeep(key) {
			was = cmp.Or(was, labels[key])
			delete(labels, key)
		}
	}
	if value != "" {
		labels[LabelKeep] = value
	}
	return was
}

func isKeep(key string) bool { return strings.EqualFold(strings.TrimSpace(key), LabelKeep) }

func keepReason(value string, now time.Time) string {
	if value == "true" {
		return "protected: it has the label " + LabelKeep + "=true"
	}
	until, err := time.Parse(time.RFC3339, value)
	switch {
	case err != nil:
		return "protected: the value of its label " + LabelKeep + " is neither true nor a time"
	case now.Before(until):
		return "protected: its label " + LabelKeep + " holds until " + until.UTC().Format(time.RFC3339)
	}
	return ""
}
