// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Cluster is a cluster to which an object may be distributed.
type Cluster struct {
	Name   string
	Labels map[string]string
	// Present is set if the object exists in the cluster now.
	Present bool
}

// Distribution is the result of distributing an object.
type Distribution struct {
	// Selected has the sorted names of the clusters that must have the object. Further settings, such as preferences for replicas,
	// apply to these clusters.
	Selected []string
	// Deleted has the sorted names of the clusters where the object exists and must be deleted.
	Deleted []string
}

// Distribute selects clusters by the annotations of an object. After an error, the object must not be created or deleted in any
// cluster until the annotation is corrected.
func Distribute(annotations map[string]string, clusters []Cluster) (Distribution, error) {
	selector, err := ParseAnnotations(annotations)
	if err != nil {
		return Distribution{}, err
	}
	var result Distribution
	for _, cluster := range slices.SortedFunc(slices.Values(clusters), byName) {
		switch {
		case selector.Matches(labels.Set(cluster.Labels)):
			result.Selected = append(result.Selected, cluster.Name)
		case cluster.Present:
			result.Deleted = append(result.Deleted, cluster.Name)
		}
	}
	return result, nil
}

func byName(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) }
