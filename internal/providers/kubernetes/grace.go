package kubernetes

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"sbx/internal/providers"
)

// defaultGrace is the grace of a pod whose record names none, in seconds (kubernetes.io, pod lifecycle).
const defaultGrace int64 = 30

// wholeSeconds is a grace as the API takes it. One of zero drops the record of what may run on.
func wholeSeconds(grace time.Duration) int64 { return int64(max(1, math.Ceil(grace.Seconds()))) }

// grace is how long a pod may take from TERM to KILL, in seconds: that of its delete, else its own.
func (w wireObject) grace() int64 {
	if w.Metadata.DeletionTimestamp != nil && w.Metadata.DeletionGrace != nil {
		return *w.Metadata.DeletionGrace
	}
	return ownGrace(w.Spec.Grace)
}

func ownGrace(seconds *int64) int64 {
	if seconds == nil {
		return defaultGrace
	}
	return *seconds
}

// templateGrace is the grace that a controller gives its pods.
func (o object) templateGrace() int64 {
	return ownGrace(cmp.Or(o.Spec.Template.Spec.Grace, o.Spec.PodTemplate.Spec.Grace))
}

// programEnded is true for a pod of which the kubelet has confirmed that its programs have ended.
func (w wireObject) programEnded() bool {
	return slices.Contains([]string{"Succeeded", "Failed"}, w.Status.Phase)
}

// shortenGrace gives the pods of an object that is being deleted the grace of the caller, where theirs is longer: the
// delete of a controller leaves them their own, and so does an earlier delete. A later one can only shorten it. The
// pods of a claim are left: until the garbage collector has reached its sandbox that would make them again. An error
// changes nothing, since the end is requested: their own grace applies.
func (c *Client) shortenGrace(ctx context.Context, op string, o object, grace time.Duration) {
	wanted := wholeSeconds(grace)
	switch {
	case o.kind.name == claimKind().name:
		return
	case o.kind.name == podKind().name: // a delete of this call had its grace
		if o.Metadata.DeletionTimestamp == nil {
			return
		}
	case o.Metadata.DeletionTimestamp == nil && o.templateGrace() <= wanted:
		return
	}
	if len(o.pods) == 0 {
		o.pods = c.podWatches.podsOf(idOf(o.kind, o.Metadata))
	}
	if len(o.pods) == 0 { // else they were read with it
		var err error
		if o, err = c.withPods(ctx, op, o); err != nil {
			return
		}
	}
	for _, p := range o.pods {
		if !p.programEnded() && p.grace() > wanted {
			_ = c.delete(ctx, op, object{kind: podKind(), wireObject: p}, deletion{version: podKind().versions[0], grace: grace})
		}
	}
}

// endingSince is when the deletion of an object was requested; the timestamp of a pod is that of its KILL.
func (o object) endingSince() time.Time {
	at := o.Metadata.DeletionTimestamp
	if at == nil {
		return time.Time{}
	}
	since := *at
	if seconds := o.Metadata.DeletionGrace; seconds != nil {
		since = since.Add(-time.Duration(*seconds) * time.Second)
	}
	return providers.ValidTime(since.UTC())
}

// endsBy is when the last pod of an object that ends is killed; zero where none of them is left to be.
func (o object) endsBy() time.Time {
	var last time.Time
	for _, p := range o.pods {
		at := p.Metadata.DeletionTimestamp
		if at == nil && o.Metadata.DeletionTimestamp != nil { // the garbage collector has not reached it
			at = new(o.Metadata.DeletionTimestamp.Add(time.Duration(p.grace()) * time.Second))
		}
		if at != nil && !p.programEnded() && at.After(last) {
			last = *at
		}
	}
	return providers.ValidTime(last.UTC())
}
