// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// DeviceAttributes checks a DeviceAttributes object. It rejects an object that the scheduler would not accept. It does not compare
// the object with ResourceSlices or with other objects, because these may change later. The error is the error of the context.
func (c *Checker) DeviceAttributes(ctx context.Context, object *v1alpha1.DeviceAttributes) (Verdict, error) {
	return whole(ctx, c.deviceAttributes(ctx, object))
}

func (c *Checker) deviceAttributes(ctx context.Context, object *v1alpha1.DeviceAttributes) Verdict {
	mistake, err := c.attributes.Check(ctx, object)
	if err != nil || mistake == nil {
		return Verdict{}
	}
	return Verdict{Errors: field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{}, mistake.Message)}}
}
