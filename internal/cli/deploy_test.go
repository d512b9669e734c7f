package cli_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"sbx/internal/cli"
	"sbx/internal/cron"
)

// packaged is the plan of the units in the packages: profiles as /etc/sbx/config.yaml or the keys of
// cron.env give them, of services only. What `sbx cron print --systemd` prints for another plan goes to
// /etc/systemd/system, where it replaces the unit of that name.
func packaged() cron.Plan {
	p := cron.Plan{
		Binary: "/usr/bin/sbx", User: "sbx", LockTimeout: "2m", StateDir: "/var/lib/sbx", EnvFile: "/etc/sbx/cron.env",
		Env: []string{"SBX_STATE_DIR=/var/lib/sbx", "XDG_CONFIG_HOME=/etc"},
	}
	for _, kind := range cli.Types() {
		for _, o := range kind.Options {
			if o.Env != "" && o.Secret {
				p.Needs = append(p.Needs, o.Env)
			}
		}
	}
	return p
}

// addDeployment makes what the packages run and what Prometheus reads.
func addDeployment(t *testing.T, want map[string]string) {
	t.Helper()
	for _, unit := range packaged().Units() {
		want["deploy/systemd/"+unit.Name] = unit.Text
	}
	want["deploy/prometheus-rules.yaml"] = printed(t, "runbook", "rules")
}

// cronJob is as much of a CronJob (batch/v1) as is held to the layers.
type cronJob struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Schedule          string
		ConcurrencyPolicy string `yaml:"concurrencyPolicy"`
		JobTemplate       struct {
			Spec struct {
				ActiveDeadlineSeconds int `yaml:"activeDeadlineSeconds"`
				Template              struct {
					Spec struct {
						SecurityContext struct {
							RunAsNonRoot bool `yaml:"runAsNonRoot"`
						} `yaml:"securityContext"`
						Containers []struct {
							Args            []string
							SecurityContext struct {
								ReadOnlyRootFilesystem bool `yaml:"readOnlyRootFilesystem"`
							} `yaml:"securityContext"`
						}
					}
				}
			}
		} `yaml:"jobTemplate"`
	}
}

// TestCronJobsOfKubernetesAreTheLayers: a flag that changes makes the page of somebody else's cluster wrong.
func TestCronJobsOfKubernetesAreTheLayers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "cron.yaml"))
	require.NoError(t, err)
	var list struct{ Items []cronJob }
	require.NoError(t, yaml.Unmarshal(text, &list), "a key given twice is a mistake, too")
	require.Equal(t, "PersistentVolumeClaim", list.Items[0].Kind)
	plan := cron.Plan{Binary: "/sbx", Host: "kubernetes", LockTimeout: "2m"}
	require.Len(t, list.Items, 1+len(plan.Entries()))
	for i, e := range plan.Entries() {
		job := list.Items[1+i]
		pod := job.Spec.JobTemplate.Spec.Template.Spec
		assert.Equal(t, "sbx-"+string(e.Layer), job.Metadata.Name)
		assert.Equal(t, e.Schedule, job.Spec.Schedule, job.Metadata.Name)
		assert.Equal(t, "Forbid", job.Spec.ConcurrencyPolicy, job.Metadata.Name)
		assert.Equal(t, 2*cron.Every(e.Layer), time.Duration(job.Spec.JobTemplate.Spec.ActiveDeadlineSeconds)*time.Second, job.Metadata.Name)
		require.Len(t, pod.Containers, 1, job.Metadata.Name)
		assert.Equal(t, e.Argv[1:], pod.Containers[0].Args, job.Metadata.Name)
		assert.True(t, pod.SecurityContext.RunAsNonRoot && pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem, job.Metadata.Name)
		verb, rest, err := tree().Find(pod.Containers[0].Args)
		require.NoError(t, err)
		require.NoError(t, verb.ParseFlags(rest), job.Metadata.Name)
	}
}
