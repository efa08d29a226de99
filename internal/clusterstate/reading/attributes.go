// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/clusterstate"
)

// AddAttributes adds the DeviceAttributes objects, if the API server has that kind. If RBAC forbids them, AddAttributes adds a
// warning.
func AddAttributes(ctx context.Context, o *clusterstate.Objects, api rest.Interface) error {
	version := "/apis/" + v1alpha1.SchemeGroupVersion.String()
	raw, err := api.Get().AbsPath(version, "deviceattributes").Do(ctx).Raw()
	if apierrors.IsForbidden(err) {
		// An API server without the kind may also answer Forbidden. Then there is nothing to read.
		if absent := api.Get().AbsPath(version).Do(ctx).Error(); apierrors.IsNotFound(absent) {
			return nil
		}
		o.Warnings = append(o.Warnings, NoAttributes(err))
		return nil
	}
	if err != nil {
		return warn(o, fmt.Errorf("list DeviceAttributes: %w", err))
	}
	var list v1alpha1.DeviceAttributesList
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("list DeviceAttributes: %w", err)
	}
	if list.Kind != "DeviceAttributesList" {
		return errors.New("list DeviceAttributes: the answer is no DeviceAttributesList")
	}
	for i := range list.Items {
		Trim(&list.Items[i])
		o.Attributes = append(o.Attributes, &list.Items[i])
	}
	return nil
}

// NoAttributes returns the warning that DeviceAttributes can't be read.
func NoAttributes(err error) string {
	return fmt.Sprintf("list DeviceAttributes: %v: devices are shown without the attributes of such objects", err)
}
