// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
)

// New is a constraint of a claim that compares an attribute. lists: attributes may be lists.
func New(claim *resourceapi.ResourceClaim, index int, lists bool, lookup Lookup) (Constraint, error) {
	api := &claim.Spec.Devices.Constraints[index]
	switch {
	case api.MatchAttribute != nil && lists:
		return &matchAttributeList{compared: compared{lookup, *api.MatchAttribute}}, nil
	case api.MatchAttribute != nil:
		return &matchAttribute{compared: compared{lookup, *api.MatchAttribute}}, nil
	case api.DistinctAttribute != nil && lists:
		return &distinctAttributeList{compared: compared{lookup, *api.DistinctAttribute}}, nil
	case api.DistinctAttribute != nil:
		return &distinctAttribute{compared: compared{lookup, *api.DistinctAttribute}}, nil
	default:
		return nil, fmt.Errorf("claim %s, constraint #%d: empty constraint (unsupported constraint type?)", klog.KObj(claim), index)
	}
}
