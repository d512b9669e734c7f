package kubernetes

import (
	"context"
	"math"
	"net/http"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

// extendTries is how often an end is moved of an object that changes between its read and the request: its controller
// writes its status, and a conflict has no effect.
const extendTries = 3

// Extend moves the end in the specification of the object, or of the claim that it belongs to, unless the object has
// changed since it was read. What sbx made also ends with its main program, which is told first.
func (c *Client) Extend(ctx context.Context, id string, until time.Time) (sandbox.Sandbox, error) {
	until = until.Add(time.Second - 1).UTC().Truncate(time.Second) // the API keeps whole seconds
	for try := 1; ; try++ {
		before, err := c.extendOnce(ctx, "extend "+id, id, until)
		switch conflict := httpx.Status(err) == http.StatusConflict; {
		case !conflict:
			return before, providers.ExtensionFailed(err)
		case try == extendTries:
			return sandbox.Sandbox{}, c.Fault(fault.KindUnavailable, "extend "+id, "it was changed meanwhile, each time: %w", err).WithHint("try again")
		}
	}
}

func (c *Client) extendOnce(ctx context.Context, op, id string, until time.Time) (before sandbox.Sandbox, err error) {
	o, err := c.readWithPods(ctx, "extend", id)
	if err == nil {
		o, err = c.withClaim(ctx, op, o)
	}
	if err != nil {
		return before, err
	}
	s := c.described(o)
	if err = providers.CheckExtension(s, until); err != nil {
		return before, fault.Placed(err, c.Profile, op)
	}
	at, patch, err := c.laterEnd(op, o, until)
	if err == nil && madeBySbx(o.Metadata) {
		err = c.holdLonger(ctx, op, o, until)
	}
	if err != nil {
		return before, fault.Placed(err, c.Profile, op)
	}
	return s, c.patch(ctx, op, at, patch)
}

// laterEnd is the change that moves the end of an object, and what is changed.
func (c *Client) laterEnd(op string, o object, until time.Time) (at object, p wirePatch, err error) {
	stamp := until.Format(time.RFC3339)
	at, p.Spec = o, &wireEndPatch{}
	switch {
	case o.claim != nil:
		at = object{kind: claimKind(), wireObject: *o.claim}
		p.Spec.Lifecycle = &wireLifecycle{ShutdownTime: stamp}
	case o.kind.name == claimKind().name:
		p.Spec.Lifecycle = &wireLifecycle{ShutdownTime: stamp}
	case o.kind.name == "sandbox":
		p.Spec.ShutdownTime = stamp
	case o.kind.name == "job" && !o.Status.StartTime.IsZero():
		p.Spec.ActiveDeadlineSeconds = int64(math.Ceil(until.Sub(o.Status.StartTime).Seconds()))
	default:
		return at, p, c.Fault(fault.KindUnsupported, op, "the API only makes the time limit of a %s shorter (activeDeadlineSeconds)", o.kind.kind).
			WithHint("a sandbox and a job can be extended; make the next one as one of these")
	}
	p.Metadata.ResourceVersion = at.Metadata.ResourceVersion
	if _, has := at.Metadata.Annotations[sandbox.LabelExpires]; has {
		p.Metadata.Annotations = map[string]*string{sandbox.LabelExpires: &stamp}
	}
	return at, p, nil
}

// holdLonger makes the main program of a sandbox of sbx wait longer. Without the request that follows it is ended by
// its controller all the same.
func (c *Client) holdLonger(ctx context.Context, op string, o object, until time.Time) error {
	main, _ := o.mainContainer()
	if !guest.Extends(main.Command) {
		return c.Fault(fault.KindUnsupported, op, "its main program ends at the time that it was made with, since an older sbx made it").
			WithHint("`sbx create --ttl` makes another")
	}
	sh, err := c.shellIn(o, op, nil)
	if err != nil {
		return err
	}
	said, code, err := sh(ctx, guest.ExtendScript(until))
	if err == nil && code != 0 {
		err = c.Fault(fault.KindUnavailable, op, "its main program could not be told to wait longer: exit %d %s", code, strings.TrimSpace(string(said)))
	}
	return err
}

// withClaim reads the claim that a sandbox belongs to, whose end is the end of both.
func (c *Client) withClaim(ctx context.Context, op string, o object) (object, error) {
	owner, is := o.Metadata.controller()
	k, version, known := kindOfOwner(owner)
	if !is || !known || k.name != claimKind().name || o.Metadata.DeletionTimestamp != nil {
		return o, nil
	}
	w, err := c.getObject(ctx, op, k, version, owner.Name)
	if err == nil && w.Metadata.UID == owner.UID {
		o.claim = &w
	}
	return o, err
}
