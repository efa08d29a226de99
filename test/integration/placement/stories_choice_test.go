// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/placement"
)

// User stories 1 to 5 of the proposal "New Placement APIs".

// An administrator binds the set that has all clusters, those of no other set too,
// and selects all or any of them.
func TestStory01AdministratorPlacesOnAllClustersOfAllSets(t *testing.T) {
	s := newFleet(t, "")
	s.set(t, "eu", exclusive)
	s.set(t, "us", exclusive)
	s.join(t, "eu-1", traits{set: "eu"})
	s.join(t, "eu-2", traits{set: "eu"})
	s.join(t, "us-1", traits{set: "us"})
	s.join(t, "of-no-set", traits{})
	s.place(t, "all", `{}`)
	s.place(t, "some", `predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: name, operator: In, values: [eu-2, us-1]}]}}}]`)
	s.requireSelected(t, "all", "eu-1", "eu-2", "of-no-set", "us-1")
	s.requireSelected(t, "some", "eu-2", "us-1")
	s.requireSatisfied(t, "all")

	s.set(t, "cn", exclusive)
	cn := s.join(t, "cn-1", traits{set: "cn"})
	s.requireSelected(t, "all", "cn-1", "eu-1", "eu-2", "of-no-set", "us-1")
	require.NoError(t, s.Delete(t.Context(), cn))
	s.requireSelected(t, "all", "eu-1", "eu-2", "of-no-set", "us-1")
	s.requireSelected(t, "some", "eu-2", "us-1")
}

// A user who may create Placements in a namespace gets clusters of the sets that are
// bound to it, and can't have others by naming or binding them.
func TestStory02UserPlacesOnAuthorizedSets(t *testing.T) {
	s := newScene(t, "")
	for _, set := range []string{"one", "two", "secret"} {
		s.set(t, set, exclusive)
		s.join(t, set+"-1", traits{set: set})
		s.join(t, set+"-2", traits{set: set})
	}
	s.bind(t, "one")
	two := s.bind(t, "two")
	alice := s.As(t, "alice")
	s.permit(t, "alice")

	for name, sets := range map[string][]string{"any": nil, "first": {"one"}, "more-than-mine": {"two", "secret"}, "theirs": {"secret"}} {
		object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: name, Annotations: map[string]string{placement.TakeAnnotation: "true"},
		}}
		object.Spec.ClusterSets = sets
		require.NoError(t, alice.Create(t.Context(), object))
		s.cleanUp(t, object)
	}
	s.requireSelected(t, "any", "one-1", "one-2", "two-1", "two-2")
	s.requireSelected(t, "first", "one-1", "one-2")
	s.requireSelected(t, "more-than-mine", "two-1", "two-2")
	s.requireSelected(t, "theirs")
	s.requireCondition(t, "theirs", clusterv1beta1.PlacementConditionSatisfied, "False "+placement.ReasonNoIntersection)
	err := alice.Create(t.Context(), &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "secret"}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "secret"},
	})
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	require.NoError(t, s.Delete(t.Context(), two))
	s.requireSelected(t, "any", "one-1", "one-2")
	s.requireSelected(t, "more-than-mine")
}

// permit lets somebody create and read Placements in the namespace.
func (s scene) permit(t *testing.T, user string) {
	t.Helper()
	s.create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: user}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{clusterv1beta1.GroupName}, Resources: []string{"placements"}, Verbs: []string{"create", "get"},
	}}})
	s.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	probe := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "probe"}}
	env.Becomes(t, true, func() bool { return s.As(t, user).Create(t.Context(), probe, client.DryRunAll) == nil })
}

// The five selections of the story, by labels, by claims and in CEL; then a cluster
// turns from what some of them want to what others want.
func TestStory03PredicatesSelectClusters(t *testing.T) {
	s := newFleet(t, "")
	version := func(v string) map[string]string {
		if v == "" {
			return nil
		}
		return map[string]string{openShiftVersion: v}
	}
	for name, has := range map[string][4]string{ // vendor, cloud, version of OpenShift, environment
		"a": {"OpenShift", "aws", "4.14.2", "prod"},
		"b": {"OpenShift", "gcp", "4.15.0", "test"},
		"c": {"OpenShift", "vsphere", "4.14.2", "test"},
		"d": {"EKS", "aws", "", "prod"},
		"e": {"GKE", "gcp", "", "test"},
		"f": {"Other", "vsphere", "", "prod"},
	} {
		s.join(t, name, traits{labels: map[string]string{"vendor": has[0], "cloud": has[1], "environment": has[3]}, claims: version(has[2])})
	}
	byLabel := func(key, operator, values string) string {
		return fmt.Sprintf(`predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: %s, operator: %s, values: [%s]}]}}}]`, key, operator, values)
	}
	before := map[string][]string{
		"openshift": {"a", "b", "c"}, "aws-and-gcp": {"a", "b", "d", "e"}, "not-vsphere": {"a", "b", "d", "e"},
		"openshift-4-14": {"a", "c"}, "openshift-4-14-cel": {"a", "c"}, "prod": {"a", "d", "f"}, "aws-or-prod": {"a", "d", "f"},
	}
	for name, spec := range map[string]string{
		"openshift":          byLabel("vendor", "In", "OpenShift"),
		"aws-and-gcp":        byLabel("cloud", "In", "aws, gcp"),
		"not-vsphere":        byLabel("cloud", "NotIn", "vsphere"),
		"openshift-4-14":     `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {vendor: OpenShift}}, claimSelector: {matchExpressions: [{key: version.openshift.io, operator: In, values: [4.14.2]}]}}}]`,
		"openshift-4-14-cel": `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.status.?clusterClaims.orValue([]).exists(c, c.name == "version.openshift.io" && c.value.startsWith("4.14."))']}}}]`,
		"prod":               byLabel("environment", "In", "prod"),
		"aws-or-prod":        `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {cloud: aws}}}}, {requiredClusterSelector: {labelSelector: {matchLabels: {environment: prod}}}}]`,
	} {
		s.place(t, name, spec)
	}
	for name, want := range before {
		s.requireSelected(t, name, want...)
	}
	c := read(t, s, "", "c", &clusterv1.ManagedCluster{})
	change(t, s, c, func(c *clusterv1.ManagedCluster) { c.Labels["cloud"], c.Labels["environment"] = "gcp", "prod" })
	changeStatus(t, s, c, func(c *clusterv1.ManagedCluster) { c.Status.ClusterClaims[0].Value = "4.15.0" })
	for name, want := range map[string][]string{
		"openshift": {"a", "b", "c"}, "aws-and-gcp": {"a", "b", "c", "d", "e"}, "not-vsphere": {"a", "b", "c", "d", "e"},
		"openshift-4-14": {"a"}, "openshift-4-14-cel": {"a"}, "prod": {"a", "c", "d", "f"}, "aws-or-prod": {"a", "c", "d", "f"},
	} {
		s.requireSelected(t, name, want...)
	}
}

// steady has whoever is selected stay. Without it Balance, too, decides among equals,
// and what other Placements select changes that.
const steady = "prioritizerPolicy: {mode: Exact, configurations: [{scoreCoordinate: {type: BuiltIn, builtIn: Steady}}]}\n"

// Three of the OpenShift clusters are enough; five on one cloud are more than there
// are, until others join.
func TestStory04NumberOfClusters(t *testing.T) {
	s := newFleet(t, "")
	for i := range 4 {
		s.join(t, fmt.Sprintf("aws-%d", i), traits{labels: map[string]string{"cloud": "aws", "vendor": "OpenShift"}})
	}
	s.place(t, "three", steady+"numberOfClusters: 3\npredicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {vendor: OpenShift}}}}]")
	s.place(t, "five", "numberOfClusters: 5\npredicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {cloud: aws}}}}]")
	s.requireSelected(t, "three", "aws-0", "aws-1", "aws-2")
	s.requireSatisfied(t, "three")
	s.requireSelected(t, "five", "aws-0", "aws-1", "aws-2", "aws-3")
	s.requireCondition(t, "five", clusterv1beta1.PlacementConditionSatisfied, "False "+placement.ReasonNotScheduled, "1 cluster decisions unscheduled")

	s.join(t, "aws-00", traits{labels: map[string]string{"cloud": "aws", "vendor": "OpenShift"}})
	s.requireSelected(t, "five", "aws-0", "aws-00", "aws-1", "aws-2", "aws-3")
	s.requireSatisfied(t, "five")
	s.requireSelected(t, "three", "aws-0", "aws-1", "aws-2") // who is selected stays
	require.NoError(t, s.Delete(t.Context(), read(t, s, "", "aws-1", &clusterv1.ManagedCluster{})))
	s.requireSelected(t, "three", "aws-0", "aws-00", "aws-2")
	change(t, s, s.live(t, "three"), func(p *clusterv1beta1.Placement) { p.Spec.NumberOfClusters = ptr.To[int32](0) })
	s.requireSelected(t, "three")
	s.requireCondition(t, "three", clusterv1beta1.PlacementConditionSatisfied, "False "+placement.ReasonNoneMatched)
}

// Of 2,000 clusters 300 are selected, in three PlacementDecisions; when a selected one
// leaves, one other takes its place.
func TestStory05HundredsFromThousands(t *testing.T) {
	const total, wanted = 2000, 300
	s := newScene(t, "")
	s.set(t, "production", exclusive)
	s.bind(t, "production")
	s.host(t, total)
	s.place(t, "many", "numberOfClusters: 300\n"+
		`predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.labels["version"].matches("^1[.](30|31)[.]")']}}}]`)
	var want []string // those with version 1.29 are not among them
	for i := 0; len(want) < wanted; i++ {
		if i%3 != 0 {
			want = append(want, generated(i).Name)
		}
	}
	s.requireSelected(t, "many", want...)
	s.requireSatisfied(t, "many")
	require.Equal(t, []clusterv1beta1.DecisionGroupStatus{{
		Decisions: []string{"many-decision-1", "many-decision-2", "many-decision-3"}, ClustersCount: wanted,
	}}, s.live(t, "many").Status.DecisionGroups)

	require.NoError(t, s.Delete(t.Context(), read(t, s, "", want[7], &clusterv1.ManagedCluster{})))
	// It is the last one in the first PlacementDecision, where the other one was.
	want = slices.Insert(slices.Delete(want, 7, 8), 99, generated(451).Name)
	s.requireSelected(t, "many", want...)
}

// host creates generated clusters, without status, and deletes them all at once.
func (s scene) host(t *testing.T, n int) {
	t.Helper()
	parallel(t, n, func(i int) error { return s.Create(t.Context(), generated(i)) })
	s.cleanUpAll(t, &clusterv1.ManagedCluster{})
}
