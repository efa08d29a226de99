// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package minor reports the features of the minor version of Kubernetes under test, and skips tests that need a missing feature.
//
//	func TestBinding(t *testing.T) {
//		minor.Needs(t, features.DRADeviceBindingConditions)
//
// [controlplane.KubernetesEnv] sets the version. The libraries of go.mod record which gates former versions have, and their
// defaults.
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

// FeaturesEnv names the environment variable that, if it is not empty, turns on all features of DRA that the version has but
// turns off by default.
const FeaturesEnv = "CELSET_KUBERNETES_FEATURES"

// Version returns the tested minor version of Kubernetes from the environment. It is "" for the version that go.mod requires.
func Version() string { return os.Getenv(controlplane.KubernetesEnv) }

func current() *version.Version {
	if older := Version(); older != "" {
		return version.MustParse(older)
	}
	return utilfeature.DefaultMutableFeatureGate.EmulationVersion()
}

// draGates are the gates of tested DRA features.
var draGates = []featuregate.Feature{
	features.DRAAdminAccess, features.DRAConsumableCapacity, features.DRADeviceBindingConditions,
	features.DRADeviceTaints, features.DRAExtendedResource, features.DRAPartitionableDevices,
	features.DRAPrioritizedList, features.DRAResourceClaimDeviceStatus,
}

// ClusterGates returns the gates for the API server, the controller manager and the schedulers.
func ClusterGates() map[string]bool {
	if os.Getenv(FeaturesEnv) == "" {
		return map[string]bool{}
	}
	return TurnOn(draGates...)
}

// SchedulerGates returns the gates of the cluster and others.
func SchedulerGates(others map[string]bool) map[string]bool {
	gates := ClusterGates()
	maps.Copy(gates, others)
	return gates
}

// TurnOn returns the gates for the API server, the controller manager and the schedulers that turn features on. It omits gates
// that the version lacks or has on by default.
func TurnOn(gates ...featuregate.Feature) map[string]bool {
	off := map[string]bool{}
	for _, gate := range gates {
		if known, on := of(gate); known && !on {
			off[string(gate)] = true
		}
	}
	return off
}

// Knows reports whether the version has a gate, on or off.
func Knows(gate featuregate.Feature) bool {
	known, _ := of(gate)
	return known
}

// Has reports whether a feature is on in the cluster.
func Has(gate featuregate.Feature) bool {
	_, on := of(gate)
	return on || ClusterGates()[string(gate)]
}

// of reports whether the version has a gate, and whether it is on by default.
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

// Needs skips the test if a feature is off in the cluster. The message names the feature.
func Needs(t *testing.T, gates ...featuregate.Feature) {
	t.Helper()
	for _, gate := range gates {
		if !Has(gate) {
			t.Skipf("Kubernetes %s does not have the feature %s, or not on", current(), gate)
		}
	}
}

// NeedsGate skips the test if the version lacks the feature gate.
func NeedsGate(t *testing.T, gate featuregate.Feature) {
	t.Helper()
	if !Knows(gate) {
		t.Skipf("Kubernetes %s does not have the feature gate %s", current(), gate)
	}
}

// NeedsVersion skips the test if the cluster is older than version since. what names the feature in the message.
func NeedsVersion(t *testing.T, since, what string) {
	t.Helper()
	if current().LessThan(version.MustParse(since)) {
		t.Skipf("Kubernetes %s does not have %s, which came in %s", current(), what, since)
	}
}
