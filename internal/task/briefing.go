package task

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// The variables that tell an agent what it works on (S2-6, S2-7). They are made from
// what is kept of the task, so that a process that takes it over can tell them too.
const (
	variableCallback    = "CALLBACK_URL"
	variableBranch      = "BRANCH_NAME"
	variableDescription = "TASK_DESCRIPTION"
	variableData        = "TASK_DATA_BASE64"
)

// Branch is the branch that the work goes to; "" where it is not pushed.
func (s Spec) Branch() string {
	return s.Push[strings.LastIndexByte(s.Push, '=')+1:]
}

// programEnvironment is what a task's program gets: the operator's own variables, and what it
// works on where they do not say it themselves.
func (r *Runner) programEnvironment(t Task) []string {
	env := slices.Clone(r.env)
	add := func(name, value string) {
		own := slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
		if value != "" && !own {
			env = append(env, name+"="+value)
		}
	}
	add(variableBranch, t.Spec.Branch())
	add(variableDescription, t.Spec.Description)
	if t.Spec.Callback {
		add(variableCallback, r.o.CallbackURL)
	}
	add(variableData, t.encodedData())
	return env
}

// encodedData is what the task is about in one word; "" where nobody said more than the
// command.
func (t *Task) encodedData() string {
	if t.Spec.Description == "" && t.Spec.Branch() == "" && !t.Spec.Callback {
		return ""
	}
	raw, err := json.Marshal(struct {
		Task        string `json:"task"`
		Description string `json:"description"`
		Branch      string `json:"branch"`
	}{t.ID, t.Spec.Description, t.Spec.Branch()})
	if err != nil { // three texts have no way to fail
		return ""
	}
	return base64.StdEncoding.EncodeToString(raw)
}
