package kubernetes

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// target is where the requests of a profile go, and with which credentials.
type target struct {
	base      string // https://host, with a path in front of those of the API where there is one
	context   string // of the kubeconfig; "" = the account of a pod
	namespace string
	transport http.RoundTripper
	api       *httpx.Client // which hides the credentials of requests; it is set before the first one
}

// accountFolder has the account of a pod, in each pod that is given one.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// findTarget reads the kubeconfig as kubectl does. Without a file the account of the pod is used that sbx runs in,
// whose files are in the folder account.
func findTarget(settings map[string]string, d providers.Deps, account string) (*target, error) {
	lookup := d.Lookup
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	t := &target{namespace: settings["namespace"]}
	config, err := t.readConfig(settings, lookup, account)
	if err != nil {
		return t, err
	}
	t.base = strings.TrimRight(config.Host, "/")
	if !strings.Contains(t.base, "://") {
		t.base = "https://" + t.base
	}
	config.Dial = d.Net.Dial
	switch {
	case d.Net.Dial != nil:
		config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // no proxy, as with every Dial
	case config.Proxy == nil:
		config.Proxy = d.Net.Proxy()
	}
	// a dead connection ends with its request; the pings of HTTP/2 in client-go find it after 45 s, too late for three tries
	config.NextProtos = []string{"http/1.1"}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &observed{next, t} })
	program, err := t.takePlugin(config, d)
	if err != nil {
		return t, err
	}
	if err := t.connect(config, program); err != nil {
		return t, fault.New(fault.KindUsage, "the credentials of %s cannot be used: %w", cmp.Or(t.context, "the pod's account"), err).
			WithHint("`kubectl config view` shows where they are; a pod has those of its account with automountServiceAccountToken: true")
	}
	return t, nil
}

// connect makes the transport that adds the credentials; program is nil where no program gives them.
func (t *target) connect(config *rest.Config, program *plugin) error {
	whole, err := config.TransportConfig()
	if err != nil {
		return err
	}
	if program != nil {
		whole.TLS.GetCertHolder = &transport.GetCertHolder{GetCert: program.certificate}
	}
	if t.transport, err = transport.New(whole); err == nil && program != nil {
		program.next, t.transport = t.transport, program
	}
	return err
}

func (t *target) readConfig(settings map[string]string, lookup func(string) (string, bool), account string) (*rest.Config, error) {
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
		port, _ := lookup("KUBERNETES_SERVICE_PORT")
		return t.readAccount(account, net.JoinHostPort(host, port)), nil
	}
	t.context = cmp.Or(settings["context"], raw.CurrentContext)
	switch at := raw.Contexts[t.context]; {
	case len(raw.Contexts) == 0:
		return nil, fault.Usage(
			"there is no kubeconfig with a context: %s", strings.Join(rules.Precedence, ", "),
		).WithHint("set kubeconfig in the profile, or KUBECONFIG")
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

// readAccount is the account of a pod, from the files that the kubelet keeps in its folder. The token expires, and
// is read from its file again each minute.
func (t *target) readAccount(folder, address string) *rest.Config {
	namespace, _ := os.ReadFile(filepath.Join(folder, "namespace")) // without it the files that count are missing, too
	t.namespace = cmp.Or(t.namespace, strings.TrimSpace(string(namespace)), "default")
	return &rest.Config{
		Host: "https://" + address, BearerTokenFile: filepath.Join(folder, "token"),
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(folder, "ca.crt")},
	}
}

// observed is the transport below those that add credentials: what they add is hidden in every text from then on.
type observed struct {
	http.RoundTripper

	at *target
}

// RoundTrip sends a request.
func (o *observed) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, secret, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok {
		o.at.api.Hide(secret)
	}
	return o.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper is for what closes idle connections.
func (o *observed) WrappedRoundTripper() http.RoundTripper { return o.RoundTripper }
