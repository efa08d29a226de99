// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Cluster is a cluster that an object may be distributed to.
type Cluster struct {
	Name   string
	Labels map[string]string
	// Present is true if the cluster has the object now.
	Present bool
}

// Distribution is the result of distributing an object.
type Distribution struct {
	// Selected are the names of the clusters that must have the object, sorted. Other settings, such as preferences for replicas,
	// apply to these clusters.
	Selected []string
	// Deleted are the names of the clusters that have the object and must not have it, sorted.
	Deleted []string
}

// Distribute selects clusters by the annotations of an object. After an error, the object must be neither created nor deleted
// anywhere until the annotation is corrected.
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
