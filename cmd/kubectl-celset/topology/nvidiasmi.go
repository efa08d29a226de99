// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	gpuDriver = "gpu.nvidia.com"
	busIDKey  = "resource.kubernetes.io/pciBusID"
)

// linkKinds maps values of --links to the farthest path that is a link.
var linkKinds = map[string]int{"nvlink": nvlink, "PIX": oneBridge, "PXB": manyBridges, "PHB": hostBridge, "NODE": sameNode}

// LinkKinds returns the values of --links, from near to far.
func LinkKinds() []string { return []string{"nvlink", "PIX", "PXB", "PHB", "NODE"} }

// fromNvidiaSMI returns a row for each GPU with these attributes:
//
//	id          the key of the GPU, which other GPUs have in their links
//	links       the ids of the GPUs to which it has a link
//	links<N>    the ids of the GPUs to which it has at least N NVLinks, if the numbers of NVLinks differ. N is the highest number
//	numaNode    the NUMA node
//	pcieSwitch  a number that GPUs have in common if no path between them crosses a PCIe host bridge
//	nics        the names of the NICs on the shortest path, if none of these paths crosses a NUMA node or two host bridges
func fromNvidiaSMI(text string, o Options) ([]table, []string, error) {
	m, err := parseMatrix(text)
	if err != nil {
		return nil, nil, err
	}
	farthest, chosen := linkKinds[o.Links]
	switch {
	case o.Links != "" && !chosen:
		return nil, nil, fmt.Errorf("--links %q: must be one of %s", o.Links, strings.Join(LinkKinds(), ", "))
	case o.Links == "" && m.hasNVLinks():
		farthest = nvlink
	case o.Links == "":
		farthest = hostBridge
	}
	ids, key, err := m.keys(o.Key)
	if err != nil {
		return nil, nil, err
	}
	t := table{driver: cmp.Or(o.Driver, gpuDriver), key: key}
	var warnings []string
	switches := m.groups(manyBridges)
	most := m.mostLinks()
	for i, id := range ids {
		values := attributes{"id": text1(id)}
		values.addStrings("links", m.peers(ids, i, func(p path) bool { return p.kind > self && p.kind <= farthest }))
		if most > 0 && farthest == nvlink {
			values.addStrings(fmt.Sprintf("links%d", most), m.peers(ids, i, func(p path) bool { return p.kind == nvlink && p.links >= most }))
		}
		if m.numa[i] != noNode {
			values["numaNode"] = number(m.numa[i])
		}
		if m.sharesSwitch(switches, i) {
			values["pcieSwitch"] = number(int64(switches[i]))
		}
		values.addStrings("nics", m.nearestNICs(i))
		if _, linked := values["links"]; !linked && m.gpus > 1 {
			warnings = append(warnings, fmt.Sprintf("%s has no link to another GPU, so it gets no attribute links: exclude it with a selector, or count more paths as links with --links", m.names[i]))
		}
		t.rows = append(t.rows, row{key: id, values: values})
	}
	if slices.Contains(m.numa, noNode) && m.numaAt >= 0 {
		warnings = append(warnings, "the NUMA node of some GPUs is not in the output, so they get no attribute numaNode")
	}
	return []table{t}, warnings, nil
}

// keys returns the keys of the GPUs, which are values of the attribute. The default attribute is the PCI address if the input has
// addresses, and the name of the device otherwise.
func (m *matrix) keys(attribute string) (keys []string, of string, err error) {
	if attribute == "" {
		attribute = nameKey
		if len(m.busIDs) > 0 {
			attribute = busIDKey
		}
	}
	for _, name := range m.names[:m.gpus] {
		number, err := strconv.Atoi(gpuName.FindStringSubmatch(name)[1])
		if err != nil {
			return nil, "", err
		}
		key := ""
		switch _, last, _ := strings.Cut(attribute, "/"); {
		case attribute == nameKey:
			key = fmt.Sprintf("gpu-%d", number)
		case last == "index":
			key = strconv.Itoa(number)
		case attribute == busIDKey || strings.HasPrefix(strings.ToLower(last), "pci"):
			if key = m.busIDs[number]; key == "" {
				return nil, "", fmt.Errorf("the input has no PCI address of %s: put the output of \"nvidia-smi --query-gpu=index,pci.bus_id --format=csv\" before the matrix", name)
			}
		default:
			return nil, "", fmt.Errorf("--key %q: must be name, an attribute index, or an attribute with the PCI address such as %s", attribute, busIDKey)
		}
		keys = append(keys, key)
	}
	return keys, attribute, nil
}

// peers returns the ids of the other GPUs whose path is accepted.
func (m *matrix) peers(ids []string, of int, accepted func(path) bool) []string {
	var peers []string
	for other, id := range ids {
		if other != of && accepted(m.between(of, other)) {
			peers = append(peers, id)
		}
	}
	return peers
}

// mostLinks returns the highest number of NVLinks between two GPUs, or 0 if all pairs with NVLinks have the same number.
func (m *matrix) mostLinks() int {
	most, least := 0, maxLinks+1
	for i := range m.gpus {
		for j := range i {
			if p := m.between(i, j); p.kind == nvlink {
				most, least = max(most, p.links), min(least, p.links)
			}
		}
	}
	if most == least {
		return 0
	}
	return most
}

// sharesSwitch reports whether another device is in the group of the device.
func (m *matrix) sharesSwitch(groups []int, of int) bool {
	for other, group := range groups {
		if other != of && group == groups[of] {
			return true
		}
	}
	return false
}

// nearestNICs returns the names of the NICs with the shortest path to a GPU.
func (m *matrix) nearestNICs(gpu int) []string {
	nearest := hostBridge
	for i := m.gpus; i < len(m.names); i++ {
		nearest = min(nearest, m.between(gpu, i).kind)
	}
	var names []string
	for i := m.gpus; i < len(m.names); i++ {
		if m.between(gpu, i).kind != nearest {
			continue
		}
		name := m.names[i]
		if known := m.nics[name]; known != "" {
			name = known
		}
		names = append(names, name)
	}
	return names
}
