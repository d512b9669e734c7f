package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
)

const (
	firstNode = "node-1"
	// lostNode takes the pods that name it, and is silent once it has the label lostLabel.
	lostNode  = "node-2"
	lostLabel = "lost"
	// Image is the one image that can be pulled.
	Image = "sbxtest:1"
	// idleAnnotation marks a pod of which nothing runs, for a cluster with many.
	idleAnnotation = "idle"
	heartbeat      = 2 * time.Second
	restartPause   = time.Second
	// resync is how often each pod is seen again: what happened while a node was lost is made up for.
	resync = 2 * time.Second
)

// kubelet is the kubelet of both nodes. A container is a process of this machine with its own process ids and a
// home folder of its own.
type kubelet struct {
	api     kubernetes.Interface
	samples dynamic.Interface
	dir     string

	mu    sync.Mutex
	lost  map[string]bool
	pods  map[types.UID]*pod
	names map[string]types.UID // by namespace/name
}

// pod is a pod that was started here.
type pod struct {
	containers map[string]*container
	ending     bool
	grace      int64         // in seconds, of the end
	over       chan struct{} // closed when that is over
	once       sync.Once
}

// setGrace sets how long the end may take from now on.
func (p *pod) setGrace(seconds int64) {
	p.grace = seconds
	time.AfterFunc(time.Duration(seconds)*time.Second, func() { p.once.Do(func() { close(p.over) }) })
}

func newKubelet(api kubernetes.Interface, samples dynamic.Interface, dir string) (*kubelet, error) {
	return &kubelet{api: api, samples: samples, dir: dir, lost: map[string]bool{}, pods: map[types.UID]*pod{}, names: map[string]types.UID{}}, os.MkdirAll(dir, 0o700)
}

// serve registers the nodes and begins to follow their pods.
func (k *kubelet) serve(address string) error {
	port, err := k.listen(address)
	if err != nil {
		return err
	}
	for _, name := range []string{firstNode, lostNode} {
		if err := k.register(name, port); err != nil {
			return err
		}
		go k.beat(name)
	}
	factory := informers.NewSharedInformerFactory(k.api, resync)
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.see(o) },
		UpdateFunc: func(_, o any) { k.see(o) },
		DeleteFunc: func(o any) {
			if p, ok := o.(*corev1.Pod); ok { // somebody has dropped the record: the kubelet ends what has none
				k.forget(p)
			}
		},
	})
	factory.Start(nil)
	return err
}

func (k *kubelet) register(name string, port int32) error {
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("30000"), corev1.ResourceEphemeralStorage: resource.MustParse("1Ti")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}}
	if name == lostNode {
		node.Spec.Unschedulable = true
	}
	nodes := k.api.CoreV1().Nodes()
	if _, err := nodes.Create(context.Background(), node, metav1.CreateOptions{}); err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { // controllers write to a new node, too
		made, err := nodes.Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		made.Status = corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity, Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: port}},
			Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}},
		}
		_, err = nodes.UpdateStatus(context.Background(), made, metav1.UpdateOptions{})
		return err
	})
}

// beat renews the lease of a node until it is lost, and says that it is ready where a controller has missed that.
func (k *kubelet) beat(name string) {
	leases := k.api.CoordinationV1().Leases("kube-node-lease")
	for ; ; time.Sleep(heartbeat) {
		node, err := k.api.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			continue
		}
		k.mu.Lock()
		_, k.lost[name] = node.Labels[lostLabel]
		silent := k.lost[name]
		k.mu.Unlock()
		if silent {
			continue
		}
		if at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
		}); at >= 0 {
			node.Status.Conditions[at] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}
			_, _ = k.api.CoreV1().Nodes().UpdateStatus(context.Background(), node, metav1.UpdateOptions{})
		}
		now := metav1.NewMicroTime(time.Now())
		lease, err := leases.Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			_, _ = leases.Create(context.Background(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: new(int32(40)), RenewTime: &now}}, metav1.CreateOptions{})
			continue
		}
		lease.Spec.RenewTime = &now
		_, _ = leases.Update(context.Background(), lease, metav1.UpdateOptions{})
	}
}

// see takes a change of a pod.
func (k *kubelet) see(o any) {
	p, ok := o.(*corev1.Pod)
	if !ok || p.Spec.NodeName == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lost[p.Spec.NodeName] {
		return
	}
	known := k.pods[p.UID]
	switch {
	case p.DeletionTimestamp != nil && (known == nil || !known.ending):
		if known == nil {
			known = &pod{}
			k.pods[p.UID] = known
		}
		known.ending, known.over = true, make(chan struct{})
		known.setGrace(*p.DeletionGracePeriodSeconds)
		go k.end(p.DeepCopy(), known)
	case p.DeletionTimestamp != nil && *p.DeletionGracePeriodSeconds < known.grace: // somebody wants it sooner
		known.setGrace(*p.DeletionGracePeriodSeconds)
	case p.DeletionTimestamp == nil && known == nil && p.Status.Phase == corev1.PodPending:
		known = &pod{containers: map[string]*container{}}
		k.pods[p.UID], k.names[p.Namespace+"/"+p.Name] = known, p.UID
		go k.start(p.DeepCopy(), known)
	}
}

func (k *kubelet) forget(p *corev1.Pod) {
	k.mu.Lock()
	known := k.pods[p.UID]
	delete(k.pods, p.UID)
	k.mu.Unlock()
	if known != nil {
		for _, c := range known.all(k) {
			c.kill()
		}
	}
}

// stop ends all containers, so that their control groups go.
func (k *kubelet) stop() {
	k.mu.Lock()
	pods := slices.Collect(maps.Values(k.pods))
	k.mu.Unlock()
	for _, p := range pods {
		for _, c := range p.all(k) {
			c.kill()
			<-c.done
		}
	}
}

func (p *pod) all(k *kubelet) (all []*container) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range p.containers {
		all = append(all, c)
	}
	return all
}

// start starts the containers of a pod.
func (k *kubelet) start(p *corev1.Pod, known *pod) {
	var statuses []corev1.ContainerStatus
	var started []func()
	_, idle := p.Annotations[idleAnnotation]
	for i, spec := range p.Spec.Containers {
		status := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image}
		switch {
		case spec.Image != Image:
			status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: fmt.Sprintf("Back-off pulling image %q", spec.Image)}
			k.event(p, "Failed", status.State.Waiting.Message)
		case idle:
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Now()}
		default:
			c, err := k.newContainer(p, spec)
			if err != nil {
				status.State.Terminated = &corev1.ContainerStateTerminated{Reason: "StartError", ExitCode: 128, Message: err.Error(), FinishedAt: metav1.Now(), StartedAt: metav1.Now()}
				break
			}
			k.mu.Lock()
			known.containers[spec.Name] = c
			k.mu.Unlock()
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.began)}
			started = append(started, func() { k.follow(p, known, spec, c) })
			if i == 0 {
				started = append(started, func() { k.sample(k.samples, p, c) })
			}
			k.event(p, "Started", "Container "+spec.Name+" started")
		}
		status.Ready = status.State.Running != nil
		statuses = append(statuses, status)
	}
	k.write(p, func(s *corev1.PodStatus) {
		s.StartTime, s.PodIP, s.HostIP = new(metav1.Now()), "127.0.0.1", "127.0.0.1"
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
		for _, now := range statuses {
			setStatus(s, now)
		}
	})
	for _, follow := range started { // an end is noted after all starts
		go follow()
	}
}

// follow waits for the end of a container and notes it. By the policy of the pod it starts again.
func (k *kubelet) follow(p *corev1.Pod, known *pod, spec corev1.Container, c *container) {
	for restarts := int32(0); ; {
		<-c.done
		ended := &corev1.ContainerStateTerminated{ExitCode: int32(c.code), Reason: "Completed", StartedAt: metav1.NewTime(c.began), FinishedAt: metav1.Now()}
		switch {
		case c.oom:
			ended.Reason = "OOMKilled"
		case c.code != 0:
			ended.Reason = "Error"
		}
		status := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, RestartCount: restarts, State: corev1.ContainerState{Terminated: ended}}
		again := p.Spec.RestartPolicy == corev1.RestartPolicyAlways || p.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && c.code != 0
		k.mu.Lock()
		again = again && !known.ending
		k.mu.Unlock()
		if !again {
			k.write(p, func(s *corev1.PodStatus) { setStatus(s, status) })
			return
		}
		time.Sleep(restartPause)
		k.mu.Lock()
		ending := known.ending
		k.mu.Unlock()
		if ending {
			return
		}
		next, err := k.newContainer(p, spec)
		if err != nil {
			return
		}
		restarts++
		k.mu.Lock()
		known.containers[spec.Name] = next
		k.mu.Unlock()
		c = next
		k.write(p, func(s *corev1.PodStatus) {
			setStatus(s, corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, RestartCount: restarts, Ready: true, LastTerminationState: corev1.ContainerState{Terminated: ended}, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.began)}}})
		})
	}
}

// end ends the containers of a deleted pod, notes how they ended, and then removes the record.
func (k *kubelet) end(p *corev1.Pod, known *pod) {
	k.event(p, "Killing", "Stopping container "+p.Spec.Containers[0].Name)
	var all sync.WaitGroup
	for _, c := range known.all(k) {
		all.Go(func() { c.end(known.over) })
	}
	all.Wait()
	k.write(p, func(s *corev1.PodStatus) {
		for _, status := range slices.Clone(s.ContainerStatuses) {
			if status.State.Terminated == nil {
				status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error", FinishedAt: metav1.Now()}}
				status.Ready = false
				setStatus(s, status)
			}
		}
	})
	_ = k.api.CoreV1().Pods(p.Namespace).Delete(context.Background(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.pods, p.UID)
}

// setStatus sets the status of one container, and what follows from all of them.
func setStatus(s *corev1.PodStatus, now corev1.ContainerStatus) {
	i := slices.IndexFunc(s.ContainerStatuses, func(old corev1.ContainerStatus) bool { return old.Name == now.Name })
	if i < 0 {
		s.ContainerStatuses = append(s.ContainerStatuses, now)
	} else {
		s.ContainerStatuses[i] = now
	}
	s.Phase = corev1.PodSucceeded
	ready := corev1.ConditionTrue
	for _, c := range s.ContainerStatuses {
		switch {
		case c.State.Waiting != nil:
			s.Phase = corev1.PodPending
		case c.State.Running != nil && s.Phase != corev1.PodPending:
			s.Phase = corev1.PodRunning
		case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0 && s.Phase == corev1.PodSucceeded:
			s.Phase = corev1.PodFailed
		}
		if !c.Ready {
			ready = corev1.ConditionFalse
		}
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		at := slices.IndexFunc(s.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
		if at < 0 {
			at = len(s.Conditions)
			s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, LastTransitionTime: metav1.Now()})
		}
		s.Conditions[at].Status = ready
	}
}

// write edits the status of a pod. A pod that is gone has none.
func (k *kubelet) write(p *corev1.Pod, edit func(*corev1.PodStatus)) {
	pods := k.api.CoreV1().Pods(p.Namespace)
	_ = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := pods.Get(context.Background(), p.Name, metav1.GetOptions{})
		if err != nil || now.UID != p.UID {
			return err
		}
		edit(&now.Status)
		_, err = pods.UpdateStatus(context.Background(), now, metav1.UpdateOptions{})
		return err
	})
}

func (k *kubelet) event(p *corev1.Pod, reason, message string) {
	if _, idle := p.Annotations[idleAnnotation]; idle {
		return
	}
	now := metav1.Now()
	_, _ = k.api.CoreV1().Events(p.Namespace).Create(context.Background(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: p.Name + "."},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, APIVersion: "v1"},
		Reason:         reason, Message: message, FirstTimestamp: now, LastTimestamp: now, Count: 1, Type: corev1.EventTypeNormal,
		Source: corev1.EventSource{Component: "kubelet", Host: p.Spec.NodeName},
	}, metav1.CreateOptions{})
}
