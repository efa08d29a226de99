// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"
)

// of is an attribute of a device of any driver.
func of(device, id string) string { return device + ".attributes[" + device + ".driver]." + id }

// each is the list of one attribute of all devices.
func each(id string) string { return "devices.map(d, " + of("d", id) + ")" }

// span is the distance between the smallest and the largest value.
func span(id string) string { return each(id) + ".max() - " + each(id) + ".min()" }

// neighbours is the condition of KEP-5254 that two devices stand side by side in
// a grid.
func neighbours(a, b string) string {
	beside := func(same, next string) string {
		return fmt.Sprintf("(%s == %s && (%s == %s + 1 || %s == %s - 1))",
			of(a, same), of(b, same), of(a, next), of(b, next), of(a, next), of(b, next))
	}
	return "(" + beside(attributeRow, attributeCol) + " || " + beside(attributeCol, attributeRow) + ")"
}

// expression draws an expression over devices for a set of about so many.
func (g *generator) expression(wanted int) string {
	if g.FailingExpression {
		return g.failingExpression()
	}
	switch {
	case g.rarely():
		return "!(" + g.simpleExpression(wanted) + ")"
	case g.oneIn2To(3):
		return "(" + g.simpleExpression(wanted) + ") && (" + g.simpleExpression(wanted) + ")"
	case g.rarely():
		return "(" + g.simpleExpression(wanted) + ") || (" + g.simpleExpression(wanted) + ")"
	default:
		return g.simpleExpression(wanted)
	}
}

// simpleExpression draws one of the shapes that constraints have in practice. None
// of them fails for devices with index, row, col and group.
func (g *generator) simpleExpression(wanted int) string {
	shapes := []func(wanted int) string{g.threshold, g.contiguous, g.different, g.sized, g.sum, g.box, g.ordered}
	if wanted > 1 {
		shapes = append(shapes, g.connected, g.paired)
	}
	return pick(g, shapes...)(wanted)
}

// threshold is about one device at a time.
func (g *generator) threshold(int) string {
	return pick(g,
		fmt.Sprintf("devices.all(d, %s <= %d)", of("d", attributeRow), g.between(0, 2)),
		fmt.Sprintf("devices.exists(d, %s == %d)", of("d", attributeCol), g.between(0, 2)),
		fmt.Sprintf("devices.exists_one(d, %s == 'group-1')", of("d", attributeGroup)),
		fmt.Sprintf("devices.filter(d, %s == 'group-2').size() >= 1", of("d", attributeGroup)),
		fmt.Sprintf("devices.all(d, has(%s))", of("d", attributeHealthy)),
	)
}

// contiguous is the ring of KEP-5254.
func (g *generator) contiguous(wanted int) string {
	switch {
	case g.maybe():
		return fmt.Sprintf("%s == %d", span(attributeIndex), max(0, wanted-1))
	case g.maybe():
		return span(attributeIndex) + " == size(devices) - 1"
	default:
		return fmt.Sprintf("%s <= %d", span(attributeRow), g.between(0, 1))
	}
}

func (g *generator) sum(wanted int) string {
	return pick(g,
		fmt.Sprintf("%s.sum() %% 2 == %d", each(attributeIndex), g.between(0, 1)),
		fmt.Sprintf("%s.sum() == %d", each(attributeIndex), g.between(wanted, 3*wanted)),
		fmt.Sprintf("%s.sum() >= %d", each(attributeCol), g.between(0, wanted)),
	)
}

// ordered depends on the order of the devices in the set.
func (g *generator) ordered(int) string {
	const last = "devices[size(devices) - 1]"
	return pick(g,
		of("devices[0]", attributeIndex)+" <= "+of(last, attributeIndex),
		of("devices[0]", attributeGroup)+" == 'group-2'",
		of(last, attributeRow)+" == 1",
		each(attributeCol)+".isSorted()",
		of("devices[0]", attributeGroup)+" < "+of(last, attributeGroup),
	)
}

func (g *generator) sized(wanted int) string {
	return fmt.Sprintf("size(devices) == %d", pick(g, wanted, wanted, wanted, wanted+1))
}

func (g *generator) connected(int) string {
	return "devices.all(d, devices.exists(other, d != other && " + neighbours("d", "other") + "))"
}

func (g *generator) paired(int) string {
	id := pick(g, attributeGroup, attributeRow)
	return fmt.Sprintf("devices.all(d, devices.exists_one(other, d != other && %s == %s))", of("d", id), of("other", id))
}

// box wants the devices to fill a rectangle of the grid.
func (g *generator) box(wanted int) string {
	area := fmt.Sprintf("(%s + 1) * (%s + 1)", span(attributeRow), span(attributeCol))
	return pick(g, area+" == size(devices)", fmt.Sprintf("%s <= %d", area, wanted))
}

func (g *generator) different(int) string {
	id := pick(g, attributeIndex, attributeGroup, attributeCol)
	return fmt.Sprintf("devices.all(d, devices.exists_one(other, %s == %s))", of("other", id), of("d", id))
}

// failingExpression draws an expression that fails for some devices: for those
// without an attribute, or with a value it can't divide by.
func (g *generator) failingExpression() string {
	id := pick(g, attributeIndex, attributeRow, attributeCol)
	macro := pick(g, "all", "exists", "exists_one")
	return strings.NewReplacer("MACRO", macro, "VALUE", of("d", id)).Replace(pick(g,
		"devices.MACRO(d, 6 / VALUE > 2)",
		"devices.MACRO(d, 6 % (VALUE - 1) == 0)",
		"devices.MACRO(d, d.attributes['"+sharedDomain+"']."+attributeRack+" == 'rack-1')",
		"devices.MACRO(d, VALUE > 0 && devices[3].driver == '"+gpuDriver+"')",
		"devices.MACRO(d, VALUE == 'text' || VALUE.startsWith('x'))",
	))
}
