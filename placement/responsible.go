// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

// TakeAnnotation of a Placement, with the value "true", gives it to celset on a hub
// where another scheduler decides the others.
const TakeAnnotation = "celset.dev/placement"

// Responsible tells whether a Placement is to be decided at all: it is not being
// deleted, and either it has [TakeAnnotation] or all are to be decided but those
// with [clusterv1beta1.PlacementDisableAnnotation]. The latter keeps other
// schedulers off, so on a shared hub a Placement has both. PlacementDecisions of a
// Placement that is nobody's business are left as they are.
func Responsible(placement *clusterv1beta1.Placement, all bool) bool {
	switch {
	case placement == nil || !placement.DeletionTimestamp.IsZero():
		return false
	case placement.Annotations[TakeAnnotation] == "true":
		return true
	default:
		return all && placement.Annotations[clusterv1beta1.PlacementDisableAnnotation] != "true"
	}
}
