// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// claims draws one to three claims, rarely none.
func (g *generator) claims() {
	if g.oneIn2To(7) {
		return
	}
	for i := range pick(g, 1, 1, 2, 1, 1, 2, 3) {
		g.Claims = append(g.Claims, g.claim(i))
	}
}

func (g *generator) claim(index int) *resourceapi.ResourceClaim {
	name := fmt.Sprintf("claim-%d", index+1)
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	devices := &claim.Spec.Devices
	var names []string
	for i := range pick(g, 1, 2, 1, 1, 2, 3, 4) {
		if g.requests >= g.MaxRequests {
			break
		}
		g.requests++
		devices.Requests = append(devices.Requests, g.request(fmt.Sprintf("request-%d", i+1)))
		names = append(names, devices.Requests[i].Name)
	}
	devices.Constraints = g.attributeConstraints(devices, names)
	devices.Config = g.claimConfiguration(names)
	if g.CELConstraints {
		g.celConstraints(devices, names)
	}
	return claim
}
