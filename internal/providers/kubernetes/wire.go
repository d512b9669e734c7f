package kubernetes

import (
	"encoding/json"
	"time"

	"sbx/internal/httpx"
	"sbx/internal/providers/wirekit"
)

// wireObject has what is read of the objects of all kinds.
type wireObject struct {
	Metadata wireMeta       `json:"metadata" odd:"error"`
	Spec     wireSpec       `json:"spec"`
	Status   wireConditions `json:"status"`
}

// wireMeta is ObjectMeta.
type wireMeta struct {
	Name              string         `json:"name"`
	Namespace         string         `json:"namespace"`
	UID               string         `json:"uid" odd:"error"`
	ResourceVersion   string         `json:"resourceVersion"`
	CreationTimestamp time.Time      `json:"creationTimestamp"`
	DeletionTimestamp *time.Time     `json:"deletionTimestamp" odd:"error"`
	DeletionGrace     *int64         `json:"deletionGracePeriodSeconds"` // of a pod; 0 of all else
	Labels            wirekit.Labels `json:"labels"`
	Annotations       wirekit.Labels `json:"annotations"`
	OwnerReferences   []wireOwner    `json:"ownerReferences"`
	Finalizers        []string       `json:"finalizers"`
}

// wireOwner is OwnerReference.
type wireOwner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller bool   `json:"controller"`
}

// wireSpec is PodSpec, JobSpec and SandboxSpec.
type wireSpec struct {
	NodeName              string          `json:"nodeName"`
	Grace                 *int64          `json:"terminationGracePeriodSeconds"` // of a pod
	RestartPolicy         string          `json:"restartPolicy"`
	RuntimeClassName      string          `json:"runtimeClassName"`
	Containers            []wireContainer `json:"containers"`
	InitContainers        []wireContainer `json:"initContainers"`
	ActiveDeadlineSeconds *int64          `json:"activeDeadlineSeconds"` // of a pod and of a job

	Template wireTemplate `json:"template"` // of a job
	Suspend  bool         `json:"suspend"`

	PodTemplate   wireTemplate `json:"podTemplate"`   // of a sandbox
	OperatingMode string       `json:"operatingMode"` // "Running", "Suspended"; v1beta1
	Replicas      *int64       `json:"replicas"`      // 0, 1; v1alpha1, and of a pool
	ShutdownTime  time.Time    `json:"shutdownTime"`
	Lifecycle     struct {
		ShutdownTime time.Time `json:"shutdownTime"`
	} `json:"lifecycle"` // of a claim
}

type wireTemplate struct {
	Spec struct {
		RuntimeClassName string          `json:"runtimeClassName"`
		Containers       []wireContainer `json:"containers"`
		Grace            *int64          `json:"terminationGracePeriodSeconds"`
	} `json:"spec"`
}

// wireContainer is Container. Its environment is never read.
type wireContainer struct {
	Name      string   `json:"name"`
	Image     string   `json:"image"`
	Command   []string `json:"command"`
	Args      []string `json:"args"`
	Resources struct {
		Limits map[string]string `json:"limits"` // quantities: "500m", "512Mi"
	} `json:"resources"`
}

// wireConditions is the status of all kinds.
type wireConditions struct {
	Phase      string          `json:"phase"`  // of a pod
	Reason     string          `json:"reason"` // of a pod: "Evicted", "DeadlineExceeded"
	Message    string          `json:"message"`
	StartTime  time.Time       `json:"startTime"` // of a pod and of a job
	Conditions []wireCondition `json:"conditions"`

	ContainerStatuses     []wireContainerStatus `json:"containerStatuses"`
	InitContainerStatuses []wireContainerStatus `json:"initContainerStatuses"`
	CompletionTime        time.Time             `json:"completionTime"` // of a job
	Selector              string                `json:"selector"`       // of a sandbox: the labels of its pod, as text
	Replicas              int64                 `json:"replicas"`       // of a pool
	ReadyReplicas         int64                 `json:"readyReplicas"`

	Sandbox struct {
		Name string `json:"name"`
	} `json:"sandbox"` // of a claim

	// Hard and Used are those of a ResourceQuota.
	Hard map[string]string `json:"hard"`
	Used map[string]string `json:"used"`
}

type wireCondition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"` // "True", "False", "Unknown"
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

type wireContainerStatus struct {
	Name         string             `json:"name"`
	RestartCount int                `json:"restartCount"`
	State        wireContainerState `json:"state"`
	LastState    wireContainerState `json:"lastState"`
}

type wireContainerState struct {
	Waiting *struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"waiting"`
	Running *struct {
		StartedAt time.Time `json:"startedAt"`
	} `json:"running"`
	Terminated *wireTerminated `json:"terminated"`
}

type wireTerminated struct {
	Reason     string    `json:"reason"` // "Completed", "Error", "OOMKilled", "ContainerCannotRun", "StartError"
	Message    string    `json:"message"`
	ExitCode   *int      `json:"exitCode"`
	FinishedAt time.Time `json:"finishedAt"`
}

// wireList is a page of a list.
type wireList[R any] struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue" odd:"error"`
	} `json:"metadata" odd:"error"`
	Items httpx.List[R] `json:"items" odd:"error"`
}

// wireWatchEvent is WatchEvent.
type wireWatchEvent struct {
	Type   string          `json:"type"`   // "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
	Object json.RawMessage `json:"object"` // a Status with the type ERROR
}

// wireStatus is Status: an error answer, and the end of a command.
type wireStatus struct {
	Status  string `json:"status"` // "Success", "Failure"
	Reason  string `json:"reason"` // "NonZeroExitCode", "AlreadyExists"
	Message string `json:"message"`
	Details struct {
		Causes []struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"causes"`
	} `json:"details"`
}

// wireGroup is APIGroup.
type wireGroup struct {
	Name     string        `json:"name"`
	Versions []wireVersion `json:"versions"`
}

type wireVersion struct {
	Version string `json:"version"`
}

// wireDelete is DeleteOptions.
type wireDelete struct {
	Kind               string            `json:"kind"`
	APIVersion         string            `json:"apiVersion"`
	GracePeriodSeconds int64             `json:"gracePeriodSeconds"`
	PropagationPolicy  string            `json:"propagationPolicy"`
	Preconditions      wirePreconditions `json:"preconditions"`
	DryRun             []string          `json:"dryRun,omitempty"` // "All"
}

type wirePreconditions struct {
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// wireEvent is Event of the core group.
type wireEvent struct {
	Metadata       wireMeta  `json:"metadata" odd:"error"`
	Type           string    `json:"type"`
	Reason         string    `json:"reason"`
	Message        string    `json:"message"`
	EventTime      time.Time `json:"eventTime"`
	FirstTimestamp time.Time `json:"firstTimestamp"`
	LastTimestamp  time.Time `json:"lastTimestamp"`
	Count          int       `json:"count"`
}

// wireMetrics is PodMetrics of metrics.k8s.io.
type wireMetrics struct {
	Metadata   wireMeta    `json:"metadata"`
	Timestamp  time.Time   `json:"timestamp"`
	Window     string      `json:"window"` // over which it was measured: "15.027s"
	Containers []wireUsage `json:"containers"`
}

// wireUsage is ContainerMetrics.
type wireUsage struct {
	Name  string            `json:"name"`
	Usage map[string]string `json:"usage"` // quantities of cpu (cores) and memory (the working set)
}

// wireReview is SelfSubjectRulesReview.
type wireReview struct {
	Status struct {
		Incomplete    bool       `json:"incomplete"`
		ResourceRules []wireRule `json:"resourceRules"`
	} `json:"status"`
}

type wireRule struct {
	Verbs     []string `json:"verbs"`
	APIGroups []string `json:"apiGroups"`
	Resources []string `json:"resources"`
}

// wireCreate is a Job or a Sandbox that is made.
type wireCreate struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   wireCreateMeta `json:"metadata"`
	Spec       wireCreateSpec `json:"spec"`
}

type wireCreateMeta struct {
	Name        string            `json:"name,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// wireCreateSpec is JobSpec and SandboxSpec.
type wireCreateSpec struct {
	Template                *wireCreateTemplate `json:"template,omitempty"`
	BackoffLimit            *int64              `json:"backoffLimit,omitempty"`
	ActiveDeadlineSeconds   int64               `json:"activeDeadlineSeconds,omitempty"`
	TTLSecondsAfterFinished int64               `json:"ttlSecondsAfterFinished,omitempty"`

	PodTemplate    *wireCreateTemplate `json:"podTemplate,omitempty"`
	ShutdownTime   string              `json:"shutdownTime,omitempty"`
	ShutdownPolicy string              `json:"shutdownPolicy,omitempty"`
}

type wireCreateTemplate struct {
	Metadata wireCreateMeta `json:"metadata"`
	Spec     wireCreatePod  `json:"spec"`
}

type wireCreatePod struct {
	Containers                    []wireCreateContainer `json:"containers"`
	RestartPolicy                 string                `json:"restartPolicy"`
	RuntimeClassName              string                `json:"runtimeClassName,omitempty"`
	AutomountServiceAccountToken  bool                  `json:"automountServiceAccountToken"`
	TerminationGracePeriodSeconds int64                 `json:"terminationGracePeriodSeconds"`
}

type wireCreateContainer struct {
	Name      string              `json:"name"`
	Image     string              `json:"image"`
	Command   []string            `json:"command"`
	Env       []wireCreateEnv     `json:"env,omitempty"`
	Resources wireCreateResources `json:"resources"`
}

type wireCreateEnv struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type wireCreateResources struct {
	Limits map[string]string `json:"limits"`
}

// wirePatch is a merge patch: null removes a key.
type wirePatch struct {
	Metadata struct {
		ResourceVersion string             `json:"resourceVersion"`
		Labels          map[string]*string `json:"labels,omitempty"`
		Annotations     map[string]*string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec *wireEndPatch `json:"spec,omitempty"`
}

// wireEndPatch is the end in the specification of a sandbox, a job or a claim.
type wireEndPatch struct {
	ShutdownTime          string         `json:"shutdownTime,omitempty"`
	ActiveDeadlineSeconds int64          `json:"activeDeadlineSeconds,omitempty"`
	Lifecycle             *wireLifecycle `json:"lifecycle,omitempty"`
}

type wireLifecycle struct {
	ShutdownTime string `json:"shutdownTime"`
}

// wireServer is version.Info.
type wireServer struct {
	GitVersion string `json:"gitVersion"`
}
