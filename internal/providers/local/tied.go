package local

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/local/record"
	"sbx/internal/sandbox"
)

// thisProcess is to what a sandbox is tied here.
func thisProcess() (record.Creator, error) {
	host, err := os.Hostname()
	return record.Creator{Host: host, PID: os.Getpid(), Birth: Birth(os.Getpid())}, err
}

// removeTied ends and removes the sandboxes that are tied to a process of this host that is gone, with their records. PID
// and birth decide: a process that may live keeps its sandboxes, and so does one of a host with which the folder is shared.
func (c *Client) removeTied(ctx context.Context) ([]sandbox.Ref, error) {
	ties, err := c.store.Ties()
	if err != nil || len(ties) == 0 {
		return nil, c.classifyError("sweep", err)
	}
	this, err := thisProcess()
	if err != nil {
		return nil, c.classifyError("sweep", err)
	}
	lost := map[record.Creator]bool{}
	for _, to := range ties {
		if _, known := lost[to]; !known {
			lost[to] = to.Host == this.Host && Lives(to.PID, to.Birth) == sandbox.False
		}
	}
	maps.DeleteFunc(ties, func(_ string, to record.Creator) bool { return !lost[to] })
	var removed []sandbox.Ref
	var failed []error
	end := func(id string) error {
		return c.Terminate(ctx, id, providers.TerminateOptions{By: "sweep: its creator is gone", Delete: true})
	}
	for id, err := range readInOrder(slices.Sorted(maps.Keys(ties)), end) {
		switch kind := fault.KindOf(err); {
		case err == nil:
			removed = append(removed, sandbox.Ref{Provider: c.name, ID: id})
		case kind == fault.KindNotFound, kind == fault.KindGone, fault.KindOf(c.checkExists("sweep", id)) == fault.KindNotFound:
			failed = append(failed, c.store.Remove(id)) // another process was faster
		default:
			failed = append(failed, err)
		}
	}
	return removed, c.classifyError("sweep", errors.Join(failed...))
}
