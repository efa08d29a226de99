// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerconfig "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

func TestMain(m *testing.M) { env.Main(m) }

// priorities maps the names of PriorityClasses to their values. The class n50 has preemptionPolicy Never.
var priorities = map[string]int32{"p10": 10, "p20": 20, "p30": 30, "p50": 50, "p60": 60, "p90": 90, "n50": 50}

// cluster has nodes without kwok, so the test ends the pods. Its pod garbage collector is off, so that a deleted pod with a
// finalizer stays until the test removes the finalizer.
var cluster = env.Share(func(t testing.TB) *env.Env {
	e := env.Start(t, controlplane.Options{
		SkipKwok: true, FeatureGates: minor.ClusterGates(), Users: []controlplane.User{env.Scheduler},
		Controllers: slices.DeleteFunc(controlplane.DefaultControllers(), func(name string) bool { return name == "pod-garbage-collector-controller" }),
	}, controlplane.CelsetScheduler)
	e.ApplyManifests(t, "scheduler/rbac.yaml")
	for name, value := range priorities {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if name == "n50" {
			class.PreemptionPolicy = ptr.To(corev1.PreemptNever)
		}
		e.CreatePriorityClass(t, class)
	}
	return e
})

// An option changes the configuration of a scheduler.
type option func(*schedulerconfig.KubeSchedulerConfiguration)

// schedulerConfig returns the configuration in manifests with a constant backoff of one second for pods, because the tests wait
// for retries.
func schedulerConfig(t testing.TB, options ...option) []byte {
	t.Helper()
	content, err := os.ReadFile(env.Manifest(t, "scheduler", "config.yaml"))
	require.NoError(t, err)
	config := &schedulerconfig.KubeSchedulerConfiguration{}
	require.NoError(t, yaml.UnmarshalStrict(content, config))
	config.PodInitialBackoffSeconds, config.PodMaxBackoffSeconds = ptr.To[int64](1), ptr.To[int64](1)
	config.ClientConnection.QPS, config.ClientConnection.Burst = 500, 1000
	config.LeaderElection.LeaderElect = ptr.To(false)
	for _, change := range options {
		change(config)
	}
	content, err = yaml.Marshal(config)
	require.NoError(t, err)
	return content
}

// ours returns the profile with our plugin.
func ours(config *schedulerconfig.KubeSchedulerConfiguration) *schedulerconfig.KubeSchedulerProfile {
	return &config.Profiles[len(config.Profiles)-1]
}

// withArgs returns an option that changes the plugin's arguments in our profile.
func withArgs(t testing.TB, change func(*configv1alpha1.DynamicResourcesCELArgs)) option {
	t.Helper()
	return func(config *schedulerconfig.KubeSchedulerConfiguration) {
		args := &configv1alpha1.DynamicResourcesCELArgs{}
		raw := &ours(config).PluginConfig[0].Args
		require.NoError(t, json.Unmarshal(raw.Raw, args))
		change(args)
		content, err := json.Marshal(args)
		require.NoError(t, err)
		*raw = runtime.RawExtension{Raw: content}
	}
}

// onlyProfile returns an option that removes all profiles except ours, and renames ours.
func onlyProfile(name string) option {
	return func(config *schedulerconfig.KubeSchedulerConfiguration) {
		profile := *ours(config)
		profile.SchedulerName = &name
		config.Profiles = []schedulerconfig.KubeSchedulerProfile{profile}
	}
}
