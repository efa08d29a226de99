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

// The profiles that the tests add to the scheduler. They have the plugin of env.CelsetProfile, with other arguments.
const (
	// allProfile uses our allocator for all pods, with and without constraints.
	allProfile = "celset-all"
	// hastyProfile has short timeouts.
	hastyProfile = "celset-hasty"
	// frugalProfile has a cost budget for a few sets. briefProfile has a budget of very few search steps.
	frugalProfile = "celset-frugal"
	briefProfile  = "celset-brief"
	// wholeProfile prefers to keep large sets free. It searches for the best set without a time limit, even if pods of other
	// scripts wait.
	wholeProfile = "celset-whole"
)

const (
	hastyFilterTimeout = time.Second
	// hastyBindingTimeout is longer than the five seconds between two checks of binding conditions, so that there is a second
	// check. It is also longer than the test, as the driver, takes to report on a busy machine.
	hastyBindingTimeout = 20 * time.Second
	// frugalCost is the cost budget for one node, enough to evaluate about ten sets of a few devices.
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

// sharedSchedulerConfig returns the configuration in manifests with the additional profiles. All profiles run in one process.
// Otherwise they would not see the devices of each other's pending allocations.
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
	// The default is 50 requests a second. The test with hundreds of pods would have to wait.
	config.ClientConnection.QPS = 1000
	config.ClientConnection.Burst = 2000
	return yaml.Marshal(config)
}

// readSchedulerConfig reads the configuration in manifests. Our profile is the last one.
func readSchedulerConfig(t testing.TB) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	content, err := os.ReadFile(env.Manifest(t, "scheduler", "config.yaml"))
	if err != nil {
		return nil, err
	}
	config := &schedulerconfig.KubeSchedulerConfiguration{}
	return config, yaml.UnmarshalStrict(content, config)
}

// A variant is a combination of profile and claim. For pods without constraints, our plugin must behave like upstream's, with
// either allocator.
type variant struct {
	name    string
	profile string
	// constrained is set if claims get a CEL constraint.
	constrained bool
}

func variants() []variant {
	return []variant{
		{name: "stock", profile: env.StockProfile},
		{name: "constrained", profile: env.CelsetProfile, constrained: true},
		{name: "all", profile: allProfile},
	}
}

// forEachVariant runs the test for each variant, each time in a separate lab.
func forEachVariant(t *testing.T, labName string, nodes int, test func(*testing.T, *lab, variant)) {
	t.Parallel()
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			test(t, newLab(t, labName, nodes), v)
		})
	}
}

// claim returns the parts of a claim. It adds the constraint if the variant is constrained.
func (v variant) claim(constraint env.Part, parts ...env.Part) []env.Part {
	if v.constrained {
		return append(parts, constraint)
	}
	return parts
}

// either returns constrained if the variant's claims have a constraint, and plain otherwise.
func (v variant) either(plain, constrained []string) []string {
	if v.constrained {
		return constrained
	}
	return plain
}
