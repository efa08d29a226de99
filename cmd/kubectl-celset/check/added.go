// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/deviceattributes"
	"github.com/celset/celset/internal/clusterstate"
)

// AddedAttributes is the effect of a DeviceAttributes object on the devices that were read.
type AddedAttributes struct {
	Driver string `json:"driver"`
	Domain string `json:"domain"`
	// Devices is the number of devices of the driver on the selected nodes. Attributes is the number of attributes that they got.
	Devices    int `json:"devices"`
	Attributes int `json:"attributes"`
	// UnmatchedRows are the keys of rows without a device. DevicesWithoutRow are devices that match no row.
	UnmatchedRows     *Examples `json:"unmatchedRows,omitempty"`
	DevicesWithoutRow *Examples `json:"devicesWithoutRow,omitempty"`
	// FailedExpressions are the evaluations that failed. Conflicts are attributes that another object defines differently. OverLimit
	// are devices that would exceed Kubernetes' limits. These devices don't get the attributes.
	FailedExpressions *Examples `json:"failedExpressions,omitempty"`
	Conflicts         *Examples `json:"conflicts,omitempty"`
	OverLimit         *Examples `json:"overLimit,omitempty"`
}

// Examples counts findings and names the first ones.
type Examples struct {
	Count int      `json:"count"`
	First []string `json:"first"`
}

// examplesOf returns nil without findings.
func examplesOf[T any](of deviceattributes.Examples[T], describe func(T) string) *Examples {
	if of.Count == 0 {
		return nil
	}
	e := &Examples{Count: of.Count}
	for _, one := range of.First {
		e.First = append(e.First, describe(one))
	}
	return e
}

// String returns the first findings and the number of others.
func (e *Examples) String() string {
	text := strings.Join(e.First, ", ")
	if more := e.Count - len(e.First); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// counted returns "1 row" or "2 rows".
func (e *Examples) counted(noun string) string {
	if e.Count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", e.Count, noun)
}

// added checks a DeviceAttributes object. A row without a device is a warning, because the machine may be absent. It is an error
// if no row at all has a device.
func (c *checker) added(of *v1alpha1.DeviceAttributes) Object {
	result := Object{Kind: "DeviceAttributes", Name: of.Name}
	if c.state.Added == nil {
		return result
	}
	report, ok := c.state.Added.Object(of.Name)
	if !ok {
		return result
	}
	if report.Rejection != nil {
		result.fail("%s: %s", report.Rejection.Reason, report.Rejection.Message)
		return result
	}
	same := func(text string) string { return text }
	a := &AddedAttributes{
		Driver: of.Spec.Driver, Domain: clusterstate.DomainOf(of), Devices: report.Devices, Attributes: report.Attributes,
		UnmatchedRows: examplesOf(report.UnmatchedRows, same), DevicesWithoutRow: examplesOf(report.DevicesWithoutRow, same), OverLimit: examplesOf(report.OverLimit, same),
		FailedExpressions: examplesOf(report.FailedExpressions, func(f deviceattributes.FailedExpression) string {
			return fmt.Sprintf("%s on %s: %s", f.Attribute, f.Device, f.Message)
		}),
		Conflicts: examplesOf(report.Conflicts, func(f deviceattributes.Conflict) string {
			return fmt.Sprintf("%s on %s by DeviceAttributes %s", f.Attribute, f.Device, f.Object)
		}),
	}
	result.AddedAttributes = a
	if a.Devices == 0 {
		result.warn("spec.driver: no device of driver %q is on the selected nodes, so the attributes were not compared with devices: add ResourceSlices, or correct spec.driver or spec.nodeSelector", a.Driver)
		return result
	}
	if rows := a.UnmatchedRows; rows != nil {
		say := result.warn
		if rows.Count == len(of.Spec.Table.Rows) {
			say = result.fail
		}
		say("spec.table: %s without a device with this %s: %s: correct spec.table.key or the keys of the rows", rows.counted("row"), of.Spec.Table.Key, rows)
	}
	if devices := a.DevicesWithoutRow; devices != nil {
		result.warn("spec.table: %s without a row: %s: add rows, if the devices need the attributes", devices.counted("device"), devices)
	}
	if failed := a.FailedExpressions; failed != nil {
		result.warn("spec.attributes: %s failed, so the devices don't get the attribute: %s: correct the expression, or return optional.none() for such devices", failed.counted("evaluation"), failed)
	}
	if conflicts := a.Conflicts; conflicts != nil {
		result.fail("%s with another value, so no device gets the attribute: %s: define an attribute in one object", conflicts.counted("attribute"), conflicts)
	}
	if over := a.OverLimit; over != nil {
		result.fail("%s would exceed the limits of Kubernetes for attributes, and got none: %s: define fewer attributes, or shorter lists", over.counted("device"), over)
	}
	return result
}

// origins sets the names of the DeviceAttributes objects that add the attributes to candidates.
func (c *checker) origins(facts *Facts, candidates []candidates) {
	if c.state.Added == nil {
		return
	}
	for i := range facts.Reads {
		read := &facts.Reads[i]
		for _, one := range distinct(candidates) {
			name := resourceapi.QualifiedName(read.Domain + "/" + read.Name)
			object, ok := c.state.Origin(one.id.Driver.String(), one.id.Pool.String(), one.id.Device.String(), name)
			if ok && !slices.Contains(read.From, object) {
				read.From = append(read.From, object)
			}
		}
		slices.Sort(read.From)
	}
}

// isAdded reports whether a candidate has the attribute from a DeviceAttributes object.
func (a *attributes) isAdded(name device.AttributeName) bool {
	if a.state.Added == nil {
		return false
	}
	return slices.ContainsFunc(a.state.Attributes, func(of *v1alpha1.DeviceAttributes) bool {
		return clusterstate.DomainOf(of) == name.Domain
	})
}

// print writes the effect of an object.
func (a *AddedAttributes) print(p *printer) {
	p.entry("driver", "%s: %d devices on the selected nodes", a.Driver, a.Devices)
	p.entry("added", "%d attributes in the domain %s", a.Attributes, a.Domain)
}
