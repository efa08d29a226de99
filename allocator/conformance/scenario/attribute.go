// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// These are attributes of devices. Unless a comment says otherwise, they belong to the domain of the driver.
const (
	attributeIndex   = "index"   // int, the position of the device in its pool
	attributeRow     = "row"     // int
	attributeCol     = "col"     // int
	attributeGroup   = "group"   // string
	attributeModel   = "model"   // string
	attributeHealthy = "healthy" // bool
	attributeVersion = "version" // version
	attributeRack    = "rack"    // string, in the shared domain
	attributeLinks   = "links"   // a list of any type or a scalar, in the shared domain
)

// attributes draws attributes of all types, with qualified and unqualified names. CEL constraints read index, row, col, group.
func (p *poolDraw) attributes() map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	index := int64(p.names - 1)
	if p.rarely() {
		index = int64(p.between(0, 3))
	}
	attributes := make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute)
	set := func(name string, value resourceapi.DeviceAttribute) {
		if !p.CELConstraints && p.rarely() {
			return
		}
		attributes[p.attributeName(name)] = value
	}
	set(attributeIndex, intAttribute(index))
	set(attributeRow, intAttribute(int64(p.between(0, 2))))
	set(attributeCol, intAttribute(int64(p.between(0, 2))))
	set(attributeGroup, stringAttribute(pick(p.generator, "group-1", "group-2", "group-2", "group-3")))
	set(attributeModel, p.model())
	set(attributeHealthy, resourceapi.DeviceAttribute{BoolValue: ptr.To(!p.sometimes())})
	set(attributeVersion, resourceapi.DeviceAttribute{VersionValue: ptr.To(pick(p.generator, "1.0.0", "1.2.0"))})
	if p.drawsLists() {
		attributes[sharedDomain+"/"+attributeLinks] = p.links()
	}
	if !p.sometimes() {
		attributes[sharedDomain+"/"+attributeRack] = stringAttribute(pick(p.generator, "rack-1", "rack-2"))
	}
	return attributes
}

func (p *poolDraw) attributeName(id string) resourceapi.QualifiedName {
	if p.sometimes() {
		return resourceapi.QualifiedName(p.driver + "/" + id)
	}
	return resourceapi.QualifiedName(id)
}

// drawsLists draws whether a device gets list attributes. If the feature is off, a list makes all selectors fail.
func (p *poolDraw) drawsLists() bool {
	if !p.Features.ListTypeAttributes && (!p.Faults || !p.isAbout(listTheme) && !p.oneIn2To(3)) {
		return false
	}
	return p.mostly(listTheme)
}

// links draws a short list of few different values, so that some devices have common values.
func (p *poolDraw) links() resourceapi.DeviceAttribute {
	texts := func() []string {
		return pick(p.generator, []string{"a", "b"}, []string{"b", "c"}, []string{"a"}, []string{"c", "d"}, []string{"a", "b", "c"})
	}
	switch p.fairly(4) {
	case 8, 9:
		return resourceapi.DeviceAttribute{IntValues: pick(p.generator, []int64{1, 2}, []int64{2, 3}, []int64{3, 4})}
	case 10:
		return intAttribute(2)
	case 11:
		return resourceapi.DeviceAttribute{BoolValues: pick(p.generator, []bool{true}, []bool{true, false})}
	case 12, 13:
		return resourceapi.DeviceAttribute{VersionValues: pick(p.generator, []string{"1.0.0"}, []string{"1.0.0", "1.2.0"}, []string{"1.2.0"})}
	case 14, 15:
		return stringAttribute(pick(p.generator, "a", "b"))
	default:
		return resourceapi.DeviceAttribute{StringValues: texts()}
	}
}

// model draws a string or, as a mistake, another type, a list, or an unknown type. The last two make all selectors fail.
func (p *poolDraw) model() resourceapi.DeviceAttribute {
	switch {
	case p.oneIn2To(5):
		return intAttribute(1)
	case p.fault():
		return resourceapi.DeviceAttribute{StringValues: []string{"a", "b"}}
	case p.fault():
		return resourceapi.DeviceAttribute{}
	default:
		return stringAttribute(pick(p.generator, "model-1", "model-2"))
	}
}

func intAttribute(value int64) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: ptr.To(value)}
}

func stringAttribute(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: ptr.To(value)}
}
