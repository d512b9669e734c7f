package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// Terminate deletes the object, or what makes it again: a deleted pod of a job, and a deleted sandbox of a claim,
// are replaced. What has ended keeps its record until a delete.
func (c *Client) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	return c.end(ctx, id, o)
}

// Rehearse sends the delete of Terminate as a dry run: rights, admission and the unique id are checked, and nothing
// is stored. It costs the reads of Terminate, too, since the precondition is the whole unique id.
func (c *Client) Rehearse(ctx context.Context, id string, o providers.TerminateOptions) error {
	err := c.end(ctx, id, o, "All")
	refusals := []int{http.StatusForbidden, http.StatusConflict, http.StatusUnprocessableEntity}
	if status := httpx.Status(err); slices.Contains(refusals, status) || status == http.StatusBadRequest && !strings.Contains(err.Error(), noDryRun) {
		return fault.New(fault.KindRefused, "%w", err).At(c.Profile, "terminate "+id).WithHint("%s", fault.HintOf(err))
	}
	return err
}

// hasEnded is the word for the end of an object that has ended, with all pods of it; else "". lately says that it has
// its pods.
func (c *Client) hasEnded(ctx context.Context, op string, o object, lately bool) (raw string, err error) {
	if state, _ := o.state(); !state.Ended() && o.kind.name != podKind().name {
		return "", nil
	}
	if !lately {
		if o, err = c.withPods(ctx, op, o); err != nil {
			return "", err
		}
	}
	state, raw := o.state()
	if !state.Ended() {
		return "", nil
	}
	return raw, nil
}

// noDryRun is part of the answer where an admission webhook takes no dry runs, which says nothing about the end.
const noDryRun = "does not support dry run"

// end requests the end once; with dryRun nothing is stored. The read of the caller right before serves it: the server
// then refuses the delete, without any effect, where the object has changed since.
func (c *Client) end(ctx context.Context, id string, o providers.TerminateOptions, dryRun ...string) error {
	op := "terminate " + id
	defer c.lately.Forget(id)
	if o.Seen != nil && !o.Insist {
		if found, known, err := c.lately.Last(ctx, id); known && err == nil && found.Metadata.ResourceVersion != "" {
			if err := c.endFound(ctx, op, found, true, o, dryRun); !errors.Is(err, errChanged) {
				return err
			}
		}
	}
	found, err := c.readObject(ctx, "terminate", id)
	if err != nil {
		return providers.NothingSent(err)
	}
	return c.endFound(ctx, op, found, false, o, dryRun)
}

// errChanged says that an object is not the one that was read lately.
var errChanged = errors.New("it has changed since it was read")

// endFound ends an object; lately says that it was read before the call, with its pods.
func (c *Client) endFound(ctx context.Context, op string, found object, lately bool, o providers.TerminateOptions, dryRun []string) error {
	root, version, err := c.toDelete(ctx, op, found, lately, o)
	sends := err == nil && root.Metadata.DeletionTimestamp == nil
	switch {
	case err != nil:
		return providers.NothingSent(err)
	case sends && lately && root.Metadata.UID == found.Metadata.UID:
		err = c.delete(ctx, op, root, deletion{version, o.Grace, dryRun, found.Metadata.ResourceVersion})
	case sends:
		err = c.delete(ctx, op, root, deletion{version, o.Grace, dryRun, ""})
	}
	if err == nil && len(dryRun) == 0 {
		c.shortenGrace(ctx, op, root, o.Grace)
	}
	return providers.EndFailed(err)
}

// toDelete is what has to be deleted for the end of an object.
func (c *Client) toDelete(ctx context.Context, op string, found object, lately bool, o providers.TerminateOptions) (root object, version string, err error) {
	if !o.Delete && !o.Insist {
		switch raw, err := c.hasEnded(ctx, op, found, lately); {
		case err != nil:
			return root, "", err
		case raw != "":
			return root, "", c.Fault(fault.KindGone, op, "it is %s", raw)
		}
	}
	return c.rootOf(ctx, op, found)
}

// maxOwners is how many owners an object has above it: pod, sandbox, claim.
const maxOwners = 3

// rootOf is what has to be deleted for an end: the object, or the controller above it. Version "" = the one that
// is served.
func (c *Client) rootOf(ctx context.Context, op string, o object) (root object, version string, err error) {
	for range maxOwners {
		owner, is := o.Metadata.controller()
		if !is || owner.isCronJob() {
			return o, version, nil
		}
		k, at, known := kindOfOwner(owner)
		switch {
		case !known:
			return o, version, c.Fault(
				fault.KindRefused, op, "it belongs to %s %s, which would replace it", owner.Kind, owner.Name,
			).WithHint("delete that with kubectl, or scale it down")
		case k.pool:
			return o, version, c.Fault(fault.KindRefused, op, "it is idle stock of %s %s, which would replace it", owner.Kind, owner.Name).
				WithHint("`kubectl scale %s/%s --replicas=0` empties the pool", k.plural, owner.Name)
		}
		w, err := c.getObject(ctx, op, k, at, owner.Name)
		if httpx.AnsweredMissing(err) || err == nil && w.Metadata.UID != owner.UID { // nothing is left that would replace it
			return o, version, nil
		}
		if err != nil {
			return o, version, err
		}
		o, version = object{kind: k, wireObject: w}, at
	}
	return o, version, nil
}

// deletion is how an object is deleted.
type deletion struct {
	version string // of its kind; "" = it is asked for
	grace   time.Duration
	dryRun  []string
	moment  string // the resource version that the object must have; "" = any
}

// delete asks for the end of an object, once. Its dependents go first; the server checks the unique id and the moment
// of the object (errChanged). A grace of zero would drop the record of what may run on, so that one second is the
// least.
func (c *Client) delete(ctx context.Context, op string, o object, d deletion) error {
	if d.version == "" {
		var err error
		if d.version, err = c.version(ctx, op, o.kind); err != nil {
			return err
		}
	}
	answer, err := c.API.Do(ctx, httpx.Request{
		Op: op, Method: http.MethodDelete, Path: c.path(o.kind, d.version, o.Metadata.Name),
		JSON: wireDelete{
			Kind: "DeleteOptions", APIVersion: "v1", PropagationPolicy: "Foreground",
			GracePeriodSeconds: wholeSeconds(d.grace), Preconditions: wirePreconditions{UID: o.Metadata.UID, ResourceVersion: d.moment}, DryRun: d.dryRun,
		},
	})
	if err == nil && len(d.dryRun) == 0 {
		var w wireObject
		if _, failed := httpx.Decode(answer.Body, &w); failed == nil {
			c.podWatches.noteDelete(idOf(o.kind, o.Metadata), w)
		}
	}
	if httpx.Status(err) != http.StatusConflict {
		return c.admission(err)
	}
	if d.moment != "" && strings.Contains(httpx.StatusOf(err).Message, "Precondition failed") { // k8s.io/apiserver
		return errChanged
	}
	now, failed := c.getObject(ctx, op, o.kind, d.version, o.Metadata.Name)
	if httpx.AnsweredMissing(failed) || failed == nil && now.Metadata.UID != o.Metadata.UID {
		return c.Fault(fault.KindGone, op, "it was deleted meanwhile, and another %s has its name", o.kind.kind)
	}
	return err
}

// claimLabel is the label of a pod with the unique id of the claim of its sandbox.
const claimLabel = "agents.x-k8s.io/claim-uid"

// VerifyEnd reads the object again, and all pods of the namespace, whatever the object says of its own. An end is
// proved where no pod of it is left: a pod leaves the API only when its node has confirmed its end, unless somebody
// forced it out. Of a record that states the end each pod must state it, too, which is the kubelet's own word.
func (c *Client) VerifyEnd(ctx context.Context, id string, q providers.EndQuery) (providers.Proof, error) {
	wanted, isID := parseID(id)
	if !isID {
		return providers.Proof{}, c.Fault(fault.KindNotFound, "verify "+id, "it is no id of this provider")
	}
	o, err := c.readForProof(ctx, id, wanted)
	missing := httpx.AnsweredMissing(err) || fault.KindOf(err) == fault.KindNotFound
	if err != nil && !missing {
		return providers.Proof{}, err
	}
	pods, err := c.podsFromNowOn(ctx, "verify "+id)
	if err != nil {
		return providers.Proof{}, err
	}
	pods = slices.DeleteFunc(slices.Clone(pods), func(w wireObject) bool { return !slices.ContainsFunc(w.owners(), wanted.isUID) })
	if missing {
		if len(pods) > 0 {
			return c.unended(ctx, "its pod "+pods[0].Metadata.Name+" is still there", pods), nil
		}
		return c.absence(ctx, q), nil
	}
	if o.pods = pods; wanted.kind.name == podKind().name {
		o.pods = append([]wireObject{o.wireObject}, pods...)
	}
	state, raw := o.state()
	if !state.Ended() || q.Delete {
		return c.unended(ctx, "it is "+raw, o.pods, o.wireObject), nil
	}
	left := "none is left of it"
	if len(pods) > 0 {
		left = "each has ended"
	}
	return providers.Proof{
		Ended: sandbox.True, Independent: len(pods) > 0, Evidence: []sandbox.Evidence{c.Evidence("state", raw, "API"), c.Evidence("pods", left, "API")},
	}, nil
}

// readForProof reads an object without its pods. Of a pod the read that has shown its end counts: the list of all pods
// has its record, too, and is the second source. Where nothing but a read has the record, it is read twice.
func (c *Client) readForProof(ctx context.Context, id string, wanted objectID) (object, error) {
	if wanted.kind.name == podKind().name {
		if o, known, err := c.lately.Last(ctx, id); known {
			return o, err
		}
	}
	began := time.Now()
	o, err := c.readObject(ctx, "verify", id)
	if err != nil {
		c.lately.Keep(id, began, object{}, err)
	}
	return o, err
}

// absence is the proof of an object that neither its name nor the list of all pods has. A request without an answer,
// since the API server went away, is proved by them where the node of the object is ready: a kubelet that is alive ends
// what the API has no more. An answer that refused it may have dropped the record alone.
func (c *Client) absence(ctx context.Context, q providers.EndQuery) providers.Proof {
	p := providers.Proof{Ended: sandbox.True, Evidence: []sandbox.Evidence{
		c.Evidence("read by name", "not found", "API"), c.Evidence("pods", "none is left of it", "API"),
	}}
	if r := q.Request; r.Unconfirmed() && !r.Answered && !r.NotFound && r.Node != "" {
		if ready, err := c.nodeIsReady(ctx, r.Node); err == nil && ready {
			p.Independent = true
			p.Evidence = append(p.Evidence, c.Evidence("node", r.Node+" is ready", "API"))
		}
	}
	return p
}

// podList is the last complete list of the pods of the namespace that a proof of an end has read.
type podList struct {
	turn  chan struct{} // held while the others are read or written
	began time.Time
	rows  []wireObject
}

// podsFromNowOn lists the pods of the namespace. Calls that wait for their turn share a list that begins after all of
// them: of many ends at a time each would read the whole namespace.
func (c *Client) podsFromNowOn(ctx context.Context, op string) ([]wireObject, error) {
	asked := time.Now()
	select {
	case c.pods.turn <- struct{}{}:
		defer func() { <-c.pods.turn }()
	case <-ctx.Done():
		return nil, wirekit.ContextFault(ctx)
	}
	if c.pods.began.After(asked) {
		return c.pods.rows, nil
	}
	began, rows := time.Now(), []wireObject(nil)
	err := c.eachObject(ctx, op, podKind(), nil, func(w wireObject) bool { rows = append(rows, w); return true })
	if err == nil {
		c.pods.began, c.pods.rows = began, rows
	}
	return rows, err
}

func (id objectID) isUID(uid string) bool { return shortUID(uid) == id.uid }

// unended is the proof of an object of which something is left: pods, and what is above them.
func (c *Client) unended(ctx context.Context, reason string, pods []wireObject, above ...wireObject) providers.Proof {
	p := providers.Proof{Ended: sandbox.False, Reason: reason, KeptBy: cmp.Or(c.lostNode(ctx, pods), heldBy(slices.Concat(above, pods)))}
	if p.KeptBy != "" {
		p.Reason += ", and " + p.KeptBy
	}
	return p
}

// heldBy names the finalizers of what is being deleted, which their controllers have to remove; "" for none. Those of
// the deletion itself do not count, and neither do those of a pod that still runs.
func heldBy(left []wireObject) string {
	var names []string
	for _, w := range left {
		for _, name := range w.Metadata.Finalizers {
			if w.Metadata.DeletionTimestamp != nil && !slices.Contains([]string{"foregroundDeletion", "orphan"}, name) &&
				w.Status.Phase != "Running" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "these finalizers are not removed: " + strings.Join(names, ", ")
}

// lostNode names the node of a pod that does not end, where it is not ready: then nothing confirms the end. ""
// where the node is ready or cannot be read.
func (c *Client) lostNode(ctx context.Context, pods []wireObject) string {
	for _, p := range pods {
		if p.Spec.NodeName == "" || p.Metadata.DeletionTimestamp == nil || p.Metadata.DeletionTimestamp.After(c.ServerNow()) {
			continue
		}
		if ready, err := c.nodeIsReady(ctx, p.Spec.NodeName); err == nil && !ready {
			return "its node " + p.Spec.NodeName + " is not ready"
		}
	}
	return ""
}

func (c *Client) nodeIsReady(ctx context.Context, name string) (bool, error) {
	var node wireObject
	_, err := c.API.JSON(ctx, httpx.Request{Op: "node " + name, Path: httpx.Path("api", "v1", "nodes", name), Once: true}, &node)
	if err == nil {
		err = providers.CheckAnswerID(c.Profile, "node "+name, name, node.Metadata.Name)
	}
	return object{wireObject: node}.has("Ready"), err
}
