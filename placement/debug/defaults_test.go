// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/yaml"
)

// expired finds scores that hold no more.
type expired struct{}

func (expired) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	result := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	result.Status.ValidUntil = &metav1.Time{Time: now.Add(-time.Hour)}
	return result, nil
}

const always = "scoreRateLimit: 1m, sortBy: ClusterName, decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 100%}}, "

func TestDefaults(t *testing.T) {
	tests := map[string]struct{ given, want string }{
		"nothing": {``, always + `prioritizerPolicy: {mode: Additive}`},
		"all given": {
			`scoreRateLimit: 5s, sortBy: Score, decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 3}}, prioritizerPolicy: {mode: Exact},
			tolerations: [{operator: Exists}], spreadPolicy: {spreadConstraints: [{topologyKey: k, topologyKeyType: Claim, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}]}`,
			`scoreRateLimit: 5s, sortBy: Score, decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 3}}, prioritizerPolicy: {mode: Exact},
			tolerations: [{operator: Exists}], spreadPolicy: {spreadConstraints: [{topologyKey: k, topologyKeyType: Claim, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}]}`,
		},
		"weights": {
			`prioritizerPolicy: {configurations: [{scoreCoordinate: {builtIn: Steady}}, {weight: 0, scoreCoordinate: {type: AddOn, addOn: {resourceName: r, scoreName: s}}}, {weight: -2}, {weight: null}]}`,
			always + `prioritizerPolicy: {mode: Additive, configurations: [
			{weight: 1, scoreCoordinate: {type: BuiltIn, builtIn: Steady}}, {weight: 0, scoreCoordinate: {type: AddOn, addOn: {resourceName: r, scoreName: s}}}, {weight: -2}, {weight: 1}]}`,
		},
		"items": {
			`tolerations: [{key: a, value: b}], spreadPolicy: {spreadConstraints: [{topologyKey: k, topologyKeyType: Label}]}`,
			always + `prioritizerPolicy: {mode: Additive}, tolerations: [{key: a, value: b, operator: Equal}],
			spreadPolicy: {spreadConstraints: [{topologyKey: k, topologyKeyType: Label, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var want clusterv1beta1.PlacementSpec
			require.NoError(t, yaml.UnmarshalStrict([]byte("{"+test.want+"}"), &want))
			require.Empty(t, cmp.Diff(want, newBench(t).try(t, test.given).Placement.Spec))
		})
	}
}
