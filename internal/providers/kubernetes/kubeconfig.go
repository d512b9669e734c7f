package kubernetes

import (
	"cmp"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"sbx/internal/fault"
	"sbx/internal/providers"
)

// target is where the requests of a profile go, and with which credentials.
type target struct {
	base      string // https://host, with a path in front of those of the API where there is one
	context   string // of the kubeconfig; "" = the account of a pod
	namespace string
	secrets   []string
	transport http.RoundTripper
}

// findTarget reads the kubeconfig as kubectl does. Without a file the account of the pod is used that sbx runs in.
func findTarget(settings map[string]string, d providers.Deps) (target, error) {
	lookup := d.Lookup
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	t := target{namespace: settings["namespace"]}
	config, err := t.readConfig(settings, lookup)
	if err != nil {
		return t, err
	}
	t.base = strings.TrimRight(config.Host, "/")
	if !strings.Contains(t.base, "://") {
		t.base = "https://" + t.base
	}
	for _, secret := range []string{config.BearerToken, config.Password} {
		if secret != "" {
			t.secrets = append(t.secrets, secret)
		}
	}
	config.Dial = d.Net.Dial
	switch {
	case d.Net.Dial != nil:
		config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // no proxy, as with every Dial
	case config.Proxy == nil:
		config.Proxy = d.Net.Proxy()
	}
	config.NextProtos = []string{"http/1.1"} // a dead connection ends with its request; the pings of HTTP/2 in client-go find it after 45 s, too late for three tries
	if config.ExecProvider != nil {
		config.ExecProvider.StdinUnavailable = true
		config.ExecProvider.StdinUnavailableMessage = "sbx does not ask for credentials: log in with the program first"
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return t, fault.New(fault.KindUsage, "the credentials of context %s cannot be used: %w", cmp.Or(t.context, "of the pod"), err)
	}
	t.transport = &transport{cmp.Or(client.Transport, http.DefaultTransport)}
	return t, nil
}

func (t *target) readConfig(settings map[string]string, lookup func(string) (string, bool)) (*rest.Config, error) {
	variable, _ := lookup("KUBECONFIG") // as for kubectl: whatever the profile is called
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(cmp.Or(settings["kubeconfig"], variable))}
	if home, ok := lookup("HOME"); ok && len(rules.Precedence) == 0 {
		rules.Precedence = []string{filepath.Join(home, ".kube", "config")}
	}
	raw, err := rules.Load()
	if err != nil {
		return nil, fault.Usage("the kubeconfig cannot be read: %w", err).WithHint("`kubectl config view` shows what kubectl reads")
	}
	if host, _ := lookup("KUBERNETES_SERVICE_HOST"); len(raw.Contexts) == 0 && host != "" {
		config, err := rest.InClusterConfig()
		t.namespace = cmp.Or(t.namespace, "default")
		return config, err
	}
	t.context = cmp.Or(settings["context"], raw.CurrentContext)
	switch at := raw.Contexts[t.context]; {
	case len(raw.Contexts) == 0:
		return nil, fault.Usage("there is no kubeconfig with a context: %s", strings.Join(rules.Precedence, ", ")).WithHint("set kubeconfig in the profile, or KUBECONFIG")
	case at == nil:
		return nil, fault.Usage("the kubeconfig has no context %q", t.context).WithHint("`kubectl config get-contexts` lists them; set context in the profile")
	default:
		t.namespace = cmp.Or(t.namespace, at.Namespace, "default")
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, t.context, &clientcmd.ConfigOverrides{}, rules).ClientConfig()
	if err != nil {
		return nil, fault.Usage("context %s: %w", t.context, err).WithHint("`kubectl --context %s version` shows whether kubectl can use it", t.context)
	}
	return config, nil
}

// transport is the transport of client-go, which adds the credentials.
type transport struct{ http.RoundTripper }

// RoundTrip sends a request. A program of the kubeconfig that gives no credentials is a fault of kind auth.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.RoundTripper.RoundTrip(r)
	if err != nil && strings.HasPrefix(err.Error(), "getting credentials") {
		return res, (&fault.Error{Kind: fault.KindAuth, Err: err}).WithHint("run the program of `users` in the kubeconfig by hand, or log in again")
	}
	return res, err
}

// CloseIdleConnections is called by http.Client.
func (t *transport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.RoundTripper) }
