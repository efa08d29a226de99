// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/apis/setscores"
)

// What the expressions ask, asked in Go.

// claimOf is the value of a claim, "" if there is none.
func claimOf(m member, name string) string {
	for _, claim := range m.Status.ClusterClaims {
		if claim.Name == name {
			return claim.Value
		}
	}
	return ""
}

// isMinor tells whether a version, without v, is of one of two minor versions.
func isMinor(text, one, other string) bool {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || parts[0] != "1" {
		return false
	}
	_, err := strconv.Atoi(parts[2])
	return err == nil && (parts[1] == one || parts[1] == other)
}

func isNewerThan(text, than string) bool {
	return version.MustParseSemantic(than).LessThan(version.MustParseSemantic(text))
}

// amountOf is the amount behind a score; has is false if there is none.
func amountOf(m member, score string) (amount resource.Quantity, has bool) {
	scores := m.scores[defaultScores]
	if scores == nil {
		return amount, false
	}
	var all map[string]string
	if json.Unmarshal([]byte(scores.Annotations[setscores.QuantitiesAnnotation]), &all) != nil {
		return amount, false
	}
	amount, err := resource.ParseQuantity(all[score])
	return amount, err == nil
}

func hasMore(m member, score, than string) bool {
	amount, has := amountOf(m, score)
	return has && amount.Cmp(resource.MustParse(than)) > 0
}

// gpusOf counts the nodes of one kind in each pool with a GPU, where it has some.
func gpusOf(m member, gpu, kind string) []int {
	var pools map[string][]map[string]int
	if json.Unmarshal([]byte(claimOf(m, gpusClaim)), &pools) != nil {
		return nil
	}
	var result []int
	for _, pool := range pools[gpu] {
		if count, has := pool[kind]; has {
			result = append(result, count)
		}
	}
	return result
}

// valueOf is a score, 0 if there is none.
func valueOf(m member, object, score string) int {
	if scores := m.scores[object]; scores != nil {
		for _, item := range scores.Status.Scores {
			if item.Name == score {
				return int(item.Value)
			}
		}
	}
	return 0
}

// best are the members with the highest weighted scores, those with equal ones by
// name.
func best(members []member, n, weight int, object, score string) []member {
	result := slices.Clone(members)
	slices.SortFunc(result, func(a, b member) int {
		return cmp.Or(
			cmp.Compare(weight*valueOf(b, object, score), weight*valueOf(a, object, score)),
			strings.Compare(a.Name, b.Name),
		)
	})
	return result[:min(n, len(result))]
}

// untainted are the members that may be selected without a toleration.
func untainted(members []member) []member {
	return choose(members, func(m member) bool {
		return !slices.ContainsFunc(m.Spec.Taints, func(t clusterv1.Taint) bool { return t.Effect == clusterv1.TaintEffectNoSelect })
	})
}

// countByRegion counts in all regions that some of the others has.
func countByRegion(selected, others []member) map[string]int {
	result := map[string]int{}
	for _, m := range others {
		result[m.Labels[regionLabel]] += 0
	}
	for _, m := range selected {
		result[m.Labels[regionLabel]]++
	}
	return result
}
