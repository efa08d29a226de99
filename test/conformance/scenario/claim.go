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
	for i := range pick(g, 1, 1, 1, 2, 1, 1, 2, 3) {
		g.Claims = append(g.Claims, g.claim(i))
	}
}

func (g *generator) claim(index int) *resourceapi.ResourceClaim {
	name := fmt.Sprintf("claim-%d", index+1)
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	devices := &claim.Spec.Devices
	for i := range pick(g, 1, 1, 2, 1, 1, 2, 1, 3, 4) {
		if g.requests >= g.MaxRequests {
			break
		}
		g.addRequest(devices, fmt.Sprintf("request-%d", i+1))
	}
	devices.Constraints = g.attributeConstraints(devices.Requests)
	devices.Config = g.claimConfiguration(devices.Requests)
	if g.CELConstraints {
		g.celConstraints(devices)
	}
	return claim
}

// addRequest adds a request unless that makes the case too much work. In cases
// with too few devices requests often are the same.
func (g *generator) addRequest(devices *resourceapi.DeviceClaim, name string) {
	request := g.request(name)
	if last := len(devices.Requests) - 1; last >= 0 && g.often(scarceTheme) {
		request = *devices.Requests[last].DeepCopy()
		request.Name = name
	}
	if ways := g.setsFor(&request); g.sets*ways <= g.MaxSets {
		g.sets *= ways
		g.requests++
		devices.Requests = append(devices.Requests, request)
	}
}
