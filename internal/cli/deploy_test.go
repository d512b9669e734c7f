package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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
						ServiceAccountName           string `yaml:"serviceAccountName"`
						AutomountServiceAccountToken *bool  `yaml:"automountServiceAccountToken"`
						Affinity                     map[string]any
						Volumes                      []struct {
							Name                  string
							PersistentVolumeClaim struct {
								ClaimName string `yaml:"claimName"`
							} `yaml:"persistentVolumeClaim"`
						}
						Containers []struct {
							Args []string
							Env  []struct {
								Name      string
								ValueFrom struct {
									SecretKeyRef struct {
										Name, Key string
										Optional  bool
									} `yaml:"secretKeyRef"`
								} `yaml:"valueFrom"`
							}
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

// cronJobs are the CronJobs of deploy/cron.yaml, each behind the claim of its volume. Some texts are replaced before.
func cronJobs(t *testing.T, replace ...string) (claims []string, jobs []cronJob) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "cron.yaml"))
	require.NoError(t, err)
	var list struct{ Items []cronJob }
	require.NoError(t, yaml.Unmarshal([]byte(strings.NewReplacer(replace...).Replace(string(text))), &list), "a key given twice is a mistake, too")
	for _, item := range list.Items {
		switch item.Kind {
		case "PersistentVolumeClaim":
			claims = append(claims, item.Metadata.Name)
		case "CronJob":
			jobs = append(jobs, item)
		default:
			assert.Fail(t, "another kind", item.Kind)
		}
	}
	return claims, jobs
}

// TestCronJobsOfKubernetesAreTheLayers: a flag that changes makes the page of somebody else's cluster wrong.
func TestCronJobsOfKubernetesAreTheLayers(t *testing.T) {
	t.Parallel()
	_, jobs := cronJobs(t)
	plan := cron.Plan{Binary: "/sbx", Host: "kubernetes", LockTimeout: "2m"}
	require.Len(t, jobs, len(plan.Entries()))
	for i, e := range plan.Entries() {
		job := jobs[i]
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

// TestCronJobsOfKubernetesRunOnAnyNode: no two layers have one volume, and none starts without the store that has the
// lease between them.
func TestCronJobsOfKubernetesRunOnAnyNode(t *testing.T) {
	t.Parallel()
	claims, jobs := cronJobs(t)
	var used []string
	for _, job := range jobs {
		pod := job.Spec.JobTemplate.Spec.Template.Spec
		assert.Empty(t, pod.Affinity, job.Metadata.Name)
		require.Len(t, pod.Volumes, 2, job.Metadata.Name)
		used = append(used, pod.Volumes[0].PersistentVolumeClaim.ClaimName)
		require.Len(t, pod.Containers[0].Env, 1, job.Metadata.Name)
		store := pod.Containers[0].Env[0]
		assert.Equal(t, "SBX_STORE_URL", store.Name)
		assert.Equal(t, "sbx-keys SBX_STORE_URL", store.ValueFrom.SecretKeyRef.Name+" "+store.ValueFrom.SecretKeyRef.Key)
		assert.False(t, store.ValueFrom.SecretKeyRef.Optional)
	}
	assert.Equal(t, claims, used)
	assert.Len(t, jobs, len(slices.Compact(slices.Sorted(slices.Values(used)))))
}

// TestCronJobsOfKubernetesHaveAnAccountOnlyWhereItIsUsed: the two lines that the comment names are enough for all layers.
func TestCronJobsOfKubernetesHaveAnAccountOnlyWhereItIsUsed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		replace []string
		account string
		mounted bool
	}{
		"as it is":                    {},
		"with a profile of a cluster": {[]string{"#serviceAccountName: sbx", "serviceAccountName: sbx", "automountServiceAccountToken: false", "automountServiceAccountToken: true"}, "sbx", true},
	} {
		_, jobs := cronJobs(t, tc.replace...)
		require.Len(t, jobs, 4, name)
		for _, job := range jobs {
			pod := job.Spec.JobTemplate.Spec.Template.Spec
			assert.Equal(t, tc.account, pod.ServiceAccountName, "%s: %s", name, job.Metadata.Name)
			require.NotNil(t, pod.AutomountServiceAccountToken, "%s: %s", name, job.Metadata.Name)
			assert.Equal(t, tc.mounted, *pod.AutomountServiceAccountToken, "%s: %s", name, job.Metadata.Name)
		}
	}
}
