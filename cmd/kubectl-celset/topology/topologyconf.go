// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// maxExpression limits the length of an expression that maps nodes to their block. The API permits 10,240 bytes.
const maxExpression = 8 << 10

// hostName matches the names of nodes, blocks and switches.
var hostName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,253}$`)

// fromTopologyConf returns tables with the computed attribute block or switch, for the blocks or the leaf switches of a
// topology.conf. An expression maps the name of the node to its block. Several tables have parts of a long map.
func fromTopologyConf(text string, o Options) ([]table, error) {
	nodes, attribute, err := parseTopologyConf(text)
	if err != nil {
		return nil, err
	}
	var tables []table
	for rest := slices.Sorted(maps.Keys(nodes)); len(rest) > 0; {
		var entries []string
		length := 0
		for len(rest) > 0 && length < maxExpression {
			entry := strconv.Quote(rest[0]) + ": " + strconv.Quote(nodes[rest[0]])
			entries, rest, length = append(entries, entry), rest[1:], length+len(entry)+2
		}
		tables = append(tables, table{driver: cmp.Or(o.Driver, gpuDriver), computed: []v1alpha1.ComputedAttribute{
			{Name: attribute, Expression: "{" + strings.Join(entries, ", ") + "}[?node.name]"},
		}})
	}
	return tables, nil
}

// parseTopologyConf maps nodes to their block or leaf switch. attribute is "block" or "switch".
func parseTopologyConf(text string) (nodes map[string]string, attribute string, err error) {
	nodes = map[string]string{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		fields := map[string]string{}
		for _, field := range strings.Fields(line) {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		kind, name := "block", fields["BlockName"]
		if name == "" {
			kind, name = "switch", fields["SwitchName"]
		}
		if name == "" || fields["Nodes"] == "" {
			continue
		}
		if attribute != "" && attribute != kind {
			return nil, "", fmt.Errorf("line %d: a %s with nodes follows a %s with nodes: give one of both", number, kind, attribute)
		}
		attribute = kind
		if !hostName.MatchString(name) || len(name) > resourceapi.DeviceAttributeMaxValueLength {
			return nil, "", fmt.Errorf("line %d: %q can't be the value of an attribute: give a name of letters, digits, dots, dashes and underscores, of at most %d bytes",
				number, name, resourceapi.DeviceAttributeMaxValueLength)
		}
		names, err := hostList(fields["Nodes"])
		if err != nil {
			return nil, "", fmt.Errorf("line %d: Nodes=%s: %w", number, fields["Nodes"], err)
		}
		for _, node := range names {
			if !hostName.MatchString(node) {
				return nil, "", fmt.Errorf("line %d: %q is not the name of a node: correct Nodes=", number, node)
			}
			if other := nodes[node]; other != "" {
				return nil, "", fmt.Errorf("line %d: node %s is in %s and in %s: list a node once", number, node, other, name)
			}
			nodes[node] = name
		}
		if len(nodes) > maxNodes {
			return nil, "", fmt.Errorf("line %d: more than %d nodes: at most so many are supported", number, maxNodes)
		}
	}
	if len(nodes) == 0 {
		return nil, "", fmt.Errorf("no line has BlockName= or SwitchName= and Nodes=: give a topology.conf with nodes")
	}
	return nodes, attribute, nil
}

// hostList expands a list of hosts of Slurm, such as "gpu-[1-4,07],login".
func hostList(list string) ([]string, error) {
	var names []string
	for len(list) > 0 {
		end := 0
		for depth := 0; end < len(list) && (list[end] != ',' || depth > 0); end++ {
			depth += strings.Count(list[end:end+1], "[") - strings.Count(list[end:end+1], "]")
		}
		expanded, err := hosts(list[:end])
		if err != nil {
			return nil, err
		}
		if names = append(names, expanded...); len(names) > maxNodes {
			return nil, fmt.Errorf("more than %d nodes: at most so many are supported", maxNodes)
		}
		list = strings.TrimPrefix(list[end:], ",")
	}
	return names, nil
}

// hosts expands one name with at most one list of ranges in brackets.
func hosts(name string) ([]string, error) {
	prefix, rest, bracketed := strings.Cut(name, "[")
	ranges, suffix, closed := strings.Cut(rest, "]")
	switch {
	case !bracketed && name != "" && !strings.Contains(name, "]"):
		return []string{name}, nil
	case !bracketed || !closed || strings.ContainsAny(suffix, "[]") || strings.Contains(ranges, "["):
		return nil, fmt.Errorf("%q: expected a name with one list of ranges, such as node[1-4]", name)
	}
	var names []string
	for part := range strings.SplitSeq(ranges, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%q: %q is not a number", name, first)
		}
		to, err := strconv.ParseUint(last, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%q: %q is not a number", name, last)
		}
		if to < from || to-from >= maxNodes {
			return nil, fmt.Errorf("%q: the range %s must rise, and have at most %d numbers", name, part, maxNodes)
		}
		if len(names) > maxNodes {
			return nil, fmt.Errorf("more than %d nodes: at most so many are supported", maxNodes)
		}
		for n := from; n <= to; n++ {
			names = append(names, fmt.Sprintf("%s%0*d%s", prefix, min(len(first), 10), n, suffix))
		}
	}
	return names, nil
}
