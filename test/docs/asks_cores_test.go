// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"slices"

	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/internal/topology/machine"
)

// gpusAndCores has the GPUs of an HGX H100, and of each socket the first cores with a device for
// each of their CPUs: fewer than there are, since sets of more than 64 devices don't fit.
func gpusAndCores() topology.Topology {
	const coresOfEach = 4
	var devices []topology.Device
	for _, name := range []string{"hgx-h100", "cpu-each"} {
		m, err := machine.ByName(name)
		if err != nil {
			panic(err) // the names are constants
		}
		devices = append(devices, m.Topology(nodeName).Devices...)
	}
	devices = slices.DeleteFunc(devices, func(d topology.Device) bool {
		return d.Driver != "gpu.nvidia.com" && (d.Driver != "dra.cpu" || coreOf(d).number >= coresOfEach)
	})
	return topology.Topology{Kind: topology.Machine, Devices: devices}
}

type core struct{ socket, number int64 }

func coreOf(d topology.Device) core {
	return core{intOf(d, "dra.cpu/socketID"), intOf(d, "dra.cpu/coreID")}
}

func areWholeCores(set []topology.Device) bool {
	for _, threads := range tally(set, coreOf) {
		if threads != 2 {
			return false
		}
	}
	return true
}

func allCPUsAtGPUs(set []topology.Device) bool {
	socket := int64(socketOfHGX(ofDriver(set, "gpu.nvidia.com")[0]))
	return !slices.ContainsFunc(ofDriver(set, "dra.cpu"), func(d topology.Device) bool { return coreOf(d).socket != socket })
}
