// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"math"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// tooManyDevices finds nodes where a request with allocationMode All would get more devices than a claim may have. It reports
// an error if only such nodes have devices for the claim, and a warning otherwise. The search skips these nodes.
func (c *checker) tooManyDevices(ctx context.Context, object *Object, carrier v1alpha1.Carrier, claim *resourceapi.ResourceClaim) {
	c.passed = sets.New[string]()
	all := coveredRequests(&claim.Spec.Devices, nil)
	concerned := len(v1alpha1.References(carrier.Spec)) > 0 || v1alpha1.Defines(claim)
	if !concerned || !all.dependsOnNodes() {
		return
	}
	candidates, err := c.nodes.candidates(ctx, claim, all)
	if err != nil {
		return
	}
	node, fewest := "", math.MaxInt
	for i := range candidates {
		if least := all.least(&candidates[i]); least > resourceapi.AllocationResultsMaxSize {
			c.passed.Insert(candidates[i].node)
			if least < fewest {
				node, fewest = candidates[i].node, least
			}
		}
	}
	message := fmt.Sprintf("%s: the requests get %d devices on node %s, and a claim has at most %d", carrier.Path.Child("devices", "requests"), fewest, node,
		resourceapi.AllocationResultsMaxSize)
	switch len(c.passed) {
	case 0:
	case len(candidates):
		object.fail("%s (nodes with too many: all %d nodes with matching devices): use selectors to match fewer devices, or ask for a count", message, len(candidates))
	default:
		object.warn("%s (nodes with too many: %d of %d nodes with matching devices): the claim fits only on the other nodes", message, len(c.passed), len(candidates))
	}
}
