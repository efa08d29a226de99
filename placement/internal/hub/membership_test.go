// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

// TestFewCombinationsAreRemembered checks that few combinations of sets are remembered. A forgotten combination must get the
// same clusters when it is computed again.
func TestFewCombinationsAreRemembered(t *testing.T) {
	snapshot := &Snapshot{}
	for _, name := range []string{"a", "b"} {
		snapshot.Clusters = append(snapshot.Clusters, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}})
	}
	for i := range 20 {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("set-%02d", i), ResourceVersion: "1"}
		selector := clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{}}
		snapshot.ClusterSets = append(snapshot.ClusterSets, &clusterv1beta2.ManagedClusterSet{ObjectMeta: meta, Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: selector}})
		meta.Namespace = "ns"
		snapshot.Bindings = append(snapshot.Bindings, &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: meta})
	}
	m := &Memberships{}
	for range 2 {
		for i := range 20 {
			object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
			object.Spec.ClusterSets = []string{fmt.Sprintf("set-%02d", i)}
			available, err := m.Available(object, snapshot)
			require.NoError(t, err)
			require.Equal(t, snapshot.Clusters, available.Clusters)
			require.NotEmpty(t, m.bySets)
			require.LessOrEqual(t, len(m.bySets), mostMemberships)
		}
	}
}
