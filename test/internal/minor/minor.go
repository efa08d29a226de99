// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package minor tells what the minor version of Kubernetes has that tests run on, and skips by name
// those that are about something it has not.
//
//	func TestBinding(t *testing.T) {
//		minor.Needs(t, features.DRADeviceBindingConditions)
//
// The version is what [controlplane.KubernetesEnv] says; which gates it has, and which of them are on
// by default, is what the libraries of go.mod know of former versions.
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

// FeaturesEnv is the environment variable that, if it is not empty, turns on the features of DRA that
// the version has, and does not have on.
const FeaturesEnv = "CELSET_KUBERNETES_FEATURES"

// Version is the minor version of the cluster as tests name it, empty for that of go.mod.
func Version() string { return os.Getenv(controlplane.KubernetesEnv) }

func current() *version.Version {
	if older := Version(); older != "" {
		return version.MustParse(older)
	}
	return utilfeature.DefaultMutableFeatureGate.EmulationVersion()
}

// draGates are those of the features of DRA that tests are about.
var draGates = []featuregate.Feature{
	features.DRAAdminAccess, features.DRAConsumableCapacity, features.DRADeviceBindingConditions,
	features.DRADeviceTaints, features.DRAExtendedResource, features.DRAPartitionableDevices,
	features.DRAPrioritizedList, features.DRAResourceClaimDeviceStatus,
}

// ClusterGates are to be given to the API server, the controller manager and the schedulers.
func ClusterGates() map[string]bool {
	if os.Getenv(FeaturesEnv) == "" {
		return map[string]bool{}
	}
	return TurnOn(draGates...)
}

// SchedulerGates are those of the cluster and others.
func SchedulerGates(others map[string]bool) map[string]bool {
	gates := ClusterGates()
	maps.Copy(gates, others)
	return gates
}

// TurnOn are the gates to be given to the API server, the controller manager and the schedulers so that
// features are on: those that the version has, and not on.
func TurnOn(gates ...featuregate.Feature) map[string]bool {
	off := map[string]bool{}
	for _, gate := range gates {
		if known, on := of(gate); known && !on {
			off[string(gate)] = true
		}
	}
	return off
}

// Knows tells whether the version has a gate, on or not.
func Knows(gate featuregate.Feature) bool {
	known, _ := of(gate)
	return known
}

// Has tells whether the cluster has a feature on.
func Has(gate featuregate.Feature) bool {
	_, on := of(gate)
	return on || ClusterGates()[string(gate)]
}

// of tells whether the version knows a gate, and has it on by default.
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

// Needs skips the test, by name, if the cluster has a feature not on that it is about.
func Needs(t *testing.T, gates ...featuregate.Feature) {
	t.Helper()
	for _, gate := range gates {
		if !Has(gate) {
			t.Skipf("Kubernetes %s does not have the feature %s, or not on", current(), gate)
		}
	}
}

// NeedsGate skips the test, by name, if the version does not have the gate: it can't be turned on.
func NeedsGate(t *testing.T, gate featuregate.Feature) {
	t.Helper()
	if !Knows(gate) {
		t.Skipf("Kubernetes %s does not have the feature gate %s", current(), gate)
	}
}

// NeedsVersion skips the test, by name, if the cluster is older than what it is about.
func NeedsVersion(t *testing.T, since, what string) {
	t.Helper()
	if current().LessThan(version.MustParse(since)) {
		t.Skipf("Kubernetes %s does not have %s, which came in %s", current(), what, since)
	}
}
