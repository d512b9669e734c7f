package kubernetes_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/kubernetes"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/kubernetestest"
)

// role is as much of a Role (rbac.authorization.k8s.io/v1) as is compared.
type role struct {
	Kind  string
	Rules []map[string][]string // "apiGroups", "resources", "verbs"
}

// The Role grants what sbx needs, and nothing else.
func TestRoleIsTheNeeds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "kubernetes-role.yaml"))
	require.NoError(t, err)
	var r role
	require.NoError(t, yaml.Unmarshal(text, &r), "the first document")
	require.Equal(t, "Role", r.Kind)
	var granted, needed []string
	for _, rule := range r.Rules {
		for _, group := range rule["apiGroups"] {
			for _, resource := range rule["resources"] {
				for _, verb := range rule["verbs"] {
					granted = append(granted, verb+" "+resource+" "+group)
				}
			}
		}
	}
	for _, n := range kubernetes.Rights() {
		needed = append(needed, n.Verb+" "+n.Resource+" "+n.Group)
	}
	assert.ElementsMatch(t, needed, granted)
}

// The page has a row for each verb of sbx, with all rights that it needs.
func TestPageHasTheNeeds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "KUBERNETES.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Rights\n")
	require.True(t, found)
	var want []string
	resources := map[[2]string][]string{}
	for _, n := range kubernetes.Rights() {
		key := [2]string{n.VerbOfSbx, n.Verb}
		name := n.Resource
		if n.Group == "metrics.k8s.io" {
			name += " in " + n.Group
		}
		resources[key] = append(resources[key], name)
	}
	for key, names := range resources {
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", key[0], key[1], strings.Join(names, ", ")))
	}
	assert.ElementsMatch(t, want, regexp.MustCompile("(?m)^\\| `.*$").FindAllString(section, -1))
}

// cluster is a fake with one object of each kind.
type cluster struct {
	*kubernetestest.Fake

	c                          *kubernetes.Client
	pod, job, sandbox, claimed string
	claim                      string // which has no sandbox
}

func newCluster(t *testing.T, o kubernetestest.Options) *cluster {
	t.Helper()
	f := kubernetestest.New(t, o)
	k := &cluster{
		Fake: f, c: dialed(t, f), pod: f.Add(kubernetestest.Seed{}), job: f.Add(kubernetestest.Seed{Kind: "job"}), sandbox: f.Add(kubernetestest.Seed{Kind: "sandbox"}),
		claimed: f.Add(kubernetestest.Seed{Kind: "sandbox", Owner: f.Add(kubernetestest.Seed{Kind: "claim"})}), claim: f.Add(kubernetestest.Seed{Kind: "claim"}),
	}
	t.Cleanup(k.c.Close)
	return k
}

// rightUses are the calls that need a right: the verb of the API and its resource.
func rightUses() map[string]func(context.Context, *cluster) error {
	list := func(ctx context.Context, k *cluster) error {
		for _, err := range k.c.List(ctx, providers.Query{}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	create := func(ctx context.Context, k *cluster) error {
		_, err := k.c.Create(ctx, sandbox.Spec{Image: kubernetestest.Image})
		return err
	}
	exec := func(ctx context.Context, k *cluster) error {
		_, err := k.c.Exec(ctx, k.pod, providers.Command{Args: []string{"true"}})
		return err
	}
	endClaimed := func(ctx context.Context, k *cluster) error { return k.end(ctx, k.claimed) }
	uses := map[string]func(context.Context, *cluster) error{
		"list pods": list, "list jobs": list, "list sandboxes": list, "list sandboxclaims": list, "create jobs": create, "create sandboxes": create,
		"get pods/exec": exec, "create pods/exec": exec,
		"get pods/log": func(ctx context.Context, k *cluster) error {
			for _, err := range k.c.Logs(ctx, k.pod, providers.LogQuery{}) {
				return err
			}
			return nil
		},
		"list events": func(ctx context.Context, k *cluster) error {
			_, err := k.c.Events(ctx, k.pod)
			return err
		},
		"list resourcequotas": func(ctx context.Context, k *cluster) error {
			_, err := k.c.Quota(ctx)
			return err
		},
		"get pods.metrics.k8s.io": func(ctx context.Context, k *cluster) error {
			_, err := k.c.Usage(ctx, k.pod)
			return err
		},
	}
	for resource, id := range map[string]func(*cluster) string{"pods": func(k *cluster) string { return k.pod }, "jobs": func(k *cluster) string { return k.job }, "sandboxes": func(k *cluster) string { return k.sandbox }, "sandboxclaims": func(k *cluster) string { return k.claim }} {
		uses["get "+resource] = func(ctx context.Context, k *cluster) error {
			_, err := k.c.Get(ctx, id(k))
			return err
		}
		uses["delete "+resource] = func(ctx context.Context, k *cluster) error { return k.end(ctx, id(k)) }
		uses["patch "+resource] = func(ctx context.Context, k *cluster) error {
			_, err := k.c.EditLabels(ctx, id(k), func(l map[string]string) { l["sbx/keep"] = "true" })
			return err
		}
	}
	uses["get sandboxclaims"], uses["delete sandboxclaims"] = endClaimed, endClaimed
	return uses
}

func (k *cluster) end(ctx context.Context, id string) error {
	return k.c.Terminate(ctx, id, providers.TerminateOptions{})
}

// needed are the rights without which a verb fails: a watch, the count of a pool and the samples of many only help
// (TestPools, TestAWatchThatIsRefused, TestUsageOfManyWithoutTheList).
func needed() []kubernetes.Right {
	return slices.DeleteFunc(kubernetes.Rights(), func(r kubernetes.Right) bool {
		return r.Verb == "watch" || r.Resource == "sandboxwarmpools" || rightName(r) == "list pods.metrics.k8s.io"
	})
}

// The refusal of each single right is an error of the verb that needs it, and doctor names the right.
func TestEachRight(t *testing.T) {
	t.Parallel()
	uses := rightUses()
	needed := needed()
	for _, n := range needed {
		right := rightName(n)
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, uses, right)
			o := kubernetestest.Options{Virtual: true, NoCRD: right == "create jobs"}
			allowed := newCluster(t, o)
			require.NoError(t, uses[right](t.Context(), allowed), "with every right")
			o.Refuse = []string{right}
			k := newCluster(t, o)
			err := uses[right](t.Context(), k)
			assert.Equal(t, fault.KindAuth, fault.KindOf(err), "%v", err)
			require.ErrorContains(t, err, fmt.Sprintf("cannot %s resource %q in API group %q in the namespace %q", n.Verb, n.Resource, n.Group, kubernetestest.Namespace))
			assert.Regexp(t, "sbx doctor|deploy/kubernetes-role.yaml", fault.HintOf(err))
			checks := k.c.Check(t.Context())
			at := slices.IndexFunc(checks, func(c providers.Check) bool { return c.Check == "rights" })
			require.GreaterOrEqual(t, at, 0)
			assert.Equal(t, sandbox.False, checks[at].Verdict)
			assert.Contains(t, checks[at].Message, fmt.Sprintf(": %s %s (sbx %s)", n.Verb, n.Resource, n.VerbOfSbx), "and no other")
			assert.NotContains(t, checks[at].Message, ",")
			assert.Contains(t, checks[at].Hint, "deploy/kubernetes-role.yaml")
		})
	}
	assert.Len(t, uses, len(needed), "each is a need")
}

// A right counts where its kind is listed and served.
func TestRightsOfKindsThatAreUsed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kinds, refuse string
		o             kubernetestest.Options
		want          sandbox.Verdict
	}{
		"all kinds":                {"", "delete sandboxclaims", kubernetestest.Options{}, sandbox.False},
		"claims are not served":    {"", "delete sandboxclaims", kubernetestest.Options{NoClaims: true}, sandbox.True},
		"sandboxes are not served": {"", "delete sandboxes", kubernetestest.Options{NoCRD: true}, sandbox.True},
		"claims without sandboxes": {"", "delete sandboxclaims", kubernetestest.Options{NoCRD: true}, sandbox.True},
		"claims of listed ones":    {"sandbox", "delete sandboxclaims", kubernetestest.Options{}, sandbox.False},
		"claims of others":         {"pod", "delete sandboxclaims", kubernetestest.Options{}, sandbox.True},
		"jobs are left out":        {"pod,sandbox", "create jobs", kubernetestest.Options{}, sandbox.True},
		"pods are left out":        {"job", "delete pods", kubernetestest.Options{}, sandbox.True},
		"pods of jobs":             {"job", "list pods", kubernetestest.Options{}, sandbox.False},
		"old sandboxes":            {"", "delete sandboxes", kubernetestest.Options{Alpha: true}, sandbox.False},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.o.Virtual, tc.o.Refuse = true, []string{tc.refuse}
			f := kubernetestest.New(t, tc.o)
			settings := kubernetestest.Settings(t, base)
			settings["kinds"] = tc.kinds
			c := open(t, settings, netOf(f))
			defer c.Close()
			checks := c.Check(t.Context())
			require.Len(t, checks, 3)
			assert.Equal(t, tc.want, checks[1].Verdict, checks[1].Message)
		})
	}
}

// Where the pods cannot be read, what is gone is not proved to have ended.
func TestNoProofWithoutTheRightToSeePods(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"pod", "job", "sandbox"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			id := f.Add(kubernetestest.Seed{Kind: kind})
			c := dialed(t, f)
			defer c.Close()
			require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
			f.Change(func(o *kubernetestest.Options) { o.Refuse = []string{"list pods"} })
			proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Now: time.Now()})
			assert.Equal(t, fault.KindAuth, fault.KindOf(err), "%v", err)
			assert.NotEqual(t, sandbox.True, proof.Ended)
		})
	}
}

// TestEachRightOnACluster plays the table against a real API server: with the Role of deploy/ each verb works, and
// without one right its verb names it.
func TestEachRightOnACluster(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	template := s.create("SandboxTemplate", extensions, "sandboxtemplates", meta(s.label), fields{"podTemplate": fields{"spec": podSpec("exec sleep 600")}}, nil)
	pool := s.create("SandboxWarmPool", extensions, "sandboxwarmpools", meta(s.label), fields{"replicas": 0, "sandboxTemplateRef": fields{"name": template.text("metadata", "name")}}, nil)
	uses := rightUses()
	for i, n := range needed() {
		right := rightName(n)
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			for missing, refused := range map[string]bool{"": false, right: true} {
				user := fmt.Sprintf("user-%d-%t", i, refused)
				s.grant(user, missing)
				k := s.cluster(user, pool, n.Verb+" "+n.Resource == "create jobs")
				require.Eventually(t, func() bool { // the rules of a new Role take a moment
					checks := k.c.Check(t.Context())
					at := slices.IndexFunc(checks, func(c providers.Check) bool { return c.Check == "rights" })
					require.GreaterOrEqual(t, at, 0)
					said := checks[at].Message
					return checks[at].Verdict == sandbox.VerdictOf(!refused) && (!refused || strings.Contains(said, ": "+n.Verb+" "+n.Resource+" (") && !strings.Contains(said, ","))
				}, s.limit(), 100*time.Millisecond, "without %q", missing)
				err := uses[right](t.Context(), k)
				if !refused {
					require.NoError(t, err)
					continue
				}
				assert.Equal(t, fault.KindAuth, fault.KindOf(err), "%v", err)
				require.ErrorContains(t, err, fmt.Sprintf("cannot %s resource %q in API group %q in the namespace %q", n.Verb, n.Resource, n.Group, kubernetestest.Namespace))
				assert.Regexp(t, "sbx doctor|deploy/kubernetes-role.yaml", fault.HintOf(err))
			}
		})
	}
}

// rightName is a verb and a resource, as in the messages of the API.
func rightName(n kubernetes.Right) string {
	if n.Group == "metrics.k8s.io" {
		return n.Verb + " " + n.Resource + "." + n.Group
	}
	return n.Verb + " " + n.Resource
}

// grant gives a user the Role of deploy/ without one right.
func (s scene) grant(user, missing string) {
	s.t.Helper()
	var rules []any
	for _, n := range kubernetes.Rights() {
		if rightName(n) != missing {
			rules = append(rules, fields{"apiGroups": []string{n.Group}, "resources": []string{n.Resource}, "verbs": []string{n.Verb}})
		}
	}
	const group = "rbac.authorization.k8s.io"
	s.create("Role", group+"/v1", "roles", fields{"name": user}, nil, fields{"rules": rules})
	s.create("RoleBinding", group+"/v1", "rolebindings", fields{"name": user}, nil, fields{
		"roleRef": fields{"apiGroup": group, "kind": "Role", "name": user}, "subjects": []any{fields{"apiGroup": group, "kind": "User", "name": user}},
	})
}

// cluster has one running object of each kind, and a client that acts as the user.
func (s scene) cluster(user string, pool made, jobs bool) *cluster {
	s.t.Helper()
	text, err := os.ReadFile(realCluster(s.t))
	require.NoError(s.t, err)
	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	require.NoError(s.t, os.WriteFile(file, []byte(strings.Replace(string(text), "{name: admin, user: {", "{name: admin, user: {as: "+user+", ", 1)), 0o600))
	settings := map[string]string{}
	if jobs {
		settings["kinds"] = "job"
	}
	k := &cluster{c: onCluster(s.t, file, settings)}
	s.t.Cleanup(k.c.Close)
	claim := s.create("SandboxClaim", extensions, "sandboxclaims", meta(s.label), fields{"warmPoolRef": fields{"name": pool.text("metadata", "name")}}, nil)
	k.claim = s.create("SandboxClaim", extensions, "sandboxclaims", meta(s.label), fields{"warmPoolRef": fields{"name": "no-such-pool"}}, nil).id("claim")
	k.pod = s.pod(podSpec("exec sleep 600")).id("pod")
	k.job = s.create("Job", "batch/v1", "jobs", meta(s.label), fields{"template": fields{"spec": podSpec("exec sleep 600")}}, nil).id("job")
	k.sandbox = s.sandbox(podSpec("exec sleep 600")).id("sandbox")
	bound := s.await(claim, func(m made) bool { return m.condition("Ready") == "True" })
	taken, _ := s.do(s.t.Context(), http.MethodGet, strings.Replace(s.sandboxes(), "{name}", bound.text("status", "sandbox", "name"), 1), nil)
	k.claimed = taken.id("sandbox")
	for _, id := range []string{k.pod, k.job, k.sandbox} {
		s.shows(id, runs)
	}
	return k
}
