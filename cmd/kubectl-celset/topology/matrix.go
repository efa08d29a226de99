// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A matrix is the output of "nvidia-smi topo -m".
type matrix struct {
	// names holds the GPUs and NICs, in the order of the columns. The first gpus names are GPUs.
	names []string
	gpus  int
	// paths maps two positions in names to the path between them. The rows of NICs may be missing.
	paths [][]path
	// numa holds the NUMA node of each GPU, or noNode.
	numa []int64
	// busIDs maps the number of a GPU to its PCI address, if the input has these.
	busIDs map[int]string
	// nics maps a NIC of the matrix to its name in the system.
	nics map[string]string
	// trailing is the number of columns after the paths. numaAt is the position of the column "NUMA Affinity" among them, or -1.
	trailing, numaAt int
}

const noNode = -1

// A path is the kind of connection between two devices.
type path struct {
	// kind is the position in pathKinds. links is the number of NVLinks of the kind nvlink.
	kind  int
	links int
}

// pathKinds lists the kinds of paths from near to far. unknownPath is the path of devices without a row.
var pathKinds = []string{"X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS"}

const (
	self = iota
	nvlink
	oneBridge
	manyBridges
	hostBridge
	sameNode
	anySystem
	unknownPath
)

const (
	// maxColumns limits the devices of a machine. The largest machines have 16 GPUs and fewer than 64 NICs.
	maxColumns = 256
	// maxLinks limits the number of NVLinks between two GPUs.
	maxLinks = 1024
)

var (
	gpuName = regexp.MustCompile(`^GPU([0-9]{1,3})$`)
	// escapes matches the codes of a terminal. nvidia-smi underlines the header with such codes.
	escapes   = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
	busIDLine = regexp.MustCompile(`^([0-9]{1,3})\s*,\s*(?:[^,]*,\s*)*((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$`)
	nicLine   = regexp.MustCompile(`^(NIC[0-9]+):\s*(\S+)$`)
)

// parseMatrix reads the output of "nvidia-smi topo -m". The output of "nvidia-smi --query-gpu=index,pci.bus_id --format=csv" may
// precede the matrix.
//
//  1. Lines before the header give the PCI addresses of GPUs.
//  2. The header names the columns. Columns after the devices have names of several words.
//  3. A row has the name of a device, a path for each device, and the cells of the other columns.
//  4. The legends follow. The legend of NICs maps NICs to their names in the system.
func parseMatrix(text string) (*matrix, error) {
	m := &matrix{busIDs: map[int]string{}, nics: map[string]string{}, numaAt: -1}
	rows := map[string]int{} // the line of the row of each device
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = escapes.ReplaceAllString(strings.TrimRight(line, "\r\n"), "")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var err error
		switch {
		case nicLine.MatchString(strings.TrimSpace(line)):
			found := nicLine.FindStringSubmatch(strings.TrimSpace(line))
			m.nics[found[1]] = found[2]
		case m.names == nil && busIDLine.MatchString(strings.TrimSpace(line)):
			err = m.addBusID(strings.TrimSpace(line))
		case gpuName.MatchString(words[0]) && !slices.Contains(words, "X"):
			err = m.setHeader(words)
		case slices.Contains(m.names, words[0]):
			if first := rows[words[0]]; first > 0 {
				err = fmt.Errorf("%s already has a row in line %d: give the matrix of one machine", words[0], first)
				break
			}
			rows[words[0]] = number
			err = m.addRow(line, words)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if m.names == nil {
		return nil, fmt.Errorf("no line begins with the columns GPU0, GPU1 and so on: give the output of \"nvidia-smi topo -m\"")
	}
	for _, name := range m.names[:m.gpus] {
		if rows[name] == 0 {
			return nil, fmt.Errorf("%s has a column but no row: give the whole output of \"nvidia-smi topo -m\"", name)
		}
	}
	return m, m.checkSymmetry(rows)
}

func (m *matrix) addBusID(line string) error {
	found := busIDLine.FindStringSubmatch(line)
	index, err := strconv.Atoi(found[1])
	if err != nil {
		return err
	}
	if known := m.busIDs[index]; known != "" {
		return fmt.Errorf("GPU %d already has the PCI address %s: give the addresses of one machine", index, known)
	}
	m.busIDs[index] = busID(found[2])
	return nil
}

// busID returns a PCI address in the form of the attribute resource.kubernetes.io/pciBusID: a domain of four digits, in small
// letters. nvidia-smi prints eight digits.
func busID(address string) string {
	address = strings.ToLower(address)
	if strings.Count(address, ":") == 1 {
		return "0000:" + address
	}
	domain, rest, _ := strings.Cut(address, ":")
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	return domain + ":" + rest
}

func (m *matrix) setHeader(words []string) error {
	if m.names != nil {
		return fmt.Errorf("a second matrix begins: give the matrix of one machine")
	}
	count := len(words)
	if at := slices.Index(words, "CPU"); at > 0 {
		count = at
	}
	if count > maxColumns {
		return fmt.Errorf("%d columns: at most %d devices are supported", count, maxColumns)
	}
	m.names = slices.Clone(words[:count])
	for i, name := range m.names {
		if slices.Index(m.names, name) < i {
			return fmt.Errorf("column %s occurs twice: give the output unchanged", name)
		}
		if !gpuName.MatchString(name) {
			continue
		}
		if m.gpus < i {
			return fmt.Errorf("column %s follows a NIC: give the output unchanged", name)
		}
		m.gpus++
	}
	m.paths = make([][]path, count)
	m.numa = slices.Repeat([]int64{noNode}, m.gpus)
	rest := strings.Join(words[count:], " ")
	for _, title := range []string{"CPU Affinity", "NUMA Affinity", "GPU NUMA ID"} {
		if strings.Contains(rest, title) {
			if title == "NUMA Affinity" {
				m.numaAt = m.trailing
			}
			m.trailing++
		}
	}
	return nil
}

func (m *matrix) addRow(line string, words []string) error {
	at := slices.Index(m.names, words[0])
	if len(words) < 1+len(m.names) {
		return fmt.Errorf("%s has %d values for %d devices: give the output unchanged", words[0], len(words)-1, len(m.names))
	}
	row := make([]path, len(m.names))
	for i, word := range words[1 : 1+len(m.names)] {
		var err error
		if row[i], err = parsePath(word); err != nil {
			return fmt.Errorf("%s, column %s: %w", words[0], m.names[i], err)
		}
		if (row[i].kind == self) != (i == at) {
			return fmt.Errorf("%s, column %s: %q, but X stands only where row and column are the same device: give the output unchanged", words[0], m.names[i], word)
		}
		if row[i].kind == nvlink && (at >= m.gpus || i >= m.gpus) {
			return fmt.Errorf("%s, column %s: %q, but only GPUs have NVLinks: give the output unchanged", words[0], m.names[i], word)
		}
	}
	m.paths[at] = row
	if at < m.gpus {
		m.numa[at] = m.numaOf(line, words[1+len(m.names):])
	}
	return nil
}

// numaOf returns the NUMA node in the cells after the paths. In pasted text with blanks instead of tabs, an empty cell is
// invisible. Then the node is unknown.
func (m *matrix) numaOf(line string, rest []string) int64 {
	if m.numaAt < 0 {
		return noNode
	}
	cell := ""
	switch cells := strings.Split(strings.TrimLeft(line, " "), "\t"); {
	case len(cells) > 1+len(m.names)+m.numaAt:
		cell = strings.TrimSpace(cells[1+len(m.names)+m.numaAt])
	case len(rest) == m.trailing:
		cell = rest[m.numaAt]
	}
	if node, err := strconv.ParseInt(cell, 10, 32); err == nil && node >= 0 {
		return node
	}
	return noNode
}

func parsePath(word string) (path, error) {
	if count, ok := strings.CutPrefix(word, "NV"); ok {
		if links, err := strconv.Atoi(count); err == nil && links > 0 && links <= maxLinks {
			return path{kind: nvlink, links: links}, nil
		}
	}
	if word == "SOC" { // the name of SYS in older versions
		word = "SYS"
	}
	if kind := slices.Index(pathKinds, word); kind >= 0 && kind != nvlink {
		return path{kind: kind}, nil
	}
	return path{}, fmt.Errorf("unknown path %q: expected X, NV and a number, PIX, PXB, PHB, NODE or SYS", word)
}

// checkSymmetry returns an error if two rows contradict each other.
func (m *matrix) checkSymmetry(rows map[string]int) error {
	for i := range m.names {
		for j := range i {
			if m.paths[i] == nil || m.paths[j] == nil || m.paths[i][j] == m.paths[j][i] {
				continue
			}
			return fmt.Errorf("lines %d and %d: the path from %s to %s differs from the path back: give the output unchanged",
				rows[m.names[i]], rows[m.names[j]], m.names[i], m.names[j])
		}
	}
	return nil
}

// between returns the path between two devices.
func (m *matrix) between(i, j int) path {
	switch {
	case m.paths[i] != nil:
		return m.paths[i][j]
	case m.paths[j] != nil:
		return m.paths[j][i]
	default:
		return path{kind: unknownPath}
	}
}

// hasNVLinks reports whether two GPUs are joined by NVLink.
func (m *matrix) hasNVLinks() bool {
	for i := range m.gpus {
		for j := range i {
			if m.between(i, j).kind == nvlink {
				return true
			}
		}
	}
	return false
}

// groups returns for each device the number of its group. Two devices are in one group if paths of at most the kind lead from one
// to the other. Groups are numbered from 0 in the order of the columns.
func (m *matrix) groups(farthest int) []int {
	group := slices.Repeat([]int{-1}, len(m.names))
	next := 0
	for first := range m.names {
		if group[first] >= 0 {
			continue
		}
		group[first] = next
		for queue := []int{first}; len(queue) > 0; queue = queue[1:] {
			for other := range m.names {
				if kind := m.between(queue[0], other).kind; group[other] < 0 && kind > nvlink && kind <= farthest {
					group[other] = next
					queue = append(queue, other)
				}
			}
		}
		next++
	}
	return group
}
