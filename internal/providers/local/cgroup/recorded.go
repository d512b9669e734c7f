package cgroup

import (
	"encoding/json"
	"fmt"
)

// ReopenRecorded is Reopen for a state as it stands in a sandbox's record. An
// empty one is ErrState: that sandbox has no group.
func ReopenRecorded(raw json.RawMessage) (*Group, error) {
	var s State
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	return Reopen(s)
}
