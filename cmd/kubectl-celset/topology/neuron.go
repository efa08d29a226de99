// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	neuronDriver = "neuron.aws.com"
	// maxNeuronDevices limits the devices of a machine. The largest machines have 16 devices.
	maxNeuronDevices = 256
)

// A neuronDevice is an element of the output of "neuron-ls --json-output". Other fields are ignored.
type neuronDevice struct {
	Number      *int  `json:"neuron_device"`
	ConnectedTo []int `json:"connected_to"`
	// NUMANode is a number in a string. It is "-1" if the machine has no NUMA nodes.
	NUMANode any `json:"numa_node"`
}

// fromNeuronLS returns a row for each Neuron device with these attributes:
//
//	id        the key of the device, which connected devices have in their links
//	links     the ids of the connected devices
//	numaNode  the NUMA node
//
// The keys are the names that the driver gives the devices, or their numbers if --key is an attribute.
func fromNeuronLS(text string, o Options) ([]table, []string, error) {
	devices, err := parseNeuronLS(text)
	if err != nil {
		return nil, nil, err
	}
	t := table{driver: cmp.Or(o.Driver, neuronDriver), key: cmp.Or(o.Key, nameKey)}
	id := func(number int) string {
		if t.key == nameKey {
			return "neuron-device-" + strconv.Itoa(number)
		}
		return strconv.Itoa(number)
	}
	var warnings []string
	for _, d := range devices {
		values := attributes{"id": text1(id(*d.Number))}
		var links []string
		for _, other := range d.ConnectedTo {
			links = append(links, id(other))
		}
		values.addStrings("links", links)
		if node, err := strconv.ParseInt(fmt.Sprint(d.NUMANode), 10, 32); err == nil && node >= 0 {
			values["numaNode"] = number(node)
		}
		if len(links) == 0 && len(devices) > 1 {
			warnings = append(warnings, fmt.Sprintf("neuron_device %d is connected to no other device, so it gets no attribute links: exclude it with a selector", *d.Number))
		}
		t.rows = append(t.rows, row{key: id(*d.Number), values: values})
	}
	return []table{t}, warnings, nil
}

// parseNeuronLS returns the devices, sorted by number. Older versions of the tool print a list of devices; newer versions may wrap
// the list in an object with facts about the instance.
func parseNeuronLS(text string) ([]neuronDevice, error) {
	content := []byte(strings.TrimSpace(text))
	var devices []neuronDevice
	if bytes.HasPrefix(content, []byte("{")) {
		var wrapped struct {
			Devices []neuronDevice `json:"neuron_devices"`
		}
		if err := json.Unmarshal(content, &wrapped); err != nil {
			return nil, inJSON(content, err)
		}
		devices = wrapped.Devices
	} else if err := json.Unmarshal(content, &devices); err != nil {
		return nil, inJSON(content, err)
	}
	if len(devices) == 0 || len(devices) > maxNeuronDevices {
		return nil, fmt.Errorf("the input has %d devices: it must have 1 to %d", len(devices), maxNeuronDevices)
	}
	known := map[int]bool{}
	for i, d := range devices {
		if d.Number == nil || *d.Number < 0 {
			return nil, fmt.Errorf("element %d has no neuron_device with a number: give the output of \"neuron-ls --json-output\"", i)
		}
		if known[*d.Number] {
			return nil, fmt.Errorf("neuron_device %d occurs twice: give the output of one machine", *d.Number)
		}
		known[*d.Number] = true
	}
	for i := range devices {
		d := &devices[i]
		d.ConnectedTo = slices.Compact(slices.Sorted(slices.Values(d.ConnectedTo)))
		for _, other := range d.ConnectedTo {
			if !known[other] || other == *d.Number {
				return nil, fmt.Errorf("neuron_device %d: connected_to has %d, which is no other device of the input: give the whole output", *d.Number, other)
			}
		}
	}
	slices.SortFunc(devices, func(a, b neuronDevice) int { return cmp.Compare(*a.Number, *b.Number) })
	return devices, nil
}

// inJSON adds the line to an error of package json.
func inJSON(content []byte, err error) error {
	offset := int64(-1)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		offset = syntax.Offset
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		offset = wrong.Offset
	}
	if offset < 0 {
		return err
	}
	line := 1 + bytes.Count(content[:min(int(offset), len(content))], []byte("\n"))
	return fmt.Errorf("line %d: %w: give the output of \"neuron-ls --json-output\"", line, err)
}
