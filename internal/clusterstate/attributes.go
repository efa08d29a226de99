// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/deviceattributes"
)

// Amendments are the objects that change devices after drivers have published them.
type Amendments struct {
	TaintRules []*resourceapi.DeviceTaintRule
	// Attributes are the DeviceAttributes objects. [Objects.Enrich] adds their attributes to the slices.
	Attributes []*v1alpha1.DeviceAttributes
	// Added describes the attributes that Enrich added. It is nil before, and without such objects.
	Added *deviceattributes.Report
}

// Enrich adds the attributes of DeviceAttributes objects to the slices, as the scheduler does. Every answer about devices then
// includes them.
func (o *Objects) Enrich(ctx context.Context) error {
	if len(o.Attributes) == 0 {
		return nil
	}
	labels := make(map[string]map[string]string, len(o.Nodes))
	for _, node := range o.Nodes {
		labels[node.Name] = node.Labels
	}
	var err error
	o.Slices, o.Added, err = deviceattributes.Apply(ctx, o.Attributes, o.Slices, func(node string) (map[string]string, bool) {
		of, ok := labels[node]
		return of, ok
	})
	if err != nil || len(o.Nodes) > 0 || len(o.Slices) == 0 {
		return err
	}
	for _, object := range o.Attributes {
		if object.Spec.NodeSelector != nil {
			o.Warnings = append(o.Warnings, fmt.Sprintf("DeviceAttributes %s: spec.nodeSelector selects no device, because no Node was read: add Nodes with -f", object.Name))
		}
	}
	return nil
}

// withAge returns the objects of files with the age of the objects that they would update. The age decides which objects are in
// effect if there are too many.
func withAge(fromFiles, stored []*v1alpha1.DeviceAttributes) []*v1alpha1.DeviceAttributes {
	aged := slices.Clone(fromFiles)
	for i, object := range aged {
		at := slices.IndexFunc(stored, func(of *v1alpha1.DeviceAttributes) bool { return of.Name == object.Name })
		if at >= 0 && object.CreationTimestamp.IsZero() {
			updated := *object
			updated.CreationTimestamp = stored[at].CreationTimestamp
			aged[i] = &updated
		}
	}
	return aged
}

// WarnOfAttributes adds a warning for each DeviceAttributes object without effect, and for each with conflicts.
func (o *Objects) WarnOfAttributes() {
	if o.Added == nil {
		return
	}
	for _, report := range o.Added.Objects {
		if report.Rejection != nil {
			o.Warnings = append(o.Warnings, fmt.Sprintf("DeviceAttributes %s has no effect: %s: %s", report.Object.Name, report.Rejection.Reason, report.Rejection.Message))
		}
		if report.Conflicts.Count > 0 {
			first := report.Conflicts.First[0]
			o.Warnings = append(o.Warnings, fmt.Sprintf("DeviceAttributes %s: another object defines %d attributes differently, so no device gets them, such as %s on %s by DeviceAttributes %s",
				report.Object.Name, report.Conflicts.Count, first.Attribute, first.Device, first.Object))
		}
	}
}

// DomainOf returns the domain of the attributes of an object.
func DomainOf(object *v1alpha1.DeviceAttributes) string {
	return cmp.Or(object.Spec.Domain, v1alpha1.DefaultAttributesDomain)
}

// Origin returns the name of the DeviceAttributes object that adds an attribute to a device. ok is false for an attribute of
// the driver.
func (o *Objects) Origin(driver, pool, device string, attribute resourceapi.QualifiedName) (object string, ok bool) {
	if o.Added == nil {
		return "", false
	}
	return o.Added.Origin(driver, pool, device, attribute)
}
