// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerconfig "k8s.io/kube-scheduler/config/v1"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/celset/v1alpha1"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// The profiles that the tests add. They are env.CelsetProfile with other plugin arguments.
const (
	// allProfile serves all pods with our allocator.
	allProfile = "celset-all"
	// hastyProfile has short timeouts.
	hastyProfile = "celset-hasty"
	// frugalProfile evaluates few sets. briefProfile has a budget of very few steps.
	frugalProfile = "celset-frugal"
	briefProfile  = "celset-brief"
	// wholeProfile keeps large sets whole, and searches for the best set without a time limit, although pods of other stories wait.
	wholeProfile = "celset-whole"
)

const (
	hastyFilterTimeout = time.Second
	// hastyBindingTimeout is longer than the five seconds between two checks of binding conditions, so that a second check happens.
	// It is also longer than a driver on a busy machine takes to report.
	hastyBindingTimeout = 20 * time.Second
	// frugalCost is one node's half of the budget, enough for some ten sets of a few devices.
	frugalCost int64 = 1000
	briefSteps int64 = 2
)

func addedProfiles() map[string]configv1alpha1.DynamicResourcesCELArgs {
	hasty := configv1alpha1.DynamicResourcesCELArgs{
		FilterTimeout:  &metav1.Duration{Duration: hastyFilterTimeout},
		AttemptTimeout: &metav1.Duration{},
		Budget:         &configv1alpha1.Budget{Cost: ptr.To[int64](1_000_000_000), Steps: ptr.To[int64](10_000_000)},
	}
	if minor.Has(kubefeatures.DRADeviceBindingConditions) {
		hasty.BindingTimeout = &metav1.Duration{Duration: hastyBindingTimeout}
	}
	return map[string]configv1alpha1.DynamicResourcesCELArgs{
		allProfile:    {Allocator: configv1alpha1.AllocatorAll},
		hastyProfile:  hasty,
		frugalProfile: {Budget: &configv1alpha1.Budget{Cost: ptr.To(2 * frugalCost)}},
		briefProfile:  {Budget: &configv1alpha1.Budget{Steps: ptr.To(2 * briefSteps)}},
		wholeProfile:  {DefaultPreference: v1alpha1.PolicyKeepWhole, AttemptTimeout: &metav1.Duration{}},
	}
}

// sharedSchedulerConfig returns the configuration in manifests with the profiles of the tests. All profiles run in one process,
// because only there they share the devices of pending allocations.
func sharedSchedulerConfig(t testing.TB) ([]byte, error) {
	config, err := readSchedulerConfig(t)
	if err != nil {
		return nil, err
	}
	ours := config.Profiles[len(config.Profiles)-1]
	for name, args := range addedProfiles() {
		profile := ours.DeepCopy()
		profile.SchedulerName = &name
		raw, err := json.Marshal(args)
		if err != nil {
			return nil, err
		}
		profile.PluginConfig[0].Args = runtime.RawExtension{Raw: raw}
		config.Profiles = append(config.Profiles, *profile)
	}
	// With the default of 50 requests a second, the test with hundreds of pods would wait.
	config.ClientConnection.QPS = 1000
	config.ClientConnection.Burst = 2000
	return yaml.Marshal(config)
}

// readSchedulerConfig reads the configuration in manifests. Its last profile is ours.
func readSchedulerConfig(t testing.TB) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	content, err := os.ReadFile(env.Manifest(t, "scheduler", "config.yaml"))
	if err != nil {
		return nil, err
	}
	config := &schedulerconfig.KubeSchedulerConfiguration{}
	return config, yaml.UnmarshalStrict(content, config)
}

// A variant is a way to the same devices. For a pod without constraints, our plugin must behave as upstream's does, with either
// allocator.
type variant struct {
	name    string
	profile string
	// constrained is set if the claims have a CEL constraint, so that our allocator serves them.
	constrained bool
}

func variants() []variant {
	return []variant{
		{name: "stock", profile: env.StockProfile},
		{name: "constrained", profile: env.CelsetProfile, constrained: true},
		{name: "all", profile: allProfile},
	}
}

// forEachVariant runs a test for each variant, each in its own lab.
func forEachVariant(t *testing.T, labName string, nodes int, test func(*testing.T, *lab, variant)) {
	t.Parallel()
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			test(t, newLab(t, labName, nodes), v)
		})
	}
}

// claim returns the parts of a claim, with the constraint if the variant has one.
func (v variant) claim(constraint env.Part, parts ...env.Part) []env.Part {
	if v.constrained {
		return append(parts, constraint)
	}
	return parts
}

// either returns one of two expectations. They differ if a constraint decides which devices are right.
func (v variant) either(plain, constrained []string) []string {
	if v.constrained {
		return constrained
	}
	return plain
}
