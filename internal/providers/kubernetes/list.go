package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

const (
	pageSize = 500
	// listTries is how often a list is read from its first page whose pages are not of one moment.
	listTries = 3
)

// object is an object of a kind with its pods.
type object struct {
	kind kind
	wireObject
	pods  []wireObject // of a pod: itself; of a claim: those of its sandbox
	claim *wireObject  // that it belongs to, where it was read
}

// List reads the pods, then the objects that own some. An owned pod is part of its owner, and a claim of its
// sandbox.
func (c *Client) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		read, done := objectReader(c.eachObject), func() {}
		if q.Live {
			read, done = c.liveReader(ctx)
		}
		l := &listing{c: c, yield: yield, objects: read, owned: map[string][]wireObject{}, claimed: map[string]bool{}}
		complete := l.readAll(ctx)
		if complete && !l.any && !q.Live {
			l.refused = errors.Join(l.refused, c.checkNamespace(ctx))
		}
		switch {
		case complete && l.refused != nil:
			yield(sandbox.Sandbox{}, l.refused)
		case complete:
			done()
		}
	}
}

// listing is one reading of all kinds.
type listing struct {
	c       *Client
	yield   func(sandbox.Sandbox, error) bool
	objects objectReader
	owned   map[string][]wireObject // pods by the unique id of their controller, and of their claim
	claimed map[string]bool         // names of the sandboxes that were given, and the unique ids of their controllers
	refused error                   // rows that cannot be used
	stopped bool                    // the reader wants no more
	any     bool                    // an object of any kind was read
}

// checkNamespace tells a namespace that does not exist from one without objects: the API lists nothing of both. Without
// the right to read it that is not known.
func (c *Client) checkNamespace(ctx context.Context) error {
	_, err := c.API.Do(ctx, httpx.Request{Op: "list", Path: httpx.Path("api", "v1", "namespaces", c.at.namespace)})
	if !httpx.AnsweredMissing(err) {
		return nil
	}
	return c.Fault(
		fault.KindUsage, "list", "there is no namespace %q", c.at.namespace,
	).WithHint("set namespace of the profile, or another context; `kubectl get namespaces` shows those that exist")
}

// readAll reads all kinds; false = the listing has ended before.
func (l *listing) readAll(ctx context.Context) bool {
	more := l.readKind(ctx, podKind(), nil, l.takePod)
	for _, k := range kinds() {
		if more && k.name != "" && k.name != podKind().name && l.c.lists(k) {
			more = l.readKind(ctx, k, l.c.selector(), func(w wireObject) bool {
				return l.skips(k, w) || l.give(object{kind: k, wireObject: w, pods: l.owned[w.Metadata.UID]})
			})
		}
	}
	return more
}

func (l *listing) give(o object) bool {
	l.stopped = !l.yield(l.c.described(o), nil)
	return !l.stopped
}

// skips says that an object is idle stock, or a claim whose sandbox was given.
func (l *listing) skips(k kind, w wireObject) bool {
	switch {
	case k.name == claimKind().name:
		return l.claimed[w.Metadata.UID] || l.claimed[w.Status.Sandbox.Name]
	case w.isStock():
		return true
	case k.name == "sandbox":
		owner, _ := w.Metadata.controller()
		l.claimed[w.Metadata.Name], l.claimed[owner.UID] = true, true
		delete(l.claimed, "") // of no owner
	}
	return false
}

// takePod gives a pod that nothing owns.
func (l *listing) takePod(w wireObject) bool {
	if claim := w.Metadata.Labels[claimLabel]; claim != "" {
		l.owned[claim] = append(l.owned[claim], w)
	}
	if owner, is := w.Metadata.controller(); is {
		l.owned[owner.UID] = append(l.owned[owner.UID], w)
		return true
	}
	return !l.c.lists(podKind()) || !l.c.matches(w) || l.give(object{kind: podKind(), wireObject: w, pods: []wireObject{w}})
}

// readKind reads the objects of a kind; false = the listing ends here.
func (l *listing) readKind(ctx context.Context, k kind, query url.Values, take func(wireObject) bool) bool {
	switch err := l.objects(ctx, "list", k, query, func(w wireObject) bool {
		l.any = true
		return take(w)
	}); {
	case l.stopped:
		return false
	case httpx.OnlyRefused(err):
		l.refused = errors.Join(l.refused, err)
	case err != nil:
		l.yield(sandbox.Sandbox{}, l.c.ListFault(err, "list", "check the namespace "+l.c.at.namespace+" and the address "+l.c.at.base))
		return false
	}
	return true
}

func (c *Client) lists(k kind) bool {
	return len(c.kinds) == 0 || slices.Contains(c.kinds, cmp.Or(k.with, k.name))
}

// selector is the query for the label of the profile. The pods of an object need not have its labels, so that
// they are read without it.
func (c *Client) selector() url.Values {
	if c.label == "" {
		return nil
	}
	return url.Values{"labelSelector": {c.label}}
}

func (c *Client) matches(w wireObject) bool {
	key, value, exact := strings.Cut(c.label, "=")
	got, has := w.Metadata.Labels[key]
	return c.label == "" || has && (!exact || got == value)
}

// controller is the owner that makes the object again when it is deleted.
func (m wireMeta) controller() (wireOwner, bool) {
	i := slices.IndexFunc(m.OwnerReferences, func(o wireOwner) bool { return o.Controller })
	if i < 0 {
		return wireOwner{}, false
	}
	return m.OwnerReferences[i], true
}

// isStock says that the object is idle stock of a pool.
func (w wireObject) isStock() bool {
	owner, is := w.Metadata.controller()
	k, _, known := kindOfOwner(owner)
	return is && known && k.pool
}

// errNotOneMoment is inside the error of a list whose pages are not of one moment.
var errNotOneMoment = errors.New("the pages of the list are not of one moment")

// eachObject gives the objects of a kind to take, until take returns false. A kind that the cluster lacks has no
// objects.
func (c *Client) eachObject(ctx context.Context, op string, k kind, query url.Values, take func(wireObject) bool) error {
	version, err := c.version(ctx, op, k)
	if err != nil || version == "" {
		return err
	}
	_, err = c.eachObjectAt(ctx, op, c.path(k, version), query, take)
	return err
}

// eachObjectAt is eachObject of a path, and returns the moment that the objects show; "" for several moments. All
// pages are of one moment. Where that is over, the API answers 410 with a token for the rest as it is now; that
// would hide what has changed, so the list begins again.
func (c *Client) eachObjectAt(ctx context.Context, op, path string, query url.Values, take func(wireObject) bool) (moment string, err error) {
	given := map[string]bool{}
	once := func(w wireObject) bool {
		if given[w.Metadata.UID] {
			return true
		}
		given[w.Metadata.UID] = true
		return take(w)
	}
	for try := 1; ; try++ {
		moment = ""
		err = wirekit.EachRow(c.Profile, op, func(token string) (wirekit.Page[wireObject], error) {
			page, at, err := readPage(ctx, c, httpx.Request{Op: op, Path: path, Query: query}, token, func(o wireObject) string { return o.Metadata.UID })
			if token == "" {
				moment = at
			} else if err == nil && at != moment || httpx.Status(err) == http.StatusGone {
				return page, c.Fault(fault.KindUnavailable, op, "%w: it took too long to read them", errNotOneMoment)
			}
			return page, err
		}, func(w wireObject) string { return w.Metadata.UID }, once)
		switch {
		case try < listTries && errors.Is(err, errNotOneMoment):
		case try > 1: // some objects are those of an earlier try
			return "", err
		default:
			return moment, err
		}
	}
}

// readPage reads one page and the moment that it shows.
func readPage[R any](ctx context.Context, c *Client, r httpx.Request, token string, id func(R) string) (page wirekit.Page[R], moment string, err error) {
	q := url.Values{"limit": {strconv.Itoa(pageSize)}}
	maps.Copy(q, r.Query)
	if token != "" {
		q.Set("continue", token)
	}
	var w wireList[R]
	r.Query = q
	if _, err := c.API.JSON(ctx, r, &w); err != nil {
		return page, "", err
	}
	page.Next = w.Metadata.Continue
	page.Rows, err = w.Items.Named(id)
	return page, w.Metadata.ResourceVersion, fault.Placed(err, c.Profile, r.Op)
}

// Get reads one by its id or its name.
func (c *Client) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	if o, ending := c.podWatches.stillEnding(id); ending && ctx.Err() == nil {
		return c.described(o), nil
	}
	began := time.Now()
	o, err := c.readEnding(ctx, id)
	if err != nil {
		c.lately.Keep(id, began, object{}, err)
		if wirekit.Missing(err) {
			c.podWatches.stop(id)
		}
		return sandbox.Sandbox{}, err
	}
	if with, err := c.withClaim(ctx, "get "+id, o); err == nil { // else its end is not known
		o = with
	}
	c.lately.Keep(idOf(o.kind, o.Metadata), began, o, nil)
	c.podWatches.noteRead(idOf(o.kind, o.Metadata), o)
	return c.described(o), nil
}

// readEnding is readWithPods. Of an object that is being deleted, and whose pods are watched, these are not listed.
func (c *Client) readEnding(ctx context.Context, id string) (object, error) {
	if !c.podWatches.isEnding(id) {
		return c.readWithPods(ctx, "get", id)
	}
	o, err := c.readObject(ctx, "get", id)
	switch {
	case err != nil:
		return object{}, err
	case o.Metadata.DeletionTimestamp == nil:
		return c.withPods(ctx, "get "+id, o)
	}
	o.pods = c.podWatches.podsOf(id)
	return o, nil
}

// TakesName is false for a word that has the form of an id.
func (c *Client) TakesName(word string) bool {
	_, isID := parseID(word)
	return !isID
}

// readWithPods reads an object with its pods, by its id or by its name. Of a name the first kind counts that has it: a
// sandbox and its pod often have the same.
func (c *Client) readWithPods(ctx context.Context, op, id string) (object, error) {
	o, err := c.readObject(ctx, op, id)
	if err != nil {
		return object{}, err
	}
	return c.withPods(ctx, op+" "+id, o)
}

// withPods reads the pods of an object.
func (c *Client) withPods(ctx context.Context, op string, o object) (object, error) {
	if o.kind.name == podKind().name {
		o.pods = []wireObject{o.wireObject}
		return o, nil
	}
	err := c.eachObject(ctx, op, podKind(), o.podSelector(), func(w wireObject) bool {
		if w.isPodOf(o.Metadata.UID) {
			o.pods = append(o.pods, w)
		}
		return true
	})
	return o, err
}

// isPodOf says that a pod belongs to the object of a unique id, or is that object.
func (w wireObject) isPodOf(uid string) bool {
	return slices.ContainsFunc(w.owners(), func(owner string) bool { return owner == uid })
}

// owners are the unique ids of what a pod belongs to, and its own.
func (w wireObject) owners() []string {
	all := []string{w.Metadata.UID, w.Metadata.Labels[claimLabel]}
	if owner, is := w.Metadata.controller(); is {
		all = append(all, owner.UID)
	}
	return slices.DeleteFunc(all, func(uid string) bool { return uid == "" })
}

// podSelector narrows the pods of a namespace to those that may belong to the object: their owner decides.
func (o object) podSelector() url.Values {
	switch {
	case o.kind.name == claimKind().name:
		return url.Values{"labelSelector": {claimLabel + "=" + o.Metadata.UID}}
	case o.kind.name == "job":
		return url.Values{"labelSelector": {"batch.kubernetes.io/controller-uid=" + o.Metadata.UID}}
	case o.Status.Selector != "":
		return url.Values{"labelSelector": {o.Status.Selector}}
	}
	return nil
}

// readObject reads an object without its pods. One that was made again under the same name is another one.
func (c *Client) readObject(ctx context.Context, op, id string) (object, error) {
	if wanted, isID := parseID(id); isID {
		w, err := c.getObject(ctx, op+" "+id, wanted.kind, "", wanted.name)
		if err == nil && shortUID(w.Metadata.UID) != wanted.uid {
			err = c.Fault(fault.KindNotFound, op+" "+id, "there is no such %s: another one has its name since %s", wanted.kind.name, w.Metadata.CreationTimestamp.UTC())
		}
		return object{kind: wanted.kind, wireObject: w}, err
	}
	for _, k := range kinds() {
		if k.name == "" || !c.lists(k) {
			continue
		}
		w, err := c.objectNamed(ctx, op+" "+id, k, id)
		if of, is := kindNamed(k.with); is && err == nil && w.Status.Sandbox.Name != "" { // a claim stands for its sandbox
			if s, failed := c.getObject(ctx, op+" "+id, of, "", w.Status.Sandbox.Name); !wirekit.Missing(failed) {
				return object{kind: of, wireObject: s}, failed
			}
		}
		if !wirekit.Missing(err) {
			return object{kind: k, wireObject: w}, err
		}
	}
	return object{}, c.Fault(fault.KindNotFound, op+" "+id, "there is no such object in the namespace %s", c.at.namespace)
}

// getObject reads an object by its name; version "" = the one that is served.
func (c *Client) getObject(ctx context.Context, op string, k kind, version, name string) (wireObject, error) {
	var w wireObject
	if version == "" {
		var err error
		if version, err = c.version(ctx, op, k); err != nil {
			return w, err
		}
		if version == "" {
			return w, c.Fault(fault.KindNotFound, op, "the cluster has no kind %s", k.kind)
		}
	}
	_, err := c.API.JSON(ctx, httpx.Request{Op: op, Path: c.path(k, version, name)}, &w)
	if err == nil {
		err = providers.CheckAnswerID(c.Profile, op, name, w.Metadata.Name)
	}
	if err == nil && w.Metadata.UID == "" {
		err = c.Fault(fault.KindUnavailable, op, "the answer has no unique id")
	}
	if err != nil {
		return wireObject{}, err
	}
	return w, nil
}
