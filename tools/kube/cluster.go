package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensionclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"
)

// Users of the cluster, and the namespace of the tests.
const (
	adminToken = "admin-7f3ac2d1"
	userToken  = "user-7f3ac2d1" // of `sbx`, who has no rights until a test gives some
	namespace  = "agents"
	startLimit = 2 * time.Minute
	apiServer  = "kube-apiserver"
)

// cluster is a control plane whose programs are children of this one.
type cluster struct {
	bin, crds, dir, kubeconfig string
	mu                         sync.Mutex
	started                    []*program // in order; they end in the other order
	kubelet                    *kubelet   // nil = it does not run
	api                        kubernetes.Interface
}

func (c *cluster) path(names ...string) string {
	return filepath.Join(append([]string{c.dir}, names...)...)
}

// start starts all and waits until pods can be scheduled.
func (c *cluster) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	ports, err := freePorts(6)
	if err != nil {
		return err
	}
	etcd, peer, secure, metrics, probe := ports[0], ports[1], ports[2], ports[3], ports[4]
	if err := c.writeFiles(secure); err != nil {
		return err
	}
	if err := c.run("etcd", "--data-dir", c.path("etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls=http://"+etcd, "--advertise-client-urls=http://"+etcd, "--listen-peer-urls=http://"+peer, "--initial-advertise-peer-urls=http://"+peer, "--initial-cluster=default=http://"+peer); err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(secure)
	key := c.path("accounts.pem")
	if err := c.run(apiServer, "--etcd-servers=http://"+etcd, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+port, "--tls-cert-file="+c.path("server.crt"), "--tls-private-key-file="+c.path("server.key"),
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key, "--service-account-issuer=https://kubernetes.default.svc",
		"--token-auth-file="+c.path("tokens.csv"), "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none",
		"--kubelet-preferred-address-types=InternalIP", "--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000"); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	c.api = api
	if err := c.untilReady(ctx); err != nil {
		return err
	}
	if err := c.prepare(ctx, config, api); err != nil {
		return err
	}
	if err := errors.Join(
		c.run("kube-controller-manager", "--kubeconfig="+c.kubeconfig, "--leader-elect=false", "--secure-port=0", "--node-monitor-period=1s", "--node-monitor-grace-period=8s", "--concurrent-gc-syncs=20", "--concurrent-job-syncs=20",
			"--kube-api-qps=500", "--kube-api-burst=1000",
			"--controllers=garbage-collector-controller,job-controller,ttl-after-finished-controller,pod-garbage-collector-controller,node-lifecycle-controller,namespace-controller,resourcequota-controller"),
		c.run("kube-scheduler", "--kubeconfig="+c.kubeconfig, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000"),
		c.run("agent-sandbox-controller", "--kubeconfig="+c.kubeconfig, "--enable-webhook=false", "--leader-elect=false", "--extensions", "--metrics-bind-address="+metrics, "--health-probe-bind-address="+probe),
	); err != nil {
		return err
	}
	samples, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	n, err := newKubelet(api, samples, c.path("pods"))
	if err != nil {
		return err
	}
	c.kubelet = n
	if err := n.serve(ports[5]); err != nil {
		return err
	}
	return until(ctx, "a node is ready", func() error { return schedulable(ctx, api) })
}

// schedulable is nil when the controllers have taken all taints of starting nodes away.
func schedulable(ctx context.Context, api kubernetes.Interface) error {
	all, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range all.Items {
		if node.Name == firstNode && len(node.Spec.Taints) == 0 {
			return nil
		}
	}
	return errors.New("there is none")
}

// writeFiles writes the key of service accounts, the tokens and the kubeconfig.
func (c *cluster) writeFiles(address string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	certificate, serving, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	c.kubeconfig = c.path("kubeconfig")
	user := func(name, token string) string { return fmt.Sprintf("- {name: %s, user: {token: %s}}\n", name, token) }
	place := func(name string) string {
		return fmt.Sprintf("- {name: %s, context: {cluster: real, user: %s, namespace: %s}}\n", name, name, namespace)
	}
	config := "apiVersion: v1\nkind: Config\ncurrent-context: admin\nclusters:\n- {name: real, cluster: {server: \"https://" + address + "\", certificate-authority: " + c.path("server.crt") + "}}\n" +
		"users:\n" + user("admin", adminToken) + user("sbx", userToken) + "contexts:\n" + place("admin") + place("sbx")
	return errors.Join(os.MkdirAll(c.path("logs"), 0o700), os.WriteFile(c.path("accounts.pem"), block, 0o600),
		os.WriteFile(c.path("server.crt"), certificate, 0o600), os.WriteFile(c.path("server.key"), serving, 0o600),
		os.WriteFile(c.path("tokens.csv"), []byte(adminToken+",admin,1,system:masters\n"+userToken+",sbx,2,\n"), 0o600), os.WriteFile(c.kubeconfig, []byte(config), 0o600))
}

// prepare makes the namespace and the kinds of agent-sandbox. Its older version is left out: it needs a webhook
// that no service leads to here.
func (c *cluster) prepare(ctx context.Context, config *rest.Config, api kubernetes.Interface) error {
	if _, err := api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("30000")}}}
	if _, err := api.CoreV1().ResourceQuotas(namespace).Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		return err
	}
	extensions, err := extensionclient.NewForConfig(config)
	if err != nil {
		return err
	}
	kinds := []*apiextensions.CustomResourceDefinition{metricsKind()}
	files, err := filepath.Glob(filepath.Join(c.crds, "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("there are no definitions in %s", c.crds)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var kind apiextensions.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &kind); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		kind.Spec.Conversion = nil
		kind.Spec.Versions = slices.DeleteFunc(kind.Spec.Versions, func(v apiextensions.CustomResourceDefinitionVersion) bool { return !v.Storage })
		kinds = append(kinds, &kind)
	}
	for _, kind := range kinds {
		if _, err := extensions.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, kind, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("%s: %w", kind.Name, err)
		}
	}
	for _, kind := range kinds {
		if err := until(ctx, kind.Name+" is served", func() error { return served(ctx, extensions, kind.Name) }); err != nil {
			return err
		}
	}
	return nil
}

func served(ctx context.Context, extensions extensionclient.Interface, name string) error {
	now, err := extensions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range now.Status.Conditions {
		if condition.Type == apiextensions.Established && condition.Status == apiextensions.ConditionTrue {
			return nil
		}
	}
	return errors.New("it is not established")
}

// program is one of the control plane.
type program struct {
	name string
	args []string
	cmd  *exec.Cmd
}

// run starts a program, which dies with this one.
func (c *cluster) run(name string, args ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &program{name: name, args: args}
	c.started = append(c.started, p)
	return c.begin(p)
}

func (c *cluster) begin(p *program) error {
	log, err := os.OpenFile(c.path("logs", p.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(c.bin, p.name), p.args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p.cmd = cmd
	return cmd.Start()
}

func (p *program) end() {
	if p.cmd.Process != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

func (c *cluster) untilReady(ctx context.Context) error {
	return until(ctx, "the API server is ready", func() error {
		return c.api.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// restartServer restarts the API server and waits until it is ready.
func (c *cluster) restartServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := c.restart(apiServer); err != nil {
		return err
	}
	return c.untilReady(ctx)
}

// restart kills a program and starts it again.
func (c *cluster) restart(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.started, func(p *program) bool { return p.name == name })
	if at < 0 {
		return fmt.Errorf("%s does not run", name)
	}
	c.started[at].end()
	return c.begin(c.started[at])
}

func (c *cluster) stop() {
	if c.kubelet != nil {
		c.kubelet.stop()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range slices.Backward(c.started) {
		p.end()
	}
	c.started = nil
}

// until calls test until it is nil. The error says what did not come true, and why.
func until(ctx context.Context, what string, test func() error) error {
	for {
		err := test()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not true in time: %s: %w", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func freePorts(n int) (all []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all, nil
}
