package ops

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/fault"
)

// Add puts a job at the end of the batch.
func (r *BatchRequest) Add(j BatchJob) error {
	j.Seq = len(r.Jobs) + 1
	j.work = j.Spec.Work()
	j.Label = cmp.Or(j.Label, j.Spec.Name, j.Key, strconv.Itoa(j.Seq))
	if err := r.distinguishKey(&j); err != nil {
		return fault.Placed(err, "", j.Place)
	}
	r.Jobs = append(r.Jobs, j)
	return nil
}

// distinguishKey keeps two tasks from being taken for one: those that differ only in what
// their variables are set to, which is kept nowhere. The same task written twice is
// two tasks.
func (r *BatchRequest) distinguishKey(j *BatchJob) error {
	for _, other := range r.Jobs {
		if other.Key != "" || j.Key != "" || other.work != j.work {
			continue
		}
		if !slices.Equal(other.Env, j.Env) {
			return fault.Usage("it differs from task %d by the values of its environment alone", other.Seq).
				WithHint("give each of them a name or a key, so that a second run knows them apart")
		}
		j.twin++
	}
	return nil
}

// keyOf is under what a job is kept: its own key, or one that its work makes. round
// grows with each --again.
func (r *BatchRequest) keyOf(j BatchJob, round int) string {
	if j.Key != "" {
		if round > 1 {
			return j.Key + "." + strconv.Itoa(round)
		}
		return j.Key
	}
	text := strings.Join([]string{r.Name, strconv.Itoa(round), j.work, strconv.Itoa(j.twin)}, "\x00")
	sum := sha256.Sum256([]byte(text))
	return "file-" + hex.EncodeToString(sum[:10])
}
