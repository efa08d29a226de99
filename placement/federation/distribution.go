// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Cluster is what distributing an object needs to know of a cluster.
type Cluster struct {
	Name   string
	Labels map[string]string
	// Present tells that the object is there now.
	Present bool
}

// Distribution says what to do with an object.
type Distribution struct {
	// Selected are the names of the clusters that are to have the object, sorted.
	// What else says how the object is spread, such as preferences for replicas,
	// applies to these.
	Selected []string
	// Deleted are the names of the clusters that have the object and are not to have
	// it, sorted.
	Deleted []string
}

// Distribute decides by the annotations of an object. With an error, nothing is
// to be created and nothing to be deleted anywhere until the annotation is
// mended.
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
