// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"pgregory.net/rapid"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/testing/cases"
)

func profile(namespace, name string, labels map[string]string) *profilev1alpha1.ClusterProfile {
	return &profilev1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
}

func names(clusters []*clusterv1.ManagedCluster) []string {
	var result []string
	for _, cluster := range clusters {
		result = append(result, cluster.Name)
	}
	return result
}

func reader(t *testing.T, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1.Install(scheme))
	require.NoError(t, profilev1alpha1.AddToScheme(scheme))
	require.NoError(t, corev1.AddToScheme(scheme))
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// TestProfilesAsManagedClusters converts the ClusterProfiles of a file. The output has the ManagedClusters. The argument of a
// command is the set in the label of the namespace. "go test ./placement/inventory -rewrite" updates the output.
func TestProfilesAsManagedClusters(t *testing.T) {
	datadriven.RunTest(t, "testdata/profiles", func(t *testing.T, d *datadriven.TestData) string {
		object, set := profile("fleet", "a", nil), ""
		require.NoError(t, yaml.UnmarshalStrict([]byte(d.Input), object))
		if d.HasArg("set") {
			d.ScanArgs(t, "set", &set)
		}
		before := object.DeepCopy()
		result := managed(object, set)
		require.Empty(t, cmp.Diff(before, object))
		text, err := yaml.Marshal(result)
		require.NoError(t, err)
		return string(text)
	})
}

func TestClusterProfilesOfOneNamespace(t *testing.T) {
	from := ClusterProfiles{Namespace: "fleet"}
	hub := reader(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet", Labels: map[string]string{profilev1alpha1.LabelClusterSetKey: "all"}}},
		profile("fleet", "b", nil), profile("fleet", "a", nil), profile("other", "a", map[string]string{"x": "y"}), profile("other", "c", nil))
	clusters, err := from.Clusters(t.Context(), hub)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names(clusters))
	require.Equal(t, "all", clusters[0].Labels[clusterv1beta2.ClusterSetLabel])
	one, err := from.Cluster(t.Context(), hub, "a")
	require.NoError(t, err)
	require.NotContains(t, one.Labels, "x")
	_, err = from.Cluster(t.Context(), hub, "c")
	require.True(t, apierrors.IsNotFound(err))
	_, err = from.Of(t.Context(), hub, profile("other", "a", nil))
	require.ErrorContains(t, err, "is not a ClusterProfile in namespace fleet")
	_, err = from.Of(t.Context(), hub, &clusterv1.ManagedCluster{})
	require.Error(t, err)
	clusters, err = ClusterProfiles{Namespace: "missing"}.Clusters(t.Context(), hub)
	require.NoError(t, err)
	require.Empty(t, clusters)
}

func TestManagedClusters(t *testing.T) {
	hub := reader(t, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	from := ManagedClusters{}
	clusters, err := from.Clusters(t.Context(), hub)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names(clusters))
	one, err := from.Cluster(t.Context(), hub, "a")
	require.NoError(t, err)
	same, err := from.Of(t.Context(), hub, one)
	require.NoError(t, err)
	require.Same(t, one, same)
	_, err = from.Cluster(t.Context(), hub, "c")
	require.True(t, apierrors.IsNotFound(err))
	_, err = from.Of(t.Context(), hub, &corev1.Namespace{})
	require.ErrorContains(t, err, "is not a ManagedCluster")
	require.IsType(t, &clusterv1.ManagedCluster{}, from.Object())
	require.Nil(t, from.Group())
	require.Equal(t, cache.Options{}, from.Cache(cache.Options{}))
}

// TestTheCacheKeepsNoAccess checks that the cache removes access data of clusters, on which no selection depends.
func TestTheCacheKeepsNoAccess(t *testing.T) {
	options := ClusterProfiles{Namespace: "fleet"}.Cache(cache.Options{})
	seen := 0
	for kind, of := range options.ByObject {
		switch kind.(type) {
		case *profilev1alpha1.ClusterProfile:
			seen++
			require.Equal(t, map[string]cache.Config{"fleet": {}}, of.Namespaces)
			object := profile("fleet", "a", nil)
			object.Status.AccessProviders = []profilev1alpha1.AccessProvider{{Name: "kubeconfig"}}
			kept, err := of.Transform(object)
			require.NoError(t, err)
			require.Empty(t, kept.(*profilev1alpha1.ClusterProfile).Status.AccessProviders)
		case *corev1.Namespace:
			seen++
			require.Equal(t, "metadata.name=fleet", of.Field.String())
		}
	}
	require.Equal(t, 2, seen)
}

// TestAnyProfile converts random profiles. The conversion must not modify the profile, and must keep all properties as claims
// in their order. The cluster must have the condition about its availability if and only if the profile has a health condition.
func TestAnyProfile(t *testing.T) {
	texts := rapid.SampledFrom([]string{"", "a", "ControlPlaneHealthy", "ManagedClusterConditionAvailable", "True", "False", "é\x00", strings.Repeat("x", 300)})
	labels := rapid.MapOfN(rapid.SampledFrom([]string{clusterv1beta2.ClusterSetLabel, profilev1alpha1.LabelClusterSetKey, profilev1alpha1.LabelClusterManagerKey, "a"}), texts, 0, 4)
	cases.Check(t, func(t *rapid.T) {
		object := profile("fleet", texts.Draw(t, "name"), labels.Draw(t, "labels"))
		object.Spec.ClusterManager.Name = texts.Draw(t, "manager")
		for range rapid.IntRange(0, 4).Draw(t, "properties") {
			object.Status.Properties = append(object.Status.Properties, profilev1alpha1.Property{Name: texts.Draw(t, "property"), Value: texts.Draw(t, "value")})
		}
		for range rapid.IntRange(0, 3).Draw(t, "conditions") {
			object.Status.Conditions = append(object.Status.Conditions, metav1.Condition{Type: texts.Draw(t, "type"), Status: metav1.ConditionStatus(texts.Draw(t, "status"))})
		}
		before := object.DeepCopy()
		result := managed(object, texts.Draw(t, "set"))
		require.Empty(t, cmp.Diff(before, object))
		require.Len(t, result.Status.ClusterClaims, len(object.Status.Properties))
		for i, claim := range result.Status.ClusterClaims {
			require.Equal(t, object.Status.Properties[i].Name+"="+object.Status.Properties[i].Value, claim.Name+"="+claim.Value)
		}
		for key, value := range object.Labels {
			require.Equal(t, value, result.Labels[key])
		}
		require.LessOrEqual(t, len(result.Labels), len(object.Labels)+2)
		if healthy := health(object); healthy != nil {
			require.NotNil(t, meta.FindStatusCondition(result.Status.Conditions, clusterv1.ManagedClusterConditionAvailable))
		}
	})
}
