package kubernetes

import (
	"slices"
	"strings"
)

// kind is one kind of object that is a sandbox, or that owns some.
type kind struct {
	name     string // the beginning of its ids; "" = it is no sandbox itself
	kind     string // as objects spell it
	group    string // "" = the core
	versions []string
	plural   string
	verbs    []string // of the API, that sbx uses
	// with is the kind that it is listed with, where it is none that a profile names.
	with string
	// discovered says that a cluster may lack it.
	discovered bool
	// pool says that it makes what is deleted again, on purpose: its sandboxes are idle stock.
	pool bool
}

const (
	sandboxGroup   = "agents.x-k8s.io"
	extensionGroup = "extensions.agents.x-k8s.io"
)

// kinds are the kinds that are known. Of those with the same name for an object the first counts.
func kinds() []kind {
	made := []string{"list", "watch", "get", "create", "delete", "patch"}
	return []kind{
		{name: "sandbox", kind: "Sandbox", group: sandboxGroup, versions: agentVersions(), plural: "sandboxes", verbs: made, discovered: true},
		{name: "job", kind: "Job", group: "batch", versions: []string{"v1"}, plural: "jobs", verbs: made},
		podKind(),
		claimKind(),
		poolKind(),
	}
}

func agentVersions() []string { return []string{"v1beta1", "v1alpha1"} }

func podKind() kind {
	return kind{name: "pod", kind: "Pod", versions: []string{"v1"}, plural: "pods", verbs: []string{"list", "watch", "get", "delete", "patch"}}
}

func claimKind() kind {
	return kind{
		name: "claim", kind: "SandboxClaim", group: extensionGroup, versions: agentVersions(), plural: "sandboxclaims",
		verbs: []string{"list", "watch", "get", "delete", "patch"}, with: "sandbox", discovered: true,
	}
}

func poolKind() kind {
	return kind{
		kind: "SandboxWarmPool", group: extensionGroup, versions: agentVersions(), plural: "sandboxwarmpools", verbs: []string{"list"}, with: "sandbox",
		discovered: true, pool: true,
	}
}

// kindNamed finds a kind by the beginning of ids.
func kindNamed(name string) (kind, bool) {
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.name == name && name != "" })
	if i < 0 {
		return kind{}, false
	}
	return all[i], true
}

// isCronJob says that the owner makes jobs by the clock, and none again that was deleted.
func (o wireOwner) isCronJob() bool {
	return o.Kind == "CronJob" && strings.HasPrefix(o.APIVersion, "batch/")
}

// kindOfOwner finds the kind of an owner, with the version in which it is written there.
func kindOfOwner(o wireOwner) (k kind, version string, known bool) {
	group, version, found := strings.Cut(o.APIVersion, "/")
	if !found {
		group, version = "", o.APIVersion
	}
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.kind == o.Kind && k.group == group })
	if i < 0 || version == "" {
		return kind{}, "", false
	}
	return all[i], version, true
}

// An id is the kind, the name and the beginning of the unique id: "job.agent-7.1b4e28ba". A name is used again,
// a unique id is not; the name makes it possible to read the object.
type objectID struct {
	kind kind
	name string
	uid  string // its first eight characters
}

const uidLength = 8

// parseID reads an id; false for what is none.
func parseID(id string) (objectID, bool) {
	name, rest, _ := strings.Cut(id, ".")
	k, known := kindNamed(name)
	dot := strings.LastIndexByte(rest, '.')
	if !known || dot <= 0 || len(rest)-dot-1 != uidLength {
		return objectID{}, false
	}
	return objectID{k, rest[:dot], rest[dot+1:]}, true
}

func idOf(k kind, m wireMeta) string {
	return k.name + "." + m.Name + "." + shortUID(m.UID)
}

func shortUID(uid string) string { return uid[:min(len(uid), uidLength)] }
