// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/json"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// constraintName is the name under which a claim defines its expression.
const constraintName = "shape"

// Claim asks for the devices of the scenario, with its expression as a constraint
// on all of them.
func (s Scenario) Claim() (*resourceapi.ResourceClaim, error) {
	return s.ClaimWith(s.Expression)
}

// ClaimWith is Claim with another expression in the place of the scenario's.
func (s Scenario) ClaimWith(expression string) (*resourceapi.ResourceClaim, error) {
	raw, err := json.Marshal(v1alpha1.CELDeviceConstraint{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
		Name:       constraintName,
		Expression: expression,
	})
	if err != nil {
		return nil, fmt.Errorf("scenario %s: constraint: %w", s.Name, err)
	}
	claim := s.PlainClaim()
	claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{
		MatchAttribute: new(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + constraintName)),
	}}
	claim.Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{
		DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
			Driver:     v1alpha1.DriverName,
			Parameters: runtime.RawExtension{Raw: raw},
		}},
	}}
	return claim, nil
}

// PlainClaim has the requests of the scenario and no constraint.
func (s Scenario) PlainClaim() *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.Name}}
	for _, r := range s.Requests {
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourceapi.DeviceRequest{
			Name: r.Name,
			Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: r.Driver,
				AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
				Count:           int64(r.Count),
			},
		})
	}
	return claim
}

// DeviceClasses has a class for each driver, of the same name.
func (s Scenario) DeviceClasses() []*resourceapi.DeviceClass {
	var classes []*resourceapi.DeviceClass
	for _, driver := range s.Topology.Drivers() {
		classes = append(classes, &resourceapi.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: driver},
			Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{
				{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == '%s'", driver)}},
			}},
		})
	}
	return classes
}

// ResourceSlices is what the drivers publish on a node. The pools are named like
// the node.
func (s Scenario) ResourceSlices(nodeName string) ([]*resourceapi.ResourceSlice, error) {
	return s.Topology.ResourceSlices(nodeName)
}
