// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync/atomic"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-base/metrics"
)

const claimsName = subsystem + "_claims"

// ListClaims returns the claims of a cluster, which are not modified.
type ListClaims func() ([]*resourceapi.ResourceClaim, error)

// claims counts the claims that there are when somebody asks. Counting them as they
// come would count a claim again each time that its pod is tried.
type claims struct {
	metrics.BaseStableCollector
	desc *metrics.Desc
	list atomic.Pointer[ListClaims]
}

func newClaims() *claims {
	return &claims{desc: metrics.NewDesc(claimsName,
		"Number of ResourceClaims in the cluster, by the most demanding kind of constraint that they have and by state.",
		[]string{"constraint", "state"}, nil, metrics.ALPHA, "")}
}

// WatchClaims says where the claims are. All profiles of a scheduler have the same
// ones, so it does not matter which of them says it last.
func (m *Metrics) WatchClaims(list ListClaims) { m.claims.list.Store(&list) }

// DescribeWithStability implements [metrics.StableCollector].
func (c *claims) DescribeWithStability(descs chan<- *metrics.Desc) { descs <- c.desc }

// CollectWithStability implements [metrics.StableCollector]. There is nothing to show
// as long as the claims are not known: zero would say that there are none.
func (c *claims) CollectWithStability(values chan<- metrics.Metric) {
	list := c.list.Load()
	if list == nil {
		return
	}
	all, err := (*list)()
	if err != nil {
		return
	}
	count := map[[2]string]int{}
	for _, claim := range all {
		count[[2]string{string(constraintOf(claim)), stateOf(claim)}]++
	}
	for _, constraint := range []Constraint{ConstraintNone, ConstraintAttribute, ConstraintCEL} {
		for _, state := range []string{statePending, stateAllocated} {
			n := count[[2]string{string(constraint), state}]
			values <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, float64(n), string(constraint), state)
		}
	}
}

func stateOf(claim *resourceapi.ResourceClaim) string {
	if claim.Status.Allocation == nil {
		return statePending
	}
	return stateAllocated
}
