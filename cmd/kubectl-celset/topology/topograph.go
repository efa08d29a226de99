// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/deviceattributes"
)

const (
	nicDriver = "dra.net"
	nicKey    = "dra.net/pciAddress"
	// railsVersion is the only known version of the records with rails.
	railsVersion = "v1alpha1"
	// maxNodes limits the nodes of a ConfigMap.
	maxNodes = 10_000
)

// fromTopograph reads a ConfigMap of topograph. Two kinds of values are known:
//
//   - a record in JSON for each node, with the rails of its NICs and the NICs that are near its GPUs. Nodes with the same PCI
//     addresses and rails share an object. NICs get the attribute rail, or the list rails if a NIC has several. GPUs get the list
//     rails: the rails that they reach without crossing a PCIe host bridge.
//   - a topology.conf of Slurm, with the blocks or the switches of nodes. All devices of the driver get block, or switch.
func fromTopograph(text string, o Options) ([]table, []string, error) {
	var object corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		return nil, nil, fmt.Errorf("%w: give a ConfigMap as YAML, as \"kubectl get configmap -o yaml\" prints it", err)
	}
	if object.Kind != "ConfigMap" || len(object.Data) == 0 {
		return nil, nil, fmt.Errorf("the input is a %q with %d entries in data: give a ConfigMap of topograph", object.Kind, len(object.Data))
	}
	if len(object.Data) > maxNodes {
		return nil, nil, fmt.Errorf("data has %d entries: at most %d are supported", len(object.Data), maxNodes)
	}
	nodes := map[string]railRecord{}
	var tables []table
	for _, name := range slices.Sorted(maps.Keys(object.Data)) {
		value := object.Data[name]
		switch {
		case strings.HasPrefix(strings.TrimSpace(value), "{"):
			if !hostName.MatchString(name) {
				return nil, nil, fmt.Errorf("data[%q]: the key of a record must be the name of a node", name)
			}
			record, err := parseRails(value)
			if err != nil {
				return nil, nil, fmt.Errorf("data[%s]: %w", name, err)
			}
			nodes[name] = record
		case strings.Contains(value, "BlockName=") || strings.Contains(value, "SwitchName="):
			found, err := fromTopologyConf(value, o)
			if err != nil {
				return nil, nil, fmt.Errorf("data[%s]: %w", name, err)
			}
			tables = append(tables, found...)
		default:
			return nil, nil, fmt.Errorf("data[%s]: neither a record in JSON nor a topology.conf with BlockName= or SwitchName=: give a ConfigMap of topograph", name)
		}
	}
	rails, warnings := fromRails(nodes, o)
	if tables = append(tables, rails...); len(tables) == 0 {
		return nil, nil, fmt.Errorf("the ConfigMap has no NIC with a rail, and no block or switch with nodes: give a ConfigMap of topograph")
	}
	return tables, warnings, nil
}

// A railRecord is the record of a node. Other fields are ignored.
type railRecord struct {
	SchemaVersion string `json:"schemaVersion"`
	// NICs maps the PCI address of a NIC to its rails.
	NICs map[string][]string `json:"nics"`
	// GPUs maps the UUID of a GPU to its address and, for each rail, to the nearest NICs.
	GPUs map[string]railGPU `json:"gpus"`
}

type railGPU struct {
	PCIAddress string                  `json:"pciAddress"`
	Rails      map[string][]nearestNIC `json:"rails"`
}

type nearestNIC struct {
	NIC  string `json:"nic"`
	Path string `json:"path"`
}

func parseRails(value string) (railRecord, error) {
	var record railRecord
	if err := json.Unmarshal([]byte(value), &record); err != nil {
		return record, err
	}
	if record.SchemaVersion != railsVersion {
		return record, fmt.Errorf("schemaVersion %q: only %s is supported: update kubectl celset", record.SchemaVersion, railsVersion)
	}
	for uuid, gpu := range record.GPUs {
		for rail, nearest := range gpu.Rails {
			for _, n := range nearest {
				if _, err := parsePath(n.Path); err != nil {
					return record, fmt.Errorf("gpus[%s].rails[%s]: %w", uuid, rail, err)
				}
			}
		}
	}
	return record, nil
}

// fromRails returns a table with NICs and a table with GPUs for each group of nodes with the same rails.
func fromRails(nodes map[string]railRecord, o Options) (tables []table, warnings []string) {
	grouped := map[string]int{}
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		for _, t := range nodes[node].tables(o) {
			content := fmt.Sprintf("%q", describe(t))
			at, known := grouped[content]
			if !known {
				at = len(tables)
				grouped[content] = at
				tables = append(tables, t)
			}
			tables[at].nodes = append(tables[at].nodes, node)
		}
	}
	if len(nodes) > 0 && len(tables) == 0 {
		warnings = append(warnings, "no NIC of the records has a rail")
	}
	if len(tables) > 0 && !slices.ContainsFunc(tables, func(t table) bool { return len(t.nodes) < len(nodes) }) && o.NodeSelector != nil {
		// All nodes are alike, so the given selector suffices. It also selects nodes that join later.
		for i := range tables {
			tables[i].nodes = nil
		}
		return tables, warnings
	}
	return splitByNodes(tables), warnings
}

// splitByNodes returns tables with as many nodes as a node selector may list.
func splitByNodes(tables []table) (split []table) {
	for _, t := range tables {
		for part := range slices.Chunk(t.nodes, deviceattributes.MaxSelectorValues) {
			one := t
			one.nodes = part
			split = append(split, one)
		}
	}
	return split
}

// describe returns a text that is equal for equal tables.
func describe(t table) []string {
	text := []string{t.driver, t.key}
	for _, row := range t.rows {
		text = append(text, row.key)
		for _, name := range slices.Sorted(maps.Keys(row.values)) {
			value := row.values[name]
			text = append(text, name, value.String())
		}
	}
	return text
}

func (r railRecord) tables(o Options) (tables []table) {
	nics := table{driver: cmp.Or(o.Driver, nicDriver), key: cmp.Or(o.Key, nicKey)}
	several := false
	for _, rails := range r.NICs {
		several = several || len(rails) > 1
	}
	for _, address := range slices.Sorted(maps.Keys(r.NICs)) {
		rails := slices.Compact(slices.Sorted(slices.Values(r.NICs[address])))
		if len(rails) == 0 {
			continue
		}
		values := attributes{}
		if several {
			values.addStrings("rails", rails)
		} else {
			values["rail"] = text1(rails[0])
		}
		nics.rows = append(nics.rows, row{key: busID(address), values: values})
	}
	if len(nics.rows) > 0 {
		tables = append(tables, nics)
	}
	gpus := table{driver: gpuDriver, key: busIDKey}
	for _, uuid := range slices.Sorted(maps.Keys(r.GPUs)) {
		values := attributes{}
		values.addStrings("rails", r.GPUs[uuid].near())
		if len(values) > 0 {
			gpus.rows = append(gpus.rows, row{key: busID(r.GPUs[uuid].PCIAddress), values: values})
		}
	}
	slices.SortFunc(gpus.rows, func(a, b row) int { return cmp.Compare(a.key, b.key) })
	if len(gpus.rows) > 0 {
		tables = append(tables, gpus)
	}
	return tables
}

// near returns the rails that the GPU reaches without crossing a PCIe host bridge.
func (g railGPU) near() (rails []string) {
	for _, rail := range slices.Sorted(maps.Keys(g.Rails)) {
		if slices.ContainsFunc(g.Rails[rail], func(n nearestNIC) bool {
			p, err := parsePath(n.Path)
			return err == nil && p.kind > nvlink && p.kind <= manyBridges
		}) {
			rails = append(rails, rail)
		}
	}
	return rails
}
