package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// cpuRoot is where the CPU time of containers is counted.
const cpuRoot = "/sys/fs/cgroup/cpuacct"

const sampleEvery = time.Second

// metricsKind stands in for the metrics server: samples are objects of its API, which the kubelet writes.
func metricsKind() *apiextensions.CustomResourceDefinition {
	return &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "pods.metrics.k8s.io", Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, in place of the metrics server of a test"}},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: "metrics.k8s.io", Scope: apiextensions.NamespaceScoped, Names: apiextensions.CustomResourceDefinitionNames{Plural: "pods", Singular: "pod", Kind: "PodMetrics"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: "v1beta1", Served: true, Storage: true,
				Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
			}},
		},
	}
}

// sample writes samples of a pod until its container has ended.
func (k *kubelet) sample(api dynamic.Interface, p *corev1.Pod, c *container) {
	before, at := c.cpu(), time.Now()
	for {
		select {
		case <-c.done:
			return
		case <-time.After(sampleEvery):
		}
		used, now := c.cpu(), time.Now()
		text := fmt.Sprintf(`{"apiVersion":"metrics.k8s.io/v1beta1","kind":"PodMetrics","metadata":{"name":%q,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":%q,"uid":%q}]},
"timestamp":%q,"window":%q,"containers":[{"name":"main","usage":{"cpu":"%dn","memory":"%dKi"}}]}`,
			p.Name, p.Name, p.UID, now.UTC().Format(time.RFC3339), sampleEvery, int64(float64(used-before)/now.Sub(at).Seconds()), c.memory()/1024)
		_, _ = api.Resource(schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods"}).Namespace(p.Namespace).
			Patch(context.Background(), p.Name, types.ApplyPatchType, []byte(text), metav1.PatchOptions{FieldManager: "kubelet", Force: new(true)})
		before, at = used, now
	}
}

// cpu is the CPU time in nanoseconds.
func (c *container) cpu() int64 { return number(cpuRoot, c.group, "cpuacct.usage") }

func (c *container) memory() int64 { return number(memoryRoot, c.group, "memory.usage_in_bytes") }

func number(names ...string) int64 {
	text, _ := os.ReadFile(filepath.Join(names...))
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n
}
