// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// DRACELDeviceConstraint is the feature gate of KEP-5254: alpha, off by default.
// While it is off, pods that need a CEL device constraint are unschedulable.
const DRACELDeviceConstraint featuregate.Feature = v1alpha1.FeatureGate

// DRADevicePreemption is the feature gate of preemption for devices: alpha, off by default. While it is
// off a pod that fits nowhere for lack of devices evicts nobody, whatever its priority, as in Kubernetes.
const DRADevicePreemption featuregate.Feature = "DRADevicePreemption"

// AddFeatureGates makes the gates of this package known. It must be called
// before flags are parsed.
func AddFeatureGates(gates featuregate.MutableVersionedFeatureGate) error {
	return gates.AddVersioned(map[featuregate.Feature]featuregate.VersionedSpecs{
		// Since the first version with resource.k8s.io/v1, whatever version is emulated.
		DRACELDeviceConstraint: {{Version: version.MajorMinor(1, 34), Default: false, PreRelease: featuregate.Alpha}},
		DRADevicePreemption:    {{Version: version.MajorMinor(1, 34), Default: false, PreRelease: featuregate.Alpha}},
	})
}
