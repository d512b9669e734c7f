package sandbox

import (
	"maps"
	"strings"
	"time"
)

// Labels that sbx itself writes or reads, whichever provider keeps them.
const (
	LabelOwner     = "sbx/owner"      // who made it with sbx; config's `owned` goes by it
	LabelName      = "sbx/name"       // where the provider wants names of its own, or has none
	LabelTask      = "sbx/task"       // Spec.TaskID
	LabelAgentType = "sbx/agent-type" // Spec.AgentType
	LabelKeep      = "sbx/keep"       // protects it from being ended, see Kept
	LabelRun       = "sbx/run"        // the tag of the program that create started
	LabelNonce     = "sbx/nonce"      // finds a sandbox whose creation was not answered
	LabelKeptUntil = "sbx/kept-until" // until when `run --keep-alive` keeps it at most, see KeptAtMost
)

// Marks are the labels of a new sandbox where the provider keeps nothing but
// labels: those that were asked for, its owner, name, task and agent type.
func (s Spec) Marks() map[string]string {
	marks := map[string]string{LabelOwner: "sbx"}
	maps.Copy(marks, s.Labels)
	for label, value := range map[string]string{LabelName: s.Name, LabelTask: s.TaskID, LabelAgentType: s.AgentType} {
		if value != "" {
			marks[label] = value
		}
	}
	return marks
}

// KeptAtMost is until when sbx itself may keep a sandbox, by what its launch has written
// into its labels: it ends before where its task fails or somebody ends it, which the
// task's own record knows. Zero = it is not kept, or the label is no time. Unlike
// LabelKeep it protects from nobody who names the sandbox.
func KeptAtMost(labels map[string]string) time.Time {
	until, err := time.Parse(time.RFC3339, labels[LabelKeptUntil])
	if err != nil {
		return time.Time{}
	}
	return until
}

// Metadata says which labels of a provider mean what, beside those of sbx itself. Of
// several the first that is there counts.
type Metadata struct {
	Task      []string
	AgentType []string
	Owner     []string // for people; it makes nobody's sandbox ours
}

// DefaultMetadata are the keys that users of the providers' SDKs commonly write.
func DefaultMetadata() Metadata {
	return Metadata{Task: []string{"task_id"}, AgentType: []string{"agent_type"}, Owner: []string{"owner"}}
}

// Read gives a sandbox the task, agent type and owner that its labels name. What its
// provider says of itself, and what sbx has written, counts first.
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

// Kept says why the label LabelKeep protects a sandbox now; "" = it does not. The
// value is "true" or the time until which it holds; a value that is neither, and a key
// that is only spelled oddly, protect, since somebody meant something by it.
func Kept(labels map[string]string, now time.Time) string {
	for key, value := range labels {
		if strings.EqualFold(strings.TrimSpace(key), LabelKeep) {
			if why := kept(value, now); why != "" {
				return why
			}
		}
	}
	return ""
}

func kept(value string, now time.Time) string {
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
