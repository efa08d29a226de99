// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// classes draws one to three classes. The first takes every device.
func (g *generator) classes() {
	for i := range g.between(1, 3) {
		class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("class-%d", i+1)}}
		if i > 0 && g.maybe() {
			class.Spec.Selectors = g.selectors()
		}
		for range pick(g, 0, 0, 1, 2) {
			class.Spec.Config = append(class.Spec.Config,
				resourceapi.DeviceClassConfiguration{DeviceConfiguration: g.configuration()})
		}
		g.Classes = append(g.Classes, class)
	}
}

func (g *generator) className() string {
	switch {
	case g.fault():
		return "class-missing"
	case g.fault():
		return ""
	default:
		return pick(g, g.Classes...).Name
	}
}
