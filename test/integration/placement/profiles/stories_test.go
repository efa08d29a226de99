// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/test/internal/env"
)

type status = profilev1alpha1.ClusterProfileStatus

func properties(namesAndValues ...string) []profilev1alpha1.Property {
	var result []profilev1alpha1.Property
	for i := 0; i < len(namesAndValues); i += 2 {
		result = append(result, profilev1alpha1.Property{Name: namesAndValues[i], Value: namesAndValues[i+1], LastObservedTime: metav1.Now()})
	}
	return result
}

func healthy(is metav1.ConditionStatus) []metav1.Condition {
	return []metav1.Condition{{Type: profilev1alpha1.ClusterConditionControlPlaneHealthy, Status: is, Reason: "Probed", LastTransitionTime: metav1.Now()}}
}

// TestStoryClustersAreSelectedByProperties selects clusters by properties that their manager reports. The decision must follow
// changes of properties. A ClusterProfile of the same name in another namespace is another cluster, which is not on this hub.
func TestStoryClustersAreSelectedByProperties(t *testing.T) {
	run(t)
	team := newTeam(t, "props")
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}})
	paris := team.join(t, "paris", status{Version: profilev1alpha1.ClusterVersion{Kubernetes: "v1.34.1"}, Properties: properties("gpus.example.com", `{"H100": 8}`)})
	team.join(t, "oslo", status{Version: profilev1alpha1.ClusterVersion{Kubernetes: "v1.30.0"}, Properties: properties("gpus.example.com", `{"H100": 8}`)})
	rome := team.join(t, "rome", status{})
	team.joinIn(t, "elsewhere", "rome", status{Version: profilev1alpha1.ClusterVersion{Kubernetes: "v1.34.0"}, Properties: properties("gpus.example.com", `{"H100": 80}`)})
	team.place(t, "gpus", `semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("1.31.0"))`,
		`managedCluster.status.clusterClaims.exists(c, c.name == "gpus.example.com" && c.value.parseJSON().H100 >= 4)`)
	team.requireSelected(t, "gpus", "paris")
	report(t, rome, status{Version: profilev1alpha1.ClusterVersion{Kubernetes: "v1.35.0"}, Properties: properties("gpus.example.com", `{"H100": 4}`)})
	team.requireSelected(t, "gpus", "paris", "rome")
	require.NoError(t, shared.Delete(t.Context(), paris))
	team.requireSelected(t, "gpus", "rome")

	claimed := team.place(t, "claimed")
	change(t, claimed, func(p *clusterv1beta1.Placement) {
		p.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{profilev1alpha1.LabelClusterManagerKey: "manager"}},
			ClaimSelector: clusterv1beta1.ClusterClaimSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "gpus.example.com", Operator: metav1.LabelSelectorOpExists}}},
		}}}
	})
	team.requireSelected(t, "claimed", "oslo", "rome")
}

// TestStoryUnhealthyClustersAreLeft checks that a Placement does not select a cluster with an unhealthy control plane, unless
// it tolerates that. Unavailable clusters of Open Cluster Management are treated in the same way.
func TestStoryUnhealthyClustersAreLeft(t *testing.T) {
	run(t)
	team := newTeam(t, "health")
	paris := team.join(t, "paris", status{Conditions: healthy(metav1.ConditionTrue)})
	team.join(t, "oslo", status{Conditions: healthy(metav1.ConditionTrue)})
	team.join(t, "rome", status{})
	team.place(t, "any")
	tolerant := team.place(t, "tolerant", `managedCluster.metadata.name != "rome"`)
	change(t, tolerant, func(p *clusterv1beta1.Placement) {
		p.Spec.Tolerations = []clusterv1beta1.Toleration{{Key: clusterv1.ManagedClusterTaintUnavailable, Operator: clusterv1beta1.TolerationOpExists}}
	})
	team.place(t, "available", `managedCluster.status.conditions.exists(c, c.type == "ManagedClusterConditionAvailable" && c.status == "True")`)
	team.requireSelected(t, "any", "oslo", "paris", "rome")
	team.requireSelected(t, "available", "oslo", "paris")
	report(t, paris, status{Conditions: healthy(metav1.ConditionFalse)})
	team.requireSelected(t, "any", "oslo", "rome")
	team.requireSelected(t, "available", "oslo")
	team.requireSelected(t, "tolerant", "oslo", "paris")
	report(t, paris, status{Conditions: healthy(metav1.ConditionUnknown)})
	team.requireSelected(t, "tolerant", "oslo")
	report(t, paris, status{Conditions: healthy(metav1.ConditionTrue)})
	team.requireSelected(t, "any", "oslo", "paris", "rome")
}

// TestStorySetsOfNamespaces checks that the set of a ClusterProfile comes from the label of its namespace, as in SIG
// Multicluster, unless the profile itself has the label.
func TestStorySetsOfNamespaces(t *testing.T) {
	run(t)
	team, other := newTeam(t, "grouped"), newTeam(t, "other")
	for _, name := range []string{"paris", "oslo"} {
		object := team.join(t, name, status{})
		change(t, object, func(p *profilev1alpha1.ClusterProfile) { p.Labels = nil })
	}
	own := other.join(t, "rome", status{})
	change(t, own, func(p *profilev1alpha1.ClusterProfile) {
		p.Labels = map[string]string{profilev1alpha1.LabelClusterSetKey: "other"}
	})
	team.place(t, "any")
	other.place(t, "any")
	other.requireSelected(t, "any", "rome")
	team.requireSelected(t, "any")
	namespace := &corev1.Namespace{}
	require.NoError(t, shared.Get(t.Context(), client.ObjectKey{Name: fleet}, namespace))
	label := func(set map[string]string) {
		change(t, namespace, func(n *corev1.Namespace) { n.Labels = set })
	}
	label(map[string]string{profilev1alpha1.LabelClusterSetKey: "grouped"})
	team.requireSelected(t, "any", "oslo", "paris")
	label(map[string]string{profilev1alpha1.LabelClusterSetKey: "other"})
	team.requireSelected(t, "any")
	other.requireSelected(t, "any", "oslo", "paris", "rome")
	label(nil)
	other.requireSelected(t, "any", "rome")
}

// TestStoryScores checks that the scores of a cluster are read from the namespace with the cluster's name.
func TestStoryScores(t *testing.T) {
	run(t)
	team := newTeam(t, "scored")
	for name, value := range map[string]int32{"lyon": 10, "bonn": 50} {
		team.join(t, name, status{})
		create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		score := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "room"}}
		create(t, score)
		score.Status.Scores = []clusterv1alpha1.AddOnPlacementScoreItem{{Name: "free", Value: value}}
		require.NoError(t, shared.Status().Update(t.Context(), score))
	}
	object := team.place(t, "best", `managedCluster.scores("room").exists(s, s.value > 5)`)
	change(t, object, func(p *clusterv1beta1.Placement) {
		p.Spec.NumberOfClusters = ptr.To[int32](1)
		p.Spec.PrioritizerPolicy = clusterv1beta1.PrioritizerPolicy{Mode: clusterv1beta1.PrioritizerPolicyModeExact, Configurations: []clusterv1beta1.PrioritizerConfig{{
			Weight: 1, ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{Type: clusterv1beta1.ScoreCoordinateTypeAddOn, AddOn: &clusterv1beta1.AddOnScore{ResourceName: "room", ScoreName: "free"}},
		}}}
	})
	team.requireSelected(t, "best", "bonn")
	better := &clusterv1alpha1.AddOnPlacementScore{}
	require.NoError(t, shared.Get(t.Context(), client.ObjectKey{Namespace: "lyon", Name: "room"}, better))
	better.Status.Scores[0].Value = 90
	require.NoError(t, shared.Status().Update(t.Context(), better))
	team.requireSelected(t, "best", "lyon")
}

// TestStoryHostileProfiles writes ClusterProfiles with any content that the API server stores. Other clusters must still be
// selected.
func TestStoryHostileProfiles(t *testing.T) {
	run(t)
	team := newTeam(t, "hostile")
	many := make([]string, 0, 1200)
	for i := range 600 {
		many = append(many, fmt.Sprintf("p%d.example.com", i), strings.Repeat("x", 1024))
	}
	team.join(t, "many", status{Properties: properties(many...)})
	malformed := team.join(t, "malformed", status{Properties: properties("a", "b")})
	for _, text := range []string{
		`{"status":{"properties":[{"name":"a","value":"b","lastObservedTime":"2024-01-01T00:00:00+99:99"}]}}`,
		`{"status":{"conditions":[{"type":"ControlPlaneHealthy","status":"False","reason":"x","message":"","lastTransitionTime":"2024-01-01t00:00:00z"}]}}`,
	} {
		// Use an unstructured object, because the client could not decode the response into the Go type.
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(profilev1alpha1.GroupVersion.WithKind(profilev1alpha1.ClusterProfileKind))
		object.SetNamespace(fleet)
		object.SetName(malformed.Name)
		require.NoError(t, shared.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(text))), text)
	}
	require.Error(t, shared.List(t.Context(), &profilev1alpha1.ClusterProfileList{}), "without the guard nobody can read them")
	team.place(t, "any", `has(managedCluster.status.clusterClaims)`)
	team.requireSelected(t, "any", "many")
	team.place(t, "expensive", `managedCluster.status.clusterClaims.all(a, managedCluster.status.clusterClaims.all(b, managedCluster.status.clusterClaims.all(c, a.value + b.value != c.value)))`)
	team.join(t, "later", status{Properties: properties("a", "b")})
	team.requireSelected(t, "any", "later", "many")
}

// TestStoryRestart stops the controller and starts it again. Selected clusters must stay selected. After the restart, the
// PlacementDecisions of Open Cluster Management and of SIG Multicluster must follow the changes made in between.
func TestStoryRestart(t *testing.T) {
	stop := run(t)
	team := newTeam(t, "restart")
	for _, name := range []string{"a", "b", "c"} {
		team.join(t, name, status{})
	}
	object := team.place(t, "two")
	change(t, object, func(p *clusterv1beta1.Placement) { p.Spec.NumberOfClusters = ptr.To[int32](2) })
	team.place(t, "all")
	team.requireSelected(t, "two", "a", "b")
	team.requireSelected(t, "all", "a", "b", "c")
	stop()
	removed := &profilev1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: fleet, Name: "a"}}
	require.NoError(t, shared.Delete(t.Context(), removed))
	team.join(t, "0", status{})
	published := team.published(t, "all")["all-decision-1"]
	require.NoError(t, shared.Delete(t.Context(), &published))
	run(t)
	team.requireSelected(t, "two", "0", "b")
	team.requireSelected(t, "all", "0", "b", "c")
}

// TestStoryPublishedDecisions reads the PlacementDecisions of SIG Multicluster as a consumer. Each has up to 100 profiles; all
// have the same decision key, and the Placement owns them. A cluster that stays selected must always be in one of them.
func TestStoryPublishedDecisions(t *testing.T) {
	run(t)
	team := newTeam(t, "published")
	for i := range 130 {
		team.join(t, fmt.Sprintf("c%03d", i), status{})
	}
	object := team.place(t, "big")
	sizes := func() map[string]int {
		result := map[string]int{}
		for name, clusters := range team.referred(t, "big") {
			result[name] = len(clusters)
		}
		return result
	}
	env.Becomes(t, map[string]int{"big-decision-1": 100, "big-decision-2": 30}, sizes)
	require.Equal(t, team.selected(t, "big"), team.referred(t, "big"))
	for name, published := range team.published(t, "big") {
		require.Equal(t, "celset-placement", published.SchedulerName)
		require.Equal(t, map[string]string{"big-decision-1": "0", "big-decision-2": "1"}[name], published.Labels[profilev1alpha1.DecisionIndexLabel])
		require.True(t, metav1.IsControlledBy(&published, object))
		require.Contains(t, published.Decisions[0].Reason, "ManagedClusterSet published")
	}

	t.Run("clusters that stay are never missing", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), env.Patience)
		defer cancel()
		list := &profilev1alpha1.PlacementDecisionList{}
		require.NoError(t, shared.List(ctx, list, client.InNamespace(team)))
		events, err := shared.Watch(ctx, list, client.InNamespace(team), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
		require.NoError(t, err)
		defer events.Stop()
		state := map[string]profilev1alpha1.PlacementDecision{}
		for _, item := range list.Items {
			state[item.Name] = item
		}
		change(t, object, func(p *clusterv1beta1.Placement) {
			p.Spec.DecisionStrategy.GroupStrategy = clusterv1beta1.GroupStrategy{
				DecisionGroups: []clusterv1beta1.DecisionGroup{{GroupName: "late", ClusterSelector: clusterv1beta1.GroupClusterSelector{
					LabelSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "no", Operator: metav1.LabelSelectorOpExists}}},
				}}},
			}
			p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup.IntVal = 40
		})
		for groups := map[string]bool{}; len(groups) < 4; {
			event, open := <-events.ResultChan()
			require.True(t, open)
			decision, ok := event.Object.(*profilev1alpha1.PlacementDecision)
			require.True(t, ok, "%v", event.Object)
			if state[decision.Name] = *decision; event.Type == "DELETED" {
				delete(state, decision.Name)
			}
			present := map[string]bool{}
			clear(groups)
			for _, item := range state {
				groups[item.Labels[clusterv1beta1.DecisionGroupIndexLabel]] = true
				require.LessOrEqual(t, len(item.Decisions), 100)
				for _, d := range item.Decisions {
					present[d.ClusterProfileRef.Name] = true
				}
			}
			require.Len(t, present, 130, "after %s of %s", event.Type, decision.Name)
		}
	})
	t.Run("what others change is repaired", func(t *testing.T) {
		small := team.place(t, "small", `managedCluster.metadata.name == "c001"`)
		team.requireSelected(t, "small", "c001")
		published := team.published(t, "small")["small-decision-1"]
		change(t, &published, func(d *profilev1alpha1.PlacementDecision) {
			d.Decisions[0].ClusterProfileRef.Name, d.SchedulerName = "c002", "other"
		})
		team.requireSelected(t, "small", "c001")
		published = team.published(t, "small")["small-decision-1"]
		change(t, &published, func(d *profilev1alpha1.PlacementDecision) { delete(d.Labels, profilev1alpha1.DecisionKeyLabel) })
		team.requireSelected(t, "small", "c001")
		require.NoError(t, shared.Delete(t.Context(), &published))
		team.requireSelected(t, "small", "c001")
		require.NoError(t, shared.Delete(t.Context(), small))
		env.Becomes(t, 0, func() int { return len(team.published(t, "small")) })
	})
	t.Run("what is of others is left", func(t *testing.T) {
		foreign := &profilev1alpha1.PlacementDecision{
			ObjectMeta:    metav1.ObjectMeta{Namespace: string(team), Name: "mine-decision-1", Labels: map[string]string{profilev1alpha1.DecisionKeyLabel: "mine"}},
			SchedulerName: "other", Decisions: []profilev1alpha1.ClusterDecision{{ClusterProfileRef: profilev1alpha1.ClusterProfileReference{Name: "x", Namespace: fleet}}},
		}
		create(t, foreign)
		mine := team.place(t, "mine", `managedCluster.metadata.name == "c003"`)
		env.Becomes(t, map[string][]string{"mine-decision-1": {"c003"}}, func() map[string][]string { return team.selected(t, "mine") })
		misconfigured := func() bool {
			require.NoError(t, shared.Get(t.Context(), client.ObjectKeyFromObject(mine), mine))
			return meta.IsStatusConditionTrue(mine.Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured)
		}
		env.Becomes(t, true, misconfigured)
		require.Equal(t, map[string][]string{"mine-decision-1": {"x"}}, team.referred(t, "mine"))
		require.Contains(t, meta.FindStatusCondition(mine.Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured).Message, "mine-decision-1 of multicluster.x-k8s.io does not belong to Placement mine")
		require.EqualValues(t, 1, mine.Status.NumberOfSelectedClusters)
		require.NoError(t, shared.Delete(t.Context(), foreign))
		team.requireSelected(t, "mine", "c003")
		env.Becomes(t, false, misconfigured)
	})
}
