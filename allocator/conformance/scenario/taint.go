// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	resourceapi "k8s.io/api/resource/v1"
)

const (
	taintKey      = "example.com/maintenance"
	otherTaintKey = "example.com/dedicated"
)

// taints draws the taints of a device. Allocators ignore unknown effects.
func (p *poolDraw) taints() []resourceapi.DeviceTaint {
	if !p.often(usabilityTheme) && !p.rarely() {
		return nil
	}
	var taints []resourceapi.DeviceTaint
	for range p.between(1, 2) {
		taints = append(taints, resourceapi.DeviceTaint{
			Key:   pick(p.generator, taintKey, otherTaintKey),
			Value: pick(p.generator, "", "value-1", "value-2"),
			Effect: pick(p.generator, resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute,
				resourceapi.DeviceTaintEffectNone, "Future"),
		})
	}
	return taints
}

// tolerations draws the tolerations of a request.
func (g *generator) tolerations() []resourceapi.DeviceToleration {
	if !g.sometimes() {
		return nil
	}
	var tolerations []resourceapi.DeviceToleration
	for range g.between(1, 2) {
		toleration := resourceapi.DeviceToleration{
			Key:      pick(g, taintKey, otherTaintKey, ""),
			Operator: resourceapi.DeviceTolerationOpExists,
			Effect:   pick(g, "", resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute),
		}
		if toleration.Key != "" && g.maybe() {
			toleration.Operator = resourceapi.DeviceTolerationOpEqual
			toleration.Value = pick(g, "", "value-1")
		}
		tolerations = append(tolerations, toleration)
	}
	return tolerations
}
