// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/apis/compat"
)

// Celset decodes and compiles the expressions of a claim, so it limits their total number and size. The API server limits only
// the size of each expression, and allows thousands of expressions in one claim.
const (
	// MaxClaimExpressions is the maximum number of expressions in a claim. MaxClaimText is their maximum total length in bytes. Both
	// count selectors, derived attributes, and the configuration for the driver [DriverName].
	MaxClaimExpressions = 256
	MaxClaimText        = 64 << 10
	// MaxPodExpressions and MaxPodText are the limits for all claims of a pod together.
	MaxPodExpressions = 4 * MaxClaimExpressions
	MaxPodText        = 4 * MaxClaimText
)

// Texts holds a number of expressions and their total length in bytes.
type Texts struct{ Expressions, Bytes int }

// Add adds other to t.
func (t *Texts) Add(other Texts) {
	t.Expressions += other.Expressions
	t.Bytes += other.Bytes
}

// TextsOf counts the expressions of a claim without decoding them.
func TextsOf(spec *resourceapi.ResourceClaimSpec) (t Texts) {
	for i := range spec.Devices.Config {
		if isDefinition(spec.Devices.Config[i].DeviceConfiguration) {
			t.Add(Texts{1, len(spec.Devices.Config[i].Opaque.Parameters.Raw)})
		}
	}
	add := func(selectors []resourceapi.DeviceSelector, derived []compat.DerivedAttribute) {
		for _, selector := range selectors {
			if selector.CEL != nil {
				t.Add(Texts{1, len(selector.CEL.Expression)})
			}
		}
		for _, attribute := range derived {
			t.Add(Texts{1, len(attribute.Expression)})
		}
	}
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if request.Exactly != nil {
			add(request.Exactly.Selectors, compat.DerivedAttributes(request.Exactly))
		}
		for j := range request.FirstAvailable {
			add(request.FirstAvailable[j].Selectors, compat.DerivedAttributesOf(&request.FirstAvailable[j]))
		}
	}
	return t
}

// CheckTexts returns an [*Error] if the carrier has too many expressions, or if they are too long in total.
func (c Carrier) CheckTexts() error {
	t := TextsOf(c.Spec)
	if t.Expressions <= MaxClaimExpressions && t.Bytes <= MaxClaimText {
		return nil
	}
	return errorAbout(c.Object, field.ErrorList{field.Forbidden(c.Path.Child("devices"), fmt.Sprintf(
		"the selectors and the configuration for %s have %d expressions with %d bytes in total, the limits for a claim are %d expressions and %d bytes: use fewer or shorter expressions, or several claims",
		DriverName, t.Expressions, t.Bytes, MaxClaimExpressions, MaxClaimText))})
}

// CheckPod returns an error if the claims of a pod have too many expressions, or if they are too long in total.
func CheckPod(claims []*resourceapi.ResourceClaim) error {
	var t Texts
	for _, claim := range claims {
		t.Add(TextsOf(&claim.Spec))
	}
	if t.Expressions <= MaxPodExpressions && t.Bytes <= MaxPodText {
		return nil
	}
	return fmt.Errorf("the claims of the pod have %d expressions with %d bytes in total, the limits for a pod are %d expressions and %d bytes: use fewer or shorter expressions, or several pods",
		t.Expressions, t.Bytes, MaxPodExpressions, MaxPodText)
}
