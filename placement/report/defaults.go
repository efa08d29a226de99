// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/yaml"
)

// SetDefaults sets what the API server sets when a Placement is created, by the
// schema of its CustomResourceDefinition. body is what the object was read from: only
// there a weight that is zero differs from none.
func SetDefaults(object *clusterv1beta1.Placement, body []byte) {
	spec := &object.Spec
	orDefault(&spec.SortBy, clusterv1beta1.PlacementSortByClusterName)
	orDefault(&spec.ScoreRateLimit, "1m")
	orDefault(&spec.PrioritizerPolicy.Mode, clusterv1beta1.PrioritizerPolicyModeAdditive)
	setWeights(spec.PrioritizerPolicy.Configurations, body)
	for i := range spec.Tolerations {
		orDefault(&spec.Tolerations[i].Operator, clusterv1beta1.TolerationOpEqual)
	}
	for i := range spec.SpreadPolicy.SpreadConstraints {
		term := &spec.SpreadPolicy.SpreadConstraints[i]
		orDefault(&term.MaxSkew, 1)
		orDefault(&term.WhenUnsatisfiable, clusterv1beta1.ScheduleAnyway)
	}
	orDefault(&spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup, intstr.FromString("100%"))
}

func setWeights(configurations []clusterv1beta1.PrioritizerConfig, body []byte) {
	var written struct {
		Spec struct {
			PrioritizerPolicy struct {
				Configurations []struct {
					Weight *int32 `json:"weight"`
				} `json:"configurations"`
			} `json:"prioritizerPolicy"`
		} `json:"spec"`
	}
	// What could be decoded can be decoded again; if not, weights that are not there
	// are none.
	_ = yaml.Unmarshal(body, &written)
	for i := range configurations {
		if weights := written.Spec.PrioritizerPolicy.Configurations; i >= len(weights) || weights[i].Weight == nil {
			configurations[i].Weight = 1
		}
		if coordinate := configurations[i].ScoreCoordinate; coordinate != nil {
			orDefault(&coordinate.Type, clusterv1beta1.ScoreCoordinateTypeBuiltIn)
		}
	}
}

func orDefault[T comparable](value *T, otherwise T) {
	if *value == *new(T) {
		*value = otherwise
	}
}
