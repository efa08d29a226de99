// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package minor reports the features of the minor version of Kubernetes under test, and skips tests that need a missing
// feature.
//
//	func TestBinding(t *testing.T) {
//		minor.Needs(t, features.DRADeviceBindingConditions)
//
// [controlplane.KubernetesEnv] sets the version. The feature gates of each version, and their defaults, come from the libraries
// in go.mod, which know earlier versions, too.
package minor

import (
	"maps"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/test/controlplane"
)

// FeaturesEnv names an environment variable. If it is not empty, all tested DRA features of the version are turned on,
// including features that are off by default.
const FeaturesEnv = "CELSET_KUBERNETES_FEATURES"

// Version returns the minor version of Kubernetes under test. It returns "" for the version in go.mod.
func Version() string { return os.Getenv(controlplane.KubernetesEnv) }

func current() *version.Version {
	if older := Version(); older != "" {
		return version.MustParse(older)
	}
	return utilfeature.DefaultMutableFeatureGate.EmulationVersion()
}

// draGates are the feature gates of the DRA features that tests use.
var draGates = []featuregate.Feature{
	features.DRAAdminAccess, features.DRAConsumableCapacity, features.DRADeviceBindingConditions,
	features.DRADeviceTaints, features.DRAExtendedResource, features.DRAPartitionableDevices,
	features.DRAPrioritizedList, features.DRAResourceClaimDeviceStatus,
}

// ClusterGates returns the feature gates to set in the API server, the controller manager and the schedulers.
func ClusterGates() map[string]bool {
	if os.Getenv(FeaturesEnv) == "" {
		return map[string]bool{}
	}
	return TurnOn(draGates...)
}

// SchedulerGates returns ClusterGates and others together.
func SchedulerGates(others map[string]bool) map[string]bool {
	gates := ClusterGates()
	maps.Copy(gates, others)
	return gates
}

// TurnOn returns the values that turn feature gates on, in the API server, the controller manager and the schedulers. It leaves
// out gates that the version does not have, or that are on by default.
func TurnOn(gates ...featuregate.Feature) map[string]bool {
	off := map[string]bool{}
	for _, gate := range gates {
		if known, on := of(gate); known && !on {
			off[string(gate)] = true
		}
	}
	return off
}

// Knows reports whether the version has the feature gate, on or off.
func Knows(gate featuregate.Feature) bool {
	known, _ := of(gate)
	return known
}

// Has reports whether the feature gate is on in clusters of the tests.
func Has(gate featuregate.Feature) bool {
	_, on := of(gate)
	return on || ClusterGates()[string(gate)]
}

// of reports whether the version has a feature gate, and the gate's default.
func of(gate featuregate.Feature) (known, on bool) {
	specs := utilfeature.DefaultMutableFeatureGate.GetAllVersioned()[gate]
	for _, spec := range specs {
		if spec.Version.GreaterThan(current()) || spec.MinCompatibilityVersion != nil {
			break
		}
		known, on = true, spec.Default
	}
	return known, on
}

// Needs skips the test if one of the feature gates is off in clusters of the tests.
func Needs(t *testing.T, gates ...featuregate.Feature) {
	t.Helper()
	for _, gate := range gates {
		if !Has(gate) {
			t.Skipf("Kubernetes %s does not have the feature %s, or not on", current(), gate)
		}
	}
}

// NeedsGate skips the test if the version does not have the feature gate.
func NeedsGate(t *testing.T, gate featuregate.Feature) {
	t.Helper()
	if !Knows(gate) {
		t.Skipf("Kubernetes %s does not have the feature gate %s", current(), gate)
	}
}

// NeedsVersion skips the test if the version under test is older than since. The message says that what needs since.
func NeedsVersion(t *testing.T, since, what string) {
	t.Helper()
	if current().LessThan(version.MustParse(since)) {
		t.Skipf("Kubernetes %s does not have %s, which came in %s", current(), what, since)
	}
}
