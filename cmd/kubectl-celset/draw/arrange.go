// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// maxColumns is the number of devices in a row of a panel without two-dimensional coordinates.
const maxColumns = 8

// maxGap is the largest difference between neighbouring coordinates that the picture keeps. Larger differences become 2.
const maxGap = 4

// maxArea is the maximum number of places in a panel, rows times columns. If the coordinates would need more, they are ignored,
// because the drawing would be unreadable.
const maxArea = 1 << 14

type point struct{ row, col int }

// arrange gives each device a separate place. A device gets the place of its coordinates if that place is free. All other
// devices get rows below.
func (p *Panel) arrange(options Options) {
	at := p.coordinates(options)
	if area(at) > maxArea {
		at = nil
	}
	p.Arrangement = ByCoordinates
	if len(at) == 0 {
		p.Arrangement = ByOrder
		if slices.ContainsFunc(p.Devices, func(d Device) bool { return len(d.Peers) > 0 }) {
			p.Arrangement = ByLinks
		}
	}
	taken, bottom := make(map[point]bool), 0
	var unplaced []*Device
	for i := range p.Devices {
		device := &p.Devices[i]
		position, found := at[i]
		if !found || taken[position] {
			unplaced = append(unplaced, device)
			continue
		}
		taken[position] = true
		device.Row, device.Col = position.row, position.col
		bottom = max(bottom, position.row+1)
	}
	columns := max(1, min(maxColumns, int(math.Ceil(math.Sqrt(float64(len(unplaced)))))))
	for i, device := range unplaced {
		device.Row, device.Col = bottom+i/columns, i%columns
	}
}

func area(at map[int]point) int {
	rows, cols := 0, 0
	for _, place := range at {
		rows, cols = max(rows, place.row+1), max(cols, place.col+1)
	}
	return rows * cols
}

// coordinates maps the index of each device that has coordinates to its place.
func (p *Panel) coordinates(options Options) map[int]point {
	if options.Row != "" || options.Col != "" {
		return p.plane(options.Row, options.Col)
	}
	if at := p.plane("row", "col"); len(at) > 0 {
		return at
	}
	if at := p.layers("x", "y", "z"); len(at) > 0 {
		return at
	}
	if at := p.plane("y", "x"); len(at) > 0 {
		return at
	}
	// Devices of neuron.aws.com have these attributes.
	if at := p.layers("topology_x", "topology_y", "topology_z"); len(at) > 0 {
		return at
	}
	if at := p.plane("topology_y", "topology_x"); len(at) > 0 {
		return at
	}
	p.inLine = true
	return p.line("index")
}

// plane uses two attributes as row and column. If the name of an attribute is empty, that coordinate is 0 for all devices.
func (p *Panel) plane(row, col string) map[int]point {
	at := make(map[int]point)
	rows, cols := p.compact(row), p.compact(col)
	for i := range p.Devices {
		r, hasRow := rows[i]
		c, hasCol := cols[i]
		if (hasRow || row == "") && (hasCol || col == "") {
			at[i] = point{r, c}
		}
	}
	return at
}

// layers draws three-dimensional coordinates as one plane for each value of z. The planes are side by side, with an empty
// column between them.
func (p *Panel) layers(x, y, z string) map[int]point {
	layers := p.compact(z)
	if len(layers) == 0 {
		return nil
	}
	at, width := p.plane(y, x), 0
	for _, place := range at {
		width = max(width, place.col+1)
	}
	for i, place := range at {
		if layer, found := layers[i]; found {
			at[i] = point{place.row, place.col + layer*(width+1)}
		} else {
			delete(at, i)
		}
	}
	return at
}

// line arranges devices with a one-dimensional index in rows of maxColumns devices.
func (p *Panel) line(index string) map[int]point {
	at := make(map[int]point)
	for i, position := range p.compact(index) {
		at[i] = point{position / maxColumns, position % maxColumns}
	}
	return at
}

// compact maps device indices to values of an int attribute. It shifts the values so that they start at 0, and shortens large
// gaps.
func (p *Panel) compact(name string) map[int]int {
	values := make(map[int]int64)
	for i := range p.Devices {
		if value, found := p.Devices[i].attribute(name); found && value.IntValue != nil {
			values[i] = *value.IntValue
		}
	}
	distinct := make([]int64, 0, len(values))
	for _, value := range values {
		distinct = append(distinct, value)
	}
	slices.Sort(distinct)
	distinct = slices.Compact(distinct)
	places := make(map[int64]int, len(distinct))
	for i, value := range distinct {
		if i > 0 {
			gap := uint64(value) - uint64(distinct[i-1])
			if gap > maxGap {
				gap = 2
			}
			places[value] = places[distinct[i-1]] + int(gap)
		} else {
			places[value] = 0
		}
	}
	result := make(map[int]int, len(values))
	for i, value := range values {
		result[i] = places[value]
	}
	return result
}

// attribute returns an attribute of the device. The name is "domain/name" or "name". Without a domain, the first domain that
// has the name is used.
func (d *Device) attribute(name string) (resourceapi.DeviceAttribute, bool) {
	if name == "" {
		return resourceapi.DeviceAttribute{}, false
	}
	if value, found := d.attributes[resourceapi.QualifiedName(name)]; found {
		return value, true
	}
	var names []resourceapi.QualifiedName
	for full := range d.attributes {
		_, id, qualified := strings.Cut(string(full), "/")
		// An attribute that a driver publishes without a domain is in the driver's domain.
		if qualified && id == name || !qualified && strings.HasSuffix(name, "/"+string(full)) {
			names = append(names, full)
		}
	}
	if len(names) == 0 {
		return resourceapi.DeviceAttribute{}, false
	}
	return d.attributes[slices.MinFunc(names, func(a, b resourceapi.QualifiedName) int { return cmp.Compare(a, b) })], true
}

// peerAttributes lists the attributes that name the linked devices.
var peerAttributes = []string{"peerList", "peers", "neighbors", "links"}

// link sets the peers of each device. If a device publishes a link to a second device, the second one gets the link, too.
func (p *Panel) link() {
	known := make(map[string]int)
	for i := range p.Devices {
		known[p.Devices[i].Name] = i
	}
	for i := range p.Devices {
		if id, found := p.Devices[i].attribute("id"); found && id.StringValue != nil {
			known[*id.StringValue] = i
		} else if found && id.IntValue != nil {
			known[strconv.FormatInt(*id.IntValue, 10)] = i
		}
	}
	for i := range p.Devices {
		for _, name := range p.Devices[i].peerNames() {
			if j, found := known[name]; found && i != j {
				p.Devices[i].addPeer(p.Devices[j].label)
				p.Devices[j].addPeer(p.Devices[i].label)
			}
		}
	}
	for i := range p.Devices {
		slices.Sort(p.Devices[i].Peers)
	}
}

func (d *Device) addPeer(label string) {
	if !slices.Contains(d.Peers, label) {
		d.Peers = append(d.Peers, label)
	}
}

func (d *Device) peerNames() []string {
	for _, name := range peerAttributes {
		value, found := d.attribute(name)
		switch {
		case found && value.StringValues != nil:
			return value.StringValues
		case found && value.IntValues != nil:
			names := make([]string, len(value.IntValues))
			for i, id := range value.IntValues {
				names[i] = strconv.FormatInt(id, 10)
			}
			return names
		case found && value.IntValue != nil:
			return []string{strconv.FormatInt(*value.IntValue, 10)}
		case found && value.StringValue != nil:
			return strings.FieldsFunc(*value.StringValue, func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	return nil
}
