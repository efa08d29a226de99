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

// The profiles that the tests add to them. They are env.CelsetProfile with other
// plugin arguments.
const (
	// allProfile has our allocator serve all pods.
	allProfile = "celset-all"
	// hastyProfile gives up soon.
	hastyProfile = "celset-hasty"
	// frugalProfile evaluates few sets, briefProfile takes hardly a step.
	frugalProfile = "celset-frugal"
	briefProfile  = "celset-brief"
	// wholeProfile keeps whole what others may ask for, and searches for the best set for as long as it takes,
	// although pods of other stories wait.
	wholeProfile = "celset-whole"
)

const (
	hastyFilterTimeout = time.Second
	// hastyBindingTimeout is longer than the five seconds between two looks at
	// binding conditions, so that there is a second look, and than a busy machine needs
	// until a driver has reported.
	hastyBindingTimeout = 20 * time.Second
	// frugalCost is the half of its budget that one node gets: enough for some ten sets of a few devices.
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

// sharedSchedulerConfig is the configuration in manifests with the profiles that
// tests add. All profiles are in one process, because only there they share what
// they know of devices that are just being allocated.
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
	// The default of 50 requests a second is what the test with hundreds of pods
	// would wait for.
	config.ClientConnection.QPS = 1000
	config.ClientConnection.Burst = 2000
	return yaml.Marshal(config)
}

// readSchedulerConfig reads the configuration in manifests. Its last profile is
// ours.
func readSchedulerConfig(t testing.TB) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	content, err := os.ReadFile(env.Manifest(t, "scheduler", "config.yaml"))
	if err != nil {
		return nil, err
	}
	config := &schedulerconfig.KubeSchedulerConfiguration{}
	return config, yaml.UnmarshalStrict(content, config)
}

// variant is a way to the same devices. What upstream's plugin does for a pod
// without constraints is what ours has to do, with either allocator.
type variant struct {
	name    string
	profile string
	// constrained: the claims have a CEL constraint, so that our allocator serves
	// them.
	constrained bool
}

func variants() []variant {
	return []variant{
		{name: "stock", profile: env.StockProfile},
		{name: "constrained", profile: env.CelsetProfile, constrained: true},
		{name: "all", profile: allProfile},
	}
}

// forEachVariant runs a test in a lab of its own for each variant.
func forEachVariant(t *testing.T, labName string, nodes int, test func(*testing.T, *lab, variant)) {
	t.Parallel()
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			test(t, newLab(t, labName, nodes), v)
		})
	}
}

// claim is the parts of a claim, with the constraint where the variant has one.
func (v variant) claim(constraint env.Part, parts ...env.Part) []env.Part {
	if v.constrained {
		return append(parts, constraint)
	}
	return parts
}

// either is one of two expectations. Where a constraint decides which devices are
// right, the variants differ.
func (v variant) either(plain, constrained []string) []string {
	if v.constrained {
		return constrained
	}
	return plain
}
