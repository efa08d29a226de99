// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	kubefeatures "k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/internal/controlplane"
)

// featuresVariable turns on the features of DRA that the version of the cluster has, and does
// not have on.
const featuresVariable = "CELSET_KUBERNETES_FEATURES"

// kubernetesVersion is the minor version of the cluster, empty for that of go.mod.
func kubernetesVersion() string { return os.Getenv(controlplane.KubernetesEnv) }

func minorVersion() *version.Version {
	if older := kubernetesVersion(); older != "" {
		return version.MustParse(older)
	}
	return utilfeature.DefaultMutableFeatureGate.EmulationVersion()
}

// draGates are those of the features of DRA that tests are about.
var draGates = []featuregate.Feature{
	kubefeatures.DRAAdminAccess, kubefeatures.DRAConsumableCapacity, kubefeatures.DRADeviceBindingConditions,
	kubefeatures.DRADeviceTaints, kubefeatures.DRAExtendedResource, kubefeatures.DRAPartitionableDevices,
	kubefeatures.DRAPrioritizedList, kubefeatures.DRAResourceClaimDeviceStatus,
}

// clusterGates are to be given to the API server, the controller manager and the schedulers.
func clusterGates() map[string]bool {
	gates := map[string]bool{}
	if os.Getenv(featuresVariable) == "" {
		return gates
	}
	for _, gate := range draGates {
		if known, on := gateIn(gate); known && !on {
			gates[string(gate)] = true
		}
	}
	return gates
}

// schedulerGates are those of the cluster and celset's.
func schedulerGates(celset map[string]bool) map[string]bool {
	gates := clusterGates()
	for gate, on := range celset {
		gates[gate] = on
	}
	return gates
}

// gateIn tells whether the version of the cluster knows a gate, and has it on by default.
func gateIn(gate featuregate.Feature) (known, on bool) {
	specs := utilfeature.DefaultMutableFeatureGate.GetAllVersioned()[gate]
	for _, spec := range specs {
		if spec.Version.GreaterThan(minorVersion()) || spec.MinCompatibilityVersion != nil {
			break
		}
		known, on = true, spec.Default
	}
	return known, on
}

// has tells whether the cluster has a feature on.
func has(gate featuregate.Feature) bool {
	_, on := gateIn(gate)
	return on || clusterGates()[string(gate)]
}

// needs skips the test, by name, if the cluster has a feature not on that it is about.
func needs(t *testing.T, gates ...featuregate.Feature) {
	t.Helper()
	for _, gate := range gates {
		if !has(gate) {
			t.Skipf("Kubernetes %s does not have the feature %s, or not on", kubernetesVersion(), gate)
		}
	}
}

// needsKubernetes skips the test, by name, if the cluster is older than what it is about.
func needsKubernetes(t *testing.T, since, what string) {
	t.Helper()
	if minorVersion().LessThan(version.MustParse(since)) {
		t.Skipf("Kubernetes %s does not have %s, which came in %s", kubernetesVersion(), what, since)
	}
}
