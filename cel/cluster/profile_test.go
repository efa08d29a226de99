// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/celset/celset/cel/cluster"
)

func bravelion() *profilev1alpha1.ClusterProfile {
	return &profilev1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "bravelion", Labels: map[string]string{"cloud": "azure"}},
		Spec:       profilev1alpha1.ClusterProfileSpec{ClusterManager: profilev1alpha1.ClusterManager{Name: "fleet"}},
		Status: profilev1alpha1.ClusterProfileStatus{
			Version: profilev1alpha1.ClusterVersion{Kubernetes: "v1.33.1"},
			Properties: []profilev1alpha1.Property{
				{Name: "sku.node.k8s.io", Value: "g6.xlarge,Standard_NC48ads_H100,m3-ultramem-32"},
				// The commas that the example of the proposal lacks are added.
				{Name: "sku.gpu.kubernetes-fleet.io", Value: `{
					"H100": [{"Standard_NC48ads_H100_v4": 10}, {"Standard_NC96ads_H100_v4": 2}],
					"A100": [{"Standard_NC48ads_A100_v4": 50}, {"Standard_NC96ads_A100_v4": 20}]
				}`},
			},
		},
	}
}

// profiles are a ClusterProfile in both forms.
func profiles(t *testing.T) map[string]cluster.Cluster {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(bravelion())
	require.NoError(t, err)
	result := map[string]cluster.Cluster{}
	for name, object := range map[string]metav1.Object{"typed": bravelion(), "unstructured": &unstructured.Unstructured{Object: content}} {
		result[name], err = cluster.Of(object)
		require.NoError(t, err)
	}
	return result
}

func TestPropertiesAreClaims(t *testing.T) {
	for form, profile := range profiles(t) {
		t.Run(form, func(t *testing.T) {
			for operator, want := range map[metav1.LabelSelectorOperator]bool{"Exists": true, "DoesNotExist": false} {
				selector := compile(t, clusterv1beta1.ClusterSelector{
					LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "azure"}},
					ClaimSelector: clusterv1beta1.ClusterClaimSelector{
						MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "sku.node.k8s.io", Operator: operator}},
					},
				})
				verdict, err := selector.Match(t.Context(), profile, cluster.Hub{})
				require.NoError(t, err)
				require.Equal(t, want, verdict.Matches)
			}
		})
	}
}
