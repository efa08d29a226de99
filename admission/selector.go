// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxSelectors is the maximum number of device selectors of an object that are compiled. An object may have thousands of
// selectors.
const maxSelectors = 64

// selectors collects warnings about device selectors that match no device, or that have a comparison with a surprising result.
// These are not errors, because the API server and the scheduler accept such selectors. The API server rejects selectors that
// do not compile.
type selectors struct {
	*Checker
	warnings []string
	// judged has the selectors checked so far, because classes and requests often repeat a selector.
	judged map[string]bool
}

// selectorsOfRequests returns warnings about the device selectors of requests.
func (c *Checker) selectorsOfRequests(ctx context.Context, requests []resourceapi.DeviceRequest, path *field.Path) []string {
	s := &selectors{Checker: c, judged: map[string]bool{}}
	for i := range requests {
		at := path.Index(i)
		if exactly := requests[i].Exactly; exactly != nil {
			s.judge(ctx, exactly.Selectors, at.Child("exactly", "selectors"))
		}
		for k := range requests[i].FirstAvailable {
			s.judge(ctx, requests[i].FirstAvailable[k].Selectors, at.Child("firstAvailable").Index(k).Child("selectors"))
		}
	}
	return s.warnings
}

// selectorsOfClass returns warnings about the device selectors of a class.
func (c *Checker) selectorsOfClass(ctx context.Context, class *resourceapi.DeviceClass) []string {
	s := &selectors{Checker: c, judged: map[string]bool{}}
	s.judge(ctx, class.Spec.Selectors, field.NewPath("spec", "selectors"))
	return s.warnings
}

func (s *selectors) judge(ctx context.Context, of []resourceapi.DeviceSelector, path *field.Path) {
	for i, selector := range of {
		if selector.CEL == nil || s.judged[selector.CEL.Expression] || len(s.judged) == maxSelectors {
			continue
		}
		s.judged[selector.CEL.Expression] = true
		expression, err := s.selecting.Compile(ctx, selector.CEL.Expression)
		if err != nil {
			continue
		}
		where := path.Index(i).Child("cel", "expression").String()
		for _, warning := range suspicionWarnings(where, "the selector", expression) {
			s.warnings = append(s.warnings, oneLine(warning))
		}
	}
}
